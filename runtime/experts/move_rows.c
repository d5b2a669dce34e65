// Rows on their way: out to the ranks that hold their experts, and home again.
//
// A message to a rank holds the rows for it one behind the other, each followed by its gate weight
// (or that weight's gradient) and padding where it has one. Rows that stay on the rank are copied in place at once.
// Where relays serve, this is so inside of a node; rows to others are theirs (relay_rows.c).
//
// Rows that go out are waited for: their experts are computed next. Those on their way home travel behind the
// computation until something needs their place, or them.
#include <string.h>

#include "kernels/copy_rows/copy_rows.h"
#include "kernels/route/route.h"
#include "runtime/experts/layer.h"

// One movement. `gate` and `own_gate` are NULL where rows travel without.
struct load {
    const struct hrt_wave *wave;
    struct hrt_row_form form;
    int32_t near, near_end; // The sent rows that no relay gets.
    int32_t mine;           // The first of the rows that stay, among the sent ones...
    int32_t mine_end;
    int32_t mine_to; // ... and among the received ones.
};

static struct load load_of(struct hrt_experts *experts, const struct hrt_experts_layer *layer,
                           int64_t number, bool gated) {
    const struct hrt_wave *wave = hrt_experts_wave_of(experts, layer, number);
    const int rank = experts->comm->rank;
    const size_t row = hrt_row_bytes(&experts->shape, layer->set);
    const size_t gate = hrt_gate_offset(&experts->shape, layer->set);
    const struct hrt_relay *relay = &experts->relay;
    const int own = experts->comm->node;
    return (struct load){
        .wave = wave,
        .form = {.row = row,
                 .element = experts->shape.element,
                 .gate = gated ? gate : 0,
                 .stride = gated ? hrt_gated_bytes(&experts->shape, layer->set) : row},
        .near = relay->serves ? wave->send_first[relay->node_first[own]] : 0,
        .near_end =
            wave->send_first[relay->serves ? relay->node_first[own + 1] : experts->comm->size],
        .mine = wave->send_first[rank],
        .mine_end = wave->send_first[rank + 1],
        .mine_to = wave->recv_first[rank],
    };
}

static const char why[] = "the exchange of rows";

// Starts to exchange messages: from `sent` to `received`, or back.
static struct hrt_mark exchange(struct hrt_experts *experts, const struct load *load, bool back) {
    const struct hrt_wave *wave = load->wave;
    struct hrt_steps *steps = back ? &experts->returns : &experts->steps;
    hrt_experts_agree(experts);
    if (experts->relay.serves) return hrt_experts_relay_start(experts, &load->form, back);
    for (int r = 0; r < experts->comm->size; r++) {
        const bool stays = r == experts->comm->rank;
        const int32_t sent = wave->send_first[r + 1] - wave->send_first[r];
        const int32_t received = wave->recv_first[r + 1] - wave->recv_first[r];
        experts->bytes[0][r] = stays ? 0 : (size_t)sent * load->form.stride;
        experts->bytes[1][r] = stays ? 0 : (size_t)received * load->form.stride;
        experts->offset[0][r] = (size_t)wave->send_first[r] * load->form.stride;
        experts->offset[1][r] = (size_t)wave->recv_first[r] * load->form.stride;
    }
    const struct hrt_exchange way = {.send_bytes = experts->bytes[back],
                                     .send_offset = experts->offset[back],
                                     .recv_bytes = experts->bytes[!back],
                                     .recv_offset = experts->offset[!back]};
    steps->on_device = hrt_device_is_apart(experts->device);
    hrt_net_steps_exchange(steps, experts->comm, back ? experts->sent : experts->received,
                           back ? experts->received : experts->sent, &way);
    return hrt_net_lane_submit(experts->comm, HRT_LANE_ROWS, steps);
}

