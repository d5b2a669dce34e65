// The memory of a program's tensors. It also holds the numbers of a call: the factors of its losses.
#ifndef HECATE_CODEGEN_HOST_MEMORY_H
#define HECATE_CODEGEN_HOST_MEMORY_H

#include "codegen/host/emitter.h"

// The text that differs with the memory; all functions append to `out`, or to the function being written.
struct hec_memory {
    const char *header; // The runtime's, for calls below; NULL: none.
    // Before a number of the call where the model's struct declares it, and where a statement takes its address:
    // "*" and "", or "" and "&".
    const char *pointer, *address;
    int64_t bytes; // Behind the arena, for the numbers.
    // Members of the model's struct; NULL: none.
    void (*members)(struct hec_emitter *e, struct hec_writer *out);
    // Binds the numbers' pointers, with the arena as `a` and the model as `m`; NULL: they have none.
    void (*bind)(struct hec_emitter *e, struct hec_writer *out);
    // Keeps `count` numbers of a call in the members of their names; `cast` converts to the program's real.
    void (*keep)(struct hec_emitter *e, struct hec_writer *out, const char *const *number,
                 int count, const char *cast);
    // Returns the losses that `end`, the terminator of forward, lists.
    void (*losses)(struct hec_emitter *e, MlirOperation end);
    // Sets m->rows to the rows of the wave that `op` begins; `first` are the offsets of the experts' rows.
    void (*rows)(struct hec_emitter *e, MlirOperation op, MlirValue first);
    // Fields of struct hrt_program; NULL: none.
    void (*fields)(struct hec_emitter *e, struct hec_writer *out);
};

// Memory that the program itself reads and writes.
extern const struct hec_memory hec_host_memory;

#endif
