// products_kernels: the kernels behind products.h, for one type of values. Included once for each.
#ifndef HECATE_KERNELS_CUDA_PRODUCTS_KERNELS_H
#define HECATE_KERNELS_CUDA_PRODUCTS_KERNELS_H

#include "kernels/cuda/product.h"
#include "kernels/cuda/products.h"

namespace product {

// Where a matrix has few tiles and many rows, its gradient is made in slices of so many terms by blocks of their own,
// whose sums add_slices adds in order.
constexpr int SLICE = 1024;

// Tiles that lie above each other, and are computed next to each other, so that they share columns in the cache. The
// 132 multiprocessors of an H100 have 132 tiles of 128 x 256 or 264 of 128 x 128 at a time: 2048 rows by about as many
// columns, so that they read least.
constexpr int NEAR = 16;

HKC_DEVICE int first_row(const products &p, int group) {
    return p.first ? p.first[group] : 0;
}

HKC_DEVICE int rows_of(const products &p, int group) {
    return p.first ? p.first[group + 1] - p.first[group] : (int)p.rows;
}

template <class T> HKC_DEVICE T *weights_of(const products &p, int group) {
    return p.chunk ? (T *)p.chunk[group] + p.offset : (T *)p.weight;
}

HKC_DEVICE int tiles_of(int size, int tile) {
    return (size + tile - 1) / tile;
}

// Numbers of gathered lines, behind the operands in shared memory: for all rows of a tile, or of a sum of TERMS.
template <class U> HKC_DEVICE int32_t *list_in(unsigned char *memory) {
    return (int32_t *)(memory + SHARED_BYTES<U>);
}

template <class U, gathers G, int LINES>
constexpr int SHARED_WITH_LIST = SHARED_BYTES<U> +
                                 (G == NEITHER ? 0 : LINES * (int)sizeof(int32_t));

// Lists the lines of `count` rows from `first` on, and line 0 for those up to `all`, which do not exist. Nobody reads
// the list before: each tile ends with a barrier behind its last copies.
template <class U>
HKC_DEVICE void list_rows(unsigned char *memory, const products &p, int first, int count, int all) {
    int32_t *list = list_in<U>(memory);
    for (int i = thread(); i < all; i += U::THREADS) {
        list[i] = i < count ? p.pair[first + i] / (int)p.picks : 0;
    }
    __syncthreads();
}

// A walk through the tiles of all groups. Sizes and counts of tiles fit into int: registers are dear here.
struct walk {
    int group, tiles; // Groups below `group` have `tiles` tiles.
};

struct tile {
    int group, row, column, rows, columns;
};

// Tile `t` of a group's: row by row within NEAR of them, then column by column.
template <class U> HKC_DEVICE tile tile_in_group(const products &p, int group, int t, int width) {
    const int rows = rows_of(p, group), down = tiles_of(rows, HEIGHT);
    const int across = tiles_of(width, U::WIDTH);
    const int top = t / (NEAR * across) * NEAR, high = min(NEAR, down - top);
    const int in = t % (NEAR * across);
    const int row = (top + in % high) * HEIGHT, column = in / high * U::WIDTH;
    return {group, first_row(p, group) + row, column, min(HEIGHT, rows - row),
            min(U::WIDTH, width - column)};
}

// Tile `t` of a result of `width` columns; false behind the last one. Every warp searches for itself,
// 32 groups at a time, from where it was, so `t` may not decrease.
template <class U>
HKC_DEVICE bool find_tile(const products &p, walk *at, int t, int width, tile *found) {
    const int lane = thread() % 32;
    for (; at->group < (int)p.groups; at->group += 32) {
        const int group = at->group + lane;
        const int rows = group < (int)p.groups ? rows_of(p, group) : 0;
        const int own = tiles_of(rows, HEIGHT) * tiles_of(width, U::WIDTH);
        int end = own;
        for (int by = 1; by < 32; by *= 2) {
            const int below = __shfl_up_sync(~0u, end, by);
            end += lane >= by ? below : 0;
        }
        const unsigned behind = __ballot_sync(~0u, t < at->tiles + end);
        if (behind) {
            const int holder = __ffs((int)behind) - 1;
            const int begin = at->tiles + __shfl_sync(~0u, end - own, holder);
            *found = tile_in_group<U>(p, at->group + holder, t - begin, width);
            return true;
        }
        at->tiles += __shfl_sync(~0u, end, 31);
    }
    return false;
}

// A tile is as high as its rows need: experts have few rows, or a few more than a multiple of HEIGHT.
template <class U, major RIGHT, gathers G, class T, class OUT>
HKC_DEVICE void compute_high_tile(unsigned char *memory, const operand<T> &left,
                                  const operand<T> &right, int terms, const OUT &out) {
    if (out.rows <= 16) {
        compute_tile<U, K_MAJOR, RIGHT, 16, G>(memory, left, right, terms, out);
    } else if (out.rows <= 64) {
        compute_tile<U, K_MAJOR, RIGHT, 64, G>(memory, left, right, terms, out);
    } else {
        compute_tile<U, K_MAJOR, RIGHT, 128, G>(memory, left, right, terms, out);
    }
}

// The rows of a tile as the left operand, [rows, terms].
template <class U, gathers G, class T>
HKC_DEVICE operand<T> rows_in(unsigned char *memory, const products &p, const tile &t,
                              const T *left, int64_t terms) {
    if (G != NEITHER) list_rows<U>(memory, p, t.row, t.rows, HEIGHT);
    const int64_t first = t.row * terms;
    return {left + (G != NEITHER ? 0 : first),
            terms,
            t.rows,
            is_wide(left, terms),
            list_in<U>(memory),
            NULL};
}

// nn and nt: out (+)= left B or left B^T. RIGHT is MN_MAJOR for B, K_MAJOR for B^T.
template <class U, major RIGHT, gathers G, class T>
HKC_DEVICE void compute_rows(unsigned char *memory, T *out, const T *left, const products &p) {
    const int64_t width = RIGHT == MN_MAJOR ? p.n : p.k, terms = RIGHT == MN_MAJOR ? p.k : p.n;
    walk at = {0, 0};
    tile t;
    for (int next = blockIdx.x; find_tile<U>(p, &at, next, (int)width, &t); next += gridDim.x) {
        const T *weights = weights_of<T>(p, t.group);
        const operand<T> l = rows_in<U, G>(memory, p, t, left, terms);
        const operand<T> r = {weights + (RIGHT == MN_MAJOR ? t.column : t.column * terms),
                              p.n,
                              t.columns,
                              is_wide(weights, p.n),
                              NULL,
                              NULL};
        const result<T> o = {
            out + t.row * width + t.column, width, t.rows, t.columns, p.add, is_wide(out, width)};
        compute_high_tile<U, RIGHT, G>(memory, l, r, (int)terms, o);
    }
}

// A tile has half as many columns of each matrix.
template <class U, gathers G, class T>
HKC_DEVICE void compute_swiglu(unsigned char *memory, const swiglu<T> &out, const T *left,
                               const products &p) {
    const int64_t n = p.n;
    walk at = {0, 0};
    tile t;
    for (int next = blockIdx.x; find_tile<U>(p, &at, next, 2 * (int)n, &t); next += gridDim.x) {
        const T *b = weights_of<T>(p, t.group), *c = out.chunk[t.group] + out.offset;
        const int column = t.column / 2, columns = t.columns / 2;
        const int64_t first = t.row * n + column;
        const operand<T> l = rows_in<U, G>(memory, p, t, left, p.k);
        const operand<T> r = {b + column, n,         columns, is_wide(b, n) && is_wide(c, n),
                              NULL,       c + column};
        const pairs<T> o = {out.ab + first,
                            out.ac + first,
                            out.r + first,
                            out.scale + t.row,
                            n,
                            t.rows,
                            columns,
                            is_wide(out.ab, n) && is_wide(out.ac, n) && is_wide(out.r, n)};
        compute_high_tile<U, MN_MAJOR, G>(memory, l, r, (int)p.k, o);
    }
}

// tn: B (+)= a^T c. With `partial` each slice of the rows leaves its sums there, [slice, k, n].
template <class U, gathers G, class T>
HKC_DEVICE void compute_weights(unsigned char *memory, const T *a, const T *c, float *partial,
                                int slices, const products &p) {
    const int down = tiles_of(p.k, HEIGHT), tiles = down * tiles_of(p.n, U::WIDTH);
    for (int next = blockIdx.x; next < p.groups * tiles * slices; next += gridDim.x) {
        const int group = next / slices / tiles, slice = next % slices;
        const int row = next / slices % tiles % down * HEIGHT;
        const int column = next / slices % tiles / down * U::WIDTH;
        const int first = first_row(p, group), rows = rows_of(p, group);
        float *to = partial ? partial + slice * p.k * p.n : weights_of<float>(p, group);
        result<float> o = {to + row * p.n + column,     p.n,
                           min(HEIGHT, (int)p.k - row), min(U::WIDTH, (int)p.n - column),
                           p.add && !partial,           is_wide(to, p.n)};
        if (rows == 0 && o.add) continue;
        int from = slice * SLICE;
        const int end = partial ? min(rows, from + SLICE) : rows;
        do { // Also without rows: zeros are written then.
            const int terms = min(end - from, U::TERMS);
            if (G != NEITHER) {
                list_rows<U>(memory, p, first + from, terms, tiles_of(terms, DEPTH<U>) * DEPTH<U>);
            }
            const int64_t left = G == LEFT_ONE ? 0 : first + from;
            const int64_t right = G == RIGHT_ONE ? 0 : first + from;
            const operand<T> l = {a + left * p.k + row, p.k, o.rows, is_wide(a, p.k),
                                  list_in<U>(memory),   NULL};
            const operand<T> r = {c + right * p.n + column, p.n, o.columns, is_wide(c, p.n),
                                  list_in<U>(memory),       NULL};
            compute_tile<U, MN_MAJOR, MN_MAJOR, HEIGHT, G>(memory, l, r, terms, o);
            o.add = true;
            from += U::TERMS;
        } while (from < end);
    }
}

template <class U, major RIGHT, gathers G, class T>
__global__ void __launch_bounds__(U::THREADS, U::HELD)
    rows_kernel(T *out, const T *left, products p) {
    HKC_SHARED(memory);
    if constexpr (U::EXISTS) compute_rows<U, RIGHT, G>(memory, out, left, p);
}

template <class U, gathers G, class T>
__global__ void __launch_bounds__(U::THREADS, U::HELD)
    swiglu_kernel(swiglu<T> out, const T *left, products p) {
    HKC_SHARED(memory);
    if constexpr (U::EXISTS) compute_swiglu<U, G>(memory, out, left, p);
}

template <class U, gathers G, class T>
__global__ void __launch_bounds__(U::THREADS, U::HELD)
    weights_kernel(const T *a, const T *c, float *partial, int slices, products p) {
    HKC_SHARED(memory);
    if constexpr (U::EXISTS) compute_weights<U, G>(memory, a, c, partial, slices, p);
}

// to (+)= the sum of slices [slices, count], in order.
static __global__ void add_slices(float *to, const float *slice, int64_t slices, int64_t count,
                                  bool add) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = add ? to[i] + slice[i] : slice[i];
    for (int64_t s = 1; s < slices; s++) sum += slice[s * count + i];
    to[i] = sum;
}

