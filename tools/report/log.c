// Reading a log line by line, as it grows, with memory that is bounded by numbers of steps and a few snapshots.
#include "tools/report/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

// Where a column is in a line: a key, or one inside of an object.
static const struct {
    const char *name, *outer, *key;
} columns[REPORT_COLUMNS] = {
    [REPORT_STEP] = {"step", NULL, "step"},
    [REPORT_LOSS] = {"loss", NULL, "loss"},
    [REPORT_CROSS_ENTROPY] = {"cross_entropy", NULL, "cross_entropy"},
    [REPORT_VALIDATION] = {"val_loss", NULL, "val_loss"},
    [REPORT_GRAD_NORM] = {"grad_norm", NULL, "grad_norm"},
    [REPORT_LR] = {"lr", NULL, "lr"},
    [REPORT_MS] = {"ms", NULL, "ms"},
    [REPORT_TOKENS] = {"tokens_per_s", NULL, "tokens_per_s"},
    [REPORT_BEFORE] = {"before", "devices", "before"},
    [REPORT_AFTER] = {"after", "devices", "after"},
    [REPORT_REPLICAS] = {"replicas", "devices", "replicas"},
    [REPORT_RESHARDED] = {"resharded", "devices", "resharded"},
    [REPORT_WAITED] = {"waited", "watch", "waited"},
    [REPORT_SLOWEST] = {"slowest", "watch", "slowest"},
    [REPORT_EXPOSED] = {"exposed_ms", "moved", "exposed_ms"},
    [REPORT_TRANSFER] = {"transfer_ms", "moved", "ms"},
    [REPORT_MEMORY] = {"memory", "watch", "memory"},
    [REPORT_FLOPS] = {"flops", "watch", "flops"},
    [REPORT_ROUTER_LOAD] = {"router_load", "router", "load"},
    [REPORT_ROUTER_ENTROPY] = {"router_entropy", "router", "entropy"},
    [REPORT_ROUTER_DEAD] = {"router_dead", "router", "dead"},
    [REPORT_CHOSEN] = {"chosen", "preferences", "chosen"},
    [REPORT_REJECTED] = {"rejected", "preferences", "rejected"},
    [REPORT_MARGIN] = {"margin", "preferences", "margin"},
    [REPORT_ACCURACY] = {"accuracy", "preferences", "accuracy"},
    [REPORT_ADVANTAGE] = {"advantage", "rollout", "advantage"},
    [REPORT_RATIO] = {"ratio", "rollout", "ratio"},
    [REPORT_CLIPPED] = {"clipped", "rollout", "clipped"},
    [REPORT_KL_OLD] = {"kl_old", "rollout", "kl_old"},
    [REPORT_KL] = {"kl", "rollout", "kl"},
};

const char *report_column_name(enum report_column column) {
    return columns[column].name;
}

// Which of the losses with names this is; REPORT_LOSSES: there is no more room.
static int loss_of(struct report_log *log, const char *name) {
    int i = 0;
    while (i < REPORT_LOSSES && log->loss[i] && strcmp(log->loss[i], name) != 0) i++;
    if (i < REPORT_LOSSES && !log->loss[i]) log->loss[i] = strdup(name);
    return i < REPORT_LOSSES && log->loss[i] ? i : REPORT_LOSSES;
}

static struct report_row row_of(struct report_log *log, const json_t *line) {
    const char *name;
    json_t *value;
    struct report_row row;
    for (int c = 0; c < REPORT_COLUMNS; c++) {
        const json_t *object = columns[c].outer ? json_object_get(line, columns[c].outer) : line;
        const json_t *number = json_object_get(object, columns[c].key);
        row.of[c] = json_is_number(number) ? json_number_value(number) : NAN;
    }
    for (int i = 0; i < REPORT_LOSSES; i++) row.loss[i] = NAN;
    json_object_foreach(json_object_get(line, "losses"), name, value) {
        const int i = loss_of(log, name);
        if (i < REPORT_LOSSES && json_is_number(value)) row.loss[i] = json_number_value(value);
    }
    return row;
}

static double step_of(const json_t *line) {
    return json_number_value(json_object_get(line, "step"));
}

static void forget_lines_from(struct report_kept *kept, double step) {
    while (kept->lines > 0 && step_of(kept->line[kept->lines - 1]) >= step)
        json_decref(kept->line[--kept->lines]);
    if (!kept->newest || step_of(kept->newest) < step) return;
    json_decref(kept->newest);
    kept->newest = kept->lines ? json_incref(kept->line[kept->lines - 1]) : NULL;
}

// Steps that are told again lose their older lines.
static void forget_from(struct report_log *log, double step) {
    while (log->rows > 0 && log->row[log->rows - 1].of[REPORT_STEP] >= step) {
        log->rows--;
        log->repeated++;
    }
    forget_lines_from(&log->snapshots, step);
    forget_lines_from(&log->routers, step);
}

