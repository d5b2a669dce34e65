// Rows on their way: out to the ranks that hold their experts, and home again.
//
// A message to a rank holds the rows for it one behind the other, each followed by its gate weight
// (or that weight's gradient) where it has one. What stays on the rank is copied in place at once.
#include <string.h>

#include "kernels/route/route.h"
#include "runtime/experts/layer.h"

// One movement. `gate` and `own_gate` are NULL where rows travel without.
struct load {
    const struct hrt_wave *wave;
    size_t row, element, stride; // Bytes; `stride` of a row in a message.
    int32_t mine;                // The first of the rows that stay, among the sent ones...
    int32_t mine_end;
    int32_t mine_to; // ... and among the received ones.
};

static struct load load_of(struct hrt_experts *experts, const struct hrt_experts_layer *layer,
                           int64_t number, bool gated) {
    const struct hrt_wave *wave = hrt_wave_of(experts, layer, number);
    const int rank = experts->comm->rank;
    const size_t element = experts->shape.element, row = (size_t)layer->set->width * element;
    return (struct load){
        .wave = wave,
        .row = row,
        .element = element,
        .stride = row + (gated ? element : 0),
        .mine = wave->send_first[rank],
        .mine_end = wave->send_first[rank + 1],
        .mine_to = wave->recv_first[rank],
    };
}

// Exchanges messages: from `sent` to `received`, or back.
static void exchange(struct hrt_experts *experts, const struct load *load, bool back) {
    const struct hrt_wave *wave = load->wave;
    hrt_experts_agree(experts);
    for (int r = 0; r < experts->comm->size; r++) {
        const bool stays = r == experts->comm->rank;
        const int32_t sent = wave->send_first[r + 1] - wave->send_first[r];
        const int32_t received = wave->recv_first[r + 1] - wave->recv_first[r];
        experts->bytes[0][r] = stays ? 0 : (size_t)sent * load->stride;
        experts->bytes[1][r] = stays ? 0 : (size_t)received * load->stride;
        experts->offset[0][r] = (size_t)wave->send_first[r] * load->stride;
        experts->offset[1][r] = (size_t)wave->recv_first[r] * load->stride;
    }
    const struct hrt_exchange way = {.send_bytes = experts->bytes[back],
                                     .send_offset = experts->offset[back],
                                     .recv_bytes = experts->bytes[!back],
                                     .recv_offset = experts->offset[!back]};
    hrt_exchange_on(experts->comm, HRT_LANE_ROWS, &experts->steps,
                    back ? experts->sent : experts->received,
                    back ? experts->received : experts->sent, &way, "the exchange of rows");
}

// Copies a row and, if `to_gate`, its weight.
static void copy(const struct load *load, char *to, char *to_gate, const char *from,
                 const char *from_gate) {
    memcpy(to, from, load->row);
    if (to_gate) memcpy(to_gate, from_gate, load->element);
}

static char *at(char *base, int64_t index, size_t stride) {
    return base ? base + (size_t)index * stride : NULL;
}

static const char *in(const char *base, int64_t index, size_t stride) {
    return base ? base + (size_t)index * stride : NULL;
}

// rows and gate of the wave, from x [tokens, width] and weights [tokens, picks]; the latter may be
// NULL.
static void move_out(struct hrt_experts *experts, const struct hrt_experts_layer *layer,
                     int64_t number, char *rows, char *gate, const char *x, const char *weights) {
    const struct load load = load_of(experts, layer, number, weights);
    const struct hrt_wave *wave = load.wave;
    const int ranks = experts->comm->size;
    const int32_t sent = wave->send_first[ranks], received = wave->recv_first[ranks];
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < sent; i++) {
        const int32_t pair = layer->pair[wave->send[i]];
        const char *row = in(x, pair / layer->set->picks, load.row);
        const char *weight = in(weights, pair, load.element);
        if (i >= load.mine && i < load.mine_end) {
            const int32_t place = wave->recv[load.mine_to + i - load.mine];
            copy(&load, at(rows, place, load.row), at(gate, place, load.element), row, weight);
        } else {
            char *message = at(experts->sent, i, load.stride);
            copy(&load, message, weights ? message + load.row : NULL, row, weight);
        }
    }
    exchange(experts, &load, false);
    const int32_t own = load.mine_end - load.mine;
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < received; i++) {
        if (i >= load.mine_to && i < load.mine_to + own) continue;
        const char *message = in(experts->received, i, load.stride);
        const int32_t place = wave->recv[i];
        copy(&load, at(rows, place, load.row), at(gate, place, load.element), message,
             message + load.row);
    }
}

