// fingerprint: writes down the meaning of the program, part by part, so that a run which resumes from a checkpoint can
// tell which part is another.
//
//   before   func.func private @attention(%x) { ... moe.sdpa(%q, %k, %v) {window = 128, ...} ... }
//   after    the same, and hecate.parts = {attention = "body=5c1f... sdpa.window=128 ...", ...}
//
// Why      The whole meaning of a program is known here; later passes take it apart for the machine that it runs on.
// Needs    the graph stage: one function for each call, symbols with all that a model says of them.
// Leaves   hecate.parts: a text of words key=value for each symbol, by its name, and "the dims" for their sizes. A word
// is
//          what the part says in numbers and words; of a function `body` is a hash of all else: its operations in
// order,
//          what each reads, its types. Words are the same where models are: neither locations nor the batch, the
//          precision, ranks and the target are in them, nor how parameters begin, which a checkpoint holds.
// Reports  nothing.
#include "ir/accessors.h"
#include "lang/base/vec.h"
#include "passes/base/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sizes_of_dims[] = "the dims"; // No symbol has a blank.

struct word {
    const char *key, *value;
};

struct size {
    MlirStringRef dim;
    int64_t size;
    bool other; // Another call has set the dim to another size.
};

struct writer {
    struct hec_arena arena;
    MlirContext context;
    HEC_VEC(struct size) sizes;
    HEC_VEC(struct word) words; // Words of the part being written.
    struct hec_map number;      // Numbers a function's values, from 1 on.
    FILE *body;                 // Text that is hashed. NULL: none.
    HEC_VEC(MlirNamedAttribute) parts;
};

// ---- dims

// Dims that the compiler makes have sizes that follow from others, or from what the program runs on.
static bool is_made(MlirStringRef dim) {
    static const char *const made[] = {"batch", "rows", "picks", "first", "block"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        if (mlirStringRefEqual(dim, HEC_STR(made[i]))) return true;
    }
    return false;
}

static struct size *find_size(struct writer *w, MlirStringRef dim) {
    for (int i = 0; i < w->sizes.count; i++) {
        if (mlirStringRefEqual(w->sizes.item[i].dim, dim)) return &w->sizes.item[i];
    }
    return NULL;
}

static void collect_type(struct writer *w, MlirType type) {
    if (!mlirTypeIsARankedTensor(type)) return;
    const struct hec_tensor tensor = hec_tensor_of(type);
    for (int i = 0; i < tensor.rank; i++) {
        if (is_made(tensor.dim[i])) continue;
        struct size *size = find_size(w, tensor.dim[i]);
        if (!size)
            HEC_PUSH(&w->arena, &w->sizes, (struct size){tensor.dim[i], tensor.size[i], false});
        else
            size->other |= size->size != tensor.size[i];
    }
}

static void collect_sizes(struct writer *w, MlirOperation module) {
    HEC_EACH (op, hec_ops_below(module)) {
        if (hec_op_is(op, HEC_OP_param)) collect_type(w, hec_any_type(op));
        for (int k = 0; k < mlirOperationGetNumResults(op); k++)
            collect_type(w, mlirValueGetType(hec_result(op, k)));
        if (!hec_op_is(op, HEC_OP_FUNC)) continue;
        const MlirBlock block = hec_func_body(op);
        for (int k = 0; k < mlirBlockGetNumArguments(block); k++)
            collect_type(w, mlirValueGetType(mlirBlockGetArgument(block, k)));
    }
}

// "D,F"; with the size of a dim that has several.
static const char *shape_text(struct writer *w, MlirType type) {
    const struct hec_tensor tensor = hec_tensor_of(type);
    const char *text = "";
    for (int i = 0; i < tensor.rank; i++) {
        const MlirStringRef dim = tensor.dim[i];
        const struct size *size = is_made(dim) ? NULL : find_size(w, dim);
        text =
            hec_arena_format(&w->arena, "%s%s%.*s", text, i ? "," : "", (int)dim.length, dim.data);
        if (size && size->other)
            text = hec_arena_format(&w->arena, "%s:%" PRId64, text, tensor.size[i]);
    }
    return text;
}

// ---- words

// A part's words have no blanks inside.
static const char *text_of(struct writer *w, MlirStringRef text) {
    char *copy = hec_arena_copy(&w->arena, text.data, text.length);
    for (char *at = copy; *at; at++) {
        if (*at == ' ') *at = '_';
    }
    return copy;
}

