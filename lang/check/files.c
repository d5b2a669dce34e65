// Files of one compilation: loading, imports, the names they define, and -D.
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lang/check/checker.h"
#include "lang/parse.h"

static const char *const kind_name[] = {
    [HEC_ITEM_DIM] = "dim",     [HEC_ITEM_LET] = "let", [HEC_ITEM_BLOCK] = "block",
    [HEC_ITEM_MODEL] = "model", [HEC_ITEM_MOE] = "moe",
};

struct hec_entry *hec_find_entry(const struct hec_checker *checker, const char *name) {
    for (int i = 0; i < checker->entries.count; i++) {
        if (checker->entries.item[i]->name == name) return checker->entries.item[i];
    }
    return NULL;
}

static void add_entry(struct hec_checker *checker, struct hec_entry entry) {
    const struct hec_entry *before = hec_find_entry(checker, entry.name);
    if (before) {
        hec_error(checker, entry.at, "`%s` is already defined, as a %s", entry.name,
                  kind_name[before->kind]);
        hec_note(checker, before->at, "the first definition");
        return;
    }
    struct hec_entry *kept = HEC_NEW(checker->arena, struct hec_entry);
    *kept = entry;
    HEC_PUSH(checker->arena, &checker->entries, kept);
}

static void add_definitions(struct hec_checker *checker, const struct hec_declaration *item) {
    for (int i = 0; i < item->definitions.count; i++) {
        const struct hec_definition *definition = &item->definitions.item[i];
        add_entry(checker, (struct hec_entry){.kind = item->kind,
                                              .name = definition->name,
                                              .at = definition->at,
                                              .value = definition->value});
    }
}

