// JSON files, by jansson.
#include "passes/base/json_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "passes/base/json_location.h"

// All bytes of a file, and a zero behind them; the caller frees them. NULL: `why` says it.
static char *load(const char *path, size_t *bytes, const char **why) {
    FILE *file = hf_input(path, false, why);
    if (!file) return NULL;
    char *text = NULL;
    size_t room = 0;
    const ssize_t count = getdelim(&text, &room, EOF, file);
    const bool failed = ferror(file);
    *why = strerror(errno);
    fclose(file);
    *bytes = count > 0 ? (size_t)count : 0;
    if (!failed && text) return text;
    free(text);
    return NULL;
}

struct hec_json_file hec_json_open(MlirOperation module, const char *what, const char *path) {
    struct hec_json_file file = {.module = module, .path = path};
    size_t bytes = 0;
    const char *why;
    json_error_t error;
    file.text = load(path, &bytes, &why);
    if (!file.text) {
        if (module.ptr) hec_ir_error(module, "%s '%s': %s", what, path, why);
        return file;
    }
    file.root = json_loadb(file.text, bytes, JSON_REJECT_DUPLICATES, &error);
    file.sound = file.root;
    if (file.root || !module.ptr) return file;
    const unsigned column = error.column > 0 ? (unsigned)error.column : 1;
    mlirEmitError(hec_loc_file(mlirOperationGetContext(module), path, (unsigned)error.line, column),
                  error.text);
    return file;
}

void hec_json_close(struct hec_json_file *file) {
    json_decref(file->root);
    free(file->text);
}

void hec_json_fail(struct hec_json_file *file, const char *const *path, const char *text) {
    if (!file->sound) return;
    file->sound = false;
    const struct hec_json_location at = hec_json_find(file->text, path);
    mlirEmitError(
        hec_loc_file(mlirOperationGetContext(file->module), file->path, at.line, at.column), text);
}
