#include "tests/runtime/support/apart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/clip/clip.h"
#include "kernels/select_bias/select_bias.h"
#include "kernels/sum_squares/sum_squares.h"

enum { BLOCKS = 64, WORKS = 4096 };

struct work {
    enum { WRITE, FETCH, ADAMW, ROUND, SUM, CLIP, COUNTS, BIAS, COLLECT } kind;
    void *to;
    void *from; // A copy, for a write.
    hk_bf16 *rounded;
    float *grad, *mean, *variance;
    int64_t count;
    struct hk_adamw_rule rule;
    const void *also; // Losses, or the number of clipped values.
    int64_t layers, experts, stride;
    enum hk_write write;
    double number;
};

static struct hkc_lane lane;
static struct block {
    void *at;
    size_t bytes;
    bool hidden;
} block[BLOCKS];
static struct work work[WORKS];
static int works, marked[HRT_MARKS]; // How many of the works a mark stands behind.

int test_apart_blocks(void) {
    int taken = 0;
    for (int i = 0; i < BLOCKS; i++) taken += block[i].at != NULL;
    return taken;
}

static void show(bool shown) {
    for (int i = 0; i < BLOCKS; i++) {
        if (block[i].at && block[i].hidden)
            mprotect(block[i].at, block[i].bytes, shown ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

static bool open_apart(struct hrt_device *device, struct hrt_error *error) {
    (void)error;
    snprintf(device->name, sizeof device->name, "apart");
    device->lane = &lane;
    return true;
}

static void run(struct work *w) {
    if (w->kind == WRITE) {
        memcpy(w->to, w->from, (size_t)w->count);
        free(w->from);
    } else if (w->kind == ROUND) {
        hk_round_bf16(w->to, w->from, w->count);
    } else if (w->kind == ADAMW && w->rounded) {
        hk_adamw_rounded_f32(w->to, w->rounded, w->grad, w->mean, w->variance, w->count, HK_ROWS,
                             &w->rule);
    } else if (w->kind == ADAMW) {
        hk_adamw_f32(w->to, w->grad, w->mean, w->variance, w->count, &w->rule);
    } else if (w->kind == FETCH) {
        memcpy(w->to, w->from, (size_t)w->count);
    } else if (w->kind == COLLECT) {
        for (int64_t i = 0; i < w->count; i++) ((float *)w->to)[i] = *((float **)w->from)[i];
        free(w->from);
    } else if (w->kind == CLIP) {
        hk_clip(w->to, w->from, w->count, w->also, w->experts, w->number, w->stride);
    } else if (w->kind == COUNTS) {
        hk_add_counts(w->to, w->from, w->layers, w->experts, w->stride, w->write);
    } else if (w->kind == BIAS) {
        hk_select_bias_f32(w->to, w->from, w->layers, w->experts, w->stride, w->number, w->also);
    } else {
        *(double *)w->to = hk_sum_squares_f32(w->grad, w->count);
    }
}

// The first `count` of what was asked for.
static void run_first(int count) {
    show(true);
    for (int i = 0; i < count; i++) run(&work[i]);
    works -= count;
    memmove(work, work + count, (size_t)works * sizeof *work);
    for (int m = 0; m < HRT_MARKS; m++) marked[m] = marked[m] > count ? marked[m] - count : 0;
    show(false);
}

static void join(struct hrt_device *device) {
    (void)device;
    run_first(works);
}

static void mark_apart(struct hrt_device *device, int mark) {
    (void)device;
    marked[mark] = works;
}

static void await_apart(struct hrt_device *device, int mark) {
    (void)device;
    run_first(marked[mark]);
}

static void ask(struct hrt_device *device, struct work of) {
    if (works == WORKS) join(device);
    work[works++] = of;
}

static void close_apart(struct hrt_device *device) {
    join(device);
}

static void *take(struct hrt_device *device, enum hrt_memory memory, size_t bytes, bool sparse) {
    (void)device, (void)sparse;
    struct block *free_one = block;
    while (free_one < block + BLOCKS - 1 && free_one->at) free_one++;
    if (free_one->at || bytes > (size_t)1 << 40) return NULL;
    const size_t size = bytes ? bytes : 1;
    const bool hidden = memory != HRT_OF_BOTH;
    void *at = mmap(NULL, size, hidden ? PROT_NONE : PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    *free_one = (struct block){at, size, hidden};
    return at;
}

static void give(struct hrt_device *device, enum hrt_memory memory, void *taken, size_t bytes) {
    (void)memory, (void)bytes;
    join(device);
    for (int i = 0; taken && i < BLOCKS; i++) {
        if (block[i].at != taken) continue;
        munmap(taken, block[i].bytes);
        block[i] = (struct block){0};
    }
}

static bool touch(struct hrt_device *device, void *at, size_t bytes, enum hrt_home home) {
    (void)home;
    ask(device,
        (struct work){.kind = WRITE, .to = at, .from = calloc(1, bytes), .count = (int64_t)bytes});
    return true;
}

static void leave(struct hrt_device *device, void *at, size_t bytes) {
    (void)device, (void)at, (void)bytes;
}

static void room(struct hrt_device *device, size_t *left, size_t *all) {
    (void)device;
    *left = 1 << 29;
    *all = 1 << 30;
}

static void write_apart(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy) abort();
    memcpy(copy, from, bytes);
    ask(device, (struct work){.kind = WRITE, .to = to, .from = copy, .count = (int64_t)bytes});
}

static void fetch_apart(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    ask(device,
        (struct work){.kind = FETCH, .to = to, .from = (void *)from, .count = (int64_t)bytes});
}

static void read_apart(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    join(device);
    show(true);
    memcpy(to, from, bytes);
    show(false);
}

static void adamw(struct hrt_device *device, float *param, hk_bf16 *rounded, float *grad,
                  float *mean, float *variance, int64_t count, const struct hk_adamw_rule *rule) {
    ask(device, (struct work){.kind = ADAMW,
                              .to = param,
                              .rounded = rounded,
                              .grad = grad,
                              .mean = mean,
                              .variance = variance,
                              .count = count,
                              .rule = *rule});
}

static void round_apart(struct hrt_device *device, hk_bf16 *to, const float *from, int64_t count) {
    ask(device, (struct work){.kind = ROUND, .to = to, .from = (float *)from, .count = count});
}

static void sum_squares(struct hrt_device *device, double *sum, const float *x, int64_t count,
                        int64_t arrays) {
    for (int64_t i = 0; i < arrays; i++)
        ask(device,
            (struct work){
                .kind = SUM, .to = sum + i, .grad = (float *)x + i * count, .count = count});
}

static void clip_apart(struct hrt_device *device, struct hk_clipped *clipped, const double *sums,
                       int64_t count, const float *numbers, int64_t numbered, double clip,
                       int64_t skips) {
    ask(device, (struct work){.kind = CLIP,
                              .to = clipped,
                              .from = (void *)sums,
                              .count = count,
                              .also = numbers,
                              .experts = numbered,
                              .number = clip,
                              .stride = skips});
}

static void add_counts(struct hrt_device *device, int64_t *counts, const int32_t *loads,
                       int64_t layers, int64_t experts, int64_t stride, enum hk_write write) {
    ask(device, (struct work){.kind = COUNTS,
                              .to = counts,
                              .from = (void *)loads,
                              .layers = layers,
                              .experts = experts,
                              .stride = stride,
                              .write = write});
}

static void select_bias(struct hrt_device *device, float *bias, const int64_t *counts,
                        int64_t layers, int64_t experts, int64_t stride, double rate,
                        const struct hk_clipped *clipped) {
    ask(device, (struct work){.kind = BIAS,
                              .to = bias,
                              .from = (void *)counts,
                              .layers = layers,
                              .experts = experts,
                              .stride = stride,
                              .number = rate,
                              .also = clipped});
}

static void collect(struct hrt_device *device, float *to, const float *const *from, int count) {
    void *copy = malloc((size_t)count * sizeof *from);
    if (!copy) abort();
    memcpy(copy, from, (size_t)count * sizeof *from);
    ask(device, (struct work){.kind = COLLECT, .to = to, .from = copy, .count = count});
}

const struct hrt_device_backend test_device_apart = {
    .name = "apart",
    .apart = true,
    .open = open_apart,
    .close = close_apart,
    .take = take,
    .touch = touch,
    .leave = leave,
    .give = give,
    .room = room,
    .write = write_apart,
    .read = read_apart,
    .fetch = fetch_apart,
    .join = join,
    .mark = mark_apart,
    .await = await_apart,
    .adamw = adamw,
    .round = round_apart,
    .sum_squares = sum_squares,
    .clip = clip_apart,
    .add_counts = add_counts,
    .select_bias = select_bias,
    .collect = collect,
};
