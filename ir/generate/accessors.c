// Writes ir/accessors.h from ops.def, families.def and module.def: a function for each operand, result and attribute,
// so that a wrong name or kind is an error of the C compiler. Runs while hecatec is built.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/core/word.h"

struct op {
    const char *id, *operands, *results, *attributes;
};

static const struct op ops[] = {
#define HEC_OP(id, dialect, operands, results, attributes) {#id, operands, results, attributes},
#include "ir/ops.def"
#undef HEC_OP
};

static const struct hec_word module_words[] = {
#define HEC_MODULE(name, kind) {#name, #kind, '?'},
#include "ir/module.def"
#undef HEC_MODULE
};

enum { OPS = sizeof ops / sizeof *ops, WORDS_MAX = 1024 };

// How an attribute of a kind is read and made in C.
static const struct kind {
    const char *name, *type, *get, *given, *make;
} kinds[] = {
    {"int", "int64_t", "hec_get_int", "int64_t", "hec_attr_int"},
    {"bool", "bool", "hec_get_bool", "bool", "hec_attr_bool"},
    {"float", "double", "hec_get_float", "double", "hec_attr_float"},
    {"string", "MlirStringRef", "hec_get_string", "const char *", "hec_attr_string"},
    {"symbol", "MlirStringRef", "hec_get_string", "MlirStringRef", "hec_attr_symbol"},
    {"type", "MlirType", "hec_get_type", "MlirType", "hec_attr_type"},
    {"", "MlirAttribute", "hec_get_attr", "MlirAttribute", "hec_attr"}, // Lists and the like.
};

static const struct kind *kind_of(const char *name) {
    const struct kind *kind = kinds;
    while (*kind->name && strcmp(kind->name, name) != 0) kind++;
    return kind;
}

// Functions hec_PREFIX_NAME, hec_PREFIX_has_NAME and hec_PREFIX_put_NAME for one attribute.
static void write_attribute(const char *prefix, const char *check, const struct hec_word *word,
                            const char *key) {
    const struct kind *kind = kind_of(word->kind);
    printf("static inline %s hec_%s_%s(MlirOperation op) {\n", kind->type, prefix, word->name);
    printf("%s    return %s(op, \"%s\");\n}\n", check, kind->get, key);
    if (word->repeat != '?') return;
    printf("static inline bool hec_%s_has_%s(MlirOperation op) {\n", prefix, word->name);
    printf("%s    return hec_has_attr(op, \"%s\");\n}\n", check, key);
    printf("static inline void hec_%s_put_%s(MlirOperation op, %s value) {\n", prefix, word->name,
           kind->given);
    printf("%s    hec_set_attr(op, %s(mlirOperationGetContext(op), \"%s\", value));\n}\n", check,
           kind->make, key);
}

static bool several_may_lack(const char *words) {
    struct hec_word word;
    int count = 0;
    while ((words = hec_next_word(words, &word))) count += word.repeat != 0;
    return count > 1;
}

// Functions for the operands or the results of an operation. One that is variadic comes last.
static void write_values(const char *id, const char *words, const char *get, const char *count,
                         const char *check) {
    const bool several = several_may_lack(words);
    struct hec_word word;
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        const bool many = word.repeat == '*';
        char at[24];
        snprintf(at, sizeof at, many ? "%d + index" : "%d", i);
        printf("static inline MlirValue hec_%s_%s(MlirOperation op%s) {\n%s", id, word.name,
               many ? ", int index" : "", check);
        if (word.repeat && several) {
            printf("    return hec_optional_operand(op, %d);\n}\n", i);
            continue;
        }
        if (word.repeat) printf("    if (%s(op) <= %s) return (MlirValue){0};\n", count, at);
        printf("    return %s(op, %s);\n}\n", get, at);
    }
}

// hec_PREFIX_set_NAME for the operands that are always there.
static void write_setters(const char *prefix, const char *words, const char *check) {
    struct hec_word word;
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        if (word.repeat) continue;
        printf("static inline void hec_%s_set_%s(MlirOperation op, MlirValue value) {\n%s"
               "    mlirOperationSetOperand(op, %d, value);\n}\n",
               prefix, word.name, check, i);
    }
}

static void write_op(const struct op *op) {
    char check[120];
    snprintf(check, sizeof check, "    assert(hec_op_is(op, HEC_OP_%s));\n", op->id);
    write_values(op->id, op->operands, "hec_operand", "mlirOperationGetNumOperands", check);
    write_setters(op->id, op->operands, check);
    write_values(op->id, op->results, "hec_result", "mlirOperationGetNumResults", check);
    struct hec_word word;
    for (const char *at = op->attributes; (at = hec_next_word(at, &word));) {
        write_attribute(op->id, check, &word, word.name);
    }
}

// ---- families

static const struct op *op_of(const char *id) {
    for (int k = 0; k < OPS; k++) {
        if (strcmp(ops[k].id, id) == 0) return &ops[k];
    }
    fprintf(stderr, "ir/families.def: there is no operation %s\n", id);
    exit(1);
}

static const char *values_of(const struct op *op, bool results) {
    return results ? op->results : op->operands;
}

// Where `name` stands among the operands or results of `op`; -1: it has none of that name, or a variadic one.
static int position(const struct op *op, bool results, const char *name) {
    struct hec_word word;
    const char *at = values_of(op, results);
    for (int i = 0; (at = hec_next_word(at, &word)); i++) {
        if (strcmp(word.name, name) == 0) return word.repeat ? -1 : i;
    }
    return -1;
}

