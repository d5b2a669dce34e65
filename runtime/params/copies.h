// Memory for copies that are needed for a short while. It is kept from one use to the next: pages that a process has
// already are several times cheaper than new ones.
#ifndef HECATE_RUNTIME_PARAMS_COPIES_H
#define HECATE_RUNTIME_PARAMS_COPIES_H

#include <stddef.h>

struct hrt_copies;

// Reserves `room` bytes of addresses; memory is taken as copies first use it. The caller destroys it. NULL: out of
// memory. One thread at a time calls these functions.
struct hrt_copies *hrt_params_copies_create(size_t room);
void hrt_params_copies_destroy(struct hrt_copies *copies);

// Memory for a copy of so many bytes, aligned to 64; NULL: there is no room until others have been given back. Room is
// found best where copies are given back in the order in which they were taken.
void *hrt_params_copies_take(struct hrt_copies *copies, size_t bytes);
void hrt_params_copies_give(struct hrt_copies *copies, void *taken);

#endif
