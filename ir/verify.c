// The structural verifier that runs after every pass. MLIR's own checks what IRDL can say; this one
// adds what it cannot: unknown attributes, dimension names, result types, each row's own rules.
#include "ir/core/op.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ir/core/home.h"
#include "ir/core/kernel.h"
#include "ir/core/setting.h"
#include "ir/core/signature.h"
#include "ir/ops/rule.h"
#include "ir/target/target.h"
#include "ir/values.h"

enum { RESULTS_MAX = 16 };

// Attributes that a row need not list: those of operations that were inlined, work on rows of experts, have results,
// can add, have a number of operands or results that differs, or calls a kernel. False: `name` is none of them.
static bool find_implied(MlirOperation op, const struct hec_op_row *row, MlirStringRef name,
                         struct hec_word *word) {
    char words[80];
    snprintf(words, sizeof words, "unit:any rows_of:symbol %s %s",
             *row->results ? "home:strings" : "", hec_op_traits(op)->adds ? "adds:bools" : "");
    if (hec_find_word(words, name, word)) return true;
    const struct hec_kernel *kernel = hec_kernel_of(op);
    if (kernel && hec_find_word(hec_op_row(kernel->computes)->attributes, name, word)) return true;
    if (kernel && hec_find_word(kernel->sizes, name, word)) {
        strcpy(word->kind, "strings");
        return true;
    }
    *word = (struct hec_word){0};
    return (strpbrk(row->operands, "?*") &&
            mlirStringRefEqual(name, HEC_STR(HEC_OPERAND_SEGMENTS))) ||
           (kernel && mlirStringRefEqual(name, HEC_STR(HEC_RESULT_SEGMENTS)));
}

static bool check_attribute(MlirOperation op, const struct hec_op_row *row,
                            MlirNamedAttribute attribute) {
    const MlirStringRef name = mlirIdentifierStr(attribute.name);
    struct hec_word word;
    if (!hec_find_word(row->attributes, name, &word) && !find_implied(op, row, name, &word))
        return hec_ir_error(op, "unknown attribute '%.*s'", (int)name.length, name.data);
    const struct hec_kind *kind = hec_kind_of(word.kind);
    if (!kind || kind->is(attribute.attribute)) return true; // MLIR checks the sizes of groups.
    return hec_ir_error(op, "attribute '%.*s' must be %s", (int)name.length, name.data, kind->text);
}

// hecate.NAME of the module, as module.def has it; attributes of others' dialects pass.
static bool check_module_attribute(MlirOperation module, MlirNamedAttribute attribute) {
    static const struct {
        const char *name, *kind;
    } known[] = {
#define HEC_MODULE(name, kind) {"hecate." #name, #kind},
#include "ir/module.def"
#undef HEC_MODULE
    };
    const MlirStringRef name = mlirIdentifierStr(attribute.name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!mlirStringRefEqual(name, HEC_STR(known[i].name))) continue;
        const struct hec_kind *kind = hec_kind_of(known[i].kind);
        if (kind->is(attribute.attribute)) return true;
        return hec_ir_error(module, "attribute '%s' must be %s", known[i].name, kind->text);
    }
    if (name.length < 7 || memcmp(name.data, "hecate.", 7) != 0) return true;
    return hec_ir_error(module, "unknown attribute '%.*s'", (int)name.length, name.data);
}

static bool check_attributes(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    const struct hec_op_row *row = hec_op_row(id);
    bool sound = hec_unit_verify(op);
    if (id == HEC_OP_OTHER) return sound; // Passes refuse it.
    if (id == HEC_OP_call && !hec_kernel_of(op)) return hec_ir_error(op, "there is no such kernel");
    for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); i++) {
        const MlirNamedAttribute attribute = mlirOperationGetAttribute(op, i);
        sound &= id == HEC_OP_MODULE ? check_module_attribute(op, attribute)
                                     : check_attribute(op, row, attribute);
    }
    return sound && (id != HEC_OP_MODULE || (hec_settings_check(op) && hec_target_verify(op)));
}

static bool check_type(MlirOperation op, const char *what, int index, MlirType type) {
    if (!mlirTypeIsARankedTensor(type)) return true;
    if (mlirShapedTypeGetRank(type) > HEC_IR_RANK_MAX)
        return hec_ir_error(op, "%s %d has more than %d dimensions", what, index, HEC_IR_RANK_MAX);
    if (!mlirShapedTypeHasStaticShape(type))
        return hec_ir_error(op, "%s %d has a dimension without a size", what, index);
    if (!hec_type_is_sized(type))
        return hec_ir_error(op, "%s %d is %s: too large, or empty", what, index,
                            hec_type_text(type).text);
    const struct hec_tensor t = hec_tensor_of(type);
    for (int i = 0; i < t.rank; i++) {
        if (mlirStringRefEqual(t.dim[i], HEC_STR("?")))
            return hec_ir_error(op, "%s %d has no dimension names", what, index);
        for (int j = 0; j < i; j++) {
            if (!mlirStringRefEqual(t.dim[i], t.dim[j])) continue;
            return hec_ir_error(op, "%s %d has the dimension %.*s twice", what, index,
                                (int)t.dim[i].length, t.dim[i].data);
        }
    }
    return true;
}

static bool check_types(MlirOperation op) {
    bool sound = true;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        sound &= check_type(op, "operand", i, mlirValueGetType(hec_operand(op, i)));
    }
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        sound &= check_type(op, "result", i, mlirValueGetType(hec_result(op, i)));
    }
    return sound;
}

static bool check_inferred(MlirOperation op, const struct hec_traits *traits) {
    MlirType type[RESULTS_MAX] = {{0}};
    const int results = (int)mlirOperationGetNumResults(op);
    assert(results <= RESULTS_MAX);
    if (!traits->infer(op, type)) return false;
    for (int i = 0; i < results; i++) {
        if (mlirTypeEqual(hec_type_unrounded(type[i]),
                          hec_type_unrounded(mlirValueGetType(hec_result(op, i)))))
            continue;
        return hec_ir_error(op, "the type of result %d is not what its operands give", i);
    }
    return true;
}

static bool check_rules(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    if (!hec_rows_verify(op)) return false;
    if (id >= HEC_OP_FUNC) return hec_home_verify(op) && hec_values_verify(op);
    if (!check_types(op) || !hec_home_verify(op)) return false;
    if (hec_traits_of(id)->infer && !check_inferred(op, hec_traits_of(id))) return false;
    if (hec_traits_of(id)->verify && !hec_traits_of(id)->verify(op)) return false;
    return hec_values_verify(op);
}

bool hec_op_verify(MlirOperation op) {
    return check_attributes(op) && check_rules(op);
}

static MlirWalkResult check_attributes_of(MlirOperation op, void *sound) {
    if (!check_attributes(op)) *(bool *)sound = false;
    return MlirWalkResultAdvance;
}

static MlirWalkResult check_rules_of(MlirOperation op, void *sound) {
    if (!check_rules(op)) *(bool *)sound = false;
    return MlirWalkResultAdvance;
}

bool hec_ir_verify(MlirOperation module) {
    if (!mlirOperationVerify(module)) return false;
    bool sound = true;
    mlirOperationWalk(module, check_attributes_of, &sound, MlirWalkPreOrder);
    if (!sound) return false; // Rules rely on the kinds of attributes, their own and symbols'.
    hec_symbols_hold(module);
    mlirOperationWalk(module, check_rules_of, &sound, MlirWalkPreOrder);
    hec_symbols_release();
    return sound;
}