// Blocks that stay: as many as the device holds, if there is work for them. How many rows experts have is
// not known here.
template <class U> unsigned blocks_for(const hkc_lane *lane, int64_t tiles) {
    const int64_t held = U::HELD * (int64_t)lane->multiprocessors;
    return (unsigned)(tiles < held ? tiles : held);
}

template <class U> int64_t most_tiles(const products &p, int64_t width) {
    const int64_t across = (width + U::WIDTH - 1) / U::WIDTH;
    return p.first ? INT32_MAX * across * (p.groups > 0) : (p.rows + HEIGHT - 1) / HEIGHT * across;
}

// As in products.h.
template <class U, major RIGHT, gathers G, class T>
void launch_rows(hkc_lane *lane, T *out, const T *left, const products &p) {
    const auto product_of_rows = rows_kernel<U, RIGHT, G, T>;
    const int64_t width = RIGHT == MN_MAJOR ? p.n : p.k;
    hkc_launch(lane, product_of_rows, blocks_for<U>(lane, most_tiles<U>(p, width)), U::THREADS,
               (SHARED_WITH_LIST<U, G, HEIGHT>), out, left, p);
}

template <class U, class T> void product_nn(hkc_lane *lane, T *c, const T *a, const products &p) {
    (p.pair ? launch_rows<U, MN_MAJOR, LEFT_ONE, T> : launch_rows<U, MN_MAJOR, NEITHER, T>)(lane, c,
                                                                                            a, p);
}

