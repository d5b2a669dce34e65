// held.h: the parts of parameters, gradients, states and copies that a rank holds, at the same places in each buffer.
// A rank holds everything outside of experts, or a part of each tensor of it, and the chunks that it owns.
// Parameters that are not trained have neither gradients nor states.
// The compiler announces these bytes, the runtime takes them.
#ifndef HECATE_RUNTIME_PLAN_HELD_H
#define HECATE_RUNTIME_PLAN_HELD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// In the order of the runtime's enum hrt_values; then the copies in bf16. The optimizer has two states. HPL_READ is no
// buffer of its own: it is the part of the parameters that is read as it is. Only the optimizer reads the rest:
// an expert's parameters with copies.
enum hpl_buffer {
    HPL_PARAMETERS,
    HPL_GRADIENTS,
    HPL_STATE,
    HPL_OTHER_STATE,
    HPL_COPIES,
    HPL_BUFFERS,
    HPL_READ = HPL_BUFFERS
};

struct hpl_held_param {
    int64_t offset, elements,
        layers;           // Elements that a rank keeps. In a set: into a chunk, per expert.
    int32_t set;          // -1: of none.
    bool trained, copied; // It has gradients and states; a copy in bf16.
    bool frozen;          // Not trained, though it could be.
    bool copied_only;     // There is the copy alone.
};

struct hpl_held_set {
    int64_t offset, chunk_elements, chunks; // Elements that a rank keeps; layers times experts.
    const int32_t *owner;                   // [chunks] ranks. NULL: every rank has all.
};

struct hpl_held {
    const struct hpl_held_param *param;
    const struct hpl_held_set *set;
    int32_t params, sets;
    int64_t all_elements; // A buffer has.
    int32_t element;      // Bytes of an element, but of copies.
    int32_t ranks;
    bool
        states; // Ranks share the states of dense parameters, which are whole otherwise (parallel.dense = states).
    bool moves; // Chunks get new owners, as many for each rank as before.
};

// A part of a buffer; zeroed: before the first.
struct hpl_extent {
    int64_t offset, count; // Elements.
    int64_t chunk;         // The walk is here.
    int32_t next, set;
    int32_t of; // The set of it; -1: of none.
};

// Parts have whole multiples of so many elements.
enum { HPL_PART = 128 };

// Places of whole units of dense parameters (dense = shard) are aligned to so many bytes.
enum { HPL_SLOT_ALIGN = 256 };
static inline int64_t hpl_slot_bytes(int64_t bytes) {
    return (bytes + HPL_SLOT_ALIGN - 1) / HPL_SLOT_ALIGN * HPL_SLOT_ALIGN;
}

// Elements of each rank's part of a tensor that ranks share, at most. Rank r's part is [r p, (r + 1) p), as far as the
// tensor reaches. Parts are aligned, and cut no two rows of a panel.
int64_t hpl_part(int64_t elements, int64_t ranks);

// Bytes of an element of a buffer.
int64_t hpl_held_element(const struct hpl_held *held, enum hpl_buffer buffer);

// Elements of a chunk of a set that a buffer has memory for.
int64_t hpl_held_chunk(const struct hpl_held *held, int32_t set, enum hpl_buffer buffer);

// The part of a chunk in which these lie, with padding: its elements, from element `first` of the chunk on. The chunk
// begins with those of HPL_READ, and ends with those that HPL_PARAMETERS lacks.
int64_t hpl_held_part(const struct hpl_held *held, int32_t set, enum hpl_buffer buffer,
                      int64_t *first);

// Steps to the next part of a buffer that a rank holds: parameters of no set, whole though states may be shared, sets
// that every rank has whole, and parts of chunks one by one. Parts do not overlap. Returns false after the last.
bool hpl_held_next(const struct hpl_held *held, int32_t rank, enum hpl_buffer buffer,
                   struct hpl_extent *extent);

// Whether a rank uses only parts of the buffers: experts have owners, or parameters are
// frozen. A device takes memory for these parts alone.
bool hpl_held_in_parts(const struct hpl_held *held);

// Bytes of a buffer on the rank that has most of it, where memory is taken as it is touched.
int64_t hpl_held_bytes(const struct hpl_held *held, enum hpl_buffer buffer);

// Chunks that a rank has got from others, and not yet given back as many, at most.
enum { HPL_UNDER_WAY = 2 };

// The same on a device, which takes whole pages of `page` bytes for the parts, or all of a
// buffer that is not in parts. States are not shared. Two parts may share a page; a buffer
// begins with one. Where chunks move, the result is a bound: neighbours may part, and new
// chunks come before old ones go. They do so in one buffer at a time, which is counted with the parameters.
//   taken  scratch, [hpl_held_pages]
int64_t hpl_held_page_bytes(const struct hpl_held *held, enum hpl_buffer buffer, int64_t page,
                            bool *taken);
int64_t hpl_held_pages(const struct hpl_held *held, int64_t page);

#ifdef __cplusplus
}
#endif

#endif
