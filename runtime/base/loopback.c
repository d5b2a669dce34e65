// HTTP as far as a browser and a scraper on this machine need it. Descriptors never block: one loop waits for all clients,
// each of whom has a deadline.
#include "runtime/base/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { CLIENTS = 32, SECONDS = 5, HEAD = 8192 };

struct client {
    int fd;          // -1: nobody.
    double deadline; // For its question, or else for taking the answer.
    size_t asked;    // Bytes of `head`.
    char *answer;    // Owned; NULL: it has not asked yet.
    size_t at, bytes;
    char head[HEAD];
};

struct hrt_loopback {
    int listening, stop; // The latter is readable from hrt_base_loopback_stop on.
    struct client client[CLIENTS];
};

struct resource {
    const char *path, *type;
    hrt_loopback_fn *write;
    void *context;
};

// ---- what is asked

// A page of another site, whose name somebody has made to mean this machine, says that name here.
static bool is_asked_here(const char *head) {
    static const char *const names[] = {"127.0.0.1", "localhost"};
    const char *host = strcasestr(head, "\r\nhost:");
    if (!host) return true;
    host += strlen("\r\nhost:");
    host += strspn(host, " \t");
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 && strchr(":\r", host[length])) return true;
    }
    return false;
}

static const char *refuse(const char *head, const char *path) {
    if (strncmp(head, "GET ", 4) != 0) return "405 Method Not Allowed";
    if (!is_asked_here(head)) return "403 Forbidden";
    const char *asked = head + 4;
    const size_t length = strcspn(asked, " ?\r"), own = strlen(path);
    const bool known =
        (length == 1 && *asked == '/') || (length == own && strncmp(asked, path, own) == 0);
    return known ? NULL : "404 Not Found";
}

// ---- answers

static void leave(struct client *client) {
    close(client->fd);
    free(client->answer);
    client->fd = -1;
    client->answer = NULL;
}

// The whole answer, behind its head. NULL: no memory.
static char *compose(const char *status, const char *type, const char *text, size_t *bytes) {
    char head[256];
    const int length = snprintf(head, sizeof head,
                                "HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                                "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
                                status, type, *bytes);
    char *all = malloc((size_t)length + *bytes);
    if (!all) return NULL;
    memcpy(all, head, (size_t)length);
    memcpy(all + length, text, *bytes);
    *bytes += (size_t)length;
    return all;
}

static void answer(struct client *client, const struct resource *resource) {
    char *text = NULL;
    size_t bytes = 0;
    const char *refused = refuse(client->head, resource->path);
    FILE *out = refused ? NULL : open_memstream(&text, &bytes);
    const bool written = out && resource->write(resource->context, out);
    const bool closed = out && fclose(out) == 0;
    const bool sound = written && closed;
    if (!sound) bytes = 0;
    client->answer =
        sound ? compose("200 OK", resource->type, text, &bytes)
              : compose(refused ? refused : "503 Service Unavailable", "text/plain", "", &bytes);
    client->bytes = bytes;
    client->at = 0;
    client->deadline = hrt_base_now() + SECONDS;
    free(text);
    if (!client->answer) leave(client);
}

// ---- clients

// Takes in what has come, and answers when that is a whole head.
static void hear(struct client *client, const struct resource *resource) {
    const size_t room = HEAD - 1 - client->asked;
    const ssize_t came = recv(client->fd, client->head + client->asked, room, 0);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (came <= 0) {
        leave(client);
        return;
    }
    client->asked += (size_t)came;
    client->head[client->asked] = '\0';
    if (strstr(client->head, "\r\n\r\n"))
        answer(client, resource);
    else if (client->asked == HEAD - 1)
        leave(client);
}

static void tell(struct client *client) {
    const ssize_t sent =
        send(client->fd, client->answer + client->at, client->bytes - client->at, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent > 0) client->at += (size_t)sent;
    if (sent < 0 || client->at == client->bytes) leave(client);
}

static struct client *find_place(struct hrt_loopback *loopback) {
    struct client *oldest = loopback->client;
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &loopback->client[i];
        if (client->fd < 0) return client;
        if (client->deadline < oldest->deadline) oldest = client;
    }
    leave(oldest);
    return oldest;
}

static void let_in(struct hrt_loopback *loopback) {
    const int fd = accept4(loopback->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    struct client *client = find_place(loopback);
    client->fd = fd;
    client->asked = 0;
    client->deadline = hrt_base_now() + SECONDS;
}

// Where the program has no descriptor left, a connection that waits would be found again and again.
static void rest(void) {
    if (errno == EMFILE || errno == ENFILE)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

// Fills in what to wait for. Returns for how long, ms; -1: for ever.
static int prepare(struct hrt_loopback *loopback, struct pollfd *wait) {
    double first = -1;
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &loopback->client[i];
        if (client->fd >= 0 && client->deadline < hrt_base_now()) leave(client);
        wait[i] = (struct pollfd){.fd = client->fd, .events = client->answer ? POLLOUT : POLLIN};
        if (client->fd >= 0 && (first < 0 || client->deadline < first)) first = client->deadline;
    }
    wait[CLIENTS] = (struct pollfd){.fd = loopback->listening, .events = POLLIN};
    wait[CLIENTS + 1] = (struct pollfd){.fd = loopback->stop, .events = POLLIN};
    const double left = first - hrt_base_now();
    return first < 0 ? -1 : left > 0 ? (int)(1000 * left) + 1 : 0;
}

void hrt_base_loopback_serve(struct hrt_loopback *loopback, const char *path, const char *type,
                             hrt_loopback_fn *write, void *context) {
    const struct resource resource = {path, type, write, context};
    for (;;) {
        struct pollfd wait[CLIENTS + 2];
        const int most = prepare(loopback, wait);
        if (poll(wait, CLIENTS + 2, most) <= 0) continue;
        if (wait[CLIENTS + 1].revents) return;
        for (int i = 0; i < CLIENTS; i++) {
            struct client *client = &loopback->client[i];
            if (!wait[i].revents || client->fd < 0) continue;
            if (!client->answer) hear(client, &resource);
            if (client->fd >= 0 && client->answer) tell(client);
        }
        errno = 0;
        if (wait[CLIENTS].revents) let_in(loopback);
        rest();
    }
}

// ---- the port

static int listen_at(int port) {
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (const struct sockaddr *)&here, sizeof here) == 0 && listen(fd, 64) == 0)
        return fd;
    const int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

struct hrt_loopback *hrt_base_loopback_open(int port, const char **why) {
    struct hrt_loopback *loopback = calloc(1, sizeof *loopback);
    if (loopback) {
        for (int i = 0; i < CLIENTS; i++) loopback->client[i].fd = -1;
        loopback->listening = listen_at(port);
        loopback->stop = loopback->listening < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (loopback->stop >= 0) return loopback;
    }
    *why = strerror(errno);
    if (loopback && loopback->listening >= 0) close(loopback->listening);
    free(loopback);
    return NULL;
}

void hrt_base_loopback_stop(struct hrt_loopback *loopback) {
    const uint64_t one = 1;
    const ssize_t put = write(loopback->stop, &one, sizeof one);
    (void)put; // It can only be full, which is as good.
}

void hrt_base_loopback_close(struct hrt_loopback *loopback) {
    for (int i = 0; i < CLIENTS; i++) {
        if (loopback->client[i].fd >= 0) leave(&loopback->client[i]);
    }
    close(loopback->listening);
    close(loopback->stop);
    free(loopback);
}
