// Walks parameters, then sets.
#include "runtime/plan/held.h"

enum { COPY_BYTES = 2 };

int64_t hpl_part(int64_t elements, int64_t ranks) {
    return ((elements + ranks - 1) / ranks + HPL_PART - 1) / HPL_PART * HPL_PART;
}

static bool has(const struct hpl_held_param *param, enum hpl_buffer buffer) {
    if (buffer == HPL_PARAMETERS) return !param->copied_only;
    if (buffer == HPL_READ) return !param->copied_only && (param->set < 0 || !param->copied);
    return buffer == HPL_COPIES ? param->copied : param->trained;
}

int64_t hpl_held_element(const struct hpl_held *held, enum hpl_buffer buffer) {
    return buffer == HPL_COPIES ? COPY_BYTES : held->element;
}

static bool has_set(const struct hpl_held *held, int32_t set, enum hpl_buffer buffer) {
    for (int32_t i = 0; i < held->params; i++) {
        if (held->param[i].set == set && has(&held->param[i], buffer)) return true;
    }
    return false;
}

static bool owns(const struct hpl_held_set *set, int32_t rank, int64_t chunk) {
    return !set->owner || set->owner[chunk] == rank;
}

// Neighbours are one part.
static bool next_params(const struct hpl_held *held, enum hpl_buffer buffer,
                        struct hpl_extent *extent) {
    extent->count = 0;
    extent->of = -1;
    for (; extent->next < held->params; extent->next++) {
        const struct hpl_held_param *param = &held->param[extent->next];
        if (param->set >= 0 || !has(param, buffer)) continue;
        if (extent->count && extent->offset + extent->count != param->offset) break;
        if (!extent->count) extent->offset = param->offset;
        extent->count += param->layers * param->elements;
    }
    return extent->count > 0;
}

// Memory of parameters that are not trained, or have nothing but copies, is not touched.
int64_t hpl_held_chunk(const struct hpl_held *held, int32_t set, enum hpl_buffer buffer) {
    const bool padded = buffer == HPL_PARAMETERS && has_set(held, set, buffer);
    int64_t elements = padded ? held->set[set].chunk_elements : 0;
    for (int32_t i = 0; i < held->params; i++) {
        const struct hpl_held_param *param = &held->param[i];
        if (param->set != set) continue;
        if (padded)
            elements -= has(param, buffer) ? 0 : param->elements;
        else if (has(param, buffer))
            elements += param->elements;
    }
    return elements;
}

// Ranks that all have a set send each other whole chunks of it, and copies of chunks travel whole.
int64_t hpl_held_part(const struct hpl_held *held, int32_t set, enum hpl_buffer buffer,
                      int64_t *first) {
    const int64_t whole = held->set[set].chunk_elements;
    bool all = buffer != HPL_READ;
    int64_t begin = whole, elements = hpl_held_chunk(held, set, buffer);
    *first = 0;
    if (elements == 0 || buffer == HPL_COPIES) return elements ? whole : 0;
    if (buffer != HPL_READ && !held->set[set].owner && held->ranks > 1) return whole;
    for (int32_t i = 0; i < held->params; i++) {
        const struct hpl_held_param *param = &held->param[i];
        if (param->set != set) continue;
        all &= has(param, buffer);
        if (has(param, buffer) && param->offset < begin) begin = param->offset;
    }
    *first = buffer == HPL_PARAMETERS ? 0 : begin;
    return all ? whole : elements;
}

static bool next_chunk(const struct hpl_held *held, int32_t rank, enum hpl_buffer buffer,
                       struct hpl_extent *extent) {
    for (; extent->set < held->sets; extent->set++, extent->chunk = 0) {
        const struct hpl_held_set *set = &held->set[extent->set];
        int64_t first;
        extent->count = hpl_held_part(held, extent->set, buffer, &first);
        extent->of = extent->set;
        if (!set->owner && extent->chunk == 0 && extent->count == set->chunk_elements) {
            extent->chunk = set->chunks;
            extent->offset = set->offset;
            extent->count = set->chunks * set->chunk_elements;
            return true;
        }
        while (extent->count && extent->chunk < set->chunks) {
            const int64_t chunk = extent->chunk++;
            extent->offset = set->offset + chunk * set->chunk_elements + first;
            if (owns(set, rank, chunk)) return true;
        }
    }
    return false;
}

bool hpl_held_next(const struct hpl_held *held, int32_t rank, enum hpl_buffer buffer,
                   struct hpl_extent *extent) {
    return next_params(held, buffer, extent) || next_chunk(held, rank, buffer, extent);
}

bool hpl_held_in_parts(const struct hpl_held *held) {
    for (int32_t i = 0; i < held->params; i++) {
        if (held->param[i].frozen) return true;
    }
    for (int32_t i = 0; i < held->sets; i++) {
        if (held->set[i].owner) return true;
    }
    return false;
}

// ---- bytes

static int64_t most_owned(const struct hpl_held *held, const struct hpl_held_set *set) {
    int64_t most = 0;
    if (!set->owner) return set->chunks;
    for (int32_t rank = 0; rank < held->ranks; rank++) {
        int64_t own = 0;
        for (int64_t chunk = 0; chunk < set->chunks; chunk++) own += set->owner[chunk] == rank;
        if (own > most) most = own;
    }
    return most;
}

