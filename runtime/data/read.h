// Reading parts of files that may change meanwhile.
#ifndef HECATE_RUNTIME_DATA_READ_H
#define HECATE_RUNTIME_DATA_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

// Reads exactly `bytes` at `offset`; false at an error (errno) or at the end of the file (errno 0), which
// hrt_data_fail_read then says of the file at `path`.
bool hrt_data_read_at(int fd, void *out, size_t bytes, int64_t offset);
bool hrt_data_fail_read(const char *path, struct hrt_error *error);

#endif
