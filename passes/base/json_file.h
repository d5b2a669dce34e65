// JSON files that passes read: plans, and measurements.
#ifndef HECATE_PASSES_BASE_JSON_FILE_H
#define HECATE_PASSES_BASE_JSON_FILE_H

#include <jansson.h>

#include "ir/core/op.h"

// A file that is read. It is not trusted: the first fault is reported at its place in the file, and `sound` is false
// from then on.
struct hec_json_file {
    MlirOperation module; // Its context reports.
    const char *path;
    char *text;
    json_t *root; // NULL where it could not be read.
    bool sound;
};

// Reads the file at `path`, which stays the caller's; `what` ("plan") begins the report of one that cannot be opened.
// With a null module nothing is reported.
struct hec_json_file hec_json_open(MlirOperation module, const char *what, const char *path);
void hec_json_close(struct hec_json_file *file);

// Reports a fault at the value of the keys `path`, from the outermost in, ended by NULL.
void hec_json_fail(struct hec_json_file *file, const char *const *path, const char *text);

#endif
