// Rows that cross once to a node: lists and messages of their source, copies and sums of a relay. All of an exchange is
// one list of steps that grows: a relay copies and adds behind the computation.
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "kernels/add/add.h"
#include "kernels/copy_rows/copy_rows.h"
#include "runtime/experts/layer.h"

static size_t aligned(size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

size_t hrt_experts_relay_pitch(size_t gated) {
    return gated + 32; // A row's number, and the padding of three sections.
}

static int32_t size_of(const struct hrt_relay *relay, int node) {
    return relay->node_first[node + 1] - relay->node_first[node];
}

static int32_t relay_of(const struct hrt_experts *experts, int node, int rank) {
    const struct hrt_relay *relay = &experts->relay;
    const int32_t local = rank - relay->node_first[experts->comm->node_of[rank]];
    return relay->node_first[node] + local % size_of(relay, node);
}

// The first row that goes to a node, and their number.
static int32_t first_to(const struct hrt_experts *experts, int node) {
    return experts->wave.send_first[experts->relay.node_first[node]];
}

static int32_t pairs_to(const struct hrt_experts *experts, int node) {
    return first_to(experts, node + 1) - first_to(experts, node);
}

// ---- who relays for whom

// Lists the sources of this rank, unless NULL. Returns their number.
static int32_t list_sources(const struct hrt_comm *comm, struct hrt_relayed *relayed) {
    int32_t own = 0, size = 0, first = 0, sources = 0;
    for (int r = 0; r < comm->size; r++) {
        if (comm->node_of[r] != comm->node) continue;
        if (size == 0) own = r;
        size++;
    }
    for (int r = 0; r < comm->size; r++) {
        if (r > 0 && comm->node_of[r] != comm->node_of[r - 1]) first = r;
        if (comm->node_of[r] == comm->node || (r - first) % size != comm->rank - own) continue;
        if (relayed) relayed[sources] = (struct hrt_relayed){.source = r};
        sources++;
    }
    return sources;
}

struct hrt_experts_relay_sizes hrt_experts_relay_sizes(const struct hrt_comm *comm) {
    struct hrt_experts_relay_sizes sizes = {.sources = list_sources(comm, NULL)};
    for (int r = 0; r < comm->size; r++) sizes.devices += comm->node_of[r] == comm->node;
    return sizes;
}

void hrt_experts_relay_begin(struct hrt_experts *experts) {
    struct hrt_relay *relay = &experts->relay;
    const struct hrt_comm *comm = experts->comm;
    relay->experts = experts;
    relay->serves = true;
    relay->sources = list_sources(comm, relay->relayed);
    for (int r = 0; r < comm->size; r++) relay->node_first[comm->node_of[r] + 1] = r + 1;
    relay->node_first[0] = 0;
}

// ---- the source

static void list_node(struct hrt_experts *experts, const struct hrt_wave *wave, int node) {
    struct hrt_relay *relay = &experts->relay;
    const int32_t begin = first_to(experts, node), end = first_to(experts, node + 1);
    const int32_t picks = (int32_t)wave->layer->set->picks;
    int32_t rows = 0;
    for (int32_t i = begin; i < end; i++) {
        int32_t *seen = &relay->seen[wave->pair[i] / picks];
        if (*seen < begin) { // Numbers of nodes before are smaller.
            *seen = begin + rows;
            relay->lead_pair[begin + rows] = wave->pair[i];
            relay->lead_row[begin + rows++] = wave->send[i];
        } else {
            wave->layer->summed[wave->pair[i]] = -1;
        }
        relay->place[i] = *seen - begin;
    }
    relay->rows[node] = rows;
}

void hrt_experts_relay_list(struct hrt_experts *experts, const struct hrt_wave *wave) {
    struct hrt_relay *relay = &experts->relay;
    const struct hrt_comm *comm = experts->comm;
    int32_t *head = relay->heads;
    relay->heard = false;
    memset(relay->seen, -1, (size_t)wave->layer->tokens * sizeof *relay->seen);
    for (int node = 0; node < comm->nodes; node++) {
        if (node == comm->node) continue;
        list_node(experts, wave, node);
        *head++ = relay->rows[node];
        for (int r = relay->node_first[node]; r < relay->node_first[node + 1]; r++)
            *head++ = wave->send_first[r + 1] - wave->send_first[r];
    }
}

// The sections of a message; bytes of all of it.
struct sections {
    size_t rows, gates, bytes;
};

static struct sections sections_of(const struct hrt_row_form *form, int64_t rows, int64_t pairs) {
    const size_t at = aligned((size_t)pairs * sizeof(int32_t));
    const size_t gates = at + aligned((size_t)rows * form->row);
    return (struct sections){at, gates, form->gate ? gates + (size_t)pairs * form->element : gates};
}

static char *message_to(const struct hrt_experts *experts, int node, struct sections *sections) {
    const struct hrt_relay *relay = &experts->relay;
    *sections = sections_of(&relay->form, relay->rows[node], pairs_to(experts, node));
    return experts->sent + (size_t)first_to(experts, node) * hrt_experts_pitch(experts);
}

// The rows of a message, and those of an array that `lead` numbers.
static struct hk_rows rows_at(const struct hrt_row_form *form, char *rows) {
    return (struct hk_rows){.rows = rows, .share = 1, .stride = form->row};
}

void hrt_experts_relay_pack(struct hrt_experts *experts, const struct hrt_row_form *form,
                            const void *x, const void *weights) {
    struct hrt_relay *relay = &experts->relay;
    const int32_t picks = (int32_t)experts->wave.layer->set->picks;
    relay->form = *form;
    for (int node = 0; node < experts->comm->nodes; node++) {
        const int32_t begin = first_to(experts, node), pairs = pairs_to(experts, node);
        struct sections at;
        if (node == experts->comm->node || pairs == 0) continue;
        char *message = message_to(experts, node, &at);
        const struct hk_rows to = rows_at(form, message + at.rows);
        const struct hk_rows from = {
            .rows = (char *)x, .at = relay->lead_pair + begin, .share = picks, .stride = form->row};
        memcpy(message, relay->place + begin, (size_t)pairs * sizeof *relay->place);
        hk_copy_rows(&to, &from, relay->rows[node], form->row, form->element);
        for (int32_t i = 0; weights && i < pairs; i++)
            memcpy(message + at.gates + (size_t)i * form->element,
                   (const char *)weights + (size_t)experts->wave.pair[begin + i] * form->element,
                   form->element);
    }
}

void hrt_experts_relay_unpack(struct hrt_experts *experts, const struct hrt_row_form *form) {
    struct hrt_relay *relay = &experts->relay;
    relay->form = *form;
    for (int node = 0; node < experts->comm->nodes; node++) {
        const int32_t begin = first_to(experts, node), pairs = pairs_to(experts, node);
        struct sections at;
        if (node == experts->comm->node || pairs == 0) continue;
        char *message = message_to(experts, node, &at);
        const struct hk_rows from = rows_at(form, message + at.rows);
        struct hk_rows to = rows_at(form, experts->result);
        to.at = relay->lead_row + begin;
        hk_copy_rows(&to, &from, relay->rows[node], form->row, form->element);
        for (int32_t i = 0; form->gate && i < pairs; i++)
            memcpy(experts->result_gate + (size_t)experts->wave.send[begin + i] * form->element,
                   message + at.gates + (size_t)i * form->element, form->element);
    }
}

// ---- messages

static void send(struct hrt_relay *relay, int32_t peer, const void *from, size_t bytes) {
    if (bytes) hrt_net_steps_send(&relay->steps, peer, from, bytes, -1);
}

static void receive(struct hrt_relay *relay, int32_t peer, void *to, size_t bytes) {
    if (bytes) hrt_net_steps_receive(&relay->steps, peer, to, bytes, -1);
}

static void exchange_heads(struct hrt_experts *experts) {
    struct hrt_relay *relay = &experts->relay;
    const int own = experts->comm->node;
    const int32_t words = 1 + size_of(relay, own);
    const int32_t *head = relay->heads;
    for (int32_t i = 0; i < relay->sources; i++)
        receive(relay, relay->relayed[i].source, relay->hears + i * words,
                (size_t)words * sizeof *relay->hears);
    for (int node = 0; node < experts->comm->nodes; node++) {
        if (node == own) continue;
        const int32_t length = 1 + size_of(relay, node);
        send(relay, relay_of(experts, node, experts->comm->rank), head,
             (size_t)length * sizeof *head);
        head += length;
    }
    relay->heard = true;
}

static const int32_t *head_of(const struct hrt_experts *experts, int32_t i) {
    const struct hrt_relay *relay = &experts->relay;
    return relay->hears + i * (1 + size_of(relay, experts->comm->node));
}

// Gives the messages of sources their places.
static void place_in(struct hrt_experts *experts) {
    struct hrt_relay *relay = &experts->relay;
    char *at = relay->in;
    int64_t first = 0;
    for (int32_t i = 0; i < relay->sources; i++) {
        struct hrt_relayed *from = &relay->relayed[i];
        const int32_t *head = head_of(experts, i);
        from->rows = head[0];
        from->pairs = 0;
        for (int32_t d = 0; d < size_of(relay, experts->comm->node); d++)
            from->pairs += head[1 + d];
        const struct sections part = sections_of(&relay->form, from->rows, from->pairs);
        from->place = (int32_t *)at;
        from->row = at + part.rows;
        from->first = first;
        first += from->pairs;
        // With room for gates: places stay where they are, and rows go home with others than they came with.
        at += part.gates + aligned((size_t)from->pairs * relay->form.element);
    }
    assert(first <= relay->most.pairs);
}

// Rows between this rank and the others of its node, which nobody relays.
static void exchange_near(struct hrt_experts *experts, bool back) {
    struct hrt_relay *relay = &experts->relay;
    const struct hrt_wave *wave = &experts->wave;
    const int own = experts->comm->node;
    const size_t stride = relay->form.stride;
    char *sent = experts->sent + hrt_experts_sent_near(experts, stride);
    for (int r = relay->node_first[own]; r < relay->node_first[own + 1]; r++) {
        const int32_t to = wave->send_first[r + 1] - wave->send_first[r];
        const int32_t from = wave->recv_first[r + 1] - wave->recv_first[r];
        char *out = sent + (size_t)wave->send_first[r] * stride;
        char *in = experts->received + (size_t)wave->recv_first[r] * stride;
        if (r == experts->comm->rank) continue;
        receive(relay, r, back ? out : in, (size_t)(back ? to : from) * stride);
        send(relay, r, back ? in : out, (size_t)(back ? from : to) * stride);
    }
}

static void exchange_far(struct hrt_experts *experts, bool back) {
    struct hrt_relay *relay = &experts->relay;
    for (int32_t i = 0; i < relay->sources; i++) {
        const struct hrt_relayed *from = &relay->relayed[i];
        const struct sections at = sections_of(&relay->form, from->rows, from->pairs);
        if (from->pairs == 0) continue;
        if (back)
            send(relay, from->source, from->row, at.bytes - at.rows);
        else
            receive(relay, from->source, from->place, at.bytes);
    }
    for (int node = 0; node < experts->comm->nodes; node++) {
        struct sections at;
        if (node == experts->comm->node || pairs_to(experts, node) == 0) continue;
        char *message = message_to(experts, node, &at);
        const int32_t peer = relay_of(experts, node, experts->comm->rank);
        if (back)
            receive(relay, peer, message + at.rows, at.bytes - at.rows);
        else
            send(relay, peer, message, at.bytes);
    }
}

// Rows of all pairs of this rank's sources, between it and the ranks of the node; those of this rank itself are copied.
static void exchange_relayed(struct hrt_experts *experts, bool back) {
    struct hrt_relay *relay = &experts->relay;
    const struct hrt_wave *wave = &experts->wave;
    const int own = experts->comm->node, rank = experts->comm->rank;
    const size_t stride = relay->form.stride;
    for (int32_t i = 0; i < relay->sources; i++) {
        const struct hrt_relayed *from = &relay->relayed[i];
        const int32_t *pairs = head_of(experts, i) + 1;
        char *out = relay->out + (size_t)from->first * stride;
        for (int r = relay->node_first[own]; r < relay->node_first[own + 1]; r++, pairs++) {
            const size_t bytes = (size_t)*pairs * stride;
            char *here = experts->received + (size_t)wave->recv_first[from->source] * stride;
            if (r != rank && back) receive(relay, r, out, bytes);
            if (r != rank && !back) send(relay, r, out, bytes);
            if (r == rank) memcpy(back ? out : here, back ? here : out, bytes);
            out += bytes;
        }
    }
    for (int r = 0; r < experts->comm->size; r++) {
        const int32_t rows = wave->recv_first[r + 1] - wave->recv_first[r];
        const int32_t peer = relay_of(experts, own, r);
        char *here = experts->received + (size_t)wave->recv_first[r] * stride;
        if (experts->comm->node_of[r] == own || peer == rank) continue;
        if (back)
            send(relay, peer, here, (size_t)rows * stride);
        else
            receive(relay, peer, here, (size_t)rows * stride);
    }
}

// ---- the relay

// Copies each row to its pairs.
static void spread(struct hrt_experts *experts) {
    const struct hrt_relay *relay = &experts->relay;
    const struct hrt_row_form *form = &relay->form;
    for (int32_t i = 0; i < relay->sources; i++) {
        const struct hrt_relayed *from = &relay->relayed[i];
        const struct sections at = sections_of(form, from->rows, from->pairs);
        const char *gates = from->row + (at.gates - at.rows);
        char *out = relay->out + (size_t)from->first * form->stride;
        for (int32_t p = 0; p < from->pairs; p++, out += form->stride) {
            memcpy(out, from->row + (size_t)from->place[p] * form->row, form->row);
            if (form->gate)
                memcpy(out + form->gate, gates + (size_t)p * form->element, form->element);
        }
    }
}

static void add_row(const struct hrt_experts *experts, char *sum, const char *term) {
    const int64_t width = experts->wave.layer->set->width;
    if (experts->shape.element == sizeof(float)) {
        hk_add_f32((float *)sum, (const float *)term, width);
    } else {
        hk_add_f64((double *)sum, (const double *)term, width);
    }
}

// Sums up the results of each row's pairs. Rows are numbered by first use, so the first result of one is the next.
static void sum_up(struct hrt_experts *experts) {
    const struct hrt_relay *relay = &experts->relay;
    const struct hrt_row_form *form = &relay->form;
    for (int32_t i = 0; i < relay->sources; i++) {
        const struct hrt_relayed *from = &relay->relayed[i];
        const struct sections at = sections_of(form, from->rows, from->pairs);
        char *gates = from->row + (at.gates - at.rows);
        const char *out = relay->out + (size_t)from->first * form->stride;
        int32_t begun = 0;
        for (int32_t p = 0; p < from->pairs; p++, out += form->stride) {
            char *sum = from->row + (size_t)from->place[p] * form->row;
            if (from->place[p] == begun) {
                memcpy(sum, out, form->row);
                begun++;
            } else {
                add_row(experts, sum, out);
            }
            if (form->gate)
                memcpy(gates + (size_t)p * form->element, out + form->gate, form->element);
        }
    }
}

// Fills in the steps of the phase. Returns the phase behind it.
static enum hrt_experts_relay_phase step(struct hrt_experts *experts,
                                         enum hrt_experts_relay_phase phase) {
    switch (phase) {
    case HRT_RELAY_HEADS:
        exchange_heads(experts);
        return HRT_RELAY_OUT;
    case HRT_RELAY_OUT:
        place_in(experts);
        exchange_far(experts, false);
        exchange_near(experts, false);
        return HRT_RELAY_SPREAD;
    case HRT_RELAY_SPREAD:
        spread(experts);
        exchange_relayed(experts, false);
        return HRT_RELAY_DONE;
    case HRT_RELAY_GATHER:
        place_in(experts);
        exchange_relayed(experts, true);
        exchange_near(experts, true);
        return HRT_RELAY_HOME;
    case HRT_RELAY_HOME:
        sum_up(experts);
        exchange_far(experts, true);
        return HRT_RELAY_DONE;
    case HRT_RELAY_DONE:
        break;
    }
    return HRT_RELAY_DONE;
}

// Called where all steps are done.
static bool go_on(struct hrt_steps *steps) {
    struct hrt_relay *relay =
        (struct hrt_relay *)((char *)steps - offsetof(struct hrt_relay, steps));
    hrt_net_steps_clear(steps);
    while (steps->count == 0 && relay->phase != HRT_RELAY_DONE)
        relay->phase = step(relay->experts, relay->phase);
    return steps->count > 0;
}

struct hrt_mark hrt_experts_relay_start(struct hrt_experts *experts,
                                        const struct hrt_row_form *form, bool back) {
    struct hrt_relay *relay = &experts->relay;
    relay->form = *form;
    relay->phase = back ? HRT_RELAY_GATHER : relay->heard ? HRT_RELAY_OUT : HRT_RELAY_HEADS;
    hrt_net_steps_clear(&relay->steps);
    relay->steps.next = go_on;
    return hrt_net_lane_submit(experts->comm, HRT_LANE_ROWS, &relay->steps);
}
