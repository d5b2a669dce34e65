// Reads what a device computes.
#include "runtime/cli/pretend.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"

static const struct row {
    const char *name;
    size_t offset;
    bool rate; // Else a time, which may be 0.
} rows[] = {
    {"products", offsetof(struct hk_pretence, product_flops), true},
    {"attention", offsetof(struct hk_pretence, attention_flops), true},
    {"memory", offsetof(struct hk_pretence, bytes), true},
    {"call", offsetof(struct hk_pretence, call_s), false},
};

enum { ROWS = sizeof rows / sizeof *rows };

// One line without its comment. `seen` has a bit for every row.
static bool read_line(struct hk_pretence *pretence, char *line, unsigned *seen, const char *path,
                      int number, struct hrt_error *error) {
    char *rest, *word = strtok_r(line, " \t\n", &rest);
    if (!word) return true;
    int row = 0;
    while (row < ROWS && strcmp(rows[row].name, word) != 0) row++;
    if (row == ROWS)
        return hrt_fail_usage(error, "%s:%d: '%.40s' is none of products, attention, memory, call",
                              path, number, word);
    if (*seen >> row & 1)
        return hrt_fail_usage(error, "%s:%d: %s is given twice", path, number, word);
    const char *text = strtok_r(NULL, " \t\n", &rest);
    char *end = NULL;
    const double value = text ? strtod(text, &end) : 0;
    const bool sound = text && *end == '\0' && isfinite(value) && value >= 0 &&
                       (value > 0 || !rows[row].rate) && !strtok_r(NULL, " \t\n", &rest);
    if (!sound)
        return hrt_fail_usage(error, "%s:%d: %s takes one %s number", path, number, word,
                              rows[row].rate ? "positive" : "not negative");
    *seen |= 1U << row;
    memcpy((char *)pretence + rows[row].offset, &value, sizeof value);
    return true;
}

bool hrt_cli_pretend_read(struct hk_pretence *pretence, const char *path, struct hrt_error *error) {
    const char *why;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail(error, "cannot read %s: %s", path, why);
    char line[256];
    unsigned seen = 0;
    bool sound = true;
    for (int number = 1; sound && fgets(line, sizeof line, file); number++) {
        if (strlen(line) + 1 == sizeof line)
            sound = hrt_fail_usage(error, "%s:%d: the line is too long", path, number);
        line[strcspn(line, "#")] = '\0';
        sound = sound && read_line(pretence, line, &seen, path, number, error);
    }
    if (sound && ferror(file)) sound = hrt_fail(error, "cannot read %s", path);
    fclose(file);
    for (int row = 0; sound && row < ROWS; row++) {
        if (!(seen >> row & 1))
            sound = hrt_fail_usage(error, "%s: %s is missing", path, rows[row].name);
    }
    return sound;
}
