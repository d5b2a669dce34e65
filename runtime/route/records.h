// Reading and writing whole records at a place of a file.
#ifndef HECATE_RUNTIME_ROUTE_RECORDS_H
#define HECATE_RUNTIME_ROUTE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

// Exactly `bytes` at `offset`. False: errno, which is 0 when the file ends before.
bool hrt_route_file_read(int fd, void *out, size_t bytes, int64_t offset);
bool hrt_route_file_write(int fd, const void *data, size_t bytes, int64_t offset);

// Fails with "cannot WHAT 'path'" and the reason that errno gives. Returns false.
bool hrt_route_file_fail(const char *path, const char *what, struct hrt_error *error);

#endif
