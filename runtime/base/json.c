// One file, one value.
#include "runtime/base/json.h"

#include "files/files.h"

json_t *hrt_base_json_read(const char *path, struct hrt_error *error) {
    const char *why;
    json_error_t where;
    FILE *file = hf_input(path, false, &why);
    if (!file) {
        hrt_fail(error, "cannot open '%s': %s", path, why);
        return NULL;
    }
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (!json) hrt_fail(error, "'%s' is not JSON: line %d: %s", path, where.line, where.text);
    return json;
}
