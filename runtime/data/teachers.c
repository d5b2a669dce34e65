// Which file of teacher entries belongs to which file of tokens.
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/data/teacher.h"

// All of them have as many entries: rows of a batch are as wide.
static bool check_entries(const struct hrt_teachers *teachers, struct hrt_error *error) {
    const struct hrt_teacher_file *first = &teachers->file[0],
                                  *last = &teachers->file[teachers->files - 1];
    if (first->entries == last->entries) return true;
    return hrt_fail(error, "'%s' has %" PRId64 " entries for a token, '%s' %" PRId64, last->path,
                    last->entries, first->path, first->entries);
}

static bool add_file(struct hrt_teachers *teachers, const char *path, int64_t vocabulary,
                     struct hrt_error *error) {
    struct hrt_teacher_file *grown =
        realloc(teachers->file, ((size_t)teachers->files + 1) * sizeof *grown);
    if (!grown) return hrt_fail(error, "out of memory");
    teachers->file = grown;
    if (!hrt_data_teacher_file_open(&grown[teachers->files], path, vocabulary, error)) return false;
    teachers->files++;
    return check_entries(teachers, error);
}

// A pattern that names an existing file means that file, even if it has wildcards.
static bool add_files(struct hrt_teachers *teachers, const char *pattern, int64_t vocabulary,
                      struct hrt_error *error) {
    if (!strpbrk(pattern, "*?[") || access(pattern, F_OK) == 0)
        return add_file(teachers, pattern, vocabulary, error);
    glob_t found;
    const int failed = glob(pattern, 0, NULL, &found);
    if (failed == GLOB_NOMATCH) return hrt_fail(error, "no file matches '%s'", pattern);
    if (failed) return hrt_fail(error, "cannot list '%s': %s", pattern, strerror(errno));
    bool added = true;
    for (size_t i = 0; added && i < found.gl_pathc; i++)
        added = add_file(teachers, found.gl_pathv[i], vocabulary, error);
    globfree(&found);
    return added;
}

static bool fail_none(const struct hrt_teachers *teachers, const struct hrt_data_file *tokens,
                      uint32_t checksum, struct hrt_error *error) {
    const struct hrt_teacher_file *only = teachers->file;
    if (teachers->files > 1)
        return hrt_fail(error,
                        "no teacher speaks of '%s', which has %" PRId64
                        " tokens with the checksum %08" PRIx32,
                        tokens->path, tokens->tokens, checksum);
    return hrt_fail(error,
                    "'%s' is of other tokens than '%s': of %" PRId64 " with the checksum %08" PRIx32
                    ", not %" PRId64 " with %08" PRIx32,
                    only->path, tokens->path, only->tokens, only->checksum, tokens->tokens,
                    checksum);
}

static bool find_teacher(struct hrt_teachers *teachers, const struct hrt_data_file *tokens,
                         int *found, struct hrt_error *error) {
    uint32_t checksum;
    *found = -1;
    if (!hrt_data_file_checksum(tokens, &checksum, error)) return false;
    for (int i = 0; i < teachers->files; i++) {
        const struct hrt_teacher_file *file = &teachers->file[i];
        if (file->tokens != tokens->tokens || file->checksum != checksum) continue;
        if (*found >= 0)
            return hrt_fail(error, "'%s' and '%s' both speak of '%s'", teachers->file[*found].path,
                            file->path, tokens->path);
        *found = i;
    }
    return *found >= 0 || fail_none(teachers, tokens, checksum, error);
}

static bool open_all(struct hrt_teachers *teachers, const char *const *pattern, int patterns,
                     const struct hrt_data_file *tokens, int files, int64_t vocabulary,
                     struct hrt_error *error) {
    for (int i = 0; i < patterns; i++) {
        if (!add_files(teachers, pattern[i], vocabulary, error)) return false;
    }
    teachers->of = calloc((size_t)files + 1, sizeof *teachers->of);
    if (!teachers->of) return hrt_fail(error, "out of memory");
    for (int i = 0; i < files; i++) {
        if (!find_teacher(teachers, &tokens[i], &teachers->of[i], error)) return false;
    }
    teachers->entries = teachers->file[0].entries;
    return true;
}

bool hrt_data_teachers_open(struct hrt_teachers *teachers, const char *const *pattern, int patterns,
                            const struct hrt_data_file *tokens, int files, int64_t vocabulary,
                            struct hrt_error *error) {
    *teachers = (struct hrt_teachers){0};
    if (patterns == 0 || open_all(teachers, pattern, patterns, tokens, files, vocabulary, error))
        return true;
    hrt_data_teachers_close(teachers);
    return false;
}

void hrt_data_teachers_close(struct hrt_teachers *teachers) {
    for (int i = 0; i < teachers->files; i++) hrt_data_teacher_file_close(&teachers->file[i]);
    free(teachers->file);
    free(teachers->of);
    *teachers = (struct hrt_teachers){0};
}