// The wave's rows, and gate unless NULL, to experts->result and experts->result_gate.
static void move_home(struct hrt_experts *experts, const struct hrt_experts_layer *layer,
                      int64_t number, const char *rows, const char *gate) {
    const struct load load = load_of(experts, layer, number, gate);
    const struct hrt_wave *wave = load.wave;
    const int ranks = experts->comm->size;
    const int32_t sent = wave->send_first[ranks], received = wave->recv_first[ranks];
    const int32_t own = load.mine_end - load.mine;
    char *result_gate = gate ? experts->result_gate : NULL;
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < received; i++) {
        const int32_t place = wave->recv[i];
        const char *row = in(rows, place, load.row), *weight = in(gate, place, load.element);
        if (i >= load.mine_to && i < load.mine_to + own) {
            const int32_t to = wave->send[load.mine + i - load.mine_to];
            copy(&load, at(experts->result, to, load.row), at(result_gate, to, load.element), row,
                 weight);
        } else {
            char *message = at(experts->received, i, load.stride);
            copy(&load, message, gate ? message + load.row : NULL, row, weight);
        }
    }
    exchange(experts, &load, true);
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < sent; i++) {
        if (i >= load.mine && i < load.mine_end) continue;
        const char *message = in(experts->sent, i, load.stride);
        const int32_t to = wave->send[i];
        copy(&load, at(experts->result, to, load.row), at(result_gate, to, load.element), message,
             message + load.row);
    }
}

void hrt_dispatch(struct hrt_experts *experts, int set, int64_t layer, int64_t wave, void *rows,
                  void *gate, int32_t *first, const void *x, const void *weights) {
    const struct hrt_experts_layer *own = hrt_layer(experts, set, layer);
    move_out(experts, own, wave, rows, gate, x, weights);
    memcpy(first, experts->wave.first, (size_t)(own->set->slots + 1) * sizeof *first);
}

void hrt_give_back(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                   const void *rows) {
    move_home(experts, hrt_layer(experts, set, layer), wave, rows, NULL);
}

void hrt_combine(struct hrt_experts *experts, int set, int64_t layer, void *y) {
    const struct hrt_experts_layer *own = hrt_layer(experts, set, layer);
    const void *result = experts->result;
    if (experts->shape.element == sizeof(float)) {
        hk_combine_f32(y, result, own->slot, own->tokens, own->set->picks, own->set->width,
                       HK_STORE);
    } else {
        hk_combine_f64(y, result, own->slot, own->tokens, own->set->picks, own->set->width,
                       HK_STORE);
    }
}

void hrt_dispatch_grad(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                       void *drows, const void *dy) {
    move_out(experts, hrt_layer(experts, set, layer), wave, drows, NULL, dy, NULL);
}

void hrt_give_back_grad(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                        const void *drows, const void *dgate) {
    move_home(experts, hrt_layer(experts, set, layer), wave, drows, dgate);
}

void hrt_combine_grad(struct hrt_experts *experts, int set, int64_t layer, void *dx,
                      void *dweights) {
    const struct hrt_experts_layer *own = hrt_layer(experts, set, layer);
    const int64_t pairs = own->tokens * own->set->picks;
    const void *dgate = experts->result_gate;
    hrt_combine(experts, set, layer, dx);
    if (experts->shape.element == sizeof(float)) {
        hk_gate_rows_grad_f32(dweights, dgate, own->slot, pairs);
    } else {
        hk_gate_rows_grad_f64(dweights, dgate, own->slot, pairs);
    }
}
