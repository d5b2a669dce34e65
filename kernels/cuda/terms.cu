// terms: a thread adds up 8 neighbours of all arrays. Bytes moved: 4 an element of a term, of bf16 2, and 4 or 8 of
// the sum, where additions one by one take 12 or 10 for each term.
#include "kernels/cuda/terms.h"

#include <string.h>

#include "kernels/cuda/loop.h"

namespace {

struct list {
    hkc_term at[HKC_TERMS_MOST];
    int count;
    bool adds;
};

template <int W> HKC_DEVICE hkc_vector<float, W> read_term(const hkc_term &term, int64_t at) {
    if (!term.narrow) return hkc_read<W>((const float *)term.from + at);
    return hkc_floats(hkc_read<W>((const __nv_bfloat16 *)term.from + at));
}

template <int W> HKC_DEVICE void sum_at(float *to, const list &all, int64_t at) {
    hkc_vector<float, W> sum =
        all.adds ? hkc_read<W>((const float *)to + at) : read_term<W>(all.at[0], at);
    for (int t = all.adds ? 0 : 1; t < all.count; t++) {
        const hkc_vector<float, W> term = read_term<W>(all.at[t], at);
        for (int i = 0; i < W; i++) sum.at[i] += term.at[i];
    }
    hkc_write(to + at, sum);
}

template <int W> __global__ void sum_terms(float *to, list all, int64_t count) {
    HKC_FOR(vector, count / W) sum_at<W>(to, all, vector * W);
    HKC_REST(left, count % W) sum_at<1>(to, all, count - 1 - left);
}

} // namespace

void hkc_sum_terms(hkc_lane *lane, float *to, bool adds, const hkc_term *term, int terms,
                   int64_t count) {
    list all = {};
    bool fits = hkc_aligned(to);
    assert(terms > 0 && terms <= HKC_TERMS_MOST);
    for (int i = 0; i < terms; i++) fits = fits && hkc_aligned((const char *)term[i].from);
    memcpy(all.at, term, (size_t)terms * sizeof *term);
    all.count = terms;
    all.adds = adds;
    hkc_launch_vectors(lane, sum_terms, 8, fits, count, to, all, count);
}