// The path of `name` in the folder of `file`, or NULL when nothing is there.
static const char *beside(struct hec_checker *checker, const char *file, const char *name) {
    const char *slash = strrchr(file, '/');
    const int length = slash && name[0] != '/' ? (int)(slash + 1 - file) : 0;
    const char *path = hec_arena_format(checker->arena, "%.*s%s", length, file, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static const char *identity(struct hec_checker *checker, const char *path) {
    char resolved[PATH_MAX];
    const char *real = realpath(path, resolved) ? resolved : path;
    return hec_intern_text(&checker->names, real);
}

static void load_file(struct hec_checker *checker, const char *path, struct hec_span at);

static void import_file(struct hec_checker *checker, const struct hec_declaration *item) {
    const char *path = beside(checker, item->at.file->path, item->path);
    if (!path && checker->options->library) {
        const char *folder = hec_arena_format(checker->arena, "%s/", checker->options->library);
        path = beside(checker, folder, item->path);
    }
    if (!path) {
        checker->incomplete = true;
        hec_error(checker, item->at, "cannot find \"%s\"", item->path);
        hec_note(checker, HEC_NOWHERE, "looked beside %s%s%s", item->at.file->path,
                 checker->options->library ? " and in " : "",
                 checker->options->library ? checker->options->library : "");
        return;
    }
    load_file(checker, path, item->at);
}

static void add_item(struct hec_checker *checker, const struct hec_declaration *item) {
    switch (item->kind) {
    case HEC_ITEM_DIM:
    case HEC_ITEM_LET:
        add_definitions(checker, item);
        break;
    case HEC_ITEM_IMPORT:
        import_file(checker, item);
        break;
    case HEC_ITEM_BLOCK:
    case HEC_ITEM_MODEL:
    case HEC_ITEM_MOE:
        add_entry(checker,
                  (struct hec_entry){
                      .kind = item->kind, .name = item->name, .at = item->at, .unit = item});
        break;
    case HEC_ITEM_SECTION:
        HEC_PUSH(checker->arena, &checker->sections, &item->section);
        break;
    }
}

bool hec_imports(struct hec_checker *checker, const struct hec_source *outer,
                 const struct hec_source *inner) {
    for (const struct hec_source *file = inner; file;) {
        const char *path = identity(checker, file->path);
        file = NULL;
        for (int i = 0; i < checker->imports.count && !file; i++) {
            if (checker->imports.item[i].path == path) file = checker->imports.item[i].at.file;
        }
        if (file && file == outer) return true;
    }
    return false;
}

static bool imported_before(struct hec_checker *checker, const char *path, struct hec_span at) {
    for (int i = 0; i < checker->imports.count; i++) {
        const struct hec_import *import = &checker->imports.item[i];
        if (import->path != path) continue;
        if (!import->open)
            hec_error(checker, at, "imported twice");
        else if (identity(checker, at.file->path) == path)
            hec_error(checker, at, "this file imports itself");
        else
            hec_error(checker, at,
                      "imports go round in a circle: this file is imported by the other");
        if (import->at.file) {
            hec_note(checker, import->at, import->open ? "through this import" : "first here");
        }
        return true;
    }
    return false;
}

static void load_file(struct hec_checker *checker, const char *path, struct hec_span at) {
    const char *real = identity(checker, path);
    if (imported_before(checker, real, at)) return;
    const int self = checker->imports.count;
    HEC_PUSH(checker->arena, &checker->imports,
             (struct hec_import){.path = real, .at = at, .open = true});

    const char *why = NULL;
    const struct hec_source *source = hec_source_read(&checker->sources, path, &why);
    if (!source) {
        checker->incomplete = true;
        hec_error(checker, at, "cannot read %s: %s", path, why);
        return;
    }
    const uint32_t errors_before = checker->diag->errors;
    const struct hec_tree *tree = hec_parse(source, checker->arena, &checker->names, checker->diag);
    checker->incomplete |= checker->diag->errors != errors_before;
    for (int i = 0; i < tree->declarations.count; i++) {
        add_item(checker, &tree->declarations.item[i]);
    }
    checker->imports.item[self].open = false;
}

void hec_load(struct hec_checker *checker, const char *path) {
    load_file(checker, path, HEC_NOWHERE);
}

static bool is_cluster(const struct hec_set *section) {
    return !strcmp(section->name, "cluster");
}

void hec_load_cluster(struct hec_checker *checker, const char *path) {
    const char *why = NULL;
    const struct hec_source *source = hec_source_read(&checker->sources, path, &why);
    if (!source) {
        checker->incomplete = true;
        hec_error(checker, HEC_NOWHERE, "cannot read %s: %s", path, why);
        return;
    }
    int kept = 0; // The model's own cluster is dropped.
    for (int i = 0; i < checker->sections.count; i++) {
        if (!is_cluster(checker->sections.item[i]))
            checker->sections.item[kept++] = checker->sections.item[i];
    }
    checker->sections.count = kept;
    const uint32_t errors_before = checker->diag->errors;
    const struct hec_tree *tree = hec_parse(source, checker->arena, &checker->names, checker->diag);
    checker->incomplete |= checker->diag->errors != errors_before;
    for (int i = 0; i < tree->declarations.count; i++) {
        const struct hec_declaration *item = &tree->declarations.item[i];
        if (item->kind == HEC_ITEM_SECTION && is_cluster(&item->section))
            HEC_PUSH(checker->arena, &checker->sections, &item->section);
        else
            hec_error(checker, item->at, "a file of --cluster holds a `cluster` section only");
    }
}

struct hec_source *hec_flag_source(struct hec_checker *checker, const char *flag,
                                   const char *text) {
    const char *line = hec_arena_format(checker->arena, "%s %s", flag, text);
    return hec_source_add(&checker->sources, "<command line>", line, strlen(line));
}

// "-D L=4": the definition of L becomes 4.
static void apply_define(struct hec_checker *checker, const char *text) {
    const struct hec_source *source = hec_flag_source(checker, "-D", text);
    const uint32_t skip = 3; // "-D "
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const struct hec_span at = {source, 1, skip + 1, (uint32_t)length};
    if (!equals || length == 0) {
        hec_error(checker, at, "-D takes NAME=VALUE");
        return;
    }
    const char *name = hec_intern(&checker->names, text, length);
    struct hec_entry *entry = hec_find_entry(checker, name);
    HEC_VEC(const char *) candidates = {0};
    for (int i = 0; i < checker->entries.count; i++) {
        const struct hec_entry *known = checker->entries.item[i];
        if (!known->unit) HEC_PUSH(checker->arena, &candidates, known->name);
    }
    if (!entry || entry->unit) {
        hec_unknown(checker, at, "dim or let", name, candidates.item, candidates.count);
        return;
    }
    const struct hec_expr *value = hec_parse_expression(
        source, skip + (uint32_t)length + 1, checker->arena, &checker->names, checker->diag);
    if (!value) {
        entry->state = HEC_ENTRY_BROKEN;
        return;
    }
    entry->value = value;
    entry->at = at;
}

void hec_apply_defines(struct hec_checker *checker) {
    for (int i = 0; i < checker->options->defines_count; i++) {
        apply_define(checker, checker->options->defines[i]);
    }
}
