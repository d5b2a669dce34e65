// A call of a kernel: its arguments as kernels.def lists them.
#include "codegen/host/kernel_call.h"

#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/dims.h"
#include "codegen/host/function.h"
#include "codegen/host/literal.h"
#include "codegen/host/router.h"
#include "codegen/host/rows.h"
#include "ir/accessors.h"
#include "ir/values.h"

// The word that starts at `at` and ends before one of `ends`.
static const char *word_at(struct hec_emitter *e, const char *at, const char *ends) {
    return HEC_TEXT(e, "%.*s", (int)strcspn(at, ends), at);
}

static MlirValue value_of(MlirOperation op, const char *name) {
    MlirValue value;
    int result;
    hec_call_value(op, name, &value, &result);
    return value;
}

// ---- arguments

// The constant for a word: "softmax" -> "HK_SOFTMAX"; with `family` "GROUP_": "best" -> "HK_GROUP_BEST".
static const char *constant_of(struct hec_emitter *e, MlirStringRef word, const char *family) {
    char *text = HEC_TEXT(e, "HK_%s%.*s", family, (int)word.length, word.data);
    for (char *c = text; *c; c++) {
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    }
    return text;
}

// An attribute, "w" or "w(FAMILY_)"; NULL where it is 0 or not there.
static const char *attribute_text(struct hec_emitter *e, MlirOperation op, const char *text) {
    const char *name = word_at(e, text, "("), *family = strchr(text, '(');
    family = family ? word_at(e, family + 1, ")") : "";
    const MlirAttribute a = mlirOperationGetAttributeByName(op, HEC_STR(name));
    if (mlirAttributeIsNull(a)) return NULL;
    if (mlirAttributeIsABool(a)) return mlirBoolAttrGetValue(a) ? "true" : "false";
    if (mlirAttributeIsAFloat(a)) return hec_number(e, hec_get_float(op, name));
    if (mlirAttributeIsAString(a)) return constant_of(e, hec_get_string(op, name), family);
    const int64_t value = hec_get_int(op, name);
    return value ? HEC_TEXT(e, "%" PRId64, value) : NULL;
}

// A size, an attribute, how many positions of the sequence lie before those of the call, or an array, where it is there.
static const char *number_text(struct hec_emitter *e, MlirOperation op, const char *name) {
    struct hec_tensor dims;
    MlirValue array;
    int result;
    if (strcmp(name, "before") == 0) return e->continues ? "m->first" : NULL;
    if (hec_call_size(op, name, &dims)) return hec_product(e, &dims, 0, dims.rank);
    if (hec_call_value(op, name, &array, &result))
        return mlirValueIsNull(array) ? NULL : hec_ref(e, array);
    return attribute_text(e, op, name);
}

// The one way in which all of `names` are written, "r" or "r,s".
static const char *mode_text(struct hec_emitter *e, MlirOperation op, const char *names) {
    const char *mode = NULL;
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',') {
        MlirValue value;
        int result;
        hec_call_value(op, word_at(e, at, ","), &value, &result);
        if (mlirValueIsNull(value)) continue;
        const char *own = hec_write_mode(e, op, result);
        if (mode && strcmp(mode, own) != 0)
            hec_emit_fault(e, op, "adds to one of %s and stores the other", names);
        mode = own;
    }
    return mode ? mode : "HK_STORE";
}

// "{hk_matmul_dims m n k}" as a compound literal.
static const char *struct_text(struct hec_emitter *e, MlirOperation op, const char *at) {
    const char *text = HEC_TEXT(e, "(struct %s){", word_at(e, at, " "));
    const char *comma = "";
    for (at += strcspn(at, " "); *at == ' '; at += strcspn(at, " }")) {
        const char *word = word_at(e, ++at, " }"), *equal = strchr(word, '=');
        const char *value = number_text(e, op, equal ? equal + 1 : word);
        if (!value) continue;
        text = HEC_TEXT(e, "%s%s.%s = %s", text, comma, word_at(e, word, "=("), value);
        comma = ", ";
    }
    return HEC_TEXT(e, "%s}", text);
}

