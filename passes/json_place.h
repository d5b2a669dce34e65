// Where a value stands in a JSON text: jansson does not keep places.
#ifndef HECATE_PASSES_JSON_PLACE_H
#define HECATE_PASSES_JSON_PLACE_H

struct hec_json_place {
    unsigned line, column; // From 1.
};

// The place of the value at `path`, keys of objects from the outermost in, ended by NULL. Where a key
// is missing, that of the object that lacks it. `text` is JSON that jansson has read.
struct hec_json_place hec_json_find(const char *text, const char *const *path);

#endif
