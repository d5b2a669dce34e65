// Numbers as people read them.
#ifndef HECATE_RUNTIME_BASE_FORMAT_H
#define HECATE_RUNTIME_BASE_FORMAT_H

#include <stddef.h>

// Writes "3.2 GiB" or the like.
void hrt_format_bytes(char *out, size_t out_bytes, double bytes);

#endif