// How many experts there are, by an attribute or by where their rows begin.
static const char *experts_text(struct hec_emitter *e, MlirOperation op, const char *name) {
    MlirValue first;
    int result;
    if (!hec_call_value(op, name, &first, &result)) return hec_experts_of(e, hec_get_int(op, name));
    return hec_experts_of(e, hec_tensor_of(mlirValueGetType(first)).size[0] - 1);
}

// The text for an argument of kernels.def, "word" or "word(inner)"; NULL: the word is none of these.
static const char *word_text(struct hec_emitter *e, MlirOperation op, const char *word,
                             const char *inner) {
    const char *kind = word_at(e, word, "(");
    if (strcmp(kind, "mode") == 0) return mode_text(e, op, inner);
    if (strcmp(kind, "layout") == 0)
        return hec_is_panels(hec_call_layout(op)) ? "HK_PANELS" : "HK_ROWS";
    if (strcmp(kind, "chunk") == 0 || strcmp(kind, "panels") == 0) {
        const MlirValue value = value_of(op, inner);
        return HEC_TEXT(e, "%s, %s", hec_chunk(e, value), hec_chunk_offset(e, value));
    }
    if (strcmp(kind, "epilogue") == 0)
        return e->back_end->epilogue ? e->back_end->epilogue(e, op) : "NULL";
    if (strcmp(kind, "only") == 0) return e->only ? e->only : "NULL";
    if (strcmp(kind, "routing") == 0) return hec_routing(e, value_of(op, inner));
    if (strcmp(kind, "noise") == 0) return "m->noise";
    if (strcmp(kind, "teacher") == 0) return "m->teacher";
    if (strcmp(kind, "token_weights") == 0) return "m->token_weights";
    if (strcmp(kind, "layer") == 0) return hec_layer_number(e, op);
    if (strcmp(kind, "step_loads") == 0) return hec_step_loads(e, op);
    if (strcmp(kind, "iteration") == 0) return hec_step_iteration(e, op);
    if (strcmp(kind, "experts_of") == 0) return experts_text(e, op, inner);
    if (strcmp(kind, "group_tokens") == 0) return hec_group_tokens(e, op, value_of(op, inner));
    return NULL;
}

// A temporary is gone when forward has ended.
static bool is_temporary(struct hec_emitter *e, MlirValue value) {
    return hec_value_home(e, value).kind == HEC_HOME_ARENA;
}

static const char *argument_text(struct hec_emitter *e, MlirOperation op, const char *at) {
    if (*at == '{') return struct_text(e, op, at + 1);
    const char *word = word_at(e, at, " ");
    const char *inner = strchr(word, '(');
    if (inner) inner = word_at(e, inner + 1, ")");
    const char *text = word_text(e, op, word, inner);
    if (text) return text;
    MlirValue value;
    int result;
    if (hec_call_value(op, word, &value, &result)) {
        if (mlirValueIsNull(value) || (e->only && is_temporary(e, value))) return "NULL";
        return result < 0 ? hec_ref(e, value) : hec_result_ref(e, op, result);
    }
    const char *number = number_text(e, op, word);
    return number ? number : "0";
}

void hec_kernel_call(struct hec_emitter *e, MlirOperation op, const char *prefix,
                     const char *first) {
    const struct hec_kernel *kernel = hec_kernel_of(op);
    const char *text = first, *comma = *first ? ", " : "";
    for (const char *at = kernel->arguments; *at;) {
        text = HEC_TEXT(e, "%s%s%s", text, comma, argument_text(e, op, at));
        comma = ", ";
        at += *at == '{' ? strcspn(at, "}") + 1 : strcspn(at, " ");
        at += *at == ' ';
    }
    const char *suffix = hec_call_is_bf16(op) ? "bf16" : e->suffix;
    const bool typed = kernel->types != HEC_KERNEL_NONE;
    hec_statement(e, "%s%s%s%s(%s);", prefix, kernel->name, typed ? "_" : "", typed ? suffix : "",
                  text);
}