int64_t hpl_held_bytes(const struct hpl_held *held, enum hpl_buffer buffer) {
    const bool share = held->states && (buffer == HPL_STATE || buffer == HPL_OTHER_STATE);
    int64_t elements = 0;
    for (int32_t i = 0; i < held->params; i++) {
        const struct hpl_held_param *param = &held->param[i];
        if (param->set >= 0 || !has(param, buffer)) continue;
        elements +=
            param->layers * (share ? hpl_part(param->elements, held->ranks) : param->elements);
    }
    for (int32_t i = 0; i < held->sets; i++) {
        const struct hpl_held_set *set = &held->set[i];
        const int64_t all = hpl_held_chunk(held, i, buffer);
        const bool shared = share && !set->owner;
        elements += most_owned(held, set) * (shared ? hpl_part(all, held->ranks) : all);
    }
    return elements * hpl_held_element(held, buffer);
}

int64_t hpl_held_pages(const struct hpl_held *held, int64_t page) {
    return held->all_elements * held->element / page + 1;
}

static int64_t take(bool *taken, int64_t from, int64_t bytes, int64_t page) {
    int64_t pages = 0;
    for (int64_t i = from / page; bytes > 0 && i <= (from + bytes - 1) / page; i++) {
        pages += !taken[i];
        taken[i] = true;
    }
    return pages;
}

// Pages of everything that the rank holds. Rank -1 holds nothing but the parts that every rank has.
static int64_t pages_of_rank(const struct hpl_held *held, int32_t rank, enum hpl_buffer buffer,
                             int64_t page, bool *taken) {
    const int64_t element = hpl_held_element(held, buffer);
    struct hpl_extent extent = {0};
    int64_t pages = 0;
    for (int64_t i = 0; i < hpl_held_pages(held, page); i++) taken[i] = false;
    while (hpl_held_next(held, rank, buffer, &extent))
        pages += take(taken, extent.offset * element, extent.count * element, page);
    return pages;
}

static int64_t pages_between(int64_t from, int64_t bytes, int64_t page) {
    return (from + bytes - 1) / page - from / page + 1;
}

// The most pages that the part of a buffer of one chunk of a set touches.
static int64_t pages_of_chunk(const struct hpl_held *held, int32_t number, enum hpl_buffer buffer,
                              int64_t page) {
    const struct hpl_held_set *set = &held->set[number];
    const int64_t element = hpl_held_element(held, buffer);
    int64_t most = 0, first;
    const int64_t bytes = hpl_held_part(held, number, buffer, &first) * element;
    for (int64_t i = 0; i < set->chunks && bytes; i++) {
        const int64_t begin = (set->offset + i * set->chunk_elements + first) * element;
        const int64_t pages = pages_between(begin, bytes, page);
        if (pages > most) most = pages;
    }
    return most;
}

// Pages of a chunk that is on its way to a new owner. They move buffer by buffer, so this counts once: with the
// parameters, whose chunks are as large as any. Where HPL_READ is asked for the others lie elsewhere, with the states.
static int64_t pages_under_way(const struct hpl_held *held, int32_t set, enum hpl_buffer buffer,
                               int64_t page) {
    if (buffer != HPL_PARAMETERS && buffer != HPL_READ) return 0;
    const int64_t own = pages_of_chunk(held, set, buffer, page);
    const int64_t copy =
        has_set(held, set, HPL_COPIES) ? pages_of_chunk(held, set, HPL_COPIES, page) : 0;
    return own > copy ? own : copy;
}

// Chunks that lie anywhere, as many on each rank as at first, and those of one set under way.
static int64_t pages_of_chunks(const struct hpl_held *held, enum hpl_buffer buffer, int64_t page) {
    const int64_t element = hpl_held_element(held, buffer);
    int64_t pages = 0, under_way = 0;
    for (int32_t i = 0; i < held->sets; i++) {
        const struct hpl_held_set *set = &held->set[i];
        if (!set->owner) continue;
        const int64_t moving = pages_under_way(held, i, buffer, page);
        if (moving > under_way) under_way = moving;
        if (!has_set(held, i, buffer)) continue;
        const int64_t each = pages_of_chunk(held, i, buffer, page);
        const int64_t own = most_owned(held, set) * each;
        const int64_t all =
            pages_between(set->offset * element, set->chunks * set->chunk_elements * element, page);
        pages += own < all ? own : all;
    }
    return pages + HPL_UNDER_WAY * under_way;
}

int64_t hpl_held_page_bytes(const struct hpl_held *held, enum hpl_buffer buffer, int64_t page,
                            bool *taken) {
    int64_t most = 0;
    if (buffer != HPL_READ && !hpl_held_in_parts(held))
        return held->all_elements * hpl_held_element(held, buffer);
    for (int32_t rank = 0; !held->moves && rank < held->ranks; rank++) {
        const int64_t pages = pages_of_rank(held, rank, buffer, page, taken);
        if (pages > most) most = pages;
    }
    if (!held->moves) return most * page;
    return page *
           (pages_of_rank(held, -1, buffer, page, taken) + pages_of_chunks(held, buffer, page));
}
