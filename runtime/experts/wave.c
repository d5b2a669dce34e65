// Which rows one wave moves. The wave is a window of the rows of each rank in their order; a source
// and a rank find the same rows in it, since both know all quotas. The host counts them, and they are listed where they are
// copied.
#include <assert.h>

#include "runtime/experts/layer.h"

// How many rows of `count` runs are in the wave.
static int32_t rows_in(const struct hrt_wave *wave, const struct hk_run *run, int32_t count) {
    int32_t rows = 0;
    for (int32_t i = 0; i < count; i++) rows += hk_run_part(run[i], wave->begin, wave->end).count;
    return rows;
}

static void count_rows(const struct hrt_experts *experts, struct hrt_wave *wave) {
    const struct hrt_experts_layer *layer = wave->layer;
    const int32_t *sends = layer->sends;
    wave->send_first[0] = wave->recv_first[0] = 0;
    for (int r = 0; r < experts->comm->size; r++) {
        wave->send_first[r + 1] =
            wave->send_first[r] + rows_in(wave, layer->send + sends[r], sends[r + 1] - sends[r]);
        wave->recv_first[r + 1] =
            wave->recv_first[r] + rows_in(wave, layer->recv + r * layer->here, layer->here);
    }
}

// Numbers of what runs have in the wave, less `origin`, and `mapped` as kernels/runs says.
static void list_runs(struct hrt_experts *experts, int32_t *number, int32_t *mapped,
                      const struct hk_run *run, int64_t runs, int64_t origin) {
    struct hrt_device *device = experts->device;
    const struct hrt_wave *wave = &experts->wave;
    const int32_t *map = mapped ? wave->layer->pair : NULL;
    if (hrt_device_is_apart(device))
        device->backend->list_runs(device, number, mapped, map, run, runs, wave->begin, wave->end,
                                   origin);
    else
        hk_list_runs(number, mapped, map, run, runs, wave->begin, wave->end, origin);
}

const struct hrt_wave *hrt_experts_wave_of(struct hrt_experts *experts,
                                           const struct hrt_experts_layer *layer, int64_t number) {
    struct hrt_wave *wave = &experts->wave;
    const int ranks = experts->comm->size;
    assert(number >= 0 && number < layer->waves);
    if (wave->layer == layer && wave->wave == number) return wave;
    assert(!experts->returning); // Its lists are needed when the rows are home.
    wave->layer = layer;
    wave->wave = number;
    wave->begin = number * layer->set->wave_rows;
    wave->end = wave->begin + layer->set->wave_rows;
    count_rows(experts, wave);
    list_runs(experts, wave->send, wave->pair, layer->send, layer->sends[ranks], 0);
    list_runs(experts, wave->recv, NULL, layer->recv, (int64_t)ranks * layer->here, wave->begin);
    if (experts->relay.serves) hrt_experts_relay_list(experts, wave);
    return wave;
}

void hrt_experts_wave_starts(struct hrt_experts *experts, int32_t *first) {
    struct hrt_device *device = experts->device;
    const struct hrt_wave *wave = &experts->wave;
    const int64_t count = wave->layer->set->slots + 1;
    if (hrt_device_is_apart(device))
        device->backend->clip_starts(device, first, wave->layer->start, count, wave->begin,
                                     wave->end);
    else
        hk_clip_starts(first, wave->layer->start, count, wave->begin, wave->end);
}

int64_t hrt_experts_wave_rows(struct hrt_experts *experts, int set, int64_t layer, int64_t wave) {
    return hrt_experts_wave_of(experts, hrt_layer(experts, set, layer), wave)
        ->recv_first[experts->comm->size];
}