static bool all_have(const char *members, bool results, const char *name) {
    struct hec_word member;
    while ((members = hec_next_word(members, &member))) {
        if (position(op_of(member.name), results, name) < 0) return false;
    }
    return true;
}

static void write_family_setter(const char *family, const char *members, const char *name) {
    struct hec_word member;
    printf("static inline void hec_%s_set_%s(MlirOperation op, MlirValue value) {\n"
           "    switch (hec_op_of(op)) {\n",
           family, name);
    while ((members = hec_next_word(members, &member)))
        printf("    case HEC_OP_%s:\n        hec_%s_set_%s(op, value);\n        break;\n",
               member.name, member.name, name);
    printf("    default:\n        assert(!\"one of %s\");\n    }\n}\n", family);
}

// A function for each operand, or result, that all members have.
static void write_family(const char *family, const char *members, bool results) {
    struct hec_word first, word, member;
    hec_next_word(members, &first);
    for (const char *at = values_of(op_of(first.name), results); (at = hec_next_word(at, &word));) {
        if (!all_have(members, results, word.name)) continue;
        printf("static inline MlirValue hec_%s_%s(MlirOperation op) {\n"
               "    switch (hec_op_computes(op)) {\n",
               family, word.name);
        for (const char *of = members; (of = hec_next_word(of, &member));)
            printf("    case HEC_OP_%s:\n        return hec_%s(op, %d);\n", member.name,
                   results ? "result" : "operand",
                   position(op_of(member.name), results, word.name));
        printf("    default:\n        assert(!\"one of %s\");\n        return (MlirValue){0};\n"
               "    }\n}\n",
               family);
        if (!results) write_family_setter(family, members, word.name);
    }
}

// The members that a family has besides those of families.def.
static const struct {
    const char *family, *member;
} found[] = {
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_NORM(id) {"norm", #id}, {"norm_grad", #id "_grad"},
#include "ir/ops.def"
#undef HEC_OP
};

static void write_families(void) {
    static const struct {
        const char *name, *members;
    } families[] = {
#define HEC_FAMILY(name, members) {#name, members},
#include "ir/families.def"
#undef HEC_FAMILY
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char members[WORDS_MAX];
        int length = snprintf(members, sizeof members, "%s", families[i].members);
        for (size_t k = 0; k < sizeof found / sizeof *found; k++) {
            if (strcmp(found[k].family, families[i].name) != 0) continue;
            length +=
                snprintf(members + length, sizeof members - (size_t)length, " %s", found[k].member);
            if (length >= (int)sizeof members) exit(1);
        }
        write_family(families[i].name, members, false);
        write_family(families[i].name, members, true);
    }
}

// The attributes of all operations, each once. Optional where one operation may lack it.
static int collect(struct hec_word *all) {
    int count = 0;
    for (int k = 0; k < OPS; k++) {
        struct hec_word word;
        for (const char *at = ops[k].attributes; (at = hec_next_word(at, &word));) {
            int i = 0;
            while (i < count && strcmp(all[i].name, word.name) != 0) i++;
            if (i == count && count == WORDS_MAX) exit(1);
            if (i == count) all[count++] = word;
            if (word.repeat) all[i].repeat = word.repeat;
            if (strcmp(all[i].kind, word.kind) == 0) continue;
            fprintf(stderr, "ir/ops.def: %s is of two kinds, %s and %s\n", word.name, word.kind,
                    all[i].kind);
            exit(1);
        }
    }
    return count;
}

int main(void) {
    static struct hec_word all[WORDS_MAX];
    const int count = collect(all);
    puts(
        "// Written by ir/generate/accessors.c from ir/ops.def, ir/families.def and "
        "ir/module.def.\n"
        "//\n"
        "//   hec_OP_NAME(op)             operand, result or attribute NAME of an operation OP. An "
        "optional\n"
        "//                               operand or result that it lacks is null; an optional "
        "attribute\n"
        "//                               must be there, but for bool (false) and string (empty).\n"
        "//   hec_OP_set_NAME(op, value)  puts another value in the place of an operand that is "
        "always there\n"
        "//   hec_OP_NAME(op, index)      variadic operand or result NAME; null where there is "
        "none\n"
        "//   hec_FAMILY_NAME(op)         operand or result NAME of one of a family "
        "(families.def), or "
        "of a\n"
        "//                               call of its kernel\n"
        "//   hec_OP_has_NAME, put_NAME   of optional attributes: is it there; set it\n"
        "//   hec_any_NAME, has, put      the attribute of any operation that may have it\n"
        "//   hec_module_NAME, has, put   the module's attribute hecate.NAME\n"
        "#ifndef HECATE_IR_ACCESSORS_H\n"
        "#define HECATE_IR_ACCESSORS_H\n\n"
        "#include <assert.h>\n\n"
        "#include \"ir/core/op.h\"\n");
    for (int k = 0; k < OPS; k++) write_op(&ops[k]);
    write_families();
    for (int i = 0; i < count; i++) write_attribute("any", "", &all[i], all[i].name);
    for (size_t i = 0; i < sizeof module_words / sizeof *module_words; i++) {
        char key[60];
        snprintf(key, sizeof key, "hecate.%.40s", module_words[i].name);
        write_attribute("module", "    assert(hec_op_is(op, HEC_OP_MODULE));\n", &module_words[i],
                        key);
    }
    puts("\n#endif");
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
