#include "tools/restart/progress.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

// -1: it is not the name of a checkpoint.
static int64_t step_of(const char *name) {
    if (strncmp(name, "step-", 5) != 0) return -1;
    char *end;
    const long long step = strtoll(name + 5, &end, 10);
    return *end || end == name + 5 ? -1 : step;
}

int64_t restart_newest(const char *folder) {
    int64_t newest = 0;
    DIR *files = opendir(folder);
    const struct dirent *file;
    while (files && (file = readdir(files))) {
        const int64_t step = step_of(file->d_name);
        if (step > newest) newest = step;
    }
    if (files) closedir(files);
    return newest;
}
