// A folder that gets its name when all of it is durable: until then it is NAME.hecate-partial.
#ifndef HECATE_RUNTIME_STORE_NEW_FOLDER_H
#define HECATE_RUNTIME_STORE_NEW_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#include "runtime/base/error.h"

struct hrt_new_folder {
    char path[PATH_MAX]; // While it is made.
    const char *to;      // Borrowed.
    struct hrt_error *error;
};

// Nothing is made yet. False: `to` is there already, or is too long.
bool hrt_store_new_folder_name(struct hrt_new_folder *folder, const char *to,
                               struct hrt_error *error);

// Makes it, empty: files of a killed run are removed.
bool hrt_store_new_folder_begin(struct hrt_new_folder *folder);

// Syncs and renames it, or removes it where its files were not `written`, of which the caller has told. False: it is
// not there.
bool hrt_store_new_folder_end(struct hrt_new_folder *folder, bool written);

#endif
