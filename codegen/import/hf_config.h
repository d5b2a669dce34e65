// config.json of a Hugging Face folder. Not trusted: faults are reported with their line.
#ifndef HECATE_CODEGEN_IMPORT_HF_CONFIG_H
#define HECATE_CODEGEN_IMPORT_HF_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lang/base/arena.h"

// A key of a family's, and its default, as JSON, for files without it.
struct hec_hf_key {
    const char *name;
    // The key that means the same in most families, by which it is asked for. NULL: its own name. If several are asked
    // for alike, the first one that the file has counts, and others must agree.
    const char *as;
    const char *in;     // The object of the root that it lies in; NULL: the root itself.
    const char *absent; // Where it is not there; NULL: it must be.
    const char *null;   // Where it is null; NULL: as where it is not there.
    const char *only;   // The one value that is not refused, and why; NULL: there is none.
    const char *why;
    bool fixed; // It is no key of the file: its value is always `absent`.
    bool zero;  // 0 is as if it were not there.
    bool each;  // It may be a list, of the same value for each layer.
};

// An object of the file, and the keys that lead to it from the root.
enum { HEC_HF_DEPTH = 2 };
struct hec_hf_section {
    json_t *object;
    const char *key[HEC_HF_DEPTH];
    int depth; // 0: the root.
};

struct hec_hf_config {
    struct hec_arena *arena;
    const char *path;
    char *text;
    json_t *file,
        *root; // The content of the file, and the object of it that describes the model: the same, or a part.
    const char *root_key;          // NULL: the same.
    struct hec_hf_section section; // Keys are looked up in it: the root, or an object in it.
    const struct hec_hf_key *keys; // Keys of the root, ended by one without a name; NULL: any.
    json_t *standing; // Values that stand for keys of the root, as they were asked for.
    bool sound;       // Nothing was refused so far.
};

// Reads the file at `path`. False, after a complaint: it is not there, or no object of JSON. Close it in either case.
bool hec_hf_open(struct hec_hf_config *config, struct hec_arena *arena, const char *path);
void hec_hf_close(struct hec_hf_config *config);

// From here on the root has these keys and no others: unlisted keys are as if they were not there. False, after a
// complaint of each: some must be there, and are not, or have a value that is refused.
bool hec_hf_set_keys(struct hec_hf_config *config, const struct hec_hf_key *keys);

// Whether the file itself says something other than null.
bool hec_hf_says(const struct hec_hf_config *config, const char *key);

// Whether there is a value, other than null, of the key, or that stands for it.
bool hec_hf_has(struct hec_hf_config *config, const char *key);

// Whether the file says something other than null. It is refused that it does not.
bool hec_hf_need(struct hec_hf_config *config, const char *key);

// Values, or their defaults; `otherwise` where there is neither. Another kind of value, or a count that is none
// from 1 to 2^31, is refused. A count without `otherwise` (0), or a text with NULL, must be there. A refused value is
// 1, or `otherwise`.
int64_t hec_hf_count(struct hec_hf_config *config, const char *key, int64_t otherwise);
double hec_hf_number(struct hec_hf_config *config, const char *key, double otherwise);
bool hec_hf_flag(struct hec_hf_config *config, const char *key, bool otherwise);
const char *hec_hf_text(struct hec_hf_config *config, const char *key, const char *otherwise);

// The array of the key; NULL: there is none, or it was refused.
json_t *hec_hf_list(struct hec_hf_config *config, const char *key);

// From here on the object `key` is the root, for good. It is refused that there is none.
bool hec_hf_descend(struct hec_hf_config *config, const char *key);

// From here on keys are those of the object `key` of the section, until all are left. False: there is none.
bool hec_hf_enter(struct hec_hf_config *config, const char *key);
void hec_hf_leave(struct hec_hf_config *config);

// Refuses the value of a key: "config.json:12:3: error: ..."; where the file does not have it, the default is
// named.
void hec_hf_refuse(struct hec_hf_config *config, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Warns of each key of the root that is none of its keys, by what `others` says of it: the name of a family that has
// it, or NULL. Null, false and empty values say nothing.
void hec_hf_warn_foreign(const struct hec_hf_config *config, const char *family,
                         const char *(*others)(const char *key));

#endif
