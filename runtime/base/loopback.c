// HTTP as far as a browser and a scraper on this machine need it.
#include "runtime/base/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int hrt_loopback_open(int port, const char **why) {
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (listening >= 0 && setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(listening, (const struct sockaddr *)&here, sizeof here) == 0 &&
        listen(listening, 8) == 0)
        return listening;
    *why = strerror(errno);
    if (listening >= 0) close(listening);
    return -1;
}

// Reads up to the blank line behind the headers. Its length; 0: it is none.
static size_t read_head(int peer, char *head, size_t room) {
    size_t length = 0;
    while (length + 1 < room) {
        const ssize_t got = recv(peer, head + length, room - 1 - length, 0);
        if (got <= 0) return 0;
        length += (size_t)got;
        head[length] = '\0';
        if (strstr(head, "\r\n\r\n")) return length;
    }
    return 0;
}

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

static void send_all(int peer, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(peer, text, bytes, MSG_NOSIGNAL);
        if (sent <= 0) return; // Who asked has gone away.
        text += sent;
        bytes -= (size_t)sent;
    }
}

static void reply(int peer, const char *status, const char *type, const char *text, size_t bytes) {
    char head[256];
    const int length = snprintf(head, sizeof head,
                                "HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                                "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
                                status, type, bytes);
    send_all(peer, head, (size_t)length);
    send_all(peer, text, bytes);
}

static void answer(int peer, const char *path, const char *type, hrt_loopback_fn *write,
                   void *context) {
    char head[8192], *text = NULL;
    size_t bytes = 0;
    if (!read_head(peer, head, sizeof head)) return;
    const char *refused = refuse(head, path);
    FILE *out = refused ? NULL : open_memstream(&text, &bytes);
    const bool written = out && write(context, out);
    const bool closed = out && fclose(out) == 0;
    if (written && closed)
        reply(peer, "200 OK", type, text, bytes);
    else
        reply(peer, refused ? refused : "503 Service Unavailable", "text/plain", "", 0);
    free(text);
}

bool hrt_loopback_answer(int listening, const char *path, const char *type, hrt_loopback_fn *write,
                         void *context) {
    const struct timeval patience = {.tv_sec = 2};
    const int peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0) return errno == EINTR || errno == ECONNABORTED || errno == EMFILE;
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    answer(peer, path, type, write, context);
    close(peer);
    return true;
}
