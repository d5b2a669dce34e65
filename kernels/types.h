// Words shared by all kernels: how a result is written, how a matrix lies in memory, sizes.
//
// Rules for every kernel of this folder, so that the contracts need not repeat them:
// - `_f32` and `_f64` name the same source built for float and double. f64 is the reference that
//   gradient checks run. `_bf16` kernels round the operands of their GEMMs to bf16 and sum in
//   float; float arrays go in and come out, only weights lie in memory as bf16.
// - Arrays are dense and row major, sizes are elements, int64_t and not negative. A size of 0 is
//   ordinary: sums over nothing are 0.
// - Outputs never overlap inputs unless a contract says that in place is allowed.
// - Nothing is allocated; scratch is on the stack (below 640 KiB). Nothing fails: a broken
//   precondition is a bug of the caller and ends in an assert.
// - Threads are OpenMP's (omp_get_max_threads()). Every element is computed by one thread in an
//   order that depends neither on the number of threads nor on how many rows there are: same
//   inputs, same bits, on one instruction set.
// - The instruction set is chosen once, see cpu/isa.h.
#ifndef HECATE_KERNELS_TYPES_H
#define HECATE_KERNELS_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/bf16.h"

// HK_ADD adds to the destination. With HK_STORE the destination need not be initialized.
enum hk_write { HK_STORE, HK_ADD };

// A K x N matrix: row major, or as panels of HK_PANEL columns: [ceil(N / 64)][K][64], the last
// panel padded with zeros. Products read panels with unit stride and keep the padding zero.
// bf16 panels are [ceil(N / 64)][ceil(K / 2)][64][2]: rows in pairs, an odd last one with zeros.
enum hk_layout { HK_ROWS, HK_PANELS };

enum { HK_PANEL = 64 };

// How the elements of weights in panels are stored: as they are, or packed (kernels/packed/packed.h).
enum hk_packing { HK_UNPACKED, HK_MXFP4, HK_FP8 };

// A part of a matrix: rows row .. row_end - 1, columns column .. column_end - 1.
struct hk_block {
    int64_t row, row_end, column, column_end;
};

// The loop on the result of a GEMM: called once for every block of it, when that is finished
// and before it leaves the cache, by the thread that computed it. Blocks cover the result; which they
// are depends on sizes and threads, so that what is done to an element may depend on its place only.
// `model` and `layer` are passed on as they are.
struct hk_epilogue {
    void (*apply)(void *model, int64_t layer, struct hk_block block);
    void *model;
    int64_t layer;
};

// Elements that a k x n matrix takes as panels.
static inline int64_t hk_panels_size(int64_t k, int64_t n) {
    return (n + HK_PANEL - 1) / HK_PANEL * HK_PANEL * k;
}

// As bf16 panels. Float panels fit into as many elements, too.
static inline int64_t hk_panels_size_bf16(int64_t k, int64_t n) {
    return hk_panels_size((k + 1) / 2 * 2, n);
}

#endif
