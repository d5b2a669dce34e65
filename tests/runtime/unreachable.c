// Preloaded into a rank: its first UNREACHABLE_TIMES connections to other ports than UNREACHABLE_BUT find no route.
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int connect(int fd, const struct sockaddr *address, socklen_t bytes) {
    static int times;
    int (*real)(int, const struct sockaddr *, socklen_t);
    *(void **)&real = dlsym(RTLD_NEXT, "connect");
    const char *but = getenv("UNREACHABLE_BUT"), *most = getenv("UNREACHABLE_TIMES");
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    if (address->sa_family != AF_INET || !but || !most || ntohs(in->sin_port) == atoi(but) ||
        times++ >= atoi(most))
        return real(fd, address, bytes);
    errno = EHOSTUNREACH;
    return -1;
}