static const char *number_text(struct writer *w, double value) {
    const char *text = "";
    for (int digits = 6; digits <= 17; digits++) {
        text = hec_arena_format(&w->arena, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return text;
}

struct printed {
    struct writer *w;
    const char *text;
};

static void print_piece(MlirStringRef piece, void *user) {
    struct printed *printed = user;
    printed->text = hec_arena_format(&printed->w->arena, "%s%.*s", printed->text, (int)piece.length,
                                     piece.data);
}

static uint64_t hash_of(const char *text, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// The text of attributes of any other kind.
static const char *printed_text(struct writer *w, MlirAttribute value) {
    struct printed printed = {w, ""};
    mlirAttributePrint(value, print_piece, &printed);
    return text_of(w, HEC_STR(printed.text));
}

static const char *value_text(struct writer *w, MlirAttribute value) {
    if (mlirAttributeIsABool(value)) return mlirBoolAttrGetValue(value) ? "true" : "false";
    if (mlirAttributeIsAInteger(value))
        return hec_arena_format(&w->arena, "%" PRId64, mlirIntegerAttrGetValueInt(value));
    if (mlirAttributeIsAFloat(value)) return number_text(w, mlirFloatAttrGetValueDouble(value));
    if (mlirAttributeIsAString(value)) return text_of(w, mlirStringAttrGetValue(value));
    if (mlirAttributeIsAFlatSymbolRef(value))
        return text_of(w, mlirFlatSymbolRefAttrGetValue(value));
    if (mlirAttributeIsAType(value) && mlirTypeIsARankedTensor(mlirTypeAttrGetValue(value)))
        return shape_text(w, mlirTypeAttrGetValue(value));
    const char *text = printed_text(w, value);
    if (mlirAttributeIsADenseF64Array(value)) // Numbers of all layers.
        return hec_arena_format(&w->arena, "%016" PRIx64, hash_of(text, strlen(text)));
    return text;
}

// Values of one key stand behind each other, in the order of the operations.
static void add_word(struct writer *w, const char *key, const char *value) {
    for (int i = 0; i < w->words.count; i++) {
        struct word *word = &w->words.item[i];
        if (strcmp(word->key, key) != 0) continue;
        word->value = hec_arena_format(&w->arena, "%s,%s", word->value, value);
        return;
    }
    HEC_PUSH(&w->arena, &w->words, (struct word){key, value});
}

static void end_part(struct writer *w, const char *name) {
    const char *text = "";
    for (int i = 0; i < w->words.count; i++)
        text = hec_arena_format(&w->arena, "%s%s%s=%s", text, i ? " " : "", w->words.item[i].key,
                                w->words.item[i].value);
    HEC_PUSH(&w->arena, &w->parts, hec_attr_string(w->context, name, text));
    w->words.count = 0;
}

// ---- functions

static void write_number(struct writer *w, MlirValue value) {
    intptr_t *number = hec_map_at(&w->number, value.ptr);
    if (!*number) *number = w->number.count;
    fprintf(w->body, " %" PRIdPTR, *number);
}

static void write_type(struct writer *w, MlirValue value) {
    const MlirType type = mlirValueGetType(value);
    if (!mlirTypeIsARankedTensor(type)) {
        fputs(":index", w->body);
        return;
    }
    fprintf(w->body, ":%s[%s]", hec_type_is_real(type) ? "real" : "int", shape_text(w, type));
}

// The name of groups' lengths is one, so that programs made with any version of MLIR mean the same.
static MlirStringRef key_of(MlirNamedAttribute attribute) {
    const MlirStringRef key = mlirIdentifierStr(attribute.name);
    return mlirStringRefEqual(key, HEC_STR(HEC_OPERAND_SEGMENTS)) ? HEC_STR("operandSegmentSizes")
                                                                  : key;
}

// Numbers and words are the part's; symbols and types are the body's.
static void write_attribute(struct writer *w, const char *op, MlirNamedAttribute attribute) {
    const MlirStringRef key = key_of(attribute);
    const MlirAttribute value = attribute.attribute;
    const char *text = value_text(w, value);
    if (mlirAttributeIsABool(value) || mlirAttributeIsAInteger(value) ||
        mlirAttributeIsAFloat(value) || mlirAttributeIsAString(value))
        add_word(w, hec_arena_format(&w->arena, "%s.%.*s", op, (int)key.length, key.data), text);
    else
        fprintf(w->body, " %.*s=%s", (int)key.length, key.data, text);
}

static void write_block(struct writer *w, MlirBlock block);

static void write_op(struct writer *w, MlirOperation op) {
    const MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    const char *full = hec_arena_copy(&w->arena, name.data, name.length);
    const char *point = strchr(full, '.');
    fputs(full, w->body);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) write_number(w, hec_operand(op, i));
    fputs(" ->", w->body);
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        write_number(w, hec_result(op, i));
        write_type(w, hec_result(op, i));
    }
    for (int i = 0; i < mlirOperationGetNumAttributes(op); i++)
        write_attribute(w, point ? point + 1 : full, mlirOperationGetAttribute(op, i));
    fputc('\n', w->body);
    for (int i = 0; i < mlirOperationGetNumRegions(op); i++)
        write_block(w, mlirRegionGetFirstBlock(mlirOperationGetRegion(op, i)));
}

static void write_block(struct writer *w, MlirBlock block) {
    fputc('{', w->body);
    for (int i = 0; i < mlirBlockGetNumArguments(block); i++) {
        write_number(w, mlirBlockGetArgument(block, i));
        write_type(w, mlirBlockGetArgument(block, i));
    }
    fputc('\n', w->body);
    HEC_EACH (op, hec_ops_in(block)) write_op(w, op);
    fputs("}\n", w->body);
}

// FNV-1a, which finds what has changed, not what someone forges.

static void write_func(struct writer *w, MlirOperation func) {
    char *text = NULL;
    size_t bytes = 0;
    HEC_PUSH(&w->arena, &w->words, (struct word){"body", ""});
    w->body = hec_checked(open_memstream(&text, &bytes));
    write_block(w, hec_func_body(func));
    fclose(w->body);
    hec_checked(text);
    w->words.item[0].value = hec_arena_format(&w->arena, "%016" PRIx64, hash_of(text, bytes));
    free(text);
    hec_map_free(&w->number);
}

// ---- symbols

// The part's name has the names; the checkpoint has the first values of parameters, but for tables.
static bool is_said_of_symbol(MlirOperation op, MlirStringRef key) {
    if (mlirStringRefEqual(key, HEC_STR("sym_name"))) return false;
    if (!hec_op_is(op, HEC_OP_param) || mlirStringRefEqual(hec_any_init(op), HEC_STR("rope")))
        return true;
    return !mlirStringRefEqual(key, HEC_STR("init")) &&
           !mlirStringRefEqual(key, HEC_STR("deviation"));
}

static void write_symbol(struct writer *w, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumAttributes(op); i++) {
        const MlirNamedAttribute attribute = mlirOperationGetAttribute(op, i);
        const MlirStringRef key = mlirIdentifierStr(attribute.name);
        if (is_said_of_symbol(op, key))
            add_word(w, hec_arena_copy(&w->arena, key.data, key.length),
                     value_text(w, attribute.attribute));
    }
}

static void write_sizes(struct writer *w) {
    for (int i = 0; i < w->sizes.count; i++) {
        const struct size *size = &w->sizes.item[i];
        if (!size->other)
            add_word(w, hec_arena_copy(&w->arena, size->dim.data, size->dim.length),
                     hec_arena_format(&w->arena, "%" PRId64, size->size));
    }
    end_part(w, sizes_of_dims);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct writer w = {.context = mlirOperationGetContext(module)};
    collect_sizes(&w, module);
    write_sizes(&w);
    HEC_EACH (op, hec_ops_in(hec_module_body(module))) {
        const MlirStringRef name = hec_get_string(op, "sym_name");
        if (name.length == 0) continue;
        if (hec_op_is(op, HEC_OP_FUNC))
            write_func(&w, op);
        else
            write_symbol(&w, op);
        end_part(&w, hec_arena_copy(&w.arena, name.data, name.length));
    }
    hec_module_put_parts(module, mlirDictionaryAttrGet(w.context, w.parts.count, w.parts.item));
    hec_arena_free(&w.arena);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_fingerprint = {
    .run = run,
};
