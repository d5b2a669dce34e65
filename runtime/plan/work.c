// work.c: the workspace, status texts.
#include "runtime/plan/work.h"

void *hpl_take(struct hpl_work *work, int64_t count, size_t size) {
    const uintptr_t align = 16;
    const uintptr_t start = ((uintptr_t)work->at + align - 1) / align * align;
    const size_t pad = (size_t)(start - (uintptr_t)work->at);
    const size_t left = (size_t)(work->end - work->at);
    if (count < 0 || pad > left || (size_t)count > (left - pad) / size) return NULL;
    void *taken = work->at + pad;
    work->at += pad + (size_t)count * size;
    return taken;
}

size_t hpl_work_bytes(int32_t experts, int32_t devices, int32_t nodes, int32_t holders) {
    const size_t e = (size_t)experts, d = (size_t)devices, n = (size_t)nodes, k = (size_t)holders;
    const size_t words = (d + 63) / 64;
    // Per holder, expert and device: the flow network, the draft, a schedule's counters and those of its proof in tests. The
    // products: node totals, a draft's bit sets, its copies per node, rivals' pieces.
    return 65536 + 576 * (e + d + n + k) + e * (words * 16 + n * 32 + d * 8);
}

const char *hpl_status_text(enum hpl_status status) {
    switch (status) {
    case HPL_OK:
        return "no error";
    case HPL_BAD_ARGUMENT:
        return "a number is out of range, or two contradict each other";
    case HPL_NO_ROOM:
        return "the workspace or an output array is too small";
    }
    return "unknown status";
}
