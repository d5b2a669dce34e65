// Where a value stands in a JSON text: jansson does not keep lines and columns.
#ifndef HECATE_PASSES_BASE_JSON_LOCATION_H
#define HECATE_PASSES_BASE_JSON_LOCATION_H

struct hec_json_location {
    unsigned line, column; // From 1.
};

// The location of the value at `path`, keys of objects from the outermost in, ended by NULL. Where a key
// is missing, that of the object that lacks it. `text` is JSON that jansson has read.
struct hec_json_location hec_json_find(const char *text, const char *const *path);

#endif
