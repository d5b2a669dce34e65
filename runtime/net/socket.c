#include "runtime/net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

void hrt_net_socket_rest(double seconds) {
    const struct timespec time = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

// ---- addresses

struct hrt_address_text hrt_net_address_text(const struct hrt_address *address) {
    struct hrt_address_text text;
    char host[64] = "?";
    const bool six = address->at.ss_family == AF_INET6;
    getnameinfo((const struct sockaddr *)&address->at, address->bytes, host, sizeof host, NULL, 0,
                NI_NUMERICHOST);
    snprintf(text.text, sizeof text.text, six ? "[%s]:%d" : "%s:%d", host,
             hrt_net_address_port(address));
    return text;
}

bool hrt_net_address_find(const char *host, int port, struct hrt_address *address,
                          const char **why) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int code = getaddrinfo(host, NULL, &hints, &found);
    *why = code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code);
    if (code != 0) return false;
    *address = (struct hrt_address){.bytes = found->ai_addrlen};
    memcpy(&address->at, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    hrt_net_address_set_port(address, port);
    return true;
}

int hrt_net_address_port(const struct hrt_address *address) {
    if (address->at.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&address->at)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&address->at)->sin_port);
}

void hrt_net_address_set_port(struct hrt_address *address, int port) {
    if (address->at.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&address->at)->sin6_port = htons((uint16_t)port);
    } else {
        ((struct sockaddr_in *)&address->at)->sin_port = htons((uint16_t)port);
    }
}

// The bytes of an address, 4 or 16, without its port.
static int bytes_of(const struct hrt_address *address, unsigned char bytes[16]) {
    if (address->at.ss_family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)&address->at)->sin6_addr, 16);
        return 16;
    }
    memcpy(bytes, &((const struct sockaddr_in *)&address->at)->sin_addr, 4);
    return 4;
}

bool hrt_net_address_same_host(const struct hrt_address *a, const struct hrt_address *b) {
    unsigned char one[16], other[16];
    const int length = bytes_of(a, one);
    return bytes_of(b, other) == length && memcmp(one, other, (size_t)length) == 0;
}

bool hrt_net_address_is_loopback(const struct hrt_address *address) {
    static const unsigned char six[16] = {[15] = 1};
    unsigned char bytes[16];
    return bytes_of(address, bytes) == 4 ? bytes[0] == 127 : memcmp(bytes, six, 16) == 0;
}

// Reads "10.0.0.0/8". Returns the bytes of an address, 4 or 16; 0: it is none.
static int read_subnet(const char *subnet, unsigned char bytes[16], int *bits) {
    char text[64], *end;
    const char *slash = strchr(subnet, '/');
    if (!slash || slash == subnet || (size_t)(slash - subnet) >= sizeof text) return 0;
    memcpy(text, subnet, (size_t)(slash - subnet));
    text[slash - subnet] = '\0';
    const int length = inet_pton(AF_INET, text, bytes) == 1    ? 4
                       : inet_pton(AF_INET6, text, bytes) == 1 ? 16
                                                               : 0;
    const long number = strtol(slash + 1, &end, 10);
    if (end == slash + 1 || *end || number < 0 || number > 8 * length) return 0;
    *bits = (int)number;
    return length;
}

bool hrt_net_subnet_is_sound(const char *subnet) {
    unsigned char bytes[16];
    int bits;
    return read_subnet(subnet, bytes, &bits) > 0;
}

bool hrt_net_address_is_in(const struct hrt_address *address, const char *subnet) {
    unsigned char net[16], bytes[16];
    int bits;
    const int length = read_subnet(subnet, net, &bits);
    if (length == 0 || bytes_of(address, bytes) != length) return false;
    for (int bit = 0; bit < bits; bit++) {
        if ((net[bit / 8] ^ bytes[bit / 8]) >> (7 - bit % 8) & 1) return false;
    }
    return true;
}

// ---- connections

static struct hrt_address own_end(int fd) {
    struct hrt_address address = {.bytes = sizeof address.at};
    getsockname(fd, (struct sockaddr *)&address.at, &address.bytes);
    return address;
}

struct hrt_address hrt_net_socket_peer(int fd) {
    struct hrt_address address = {.bytes = sizeof address.at};
    getpeername(fd, (struct sockaddr *)&address.at, &address.bytes);
    return address;
}

int hrt_net_socket_port(int fd) {
    const struct hrt_address address = own_end(fd);
    return hrt_net_address_port(&address);
}

bool hrt_net_socket_is_near(int fd, const char *subnet) {
    const struct hrt_address peer = hrt_net_socket_peer(fd), own = own_end(fd);
    if (hrt_net_address_is_loopback(&peer) || hrt_net_address_same_host(&peer, &own)) return true;
    return subnet && hrt_net_address_is_in(&peer, subnet);
}

int hrt_net_socket_listen(const struct hrt_address *address, bool loopback) {
    const int on = 1, family = address->at.ss_family;
    struct hrt_address at = *address;
    if (family == AF_INET6) {
        ((struct sockaddr_in6 *)&at.at)->sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    } else {
        ((struct sockaddr_in *)&at.at)->sin_addr.s_addr =
            htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    }
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at.at, at.bytes) == 0 && listen(fd, 4096) == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void tune(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int hrt_net_socket_accept(int fd) {
    const int connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) tune(connection);
    return connection;
}

// Waits until `fd` is ready. False: errno is ETIMEDOUT.
static bool await(int fd, short events, double deadline) {
    struct pollfd wait = {.fd = fd, .events = events};
    for (;;) {
        const double left = deadline - hrt_base_now();
        const int ready = poll(&wait, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (ready > 0) return true;
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) errno = ETIMEDOUT;
        return false;
    }
}

int hrt_net_socket_begin_connect(const struct hrt_address *address) {
    const int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    tune(fd);
    if (connect(fd, (const struct sockaddr *)&address->at, address->bytes) == 0 ||
        errno == EINPROGRESS)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

bool hrt_net_socket_connected(int fd) {
    int error = 0;
    socklen_t bytes = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return false;
    errno = error;
    return error == 0;
}

int hrt_net_socket_connect(const struct hrt_address *address, double deadline) {
    const int fd = hrt_net_socket_begin_connect(address);
    if (fd < 0 || (await(fd, POLLOUT, deadline) && hrt_net_socket_connected(fd))) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

bool hrt_net_socket_send(int fd, const void *data, size_t bytes, double deadline) {
    for (size_t at = 0; at < bytes;) {
        const ssize_t sent = send(fd, (const char *)data + at, bytes - at, MSG_NOSIGNAL);
        if (sent > 0) at += (size_t)sent;
        if (sent >= 0 || errno == EINTR) continue;
        if (errno != EAGAIN || !await(fd, POLLOUT, deadline)) return false;
    }
    return true;
}

bool hrt_net_socket_receive(int fd, void *data, size_t bytes, double deadline) {
    for (size_t at = 0; at < bytes;) {
        const ssize_t came = recv(fd, (char *)data + at, bytes - at, 0);
        if (came > 0) at += (size_t)came;
        if (came > 0 || (came < 0 && errno == EINTR)) continue;
        if (came == 0) errno = 0;
        if (came == 0 || errno != EAGAIN || !await(fd, POLLIN, deadline)) return false;
    }
    return true;
}
