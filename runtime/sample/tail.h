// Text on its way to a reader, but for a tail that may begin the stop text.
#ifndef HECATE_RUNTIME_SAMPLE_TAIL_H
#define HECATE_RUNTIME_SAMPLE_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct hrt_tail {
    FILE *out;
    const char *stop; // Not empty; NULL: nothing ends the text.
    char *held;       // Not printed yet.
    size_t bytes, room;
    bool ended; // `stop` has come: it and later text is not printed.
};

// Appends to the text and prints all that cannot be of `stop`. False: errno.
bool hrt_sample_tail_add(struct hrt_tail *tail, const char *text, size_t bytes);

// Prints the text held back, and frees it. False: errno.
bool hrt_sample_tail_end(struct hrt_tail *tail);

#endif
