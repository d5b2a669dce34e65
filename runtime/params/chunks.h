// chunks.h: memory of an expert's chunk in the buffers of a rank, on a device with separate memory.
#ifndef HECATE_RUNTIME_PARAMS_CHUNKS_H
#define HECATE_RUNTIME_PARAMS_CHUNKS_H

#include "runtime/params/state.h"
#include "runtime/plan/held.h"

// Where the program keeps the optimizer's states, and parameters that only the optimizer reads (HPL_READ has the
// others): at the host with parallel.states = host.
enum hrt_home hrt_params_home(const struct hrt_program *program, enum hpl_buffer buffer);

// The place of chunk `chunk` of all layers of a set in a buffer; NULL: there is no such buffer, or no chunks in it.
char *hrt_params_chunk_at(const struct hrt_state *state, enum hpl_buffer buffer, int set,
                          int64_t chunk, size_t *bytes);

// Puts zeroed memory behind a chunk of a buffer; parameters that are read as they are get the device's. False: there is
// not enough, and nothing has changed. Nothing where hrt_params_chunk_at is NULL.
bool hrt_params_chunk_touch(struct hrt_state *state, enum hpl_buffer buffer, int set,
                            int64_t chunk);

// Gives that memory back. Nothing may use it any more.
void hrt_params_chunk_leave(struct hrt_state *state, enum hpl_buffer buffer, int set,
                            int64_t chunk);

#endif