static bool keep_row(struct report_log *log, const struct report_row *row) {
    forget_from(log, row->of[REPORT_STEP]);
    if (log->rows == log->room) {
        const int64_t room = log->room ? 2 * log->room : 1024;
        struct report_row *grown = realloc(log->row, (size_t)room * sizeof *grown);
        if (!grown) return false;
        log->row = grown;
        log->room = room;
    }
    log->row[log->rows++] = *row;
    return true;
}

// Every other one goes.
static void halve(struct report_kept *kept) {
    int left = 0;
    for (int i = 0; i < kept->lines; i++) {
        if (i % 2 == 0)
            kept->line[left++] = kept->line[i];
        else
            json_decref(kept->line[i]);
    }
    kept->lines = left;
    kept->every *= 2;
}

// Keeps one of `every`, and with the newest at most `most`.
static void keep_line(struct report_kept *kept, int most, json_t *line) {
    json_decref(kept->newest);
    kept->newest = json_incref(line);
    if (kept->seen++ % kept->every != 0) return;
    while (kept->lines >= most - 1) halve(kept);
    kept->line[kept->lines++] = json_incref(line);
}

static int most_snapshots(size_t length) {
    const size_t most = REPORT_SNAPSHOTS_BYTES / (length + 1);
    return most > REPORT_SNAPSHOTS ? REPORT_SNAPSHOTS : most < 12 ? 12 : (int)most;
}

static void free_kept(struct report_kept *kept) {
    for (int i = 0; i < kept->lines; i++) json_decref(kept->line[i]);
    json_decref(kept->newest);
}

// Lists of equal length, or none: a page that draws what is not there would be blank.
static bool is_list_of_lists(const json_t *sets) {
    const char *name;
    json_t *layers;
    json_object_foreach((json_t *)sets, name, layers) {
        if (json_array_size(layers) == 0) return false;
        for (size_t i = 0; i < json_array_size(layers); i++) {
            const json_t *layer = json_array_get(layers, i);
            if (json_array_size(layer) == 0 ||
                json_array_size(layer) != json_array_size(json_array_get(layers, 0)))
                return false;
            for (size_t e = 0; e < json_array_size(layer); e++) {
                if (!json_is_number(json_array_get(layer, e))) return false;
            }
        }
    }
    return json_object_size(sets) > 0;
}

static void count_spoilt(struct report_log *log) {
    log->spoilt++;
    if (!log->first_spoilt) log->first_spoilt = log->lines;
}

static void keep_routers(struct report_log *log, const json_t *line, json_t *routers) {
    json_t *part = json_pack("{s:O s:O}", "step", json_object_get(line, "step"), "of", routers);
    if (part) keep_line(&log->routers, REPORT_ROUTERS, part);
    json_decref(part);
}

static bool take_line(struct report_log *log, json_t *line, size_t length) {
    const struct report_row row = row_of(log, line);
    const json_t *loads = json_object_get(line, "tokens_per_expert");
    json_t *run = json_object_get(line, "run"), *routers = json_object_get(line, "routers");
    if (!json_is_integer(json_object_get(line, "step")) || (loads && !is_list_of_lists(loads))) {
        count_spoilt(log);
        return true;
    }
    if (!keep_row(log, &row)) return false;
    if (json_is_object(run)) {
        json_decref(log->run);
        log->run = json_incref(run);
    }
    if (json_is_object(routers)) keep_routers(log, line, routers);
    if (loads) {
        json_object_del(line, "run");
        json_object_del(line, "routers");
        keep_line(&log->snapshots, most_snapshots(length), line);
    }
    return true;
}

// Keeps the end of what has been read so far, a whole line and what is before it in the same read.
static void note_tail(struct report_log *log, const char *text, size_t length) {
    const size_t kept = length < REPORT_TAIL ? length : REPORT_TAIL;
    memmove(log->tail, log->tail + kept, REPORT_TAIL - kept);
    memcpy(log->tail + REPORT_TAIL - kept, text + length - kept, kept);
    log->bytes += (int64_t)length;
}

// A last line that is cut off is read again when there is more of it.
static bool take_text(struct report_log *log, const char *text, size_t length) {
    const bool whole = text[length - 1] == '\n';
    if (log->unended && length == 1 && whole) { // The end of a line that was taken.
        log->unended = false;
        note_tail(log, text, length);
        return true;
    }
    json_t *line = json_loadb(text, length, 0, NULL);
    log->cut = !json_is_object(line) && !whole;
    bool sound = true;
    if (!log->cut) {
        log->lines++;
        log->unended = !whole;
        note_tail(log, text, length);
        if (json_is_object(line))
            sound = take_line(log, line, length);
        else
            count_spoilt(log);
    }
    json_decref(line);
    return sound;
}

