// Which rows one wave moves. The wave is a window of the rows of each rank in their order; a source
// and a rank find the same rows in it, since both know all quotas.
#include <assert.h>
#include <string.h>

#include "runtime/experts/layer.h"

// The part of rows [at, at + rows) that lies in a wave: it begins `skip` rows behind `at`.
struct part {
    int64_t skip, rows;
};

static struct part part_in(int64_t at, int64_t rows, int64_t begin, int64_t end) {
    const int64_t from = at > begin ? at : begin;
    const int64_t to = at + rows < end ? at + rows : end;
    return (struct part){from - at, to > from ? to - from : 0};
}

static void list_sent(const struct hrt_experts *experts, struct hrt_wave *wave, int64_t begin,
                      int64_t end) {
    const struct hrt_experts_layer *layer = wave->layer;
    const int ranks = experts->comm->size;
    const int32_t holders = layer->plan.first[layer->plan.experts];
    int32_t *first = wave->send_first;
    memset(first, 0, (size_t)(ranks + 1) * sizeof *first);
    for (int32_t k = 0; k < holders; k++)
        first[layer->plan.holder[k] + 1] +=
            (int32_t)part_in(layer->at[k], layer->to[k], begin, end).rows;
    for (int r = 0; r < ranks; r++) first[r + 1] += first[r];
    memcpy(wave->cursor, first, (size_t)ranks * sizeof *first);
    for (int32_t k = 0; k < holders; k++) {
        const struct part part = part_in(layer->at[k], layer->to[k], begin, end);
        int32_t *to = wave->send + wave->cursor[layer->plan.holder[k]];
        for (int64_t i = 0; i < part.rows; i++) to[i] = (int32_t)(layer->from[k] + part.skip + i);
        wave->cursor[layer->plan.holder[k]] += (int32_t)part.rows;
    }
}

// Finds the holders of the plan on this rank, and where the rows of each begin: wave->next and, of
// the wave, wave->first. Returns how many there are.
static int list_experts(const struct hrt_experts *experts, struct hrt_wave *wave, int64_t begin,
                        int64_t end) {
    const struct hrt_experts_layer *layer = wave->layer;
    const int32_t holders = layer->plan.first[layer->plan.experts];
    const int64_t slots = layer->set->slots;
    int64_t rows = 0, used = 0;
    for (int32_t k = 0; k < holders; k++) {
        if (layer->plan.holder[k] != experts->comm->rank) continue;
        assert(used < slots);
        const uint32_t *here = layer->here + used;
        wave->next[used] = (int32_t)rows;
        wave->first[used++] = (int32_t)part_in(0, rows, begin, end).rows;
        for (int r = 0; r < experts->comm->size; r++) rows += here[r * slots];
    }
    for (int64_t n = used; n <= slots; n++)
        wave->first[n] = (int32_t)part_in(0, rows, begin, end).rows;
    return (int)used;
}

static void list_received(const struct hrt_experts *experts, struct hrt_wave *wave, int64_t begin,
                          int64_t end) {
    const struct hrt_experts_layer *layer = wave->layer;
    const int64_t slots = layer->set->slots;
    const int used = list_experts(experts, wave, begin, end);
    int32_t count = 0;
    for (int r = 0; r < experts->comm->size; r++) {
        wave->recv_first[r] = count;
        for (int n = 0; n < used; n++) {
            const uint32_t rows = layer->here[r * slots + n];
            const struct part part = part_in(wave->next[n], rows, begin, end);
            for (int64_t i = 0; i < part.rows; i++)
                wave->recv[count++] = (int32_t)(wave->next[n] + part.skip + i - begin);
            wave->next[n] += (int32_t)rows;
        }
    }
    wave->recv_first[experts->comm->size] = count;
}

const struct hrt_wave *hrt_wave_of(struct hrt_experts *experts,
                                   const struct hrt_experts_layer *layer, int64_t number) {
    struct hrt_wave *wave = &experts->wave;
    assert(number >= 0 && number < layer->waves);
    if (wave->layer == layer && wave->wave == number) return wave;
    wave->layer = layer;
    wave->wave = number;
    const int64_t begin = number * layer->set->rows_max, end = begin + layer->set->rows_max;
    list_sent(experts, wave, begin, end);
    list_received(experts, wave, begin, end);
    return wave;
}

int64_t hrt_wave_rows(struct hrt_experts *experts, int set, int64_t layer, int64_t wave) {
    const struct hrt_experts_layer *of = hrt_layer(experts, set, layer);
    return hrt_wave_of(experts, of, wave)->first[of->set->slots];
}
