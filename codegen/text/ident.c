// C identifiers made from the names of a model.
#include "codegen/text/ident.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { BUCKETS_LEAST = 64 };

// Keywords of C17, of GNU C and of C23, and macros and functions that the included headers
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
static const char *const reserved_prefix[] = {"_",    "hk_",   "hkc_",     "hrt_",  "HK_",
                                              "HKC_", "HRT_",  "FP_",      "M_",    "INT",
                                              "UINT", "SIZE_", "PTRDIFF_", "WCHAR_"};

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

// The bucket of `name`: its own, or the empty one where it belongs.
static int *bucket_of(const struct hec_idents *scope, const char *name) {
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    uint64_t at = hash % (uint64_t)scope->buckets;
    for (;; at = (at + 1) % (uint64_t)scope->buckets) {
        const int index = scope->bucket[at];
        if (index == 0 || strcmp(scope->taken.item[index - 1].name, name) == 0)
            return &scope->bucket[at];
    }
}

static struct hec_taken *find(const struct hec_idents *scope, const char *name) {
    const int index = scope->buckets ? *bucket_of(scope, name) : 0;
    return index ? &scope->taken.item[index - 1] : NULL;
}

static bool is_taken(const struct hec_idents *scope, const char *name) {
    for (; scope; scope = scope->outer) {
        if (find(scope, name)) return true;
    }
    return false;
}

static void grow(struct hec_idents *scope) {
    scope->buckets = scope->buckets ? 2 * scope->buckets : BUCKETS_LEAST;
    scope->bucket = hec_arena_alloc(scope->arena, (size_t)scope->buckets, sizeof *scope->bucket);
    for (int i = 0; i < scope->taken.count; i++) {
        *bucket_of(scope, scope->taken.item[i].name) = i + 1;
    }
}

void hec_ident_reserve(struct hec_idents *scope, const char *name) {
    if (find(scope, name)) return;
    if (2 * scope->taken.count >= scope->buckets) grow(scope);
    HEC_PUSH(scope->arena, &scope->taken, (struct hec_taken){name, 2});
    *bucket_of(scope, name) = scope->taken.count;
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
    if (is_taken(scope, base)) {
        hec_ident_reserve(scope, base); // The scope counts such names from now on.
        int k = find(scope, base)->next;
        do name = hec_arena_format(scope->arena, "%s_%d", base, k++);
        while (is_taken(scope, name));
        find(scope, base)->next = k;
    }
    hec_ident_reserve(scope, name);
    return name;
}