template <class U, class T> void product_nt(hkc_lane *lane, T *a, const T *c, const products &p) {
    (p.pair ? launch_rows<U, K_MAJOR, LEFT_ONE, T> : launch_rows<U, K_MAJOR, NEITHER, T>)(lane, a,
                                                                                          c, p);
}

template <class U, gathers G, class T>
void launch_pairs(hkc_lane *lane, const swiglu<T> &out, const T *a, const products &p) {
    const auto swiglu_of_rows = swiglu_kernel<U, G, T>;
    hkc_launch(lane, swiglu_of_rows, blocks_for<U>(lane, most_tiles<U>(p, 2 * p.n)), U::THREADS,
               (SHARED_WITH_LIST<U, G, HEIGHT>), out, a, p);
}

template <class U, class T>
void product_swiglu(hkc_lane *lane, const swiglu<T> &out, const T *a, const products &p) {
    (p.pair ? launch_pairs<U, LEFT_ONE, T> : launch_pairs<U, NEITHER, T>)(lane, out, a, p);
}

template <class U, gathers G, class T>
void launch_weights(hkc_lane *lane, const T *a, const T *c, const products &p) {
    const int64_t tiles = (p.k + HEIGHT - 1) / HEIGHT * ((p.n + U::WIDTH - 1) / U::WIDTH);
    const int64_t slices = (p.rows + SLICE - 1) / SLICE, count = p.k * p.n;
    const bool alone = p.first || slices < 2 || tiles >= lane->multiprocessors ||
                       slices * count * (int64_t)sizeof(float) > HKC_SCRATCH;
    const unsigned blocks = blocks_for<U>(lane, p.groups * tiles * (alone ? 1 : slices));
    float *partial = alone ? (float *)NULL : (float *)lane->scratch;
    const auto product_of_columns = weights_kernel<U, G, T>;
    hkc_launch(lane, product_of_columns, blocks, U::THREADS, (SHARED_WITH_LIST<U, G, U::TERMS>), a,
               c, partial, alone ? 1 : (int)slices, p);
    if (alone) return;
    hkc_launch(lane, add_slices, (unsigned)((count + 255) / 256), 256, 0, (float *)p.weight,
               partial, slices, count, p.add);
}

template <class U, class T>
void product_tn(hkc_lane *lane, const T *a, const T *c, const products &p) {
    const auto launch = !p.pair  ? launch_weights<U, NEITHER, T>
                        : p.of_c ? launch_weights<U, RIGHT_ONE, T>
                                 : launch_weights<U, LEFT_ONE, T>;
    launch(lane, a, c, p);
}

} // namespace product

#endif
