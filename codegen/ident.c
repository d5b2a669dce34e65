// C identifiers made from the names of a model.
#include "codegen/ident.h"

#include <ctype.h>
#include <string.h>

// Keywords of C17 and of GNU C, what C23 adds, and macros and functions that the included headers
// (or the compiler, without any header) define and a model may plausibly name something after.
static const char *const reserved[] = {
    "alignas",      "alignof",   "asm",       "auto",     "bool",          "break",    "case",
    "char",         "const",     "constexpr", "continue", "default",       "do",       "double",
    "else",         "enum",      "extern",    "false",    "float",         "for",      "goto",
    "if",           "inline",    "int",       "linux",    "long",          "main",     "memcpy",
    "memset",       "nullptr",   "register",  "restrict", "return",        "short",    "signed",
    "sizeof",       "sqrt",      "sqrtf",     "static",   "static_assert", "struct",   "switch",
    "thread_local", "true",      "typedef",   "typeof",   "union",         "unix",     "unsigned",
    "void",         "volatile",  "while",     "DOMAIN",   "EOF",           "HUGE_VAL", "HUGE_VALF",
    "INFINITY",     "MAXFLOAT",  "NAN",       "NULL",     "OVERFLOW",      "PLOSS",    "SING",
    "TLOSS",        "UNDERFLOW",
};

// Prefixes of whole families of them.
static const char *const reserved_prefix[] = {"_",  "hk_", "hrt_", "HK_",   "HRT_",     "FP_",
                                              "M_", "INT", "UINT", "SIZE_", "PTRDIFF_", "WCHAR_"};

static bool ends_with(const char *name, const char *end) {
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

// The functions that the emitter makes are named so.
static bool is_function(const char *name) {
    return ends_with(name, "_forward") || ends_with(name, "_backward");
}

static bool is_reserved(const char *name) {
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (strcmp(name, reserved[i]) == 0) return true;
    }
    for (size_t i = 0; i < sizeof reserved_prefix / sizeof *reserved_prefix; i++) {
        if (strncmp(name, reserved_prefix[i], strlen(reserved_prefix[i])) == 0) return true;
    }
    return false;
}

static bool is_taken(const struct hec_idents *scope, const char *name) {
    for (; scope; scope = scope->outer) {
        for (int i = 0; i < scope->taken.count; i++) {
            if (strcmp(name, scope->taken.item[i]) == 0) return true;
        }
    }
    return false;
}

void hec_ident_reserve(struct hec_idents *scope, const char *name) {
    HEC_PUSH(scope->arena, &scope->taken, name);
}

const char *hec_ident(struct hec_idents *scope, MlirStringRef text, const char *otherwise) {
    char *base = text.length ? hec_arena_copy(scope->arena, text.data, text.length)
                             : hec_arena_copy(scope->arena, otherwise, strlen(otherwise));
    for (char *c = base; *c; c++) {
        if (!isalnum((unsigned char)*c)) *c = '_';
    }
    if (isdigit((unsigned char)*base)) base = hec_arena_format(scope->arena, "n%s", base);
    if (is_reserved(base) || (!scope->members && is_function(base))) {
        const char *longer = hec_arena_format(scope->arena, "%s_", base);
        const bool enough = !is_reserved(longer) && !is_function(longer);
        base = hec_arena_format(scope->arena, enough ? "%s_" : "n_%s", base);
    }
    const char *name = base;
    for (int k = 2; is_taken(scope, name); k++) {
        name = hec_arena_format(scope->arena, "%s_%d", base, k);
    }
    hec_ident_reserve(scope, name);
    return name;
}
