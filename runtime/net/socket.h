// Sockets with deadlines. Descriptors never block. Deadlines are times of hrt_base_now.
#ifndef HECATE_RUNTIME_NET_SOCKET_H
#define HECATE_RUNTIME_NET_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

// Sleeps so many seconds.
void hrt_net_socket_rest(double seconds);

struct hrt_address {
    struct sockaddr_storage at;
    socklen_t bytes;
};

struct hrt_address_text {
    char text[80]; // "10.0.0.1:29500"
};
struct hrt_address_text hrt_net_address_text(const struct hrt_address *address);

// The address of HOST, a name or a number. False: `why` says why not.
bool hrt_net_address_find(const char *host, int port, struct hrt_address *address,
                          const char **why);

int hrt_net_address_port(const struct hrt_address *address);
void hrt_net_address_set_port(struct hrt_address *address, int port);
bool hrt_net_address_same_host(const struct hrt_address *a, const struct hrt_address *b);
bool hrt_net_address_is_loopback(const struct hrt_address *address);

// Whether the other end of a connection is on this machine, or in `subnet` ("10.0.0.0/8"; NULL: none).
bool hrt_net_socket_is_near(int fd, const char *subnet);

// "10.0.0.0/8" or "fd00::/8".
bool hrt_net_subnet_is_sound(const char *subnet);
bool hrt_net_address_is_in(const struct hrt_address *address, const char *subnet);

// Listens at all addresses of this machine of the family of `address`, or at its loopback alone. -1, and errno.
int hrt_net_socket_listen(const struct hrt_address *address, bool loopback);

// The port that a socket listens at; and where the other end of a connection is.
int hrt_net_socket_port(int fd);
struct hrt_address hrt_net_socket_peer(int fd);

// The next connection, once poll says that there is one. -1: none after all.
int hrt_net_socket_accept(int fd);

// Begins to connect: poll says by POLLOUT that it has ended, and hrt_net_socket_connected how. -1, and errno.
int hrt_net_socket_begin_connect(const struct hrt_address *address);

// Whether a connection that has begun stands. False, and errno.
bool hrt_net_socket_connected(int fd);

// Connects once. -1, and errno.
int hrt_net_socket_connect(const struct hrt_address *address, double deadline);

// Sends or receives all of `data`. False, and errno; 0: the other end has closed, or ETIMEDOUT.
bool hrt_net_socket_send(int fd, const void *data, size_t bytes, double deadline);
bool hrt_net_socket_receive(int fd, void *data, size_t bytes, double deadline);

#endif
