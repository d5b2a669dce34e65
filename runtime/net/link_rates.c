// Rates and latencies: patterns of messages, timed.
#include "runtime/net/link_rates.h"

#include "kernels/cpu/observe.h"
#include "runtime/net/transport.h"

enum { ROUNDS = 5, TRIPS = 50, MESSAGES = 2 };

// One rank's part of a pattern; -1: nobody.
struct part {
    int to, from;
};

struct measuring {
    struct hrt_comm *comm;
    char *send, *receive;
};

bool hrt_net_rates_even(const struct hrt_comm *comm) {
    const int of_node = comm->size / comm->nodes;
    for (int r = 0; r < comm->size; r++) {
        if (comm->node_of[r] != r / of_node) return false;
    }
    return comm->size % comm->nodes == 0;
}

// The largest of what ranks have.
static double largest(struct hrt_comm *comm, double own) {
    double most = own;
    for (int r = 0; r < comm->size; r++) {
        double value = comm->rank == r ? own : 0;
        hrt_net_comm_all_reduce(comm, &value, 1, HRT_DOUBLE);
        if (value > most) most = value;
    }
    return most;
}

// Sends and receives once, and waits for both.
static void carry(const struct measuring *m, struct part part, size_t bytes) {
    struct hrt_step step[2];
    struct hrt_steps steps = {.step = step, .room = 2};
    if (part.from >= 0) hrt_net_steps_receive(&steps, part.from, m->receive, bytes, -1);
    if (part.to >= 0) hrt_net_steps_send(&steps, part.to, m->send, bytes, -1);
    if (steps.count)
        hrt_net_lane_join(m->comm, hrt_net_lane_submit(m->comm, HRT_LANE_ROWS, &steps), "a rate");
}

// Bytes/s of each message of a pattern; of several rounds the best.
static double rate_of(const struct measuring *m, struct part part) {
    double best = 0;
    for (int i = 0; i < ROUNDS; i++) {
        hrt_net_comm_barrier(m->comm);
        const int64_t begun = hk_clock();
        for (int k = 0; k < MESSAGES; k++) carry(m, part, HRT_RATES_BYTES);
        const double seconds = largest(m->comm, 1e-9 * (double)(hk_clock() - begun));
        const double rate = MESSAGES * (double)HRT_RATES_BYTES / seconds;
        if (rate > best) best = rate;
    }
    return best;
}

// The latency of a message between ranks 0 and `other`.
static double latency_of(const struct measuring *m, int other) {
    double best = 1e30;
    const int rank = m->comm->rank;
    const struct part there = {rank == 0 ? other : -1, rank == other ? 0 : -1};
    const struct part back = {rank == other ? 0 : -1, rank == 0 ? other : -1};
    for (int i = 0; i < ROUNDS; i++) {
        hrt_net_comm_barrier(m->comm);
        const int64_t begun = hk_clock();
        for (int k = 0; k < TRIPS; k++) {
            carry(m, there, 8);
            carry(m, back, 8);
        }
        const double own = rank == 0 ? 1e-9 * (double)(hk_clock() - begun) : 0;
        const double seconds = largest(m->comm, own) / (2 * TRIPS);
        if (seconds < best) best = seconds;
    }
    return best;
}

static struct part pair_of(const struct hrt_comm *comm, int other) {
    return (struct part){comm->rank == 0 ? other : -1, comm->rank == other ? 0 : -1};
}

static struct hrt_link_rates measure_intra(const struct measuring *m, int of_node) {
    const int rank = m->comm->rank, first = rank / of_node * of_node, own = rank - first;
    if (of_node < 2) return (struct hrt_link_rates){.known = false};
    struct hrt_link_rates r = {.known = true, .latency = latency_of(m, 1)};
    r.pair = rate_of(m, pair_of(m->comm, 1));
    r.bandwidth = rate_of(
        m, (struct part){first + (own + 1) % of_node, first + (own + of_node - 1) % of_node});
    const bool sends = own % 2 == 0 && own + 1 < of_node, receives = own % 2 == 1;
    r.all = rate_of(m, (struct part){sends ? rank + 1 : -1, receives ? rank - 1 : -1});
    return r;
}

static struct hrt_link_rates measure_inter(const struct measuring *m, int of_node) {
    const int size = m->comm->size, rank = m->comm->rank;
    const int next = (rank + of_node) % size, before = (rank + size - of_node) % size;
    if (m->comm->nodes < 2) return (struct hrt_link_rates){.known = false};
    struct hrt_link_rates r = {.known = true, .latency = latency_of(m, of_node)};
    r.pair = rate_of(m, pair_of(m->comm, of_node));
    const bool sends = rank < of_node, receives = rank >= of_node && rank < 2 * of_node;
    r.all = of_node * rate_of(m, (struct part){sends ? next : -1, receives ? before : -1});
    r.bandwidth = of_node * rate_of(m, (struct part){next, before});
    return r;
}

void hrt_net_measure_rates(struct hrt_comm *comm, char *send, char *receive,
                           struct hrt_rates *rates) {
    const struct measuring m = {comm, send, receive};
    const int of_node = comm->size / comm->nodes;
    *rates = (struct hrt_rates){measure_intra(&m, of_node), measure_inter(&m, of_node)};
}
