// An Ethernet switch in user space, whose ports have a rate and whose wires have a length, for
// cluster.sh: kernels without netem cannot delay packets.
//
//   switch BITS_PER_SECOND DELAY_NS DEVICE NAMESPACE [DEVICE NAMESPACE]...
//
// Each port is a TAP device that it makes in a network namespace. The first is mpirun's: its
// frames are neither shaped nor delayed. Between the others a frame waits until its sender's
// port is free, takes its length / rate to leave, DELAY to arrive, and then waits for the receiver's
// port. Frames leave the switch at the time computed for them, so a late wake-up delays one frame,
// not those behind it. A sender that is ahead of its rate is not read from, and its kernel makes it
// wait; only a receiver's queue that is full drops frames.
//
// Prints "ready" when all ports are there; ends on SIGTERM, then tells what each port dropped.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MAX = 65,
    FRAME_MAX = 16384,
    QUEUE_FRAMES = 4096,
    AHEAD_NS = 200000, // A sender may be so far ahead of its rate before it is not read from.
    AT_ONCE = 32,      // Frames read from a port before others have their turn.
    HEADER = 14,       // Two addresses and a type.
    ADDRESS = 6,
};

// Frames on their way to a port, in the order of their times.
struct queue {
    struct frame {
        int64_t due;
        size_t bytes;
        char *data;
    } frame[QUEUE_FRAMES];
    unsigned first, end; // Count all frames ever.
    uint64_t dropped;
};

struct port {
    int fd;
    bool shaped;
    int64_t sends_from, receives_from; // When its two directions are free.
    unsigned char address[ADDRESS];    // The sender's behind it; each node has one device.
    bool known;
    struct queue queue;
};

static struct port *ports;
static int count;
static double ns_per_byte;
static int64_t delay;
static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

// Makes the device in the namespace; this process stays there, for the next port leaves it.
static void open_port(struct port *port, const char *device, const char *namespace) {
    const int space = open(namespace, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(namespace);
    close(space);
    port->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (port->fd < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    if (ioctl(port->fd, TUNSETIFF, &request) != 0) fail(device);
}

static void put(struct port *port, const char *data, size_t bytes, int64_t due) {
    struct queue *queue = &port->queue;
    char *copy = queue->end - queue->first < QUEUE_FRAMES ? malloc(bytes) : NULL;
    if (!copy) {
        queue->dropped++;
        return;
    }
    memcpy(copy, data, bytes);
    const struct frame *last = &queue->frame[(queue->end - 1) % QUEUE_FRAMES];
    if (queue->end != queue->first && last->due > due) due = last->due;
    queue->frame[queue->end++ % QUEUE_FRAMES] = (struct frame){due, bytes, copy};
}

// When the last bit of the frame reaches `to`. The receiver's port begins with the first bit.
static int64_t arrival(const struct port *from, struct port *to, size_t bytes, int64_t sent) {
    if (!from->shaped || !to->shaped) return sent;
    const int64_t length = (int64_t)((double)bytes * ns_per_byte);
    int64_t begin = sent - length + delay;
    if (begin < to->receives_from) begin = to->receives_from;
    return to->receives_from = begin + length;
}

// One frame from `from` to the port that has its address, or to all others.
static void forward(struct port *from, const char *frame, size_t bytes, int64_t time) {
    memcpy(from->address, frame + ADDRESS, ADDRESS);
    from->known = true;
    struct port *to = NULL;
    for (int i = 0; i < count && !to; i++) {
        if (ports[i].known && memcmp(ports[i].address, frame, ADDRESS) == 0) to = &ports[i];
    }
    int64_t sent = time;
    if (from->shaped && !(to && !to->shaped)) {
        if (sent < from->sends_from) sent = from->sends_from;
        sent += (int64_t)((double)bytes * ns_per_byte);
        from->sends_from = sent;
    }
    if (to && to != from) put(to, frame, bytes, arrival(from, to, bytes, sent));
    for (int i = 0; i < count && !to; i++) {
        if (&ports[i] != from) put(&ports[i], frame, bytes, arrival(from, &ports[i], bytes, sent));
    }
}

static void read_port(struct port *port) {
    static char frame[FRAME_MAX];
    for (int i = 0; i < AT_ONCE; i++) {
        const ssize_t bytes = read(port->fd, frame, sizeof frame);
        if (bytes < HEADER) return;
        const int64_t time = now();
        forward(port, frame, (size_t)bytes, time);
        if (port->sends_from - time > AHEAD_NS) return;
    }
}

// Hands over what is due; returns when to come again.
static int64_t deliver(struct port *port, int64_t time) {
    enum { RETRY_NS = 20000, FAR = 1000000000 };
    struct queue *queue = &port->queue;
    while (queue->first != queue->end) {
        struct frame *frame = &queue->frame[queue->first % QUEUE_FRAMES];
        if (frame->due > time) return frame->due;
        if (write(port->fd, frame->data, frame->bytes) < 0) {
            if (errno == EAGAIN) return time + RETRY_NS;
            queue->dropped++; // The device is down: a cut cable.
        }
        free(frame->data);
        queue->first++;
    }
    return time + FAR;
}

static void work(void) {
    struct pollfd poll[PORTS_MAX];
    const int64_t time = now();
    int64_t next = INT64_MAX;
    for (int i = 0; i < count; i++) {
        struct port *port = &ports[i];
        int64_t again = deliver(port, time);
        const int64_t ahead = port->sends_from - time;
        poll[i] = (struct pollfd){.fd = port->fd, .events = ahead < AHEAD_NS ? POLLIN : 0};
        if (ahead >= AHEAD_NS && again > port->sends_from - AHEAD_NS / 2)
            again = port->sends_from - AHEAD_NS / 2;
        if (again < next) next = again;
    }
    int64_t wait = next - now();
    if (wait < 0) wait = 0;
    const struct timespec most = {wait / 1000000000, wait % 1000000000};
    if (ppoll(poll, (nfds_t)count, &most, NULL) <= 0) return;
    for (int i = 0; i < count; i++) {
        if (poll[i].revents & POLLIN) read_port(&ports[i]);
    }
}

int main(int argc, char **argv) {
    count = (argc - 3) / 2;
    if (argc < 5 || argc % 2 == 0 || count > PORTS_MAX) {
        fprintf(stderr, "usage: switch BITS_PER_SECOND DELAY_NS DEVICE NAMESPACE...\n");
        return 2;
    }
    const double rate = atof(argv[1]);
    ns_per_byte = rate > 0 ? 8e9 / rate : 0;
    delay = atoll(argv[2]);
    ports = calloc((size_t)count, sizeof *ports);
    if (!ports) fail("memory");
    for (int i = 0; i < count; i++) {
        open_port(&ports[i], argv[3 + 2 * i], argv[4 + 2 * i]);
        ports[i].shaped = i > 0;
    }
    prctl(PR_SET_TIMERSLACK, 1000UL);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    printf("ready\n");
    fflush(stdout);
    while (!stopped) work();
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s %d dropped %" PRIu64 " frames\n", argv[3 + 2 * i], i,
                ports[i].queue.dropped);
    return 0;
}