// Rows of an array by their numbers in `at`.
static struct hk_rows numbered(const struct load *load, const void *rows, const void *gates,
                               const int32_t *at, int64_t share) {
    return (struct hk_rows){.rows = (char *)rows,
                            .gates = (char *)gates,
                            .at = at,
                            .share = (int32_t)share,
                            .stride = load->form.row,
                            .gate_stride = load->form.element};
}

// Rows of a message, one behind the other.
static struct hk_rows message(const struct load *load, char *rows) {
    return (struct hk_rows){.rows = rows,
                            .gates = load->form.gate ? rows + load->form.gate : NULL,
                            .share = 1,
                            .stride = load->form.stride,
                            .gate_stride = load->form.stride};
}

// The rows of a side from number `first` on.
static struct hk_rows from(struct hk_rows side, int32_t first) {
    if (side.at) {
        side.at += first;
        return side;
    }
    side.rows += (size_t)first * side.stride;
    if (side.gates) side.gates += (size_t)first * side.gate_stride;
    return side;
}

// Copies rows begin .. end - 1 of both sides.
static void copy(struct hrt_experts *experts, const struct load *load, const struct hk_rows *to,
                 const struct hk_rows *source, int32_t begin, int32_t end) {
    const struct hk_rows there = from(*to, begin), here = from(*source, begin);
    struct hrt_device *device = experts->device;
    if (end <= begin) return;
    if (hrt_device_is_apart(device))
        device->backend->copy_rows(device, &there, &here, end - begin, load->form.row,
                                   load->form.element);
    else
        hk_copy_rows(&there, &here, end - begin, load->form.row, load->form.element);
}

// Results of a wave, which come from a message.
static struct hk_rows results_of(const struct hrt_experts *experts, const struct load *load) {
    return numbered(load, experts->result, load->form.gate ? experts->result_gate : NULL,
                    load->wave->send, 1);
}

// Rows of the message to ranks that no relay stands for.
static struct hk_rows sent_message(const struct hrt_experts *experts, const struct load *load) {
    return message(load, experts->sent + hrt_experts_sent_near(experts, load->form.stride));
}

// Waits for rows on their way home, and for what this rank sends of them: both messages are free.
static void come_home(struct hrt_experts *experts) {
    if (!experts->returning) return;
    const struct load load =
        load_of(experts, experts->wave.layer, experts->wave.wave, experts->returning_gates);
    const struct hk_rows results = results_of(experts, &load);
    const struct hk_rows in = sent_message(experts, &load);
    hrt_net_lane_join(experts->comm, experts->returned, why);
    copy(experts, &load, &results, &in, load.near, load.mine);
    copy(experts, &load, &results, &in, load.mine_end, load.near_end);
    if (experts->relay.serves) hrt_experts_relay_unpack(experts, &load.form);
    experts->returning = false;
}

// rows and gate of the wave, from x [tokens, width] and weights [tokens, picks]; the latter may be
// NULL.
static void move_out(struct hrt_experts *experts, const struct hrt_experts_layer *layer,
                     int64_t number, char *rows, char *gate, const char *x, const char *weights) {
    come_home(experts);
    const struct load load = load_of(experts, layer, number, weights);
    const struct hrt_wave *wave = load.wave;
    const int32_t received = wave->recv_first[experts->comm->size];
    const int32_t own = load.mine_end - load.mine;
    const struct hk_rows tokens = numbered(&load, x, weights, wave->pair, layer->set->picks);
    const struct hk_rows places = numbered(&load, rows, gate, wave->recv, 1);
    const struct hk_rows out = sent_message(experts, &load);
    const struct hk_rows in = message(&load, experts->received);
    const struct hk_rows stay = from(tokens, load.mine), stay_at = from(places, load.mine_to);
    copy(experts, &load, &out, &tokens, load.near, load.mine);
    copy(experts, &load, &out, &tokens, load.mine_end, load.near_end);
    if (experts->relay.serves) hrt_experts_relay_pack(experts, &load.form, x, weights);
    copy(experts, &load, &stay_at, &stay, 0, own);
    hrt_net_lane_join(experts->comm, exchange(experts, &load, false), why);
    copy(experts, &load, &places, &in, 0, load.mine_to);
    copy(experts, &load, &places, &in, load.mine_to + own, received);
}

