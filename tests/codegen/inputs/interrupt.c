// Preloaded: a file of a new name is made, and SIGTERM comes at once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>

int mkstemps(char *template, int suffix) {
    int (*make)(char *, int) = (int (*)(char *, int))dlsym(RTLD_NEXT, "mkstemps");
    const int file = make(template, suffix);
    raise(SIGTERM);
    return file;
}
