// wgmma: each warp computes its 16 of the 64 rows, at once or when it waits, as the schedule likes; in the fixed
// order as late as it may be. Then operands are read, so that what is overwritten too early gives wrong sums.
//
// Operands are read through another path than ordinary stores take: the race detector asks whether who has written them went
// through async_fence() since, before a barrier. Registers of the sums are ordered by wgmma_fence(): one is asked for behind
// every wait. Not seen here: on a GPU nothing is done before all four warps have come.
#include "warpgroup.h"

#include <string.h>

#include "warp.h"

namespace simt {

enum { JOBS_MAX = 64, COLUMNS_MAX = 256 };

struct job_t {
    wgmma_t lane[LANES];
    int group;
};

static struct {
    job_t job[JOBS_MAX];
    int count, groups;
    bool fenced; // Registers, since the last wait.
    uint32_t block;
} queues[WARPS_MAX];

enum { PIECE = 8 }; // Elements of 16 bytes, which swizzling leaves together.

// Elements `k` to `k` + 7 of row or column `i`; of a turned operand element `k` of `i` to `i` + 7. Only operands with
// 128-byte swizzle are known: lines of 128 bytes, eight of them in 1024 bytes; the next eight are a stride away,
// which the descriptor has in units of 16 bytes.
static void read_piece(uint64_t descriptor, bool turned, int i, int k, float to[PIECE]) {
    const uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    const uint32_t leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4;
    if (descriptor >> 62 != 1) fail("wgmma: the descriptor is not one of 128-byte swizzle");
    uint32_t at = (uint32_t)(descriptor & 0x3fff) << 4;
    if (turned) {
        at += (uint32_t)(i / 64) * leading + (uint32_t)(k / 8) * stride +
              (uint32_t)(k % 8 * 128 + i % 64 * 2);
    } else {
        at += (uint32_t)(i / 8) * stride + (uint32_t)(i % 8 * 128 + k * 2);
    }
    at ^= (at >> 7 & 7) << 4;
    uint16_t bits[PIECE];
    const unsigned char *p =
        shared_pointer(shared_offset(dynamic_shared()) + at, sizeof bits, "wgmma");
    touch(p, sizeof bits, READ);
    check_fenced(p, sizeof bits);
    memcpy(bits, p, sizeof bits);
    for (int n = 0; n < PIECE; n++) {
        const uint32_t wide = (uint32_t)bits[n] << 16;
        memcpy(&to[n], &wide, sizeof to[n]);
    }
}

// All of `count` rows or columns from `first` on: to[k][i], in lines of `width`.
static void read_operand(uint64_t descriptor, bool turned, int first, int count, float *to,
                         int width) {
    for (int i = 0; i < count; i += turned ? PIECE : 1) {
        for (int k = 0; k < 16; k += turned ? 1 : PIECE) {
            float piece[PIECE];
            read_piece(descriptor, turned, first + i, k, piece);
            for (int n = 0; n < PIECE; n++) {
                to[turned ? k * width + i + n : (k + n) * width + i] = piece[n];
            }
        }
    }
}

// The warp's 16 rows of a left operand in registers, as fragments of mma have it: to[k][i].
static void read_registers(const job_t &job, float (&to)[16][16]) {
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k++) {
            const uint32_t pair = job.lane[i % 8 * 4 + k % 8 / 2].registers[k / 8 * 2 + i / 8];
            const uint32_t wide = k % 2 ? pair & 0xffff0000u : pair << 16;
            memcpy(&to[k][i], &wide, sizeof wide);
        }
    }
}

// Rows 16 * quarter and on. A lane has two neighbours of row lane / 4 and two of the eighth one below, for every
// eight columns.
static void compute(const job_t &job, int quarter) {
    static float a[16][16], b[16][COLUMNS_MAX], sum[COLUMNS_MAX];
    const wgmma_t &w = job.lane[0];
    if (w.registers) {
        read_registers(job, a);
    } else {
        read_operand(w.a, w.a_turned, quarter * 16, 16, &a[0][0], 16);
    }
    read_operand(w.b, w.b_turned, 0, w.columns, &b[0][0], COLUMNS_MAX);
    for (int i = 0; i < 16; i++) {
        const auto d = [&](int j) -> float & {
            return job.lane[i % 8 * 4 + j % 8 / 2].d[j / 8 * 4 + i / 8 * 2 + j % 2];
        };
        for (int j = 0; j < w.columns; j++) sum[j] = w.keep ? d(j) : 0;
        for (int k = 0; k < 16; k++) {
            for (int j = 0; j < w.columns; j++) sum[j] += a[k][i] * b[k][j];
        }
        for (int j = 0; j < w.columns; j++) d(j) = sum[j];
    }
}

static void compute_until(int warp, int group) {
    auto &queue = queues[warp];
    int done = 0;
    while (done < queue.count && queue.job[done].group < group) {
        compute(queue.job[done++], warp % 4);
    }
    queue.count -= done;
    memmove(queue.job, queue.job + done, (size_t)queue.count * sizeof *queue.job);
}

// The current warp's. A block begins with none under way.
static auto &own_queue() {
    auto &queue = queues[current->warp - warps];
    if (queue.block != block_serial) {
        queue.count = queue.groups = 0;
        queue.fenced = false;
    }
    queue.block = block_serial;
    return queue;
}

static void issue_all(wgmma_t **all) {
    const int warp = (int)(current->warp - warps);
    auto &queue = own_queue();
    if (!queue.fenced) fail("wgmma: no wgmma.fence behind the last wait, or at the beginning");
    if (queue.count == JOBS_MAX) fail("wgmma: more than %d under way", JOBS_MAX);
    job_t &job = queue.job[queue.count++];
    for (int lane = 0; lane < LANES; lane++) {
        job.lane[lane] = *all[lane];
        if (all[lane]->a != all[0]->a || all[lane]->b != all[0]->b ||
            all[lane]->keep != all[0]->keep) {
            fail("wgmma: lanes differ in their operands");
        }
    }
    job.group = queue.groups;
    if (chance(2)) compute_until(warp, queue.groups + 1);
}

void async_fence() {
    current->fences++;
}

void wgmma_fence(site_t site) {
    char none = 0;
    collect(
        "wgmma.fence", ~0u, none, [](char **) { own_queue().fenced = true; }, site);
}

void wgmma_issue(const wgmma_t &mine, site_t site) {
    wgmma_t own = mine;
    if (block_size.x % 128 != 0) fail("wgmma: the block is not of whole warpgroups");
    collect("wgmma", ~0u, own, issue_all, site);
}

void wgmma_commit(site_t site) {
    char none = 0;
    collect(
        "wgmma.commit", ~0u, none, [](char **) { own_queue().groups++; }, site);
}

void wgmma_wait(int left, site_t site) {
    char none = 0;
    const auto wait = [=](char **) {
        compute_until((int)(current->warp - warps), own_queue().groups - left);
        own_queue().fenced = false;
    };
    collect("wgmma.wait", ~0u, none, wait, site);
}

} // namespace simt
