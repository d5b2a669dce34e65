// document: the documents of sequences, one after the other. Each is a sequence by itself, so that what computes
// attention needs to know nothing of them: it is called for each, on its rows of the same arrays.
#ifndef HECATE_KERNELS_SDPA_DOCUMENT_H
#define HECATE_KERNELS_SDPA_DOCUMENT_H

#include <assert.h>

#include "kernels/sdpa/sdpa.h"

// `count` positions from `first` on of a sequence, which their document has so far.
struct document {
    int64_t sequence, first, count;
};

// The document behind `at`, at first zeros; false: that was the last one.
static inline bool next_document(struct document *at, const struct hk_sdpa_dims *d) {
    at->first += at->count;
    if (at->first >= d->positions) at->first = 0, at->sequence++;
    if (at->sequence >= d->batch || d->positions == 0) return false;
    const int32_t *begin = d->begins + at->sequence * d->positions;
    assert(begin[at->first] >= 0 && begin[at->first] <= d->before + at->first);
    for (at->count = 1; at->first + at->count < d->positions; at->count++) {
        if (begin[at->first + at->count] != begin[at->first]) break;
    }
    return true;
}

// A document by itself. Its first positions may lie before those of the call.
static inline struct hk_sdpa_dims dims_of(const struct document *at, const struct hk_sdpa_dims *d) {
    struct hk_sdpa_dims own = *d;
    own.batch = 1;
    own.positions = at->count;
    own.before = d->before + at->first - d->begins[at->sequence * d->positions + at->first];
    own.begins = NULL;
    own.apart = d->positions;
    return own;
}

// Where a document's rows lie among those of all positions: of queries, of keys, of values, of out, and of lse.
struct places {
    int64_t q, k, v, out, lse;
};

static inline struct places places_of(const struct document *at, const struct hk_sdpa_dims *d) {
    const int64_t row = at->sequence * d->positions + at->first;
    return (struct places){.q = row * d->heads * d->width,
                           .k = row * d->groups * d->width,
                           .v = row * d->groups * d->vwidth,
                           .out = row * d->heads * d->vwidth,
                           .lse = at->sequence * d->heads * d->positions + at->first};
}

#endif
