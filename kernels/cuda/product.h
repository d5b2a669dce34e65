// product: the GEMMs behind matmul and grouped, for one matrix or for every expert's.
//
// A block of threads computes a tile of the result, WIDTH columns and up to HEIGHT rows. Operands pass
// through shared memory in steps of LINE bytes along the contracted index, STAGES of them under way.
// Blocks stay and take one tile after another from a list that all of them walk alike; where experts'
// rows begin is read on the device. Every element is one sum in ascending order of the contracted
// index, so neither the size of a tile nor the thread that computes it changes a bit.
//
// The work between shared memory and registers depends on the type of the values:
// product_ffma.h for float, product_mma.h for bf16.
#ifndef HECATE_KERNELS_CUDA_PRODUCT_H
#define HECATE_KERNELS_CUDA_PRODUCT_H

#include "kernels/cuda/piece.h"
#include "kernels/scalar.h"

namespace product {

using hkc::copy_values;
using hkc::is_wide;

constexpr int HEIGHT = 128;

// A unit multiplies: a struct with
//   EXISTS               on the architecture that is compiled for
//   value                a value of an operand in memory
//   WIDTH                columns of a tile
//   LINE                 bytes of a step along the contracted index
//   THREADS, HELD        of a block; blocks that a multiprocessor holds at a time
//   STAGES               steps under way
//   UNDER_WAY            steps whose sums may still go on when the next one's are asked for. Where a multiprocessor
//                        holds one block, one step keeps tensor cores busy while the block waits for operands
//   TERMS                the most terms of a gradient of weights that are one sum. Longer ones are sums of so many,
// each added to
//                        what is in memory: reading and writing a tile takes the time of 1,000 terms
//   place<M>(line, piece)  where a piece of 16 bytes lies in an operand's shared memory. K_MAJOR lines are rows or
//                        columns of the result, MN_MAJOR lines are terms. Lines that THREADS pieces apart are
//                        exchanged alike.
//   sums<LEFT, RIGHT, H>  the sums of a tile of H rows, each thread's in its registers: zero(); add(left, right),
//                        which may go on until finish<N>() returns, the last N of them longer; store(out) of a
//                        result or, with RIGHT == MN_MAJOR, of pairs.
//                        APART: pieces of a MN_MAJOR line from a column of one matrix to that of the other, where a
// tile has
//                        both; as many as leave both columns to one thread. Neighbouring threads read neighbouring
// pieces:
//                        with 8 of them in a row, 128 bytes, a read takes no more transactions than from one matrix.
// See product_ffma.h for float, product_mma.h and product_wgmma.h for bf16.

// Terms of the sums that a step adds, bytes of a step of the left operand, and of both.
template <class U> constexpr int DEPTH = U::LINE / (int)sizeof(typename U::value);
template <class U> constexpr int LEFT_BYTES = HEIGHT *U::LINE;
template <class U> constexpr int STAGE_BYTES = LEFT_BYTES<U> + U::WIDTH *U::LINE;
template <class U> constexpr int SHARED_BYTES = U::STAGES *STAGE_BYTES<U>;

// Which index of an operand is contiguous in memory: the contracted one, or the result's.
enum major { K_MAJOR, MN_MAJOR };

// The thread's number, which the compiler does not know to be the same as before: so what is computed from it,
// such as addresses of the result, takes no registers while sums are computed.
HKC_DEVICE int thread() {
    int number = (int)threadIdx.x;
    HKC_PTX(, "" : "+r"(number));
    return number;
}

// A part of an operand in memory: its first element, elements from one line to the next, and how
// many rows or columns of the result it has. `wide`: lines lie at multiples of 16 bytes.
template <class T> struct operand {
    const T *at;
    int64_t stride;
    int count;
    bool wide;
    const int32_t *list; // If gathered, in shared memory: line i is the list[i]-th behind `at`.
    const T *other;      // In pairs: of the other matrix, which lies alike.
};

// Which operand's lines are gathered.
enum gathers { NEITHER, LEFT_ONE, RIGHT_ONE };

// How a thread loads an operand of LINES rows or columns, step by step: a piece of a
// line and those some lines below. Numbers of lines that are gathered stay in shared memory: registers are few. APART:
// as of sums, where the operand is two matrices in turn; 0 where it is one.
template <class U, major M, int LINES, bool GATHERED, int APART> struct loader {
    typedef typename U::value T;
    static constexpr int VALUES = 16 / (int)sizeof(T);
    static constexpr int PIECES = M == K_MAJOR ? U::LINE / 16 : LINES / VALUES;
    static constexpr int BELOW = U::THREADS / PIECES;
    static constexpr int ALL = M == K_MAJOR ? LINES : DEPTH<U>;
    static constexpr int AT_LEAST_ONE = APART ? APART : 1; // A divisor.
    const T *from;                                         // Source of the next step.
    const int32_t *list;                                   // From the thread's first line on.
    int64_t stride;
    int count, line, piece;
    bool wide;

    HKC_DEVICE explicit loader(const operand<T> &x)
        : stride(x.stride), count(x.count), wide(x.wide) {
        const int number = thread();
        line = number / PIECES;
        piece = number % PIECES;
        const T *at = APART && piece / AT_LEAST_ONE % 2 ? x.other : x.at;
        from = at + (GATHERED ? 0 : line * stride) + first_value();
        if (GATHERED) list = x.list + line;
    }

    // In its line in memory. In pairs APART pieces of one matrix and as many of the other take turns.
    HKC_DEVICE int first_value() const {
        constexpr int A = AT_LEAST_ONE;
        return (APART ? piece / (2 * A) * A + piece % A : piece) * VALUES;
    }

    HKC_DEVICE const T *line_below(int i) const {
        return from + (GATHERED ? list[i] : i) * stride;
    }

    HKC_DEVICE void advance() {
        if (M == K_MAJOR) {
            from += DEPTH<U>;
        } else if (GATHERED) {
            list += DEPTH<U>;
        } else {
            from += DEPTH<U> * stride;
        }
    }

    // Begins to copy a step of which `left` terms exist; missing ones become zeros.
    HKC_DEVICE void step(unsigned char *to, int left) {
        const int lines = (M == K_MAJOR ? count : left) - line;
        const int values = (M == K_MAJOR ? left : count) - first_value();
        to += U::template place<M>(line, piece);
#pragma unroll
        for (int i = 0; i < ALL; i += BELOW) {
            if (ALL < BELOW && line >= ALL) break;
            const int exist = i < lines ? max(values, 0) : 0;
            unsigned char *at = to + (U::template place<M>(i, 0) - U::template place<M>(0, 0));
            if (wide) {
                copy16(shared_address(at), line_below(i), exist ? 16 : 0);
            } else {
                copy_values(at, line_below(i), exist);
            }
        }
        advance();
    }
};

// A part of the result in memory.
template <class T> struct result {
    static constexpr bool PAIRED = false;
    T *at;
    int64_t stride;
    int rows, columns;
    bool add, wide;
};

// Writes COUNT times N neighbours of a row, `apart` columns apart, or adds them to the values there; value[i * STEP] is
// the first of the i-th ones. Values in memory are read at once: one wait for memory, not COUNT.
template <int N, int COUNT, int STEP, class T>
HKC_DEVICE void write(const result<T> &out, int row, int column, int apart, const float *value) {
    if (row >= out.rows) return;
    T *to = out.at + row * out.stride + column;
    const int left = out.columns - column;
    if (out.wide || N == 1) { // Then columns end with the N-th neighbour, or before the first.
        hkc_vector<T, N> all[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT && out.add; i++) {
            if (i * apart < left) all[i] = *(const hkc_vector<T, N> *)(to + i * apart);
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
#pragma unroll
            for (int j = 0; j < N; j++) {
                const float sum =
                    out.add ? hkc_float(all[i].at[j]) + value[i * STEP + j] : value[i * STEP + j];
                all[i].at[j] = (T)sum;
            }
            if (i * apart < left) *(hkc_vector<T, N> *)(to + i * apart) = all[i];
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            T *at = to + i * apart + j;
            if (i * apart + j >= left) continue;
            *at = (T)(out.add ? hkc_float(*at) + value[i * STEP + j] : value[i * STEP + j]);
        }
    }
}

// A part of the results of two GEMMs by matrices B and C, whose sums are those of one tile in turn (APART), and of
// silu(a B) (a C) scale, which is computed from the values of both as they are stored.
template <class T> struct pairs {
    static constexpr bool PAIRED = true;
    T *ab, *ac, *r;
    const float *scale; // By row.
    int64_t stride;
    int rows, columns;
    bool wide;
};

// Writes N neighbours of a row of all three.
template <int N, class T>
HKC_DEVICE void write_pair(const pairs<T> &out, int row, int column, const float *ab,
                           const float *ac) {
    const int left = out.columns - column;
    if (row >= out.rows || left <= 0) return;
    const int64_t at = row * out.stride + column;
    const float scale = out.scale[row];
    hkc_vector<T, N> b, c, r;
#pragma unroll
    for (int j = 0; j < N; j++) {
        b.at[j] = (T)ab[j];
        c.at[j] = (T)ac[j];
        r.at[j] = (T)(hk_silu_f32(hkc_float(b.at[j])) * hkc_float(c.at[j]) * scale);
    }
    if (out.wide) { // Then columns end with the N-th neighbour, or before the first.
        *(hkc_vector<T, N> *)(out.ab + at) = b;
        *(hkc_vector<T, N> *)(out.ac + at) = c;
        *(hkc_vector<T, N> *)(out.r + at) = r;
        return;
    }
#pragma unroll
    for (int j = 0; j < N; j++) {
        if (j >= left) break;
        out.ab[at + j] = b.at[j];
        out.ac[at + j] = c.at[j];
        out.r[at + j] = r.at[j];
    }
}

template <class U, major LEFT, major RIGHT, int H, gathers G, class OUT>
HKC_DEVICE void compute_tile(unsigned char *memory, const operand<typename U::value> &left,
                             const operand<typename U::value> &right, int terms, const OUT &out) {
    typename U::template sums<LEFT, RIGHT, H> sum;
    loader<U, LEFT, H, G == LEFT_ONE, 0> load_left(left);
    loader<U, RIGHT, U::WIDTH, G == RIGHT_ONE, OUT::PAIRED ? sum.APART : 0> load_right(right);
    constexpr int AHEAD = U::STAGES - 1 - U::UNDER_WAY; // Steps that are being copied.
    sum.zero();
    int to = 0, from = 0; // Stages: of the next copies, of the next sums.
    int missing = terms;
    auto fetch = [&] {
        if (missing > 0) {
            load_left.step(memory + to, missing);
            load_right.step(memory + to + LEFT_BYTES<U>, missing);
        }
        copy_commit(); // Also of nothing: groups are counted.
        missing -= DEPTH<U>;
        to = to == SHARED_BYTES<U> - STAGE_BYTES<U> ? 0 : to + STAGE_BYTES<U>;
    };
    for (int s = 0; s < AHEAD; s++) fetch();
    for (int left_over = terms; left_over > 0; left_over -= DEPTH<U>) {
        copy_wait<AHEAD - 1>();
        // All but UNDER_WAY steps: the stage of the last one that is finished is what is fetched next.
        sum.template finish<U::UNDER_WAY>();
        __syncthreads();
        sum.add(memory + from, memory + from + LEFT_BYTES<U>);
        fetch();
        from = from == SHARED_BYTES<U> - STAGE_BYTES<U> ? 0 : from + STAGE_BYTES<U>;
    }
    copy_wait<0>();
    sum.template finish<0>();
    __syncthreads();
    sum.store(out);
}

} // namespace product

#endif
