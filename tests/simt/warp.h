// warp: CUDA's functions that the lanes of a warp call together. The last lane that comes does the work for all.
#ifndef HECATE_TESTS_SIMT_WARP_H
#define HECATE_TESTS_SIMT_WARP_H

#include "fiber.h"

namespace simt {

template <class T, class F>
void collect(const char *what, unsigned mask, T &mine, F for_all, site_t site) {
    if (meeting_t *m = arrive(what, mask, &mine, site)) {
        for_all((T **)m->argument);
        release(m);
    }
}

template <class F> void each_lane(unsigned mask, F body) {
    for (; mask; mask &= mask - 1) body(__builtin_ctz(mask));
}

template <class T> struct shuffled_t {
    T value, result;
    int from;
};

template <class T>
SIMT_QUIET T shuffle(const char *what, unsigned mask, T value, int from, site_t site) {
    shuffled_t<T> mine = {value, value, from};
    const auto exchange = [=](shuffled_t<T> **all) SIMT_UNSEEN {
        each_lane(mask, [=](int lane) SIMT_UNSEEN {
            if (!(mask >> all[lane]->from & 1)) {
                fail("%s: lane %d reads lane %d, which takes no part (%s:%d)", what, lane,
                     all[lane]->from, site.file, site.line);
            }
            all[lane]->result = all[all[lane]->from]->value;
        });
    };
    collect(what, mask, mine, exchange, site);
    return mine.result;
}

template <class T, class F>
SIMT_QUIET T reduce(const char *what, unsigned mask, T value, F join, site_t site) {
    const auto join_all = [=](T **all) SIMT_UNSEEN {
        T result = *all[__builtin_ctz(mask)];
        each_lane(mask & (mask - 1),
                  [&](int lane) SIMT_UNSEEN { result = join(result, *all[lane]); });
        each_lane(mask, [&](int lane) SIMT_UNSEEN { *all[lane] = result; });
    };
    collect(what, mask, value, join_all, site);
    return value;
}

template <class T> struct matched_t {
    T value;
    unsigned same;
};

} // namespace simt

inline void __syncthreads(SIMT_SITE) {
    simt::sync_block(site);
}

SIMT_QUIET inline void __syncwarp(unsigned mask = ~0u, SIMT_SITE) {
    char none = 0;
    const auto count = [](char **) SIMT_UNSEEN { simt::current->warp->epoch++; };
    simt::collect("__syncwarp", mask, none, count, site);
}

template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32, SIMT_SITE) {
    const int lane = simt::own_lane();
    return simt::shuffle("__shfl_sync", mask, value, (lane & ~(width - 1)) | (from & (width - 1)),
                         site);
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SIMT_SITE) {
    const int lane = simt::own_lane(), from = lane ^ bits;
    return simt::shuffle("__shfl_xor_sync", mask, value, from / width > lane / width ? lane : from,
                         site);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_SITE) {
    const int lane = simt::own_lane(), from = lane + (int)by;
    return simt::shuffle("__shfl_down_sync", mask, value,
                         from / width != lane / width ? lane : from, site);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_SITE) {
    const int lane = simt::own_lane(), from = lane - (int)by;
    return simt::shuffle("__shfl_up_sync", mask, value, from < (lane & ~(width - 1)) ? lane : from,
                         site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
    const unsigned own = predicate ? 1u << simt::own_lane() : 0;
    const auto join = [](unsigned a, unsigned b) SIMT_UNSEEN { return a | b; };
    return simt::reduce("__ballot_sync", mask, own, join, site);
}

inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
    return __ballot_sync(mask, predicate, site) != 0;
}

inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
    return __ballot_sync(mask, predicate, site) == mask;
}

template <class T> T __reduce_add_sync(unsigned mask, T value, SIMT_SITE) {
    const auto join = [](T a, T b) SIMT_UNSEEN { return a + b; };
    return simt::reduce("__reduce_add_sync", mask, value, join, site);
}

template <class T> T __reduce_max_sync(unsigned mask, T value, SIMT_SITE) {
    const auto join = [](T a, T b) SIMT_UNSEEN { return a > b ? a : b; };
    return simt::reduce("__reduce_max_sync", mask, value, join, site);
}

template <class T> T __reduce_min_sync(unsigned mask, T value, SIMT_SITE) {
    const auto join = [](T a, T b) SIMT_UNSEEN { return a < b ? a : b; };
    return simt::reduce("__reduce_min_sync", mask, value, join, site);
}

template <class T> SIMT_QUIET unsigned __match_any_sync(unsigned mask, T value, SIMT_SITE) {
    simt::matched_t<T> mine = {value, 0};
    const auto match = [=](simt::matched_t<T> **all) SIMT_UNSEEN {
        simt::each_lane(mask, [=](int a) SIMT_UNSEEN {
            simt::each_lane(mask, [=](int b) SIMT_UNSEEN {
                if (all[a]->value == all[b]->value) all[a]->same |= 1u << b;
            });
        });
    };
    simt::collect("__match_any_sync", mask, mine, match, site);
    return mine.same;
}

#endif
