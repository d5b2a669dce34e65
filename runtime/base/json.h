// Files of JSON that others have written.
#ifndef HECATE_RUNTIME_BASE_JSON_H
#define HECATE_RUNTIME_BASE_JSON_H

#include <jansson.h>

#include "runtime/base/error.h"

// Reads the whole file; an object that has a key twice is refused. The caller has the reference. NULL: `error` says
// that the file cannot be opened, or where it is not JSON.
json_t *hrt_base_json_read(const char *path, struct hrt_error *error);

#endif