// The wave's rows, and gate unless NULL, to experts->result and experts->result_gate: they start, and may be
// overwritten at once.
static void move_home(struct hrt_experts *experts, const struct hrt_experts_layer *layer,
                      int64_t number, const char *rows, const char *gate) {
    come_home(experts);
    const struct load load = load_of(experts, layer, number, gate);
    const struct hrt_wave *wave = load.wave;
    const int32_t received = wave->recv_first[experts->comm->size];
    const int32_t own = load.mine_end - load.mine;
    const struct hk_rows places = numbered(&load, rows, gate, wave->recv, 1);
    const struct hk_rows results = results_of(experts, &load);
    const struct hk_rows out = message(&load, experts->received);
    const struct hk_rows stay = from(places, load.mine_to), stay_at = from(results, load.mine);
    copy(experts, &load, &out, &places, 0, load.mine_to);
    copy(experts, &load, &out, &places, load.mine_to + own, received);
    copy(experts, &load, &stay_at, &stay, 0, own);
    experts->returned = exchange(experts, &load, true);
    experts->returning = true;
    experts->returning_gates = gate;
}

void hrt_experts_dispatch(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                          void *rows, void *gate, int32_t *first, const void *x,
                          const void *weights) {
    move_out(experts, hrt_layer(experts, set, layer), wave, rows, gate, x, weights);
    hrt_experts_wave_starts(experts, first);
}

void hrt_experts_give_back(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                           const void *rows) {
    move_home(experts, hrt_layer(experts, set, layer), wave, rows, NULL);
}

void hrt_experts_combine(struct hrt_experts *experts, int set, int64_t layer, void *y) {
    const struct hrt_experts_layer *own = hrt_layer(experts, set, layer);
    const void *result = experts->result;
    const int32_t *slot = experts->relay.serves ? own->summed : own->slot;
    struct hrt_device *device = experts->device;
    come_home(experts);
    if (hrt_device_is_apart(device)) {
        device->backend->combine(device, y, result, slot, own->tokens, own->set->picks,
                                 own->set->width, own->set->bf16);
    } else if (experts->shape.element == sizeof(float)) {
        hk_combine_f32(y, result, slot, own->tokens, own->set->picks, own->set->width, HK_STORE);
    } else {
        hk_combine_f64(y, result, slot, own->tokens, own->set->picks, own->set->width, HK_STORE);
    }
}

void hrt_experts_dispatch_grad(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                               void *drows, const void *dy) {
    move_out(experts, hrt_layer(experts, set, layer), wave, drows, NULL, dy, NULL);
}

void hrt_experts_give_back_grad(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                                const void *drows, const void *dgate) {
    move_home(experts, hrt_layer(experts, set, layer), wave, drows, dgate);
}

void hrt_experts_combine_grad(struct hrt_experts *experts, int set, int64_t layer, void *dx,
                              void *dweights) {
    const struct hrt_experts_layer *own = hrt_layer(experts, set, layer);
    const int64_t pairs = own->tokens * own->set->picks;
    const void *dgate = experts->result_gate;
    struct hrt_device *device = experts->device;
    hrt_experts_combine(experts, set, layer, dx);
    if (hrt_device_is_apart(device)) {
        device->backend->gate_rows_grad(device, dweights, dgate, own->slot, pairs);
    } else if (experts->shape.element == sizeof(float)) {
        hk_gate_rows_grad_f32(dweights, dgate, own->slot, pairs);
    } else {
        hk_gate_rows_grad_f64(dweights, dgate, own->slot, pairs);
    }
}