static bool read_lines(struct report_log *log, FILE *file) {
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    bool sound = true;
    log->cut = false;
    while (sound && (length = getline(&text, &room, file)) >= 0)
        sound = take_text(log, text, (size_t)length);
    free(text);
    return sound;
}

// Whether an open file begins with all that has been read; then only what is behind that is read.
static bool has_grown(const struct report_log *log, FILE *file) {
    struct stat status;
    char tail[REPORT_TAIL];
    const int64_t kept = log->bytes < REPORT_TAIL ? log->bytes : REPORT_TAIL;
    if (log->bytes == 0 || fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_dev != log->device || status.st_ino != log->inode || status.st_size < log->bytes)
        return false;
    return pread(fileno(file), tail, (size_t)kept, log->bytes - kept) == kept &&
           memcmp(tail, log->tail + REPORT_TAIL - kept, (size_t)kept) == 0 &&
           fseeko(file, log->bytes, SEEK_SET) == 0;
}

static struct report_log new_log(const char *path) {
    return (struct report_log){.path = path, .snapshots.every = 1, .routers.every = 1};
}

static void start_over(struct report_log *log, FILE *file) {
    struct stat status = {0};
    const char *path = log->path;
    report_log_free(log);
    *log = new_log(path);
    if (fstat(fileno(file), &status) != 0) return;
    log->device = status.st_dev;
    log->inode = status.st_ino;
}

static bool fail(struct report_log *log) {
    const char *path = log->path;
    report_log_free(log);
    log->path = path;
    return false;
}

bool report_log_update(struct report_log *log, bool *changed, char why[REPORT_WHY]) {
    const char *reason_why;
    FILE *file = hf_input(log->path, true, &reason_why);
    if (!file) {
        snprintf(why, REPORT_WHY, "cannot read '%s': %s", log->path, reason_why);
        return fail(log);
    }
    if (!has_grown(log, file)) start_over(log, file);
    const int64_t before = log->bytes;
    const bool was_cut = log->cut;
    errno = 0;
    const bool sound = read_lines(log, file);
    const bool failed = ferror(file);
    const int reason = errno;
    fclose(file);
    *changed = log->bytes != before || log->cut != was_cut;
    if (!sound)
        snprintf(why, REPORT_WHY, "out of memory for '%s'", log->path);
    else if (failed)
        snprintf(why, REPORT_WHY, "cannot read '%s': %s", log->path, strerror(reason));
    else if (log->rows == 0)
        snprintf(why, REPORT_WHY, "'%s' is no log of a run: none of its %lld lines is of a step",
                 log->path, (long long)(log->lines + log->cut));
    return (sound && !failed && log->rows > 0) || fail(log);
}

bool report_log_read(struct report_log *log, const char *path, char why[REPORT_WHY]) {
    bool changed;
    *log = new_log(path);
    return report_log_update(log, &changed, why);
}

json_t *report_kept_list(const struct report_kept *kept) {
    json_t *list = json_array();
    for (int i = 0; i < kept->lines; i++) json_array_append(list, kept->line[i]);
    if (kept->newest && (kept->lines == 0 || kept->line[kept->lines - 1] != kept->newest))
        json_array_append(list, kept->newest);
    return list;
}

void report_log_free(struct report_log *log) {
    free_kept(&log->snapshots);
    free_kept(&log->routers);
    json_decref(log->run);
    for (int i = 0; i < REPORT_LOSSES; i++) free(log->loss[i]);
    free(log->row);
    *log = (struct report_log){0};
}

// Chooses the rows of one stretch to keep, in order.
static int64_t pick(const struct report_log *log, int64_t from, int64_t to, int64_t *kept) {
    int64_t least = from, most = from, count = 0;
    for (int64_t i = from; i < to; i++) {
        if (!isnan(log->row[i].of[REPORT_VALIDATION])) kept[count++] = i;
        if (log->row[i].of[REPORT_LOSS] < log->row[least].of[REPORT_LOSS]) least = i;
        if (log->row[i].of[REPORT_LOSS] > log->row[most].of[REPORT_LOSS]) most = i;
    }
    if (count > 0) return count < 3 ? count : 3;
    kept[count++] = least < most ? least : most;
    if (least != most) kept[count++] = least < most ? most : least;
    return count;
}

int64_t *report_log_thin(const struct report_log *log, int64_t most, int64_t *count) {
    const int64_t stretch = log->rows > most ? (2 * log->rows + most - 1) / most : 1;
    int64_t *kept = malloc((size_t)(log->rows + 2) * sizeof *kept);
    *count = 0;
    if (!kept) return NULL;
    for (int64_t from = 0; from < log->rows; from += stretch) {
        const int64_t to = from + stretch < log->rows ? from + stretch : log->rows;
        *count += pick(log, from, to, kept + *count);
    }
    if (kept[*count - 1] != log->rows - 1) kept[(*count)++] = log->rows - 1;
    return kept;
}
