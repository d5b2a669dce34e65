// The function that is being built: places of the source, names, types.
#include "ir/build/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512 };

MlirLocation hec_build_location(struct hec_build *build, struct hec_span at, const char *name) {
    const MlirLocation location =
        at.file ? hec_loc_file(build->context, at.file->path, at.line, at.column)
                : mlirLocationUnknownGet(build->context);
    return hec_loc_named(name, location);
}

void hec_build_at(struct hec_scope *scope, struct hec_span at, const char *name) {
    scope->b.at = hec_build_location(scope->build, at, name);
}

void hec_build_error(struct hec_build *build, struct hec_span at, const char *format, ...) {
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mlirEmitError(hec_build_location(build, at, NULL), text);
    build->failed = true;
}

// Names that later stages give away.
static bool is_reserved(const char *name) {
    return strcmp(name, "forward") == 0 || strcmp(name, "backward") == 0 ||
           strcmp(name, "logits") == 0;
}

char *hec_build_symbol(struct hec_build *build, const char *wanted) {
    const size_t room = strlen(wanted) + 24;
    char *name = hec_checked(malloc(room));
    snprintf(name, room, "%s", wanted);
    for (int i = 1;
         is_reserved(name) || !mlirOperationIsNull(hec_find_symbol(build->module, HEC_STR(name)));
         i++) {
        snprintf(name, room, "%s.%d", wanted, i);
    }
    return name;
}

// A value that depends on tokens has a leading batch, in an expert's body rows for batch and T. A
// parameter of an expert has all experts first.
MlirType hec_build_type(const struct hec_scope *scope, const struct hec_shape *shape, bool batched,
                        bool integer) {
    const struct hec_build *build = scope->build;
    struct hec_tensor t = {.element = integer ? build->i32 : build->real};
    int from = 0;
    if (batched && scope->expert_of) {
        const int64_t tokens = build->batch * shape->dim[0].size;
        hec_tensor_append(&t, HEC_STR("rows"), tokens * scope->expert_of->topk);
        from = 1;
    } else if (batched) {
        hec_tensor_append(&t, HEC_STR("batch"), build->batch);
    }
    for (int i = from; i < shape->rank; i++) {
        hec_tensor_append(&t, HEC_STR(shape->dim[i].name), shape->dim[i].size);
    }
    return hec_tensor_type(&t);
}
