// Where values live: reads what place-buffers wrote, "arena+4096" or "slot @x[i+1]".
#include "codegen/host/home.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static MlirAttribute at_index(MlirOperation op, const char *key, int index) {
    const MlirAttribute list = mlirOperationGetAttributeByName(op, HEC_STR(key));
    if (mlirAttributeIsNull(list) || !mlirAttributeIsAArray(list)) return (MlirAttribute){0};
    if (index >= mlirArrayAttrGetNumElements(list)) return (MlirAttribute){0};
    return mlirArrayAttrGetElement(list, index);
}

static bool take(const char **at, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) return false;
    *at += length;
    return true;
}

static bool take_number(const char **at, int64_t *number) {
    if (**at < '0' || **at > '9') return false;
    char *end;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

// What follows "slot @": the symbol and its row.
static bool read_row(struct hec_emitter *e, const char *at, struct hec_home *home) {
    const size_t length = strcspn(at, "[");
    home->symbol = hec_find_symbol(e->module, mlirStringRefCreate(at, length));
    home->row = -1;
    at += length;
    if (mlirOperationIsNull(home->symbol)) return false;
    const enum hec_op kind = home->kind == HEC_HOME_SLOT ? HEC_OP_slot : HEC_OP_param;
    if (!hec_op_is(home->symbol, kind)) return false;
    if (!*at) return true;

    at++;
    home->row = 0;
    if (take(&at, "i")) {
        home->layered = true;
        if (take(&at, "+") && !take_number(&at, &home->row)) return false;
    } else if (!take_number(&at, &home->row)) {
        return false;
    }
    return strcmp(at, "]") == 0;
}

static bool read_home(struct hec_emitter *e, const char *text, struct hec_home *home) {
    static const struct {
        const char *text;
        enum hec_home_kind kind;
    } plain[] = {{"none", HEC_HOME_NONE},
                 {"ids", HEC_HOME_IDS},
                 {"targets", HEC_HOME_TARGETS},
                 {"scale", HEC_HOME_SCALE},
                 {"share", HEC_HOME_SHARE}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(text, plain[i].text) != 0) continue;
        home->kind = plain[i].kind;
        return true;
    }
    if (take(&text, "arena+")) {
        home->kind = HEC_HOME_ARENA;
        return take_number(&text, &home->offset) && !*text;
    }
    if (take(&text, "slot @")) return home->kind = HEC_HOME_SLOT, read_row(e, text, home);
    if (take(&text, "param @")) return home->kind = HEC_HOME_PARAM, read_row(e, text, home);
    if (take(&text, "grad @")) return home->kind = HEC_HOME_GRAD, read_row(e, text, home);
    return false;
}

// The text of the home of `value`, and the operation that holds it.
static MlirAttribute home_text(MlirValue value, MlirOperation *holder, int *index) {
    if (mlirValueIsAOpResult(value)) {
        *holder = mlirOpResultGetOwner(value);
        *index = (int)mlirOpResultGetResultNumber(value);
        return at_index(*holder, "home", *index);
    }
    *holder = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    *index = (int)mlirBlockArgumentGetArgNumber(value);
    return at_index(*holder, "argument_home", *index - 1); // The first one is the layer.
}

struct hec_home hec_value_home(struct hec_emitter *e, MlirValue value) {
    static const enum hec_home_kind argument[] = {HEC_HOME_IDS, HEC_HOME_TARGETS, HEC_HOME_SCALE,
                                                  HEC_HOME_SHARE};
    struct hec_home home = {.row = -1};
    MlirOperation holder;
    int index;
    const MlirAttribute attribute = home_text(value, &holder, &index);
    if (hec_op_is(holder, HEC_OP_FUNC) && index < (int)(sizeof argument / sizeof *argument)) {
        home.kind = argument[index];
        return home;
    }
    if (mlirAttributeIsNull(attribute) || !mlirAttributeIsAString(attribute)) {
        hec_emit_fault(e, holder, "has no home for value %d: run place-buffers first", index);
        return home;
    }
    const MlirStringRef text = mlirStringAttrGetValue(attribute);
    const char *copy = hec_arena_copy(&e->arena, text.data, text.length);
    if (!read_home(e, copy, &home)) {
        hec_emit_fault(e, holder, "has a home that cannot be read: \"%s\"", copy);
        return (struct hec_home){.row = -1};
    }
    home.adds = home.kind == HEC_HOME_GRAD;
    if (mlirValueIsAOpResult(value)) {
        const MlirAttribute adds = at_index(holder, "adds", index);
        if (!mlirAttributeIsNull(adds) && mlirAttributeIsABool(adds)) {
            home.adds = mlirBoolAttrGetValue(adds);
        }
    }
    return home;
}

bool hec_home_is_panels(const struct hec_home *home) {
    if (home->kind != HEC_HOME_PARAM && home->kind != HEC_HOME_GRAD) return false;
    return mlirStringRefEqual(hec_get_string(home->symbol, "layout"), HEC_STR("panels"));
}
