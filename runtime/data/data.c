// Files by glob, the split into training and validation, sequences.
#include "runtime/data/data.h"

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/random.h"

static const double share_held_out = 0.05; // Part of a training file, without validation data.

static bool add_file(struct hrt_data *data, const char *path,
                     const struct hrt_data_request *request, struct hrt_error *error) {
    struct hrt_data_file *grown =
        realloc(data->file, ((size_t)data->files + 1) * sizeof *data->file);
    if (!grown) return hrt_fail(error, "out of memory");
    data->file = grown;
    if (!hrt_data_file_open(&grown[data->files], path, request->format, data->vocabulary, error))
        return false;
    const struct hrt_data_file *file = &grown[data->files++];
    data->weighted |= file->weights.fd >= 0;
    data->fractions |= file->weights.fd >= 0 && file->weights.halves;
    if (file->group != data->group)
        return hrt_fail(error,
                        data->group > 1
                            ? "'%s' has no pairs of a chosen and a rejected answer, which this "
                              "model learns from (train.objective = dpo): hecate-data pairs makes "
                              "them"
                            : "'%s' has pairs of a chosen and a rejected answer, which only a "
                              "model with train.objective = dpo learns from",
                        path);
    return !file->packed || file->packed == data->positions ||
           hrt_fail(error,
                    "'%s' has whole documents in sequences of %" PRId64
                    " tokens, and the model has %" PRId64
                    " positions: hecate-data with --pack=%" PRId64 " makes those",
                    path, file->packed, data->positions, data->positions);
}

// Where sequences of T tokens may start in a part: one that is not packed needs the token behind the sequence, too.
static int64_t starts_of(const struct hrt_data_part *part, int64_t positions) {
    return part->packed ? part->tokens / positions : part->tokens - positions;
}

static int64_t windows_of(const struct hrt_data_part *part, int64_t positions) {
    return part->packed ? part->tokens / positions : (part->tokens - 1) / positions;
}

// The last `tokens` of a file, or as many of them as are whole sequences of a packed one.
static struct hrt_data_part end_of(const struct hrt_data *data, int file, int64_t tokens) {
    const struct hrt_data_file *of = &data->file[file];
    if (of->packed) tokens -= tokens % (of->packed * of->group);
    return (struct hrt_data_part){file, of->tokens - tokens, tokens, of->packed};
}

static bool is_short(const struct hrt_data *data, int file) {
    const struct hrt_data_part whole = end_of(data, file, data->file[file].tokens);
    return starts_of(&whole, data->positions) < 1;
}

// Adds the one file that was named.
static bool add_named(struct hrt_data *data, const char *path,
                      const struct hrt_data_request *request, struct hrt_error *error) {
    if (!add_file(data, path, request, error)) return false;
    const struct hrt_data_file *file = &data->file[data->files - 1];
    if (!is_short(data, data->files - 1)) return true;
    return hrt_fail(error,
                    "'%s' is too short: %" PRId64 " tokens, and one sequence of this model "
                    "needs %" PRId64,
                    path, file->tokens, data->positions + 1);
}

// Adds the files that match, without those that are too short.
static bool add_matching(struct hrt_data *data, const char *pattern, const glob_t *found,
                         const struct hrt_data_request *request, struct hrt_error *error) {
    const int before = data->files;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (!add_file(data, found->gl_pathv[i], request, error)) return false;
        if (!is_short(data, data->files - 1)) continue;
        hrt_data_file_close(&data->file[--data->files]);
        data->left_out++;
    }
    if (data->files > before) return true;
    return hrt_fail(error, "no file that matches '%s' has the %" PRId64 " tokens of a sequence",
                    pattern, data->positions + 1);
}

// A pattern that names an existing file means that file, even if it has wildcards.
static bool add_files(struct hrt_data *data, const char *pattern,
                      const struct hrt_data_request *request, struct hrt_error *error) {
    if (!strpbrk(pattern, "*?[") || access(pattern, F_OK) == 0)
        return add_named(data, pattern, request, error);
    glob_t found;
    const int failed = glob(pattern, 0, NULL, &found); // Sorted.
    if (failed == GLOB_NOMATCH) return hrt_fail(error, "no file matches '%s'", pattern);
    if (failed) return hrt_fail(error, "cannot list '%s': %s", pattern, strerror(errno));
    const bool added = add_matching(data, pattern, &found, request, error);
    globfree(&found);
    return added;
}

// Adds a part; one that is too short for a sequence adds nothing.
static bool add_part(struct hrt_data_split *split, struct hrt_data_part part, int64_t positions,
                     struct hrt_error *error) {
    if (starts_of(&part, positions) < 1) return true;
    struct hrt_data_part *grown =
        realloc(split->part, ((size_t)split->parts + 1) * sizeof *split->part);
    if (!grown) return hrt_fail(error, "out of memory");
    split->part = grown;
    split->part[split->parts++] = part;
    split->tokens += part.tokens;
    split->starts += starts_of(&part, positions);
    split->windows += windows_of(&part, positions);
    return true;
}

static bool add_train(struct hrt_data *data, struct hrt_error *error) {
    for (int i = 0; i < data->files; i++) {
        const int64_t tokens = data->file[i].tokens;
        struct hrt_data_part validation =
            end_of(data, i, (int64_t)(data->held_out * (double)tokens));
        if (starts_of(&validation, data->positions) < 1) validation.tokens = 0;
        const struct hrt_data_part train = {i, 0, tokens - validation.tokens, validation.packed};
        if (!add_part(&data->train, train, data->positions, error)) return false;
        if (data->validation_cut &&
            !add_part(&data->validation, validation, data->positions, error))
            return false;
    }
    return true;
}

// Adds the files of a text, PATH or PATH=SHARE, to a source of their own, or to the one of all.
static bool add_source(struct hrt_data *data, const char *text,
                       const struct hrt_data_request *request, struct hrt_error *error) {
    char path[PATH_MAX];
    double share;
    const int before = data->files;
    if (!hrt_data_share_read(text, path, &share, error)) return false;
    if (data->sources && (share > 0) != (data->source[0].share > 0))
        return hrt_fail_usage(error, "data.train: of '%s' and '%s' only one has a share",
                              request->train[0], text);
    if (!add_files(data, path, request, error)) return false;
    if (share > 0 || data->sources == 0) {
        if (data->sources == HRT_SOURCES_MAX)
            return hrt_fail_usage(error, "data.train: more than %d sources", HRT_SOURCES_MAX);
        data->source[data->sources++] = (struct hrt_data_source){
            .name = text, .name_bytes = (int)strlen(path), .share = share, .file = before};
    }
    data->source[data->sources - 1].files += data->files - before;
    return true;
}

// Gives a source its parts, from `part` on. They are in the order of the files. Returns the part behind them.
static struct hrt_data_part *take_parts(struct hrt_data_source *source, struct hrt_data_part *part,
                                        const struct hrt_data_part *end, int64_t positions) {
    struct hrt_data_split *split = &source->split;
    for (split->part = part; part < end && part->file < source->file + source->files; part++) {
        split->parts++;
        split->tokens += part->tokens;
        split->starts += starts_of(part, positions);
        split->windows += windows_of(part, positions);
    }
    return part;
}

// Whether the sequences of a ring all begin alike.
static bool check_alike(const struct hrt_data *data, const struct hrt_data_split *split,
                        struct hrt_error *error) {
    for (int i = 1; i < split->parts; i++) {
        if (split->part[i].packed != split->part->packed)
            return hrt_fail(error,
                            "'%s' and '%s' are read as one, and only one of them has whole "
                            "documents in its sequences",
                            data->file[split->part->file].path,
                            data->file[split->part[i].file].path);
    }
    return true;
}

static bool share_parts(struct hrt_data *data, struct hrt_error *error) {
    double share[HRT_SOURCES_MAX];
    struct hrt_data_part *part = data->train.part;
    const struct hrt_data_part *end = part ? part + data->train.parts : NULL; // NULL + 0 is no sum.
    for (int i = 0; i < data->sources; i++) {
        struct hrt_data_source *source = &data->source[i];
        part = take_parts(source, part, end, data->positions);
        if (!check_alike(data, &source->split, error)) return false;
        if (source->share > 0 && source->split.parts == 0)
            return hrt_fail(error, "nothing of '%.*s' is left to train on", source->name_bytes,
                            source->name);
        share[i] = source->share > 0 ? source->share : 1;
    }
    data->mixture = hrt_data_mixture(share, data->sources);
    return true;
}

static bool add_validation(struct hrt_data *data, const struct hrt_data_request *request,
                           struct hrt_error *error) {
    const int first = data->files;
    for (int i = 0; i < request->validations; i++) {
        const int before = data->files;
        if (!add_files(data, request->validation[i], request, error)) return false;
        if (request->validations > HRT_SOURCES_MAX) continue;
        const char *name = request->validation[i];
        data->val_source[data->val_sources++] =
            (struct hrt_data_source){.name = name,
                                     .name_bytes = (int)strlen(name),
                                     .file = before,
                                     .files = data->files - before};
    }
    for (int i = first; i < data->files; i++) {
        const struct hrt_data_part part = end_of(data, i, data->file[i].tokens);
        if (!add_part(&data->validation, part, data->positions, error)) return false;
    }
    return true;
}

// Gives the sources of validation data their parts.
static void share_validation(struct hrt_data *data) {
    struct hrt_data_part *part = data->validation.part;
    const struct hrt_data_part *end = part ? part + data->validation.parts : NULL;
    int sources = 0;
    int64_t window = 0;
    if (data->validation.parts == 0) {
        data->val_sources = 0;
        return;
    }
    if (data->validation_cut && data->sources) {
        data->val_sources = data->sources;
        for (int i = 0; i < data->sources; i++) {
            data->val_source[i] = data->source[i];
            data->val_source[i].split = (struct hrt_data_split){0};
        }
    } else if (data->val_sources == 0) { // There are too many patterns.
        data->val_source[data->val_sources++] = (struct hrt_data_source){.files = data->files};
    }
    for (int i = 0; i < data->val_sources; i++) {
        struct hrt_data_source *source = &data->val_source[i];
        part = take_parts(source, part, end, data->positions);
        source->window = window;
        window += source->split.windows;
        if (source->split.windows > 0) data->val_source[sources++] = *source;
    }
    data->val_sources = sources;
}

static bool open_all(struct hrt_data *data, const struct hrt_data_request *request,
                     struct hrt_error *error) {
    const size_t sequence = ((size_t)data->positions + 1) * sizeof(int32_t);
    data->raw = malloc(sequence);
    data->token = malloc(sequence);
    data->weight = malloc(sequence);
    data->input = malloc(sequence);
    data->target = malloc(sequence);
    if (!data->raw || !data->token || !data->weight || !data->input || !data->target)
        return hrt_fail(error, "out of memory");
    for (int i = 0; i < request->trains; i++) {
        if (!add_source(data, request->train[i], request, error)) return false;
    }
    data->validation_cut = request->validations == 0;
    data->held_out = request->held_out > 0  ? request->held_out
                     : data->validation_cut ? share_held_out
                                            : 0;
    if (!add_train(data, error) || !share_parts(data, error) ||
        !add_validation(data, request, error))
        return false;
    share_validation(data);
    return hrt_data_teachers_open(&data->teachers, request->teacher, request->teachers, data->file,
                                  data->files, data->vocabulary, error);
}

bool hrt_data_open(struct hrt_data *data, const struct hrt_data_request *request,
                   struct hrt_error *error) {
    *data = (struct hrt_data){.group = request->pairs ? 2 : 1,
                              .said = request->said,
                              .positions = request->positions,
                              .vocabulary = request->vocabulary,
                              .order = request->order};
    data->mask = (struct hrt_mask){request->mask_rate, data->positions, data->vocabulary};
    data->targets = request->mask_rate > 0 ? hrt_data_mask_targets(&data->mask) : data->positions;
    if (request->mask_rate > 0 && data->vocabulary < 2)
        return hrt_fail(error, "a masked objective needs a mask token besides the others, and the "
                               "vocabulary has one entry");
    bool opened = open_all(data, request, error);
    if (opened && data->weighted && request->mask_rate > 0)
        opened =
            hrt_fail(error, "a masked objective chooses its targets, and the data has weights");
    if (opened && request->teachers > 0 && data->teachers.entries < data->said)
        opened =
            hrt_fail(error, "'%s' has %" PRId64 " entries for a token, and %" PRId64 " are wanted",
                     data->teachers.file->path, data->teachers.entries, data->said);
    if (opened && data->weighted && request->teachers > 0 && data->said == 0)
        opened = hrt_fail(error, "a teacher with data that has weights is not yet supported");
    if (opened && data->fractions && (request->pairs || data->said > 0))
        opened =
            hrt_fail(error, "weights between 0 and 1 are of losses of tokens: pairs have none, "
                            "and advantages of rollouts take any factor");
    if (!opened) hrt_data_close(data);
    return opened;
}

int64_t hrt_data_epoch(const struct hrt_data *data) {
    return data->train.tokens / data->positions;
}

void hrt_data_count(const struct hrt_data *data, uint64_t seed, uint64_t sequences,
                    int64_t *tokens) {
    uint64_t count[HRT_SOURCES_MAX];
    hrt_data_mixture_count(&data->mixture, seed, sequences / (uint64_t)data->group, count);
    for (int i = 0; i < data->sources; i++)
        tokens[i] = (int64_t)count[i] * data->group * data->positions;
}

// Where a sequence lies: from token `at` of a ring on, which the parts of a split form.
struct place {
    const struct hrt_data_split *split;
    int64_t at;
};

// Where what is read together may begin in a ring, in tokens.
static int64_t unit_of(const struct hrt_data *data, const struct hrt_data_split *split) {
    return split->part->packed ? data->positions * data->group : 1;
}

// The place that is drawn with replacement, inside of a part.
static int64_t draw_at_random(const struct hrt_data *data, const struct hrt_data_split *split,
                              uint64_t seed, uint64_t number) {
    const struct hrt_stream stream = hrt_stream_make(seed, "data", "");
    const int64_t unit = unit_of(data, split), starts = split->starts / data->group;
    int64_t start = (int64_t)hrt_draw_below(stream, number, (uint64_t)starts), before = 0;
    const struct hrt_data_part *part = split->part;
    for (; start >= starts_of(part, data->positions) / data->group; before += part++->tokens)
        start -= starts_of(part, data->positions) / data->group;
    return before + start * unit;
}

static struct place place_of_draw(const struct hrt_data *data, uint64_t seed, uint64_t sequence) {
    assert(data->train.starts > 0);
    const uint64_t group = (uint64_t)data->group;
    const struct hrt_turn turn = hrt_data_mixture_turn(&data->mixture, seed, sequence / group);
    const struct hrt_data_split *split = &data->source[turn.source].split;
    const int64_t at =
        data->order == HRT_DATA_ORDER_random
            ? draw_at_random(data, split, seed, turn.sequence)
            : hrt_data_order_place(data->order, seed, split->tokens, data->positions * data->group,
                                   unit_of(data, split), turn.sequence);
    return (struct place){split, at + (int64_t)(sequence % group) * data->positions};
}

static struct place place_of_window(const struct hrt_data *data, int64_t window) {
    assert(window >= 0 && window < data->validation.windows);
    const struct hrt_data_part *part = data->validation.part;
    int64_t of_part = window, before = 0;
    for (; of_part >= windows_of(part, data->positions); before += part++->tokens)
        of_part -= windows_of(part, data->positions);
    return (struct place){&data->validation, before + of_part * data->positions};
}

// Tokens of a ring that lie behind each other in a file.
struct piece {
    int file;
    int64_t first, count;
    bool begins; // The token before it in the ring is another part's.
    bool ends;   // The next token is.
    bool packed;
};

// The first of the `most` tokens from `at` on, that are in one part.
static struct piece piece_at(const struct hrt_data_split *split, int64_t at, int64_t most) {
    const struct hrt_data_part *part = split->part;
    at %= split->tokens;
    for (; at >= part->tokens; part++) at -= part->tokens;
    const int64_t left = part->tokens - at;
    return (struct piece){.file = part->file,
                          .first = part->first + at,
                          .count = left < most ? left : most,
                          .begins = at == 0,
                          .ends = left <= most,
                          .packed = part->packed};
}

// The weights of the T + 1 tokens of a sequence, into data->weight. The last token of a packed part has no target.
static bool read_weights(const struct hrt_data *data, struct place place, struct hrt_error *error) {
    const int64_t positions = data->positions;
    for (int64_t done = 0; done <= positions;) {
        const struct piece piece = piece_at(place.split, place.at + done, positions + 1 - done);
        const struct hrt_data_file *file = &data->file[piece.file];
        if (!hrt_data_weights_read(&file->weights, file->path, piece.first, piece.count,
                                   data->weight + done, error))
            return false;
        if (piece.packed && piece.begins) data->weight[done] = 0;
        done += piece.count;
    }
    return true;
}

// Adds the weights of a sequence's targets, which are multiples of 2^-24: below 2^29 of them the sum is exact.
static bool count_targets(const struct hrt_data *data, struct place place, double *targets,
                          struct hrt_error *error) {
    if (!read_weights(data, place, error)) return false;
    for (int64_t t = 1; t <= data->positions; t++)
        *targets += (double)hrt_data_half_value(data->weight[t]);
    return true;
}

static bool weights_of(const struct hrt_data *data, struct place place, float *weights,
                       struct hrt_error *error) {
    if (!read_weights(data, place, error)) return false;
    for (int64_t t = 0; t < data->positions; t++)
        weights[t] = hrt_data_half_value(data->weight[t + 1]);
    return true;
}

bool hrt_data_draw_weights(const struct hrt_data *data, uint64_t seed, uint64_t sequence,
                           float *weights, struct hrt_error *error) {
    return weights_of(data, place_of_draw(data, seed, sequence), weights, error);
}

bool hrt_data_window_weights(const struct hrt_data *data, int64_t window, float *weights,
                             struct hrt_error *error) {
    return weights_of(data, place_of_window(data, window), weights, error);
}

static bool read_sequence(const struct hrt_data *data, struct place place, int32_t *ids,
                          int32_t *targets, struct hrt_error *error) {
    const int64_t positions = data->positions;
    for (int64_t done = 0; done <= positions;) {
        const struct piece piece = piece_at(place.split, place.at + done, positions + 1 - done);
        if (!hrt_data_file_read(&data->file[piece.file], piece.first, piece.count, data->vocabulary,
                                data->raw, data->token + done, error))
            return false;
        done += piece.count;
    }
    memcpy(ids, data->token, (size_t)positions * sizeof *ids);
    memcpy(targets, data->token + 1, (size_t)positions * sizeof *targets);
    if (!data->weighted) return true;
    if (!read_weights(data, place, error)) return false;
    for (int64_t t = 0; t < positions; t++) {
        if (!data->weight[t + 1]) targets[t] = -1;
    }
    return true;
}

bool hrt_data_draw(const struct hrt_data *data, uint64_t seed, uint64_t sequence, int32_t *ids,
                   int32_t *targets, struct hrt_error *error) {
    if (!read_sequence(data, place_of_draw(data, seed, sequence), ids, targets, error))
        return false;
    if (data->mask.rate > 0)
        hrt_data_mask_sequence(&data->mask, hrt_stream_make(seed, "mask", ""), sequence, ids,
                               targets);
    return true;
}

bool hrt_data_window(const struct hrt_data *data, int64_t window, int32_t *ids, int32_t *targets,
                     struct hrt_error *error) {
    if (!read_sequence(data, place_of_window(data, window), ids, targets, error)) return false;
    if (data->mask.rate > 0) // One seed: losses of one validation set compare.
        hrt_data_mask_sequence(&data->mask, hrt_stream_make(0, "mask", "validation"),
                               (uint64_t)window, ids, targets);
    return true;
}

int64_t hrt_data_val_windows(const struct hrt_data *data, int64_t sequences, int64_t *windows) {
    const bool shares = data->val_sources > 0 && data->val_source[0].share > 0;
    double weights = 0;
    int64_t sum = 0;
    for (int i = 0; i < data->val_sources; i++)
        weights += shares ? data->val_source[i].share : (double)data->val_source[i].split.windows;
    for (int i = 0; i < data->val_sources; i++) {
        const int64_t all = data->val_source[i].split.windows;
        const double share = shares ? data->val_source[i].share : (double)all;
        const int64_t wanted =
            llround((double)(sequences / data->group) * share / weights) * data->group;
        windows[i] = wanted < data->group ? data->group : wanted;
        if (sequences == 0 || windows[i] > all) windows[i] = all;
        sum += windows[i];
    }
    return sum;
}

// Whether the targets of sequences have to be counted, one by one.
static bool is_counted(const struct hrt_data *data) {
    return data->weighted && data->group == 1;
}

static double without_weights(const struct hrt_data *data, int64_t sequences) {
    if (data->group > 1) return (double)(sequences / data->group);
    return data->weighted ? 0 : (double)(sequences * data->targets);
}

bool hrt_data_draw_targets(const struct hrt_data *data, uint64_t seed, uint64_t first,
                           int64_t count, double *targets, struct hrt_error *error) {
    *targets = without_weights(data, count);
    for (int64_t i = 0; is_counted(data) && i < count; i++) {
        if (!count_targets(data, place_of_draw(data, seed, first + (uint64_t)i), targets, error))
            return false;
    }
    return true;
}

bool hrt_data_window_targets(const struct hrt_data *data, int64_t first, int64_t count,
                             double *targets, struct hrt_error *error) {
    *targets = without_weights(data, count);
    for (int64_t i = 0; is_counted(data) && i < count; i++) {
        if (!count_targets(data, place_of_window(data, first + i), targets, error)) return false;
    }
    return true;
}

bool hrt_data_tail(const struct hrt_data *data, int32_t *ids, struct hrt_error *error) {
    assert(data->validation.parts > 0);
    const struct hrt_data_part *part = &data->validation.part[data->validation.parts - 1];
    return hrt_data_file_read(&data->file[part->file], part->first + part->tokens - data->positions,
                              data->positions, data->vocabulary, data->raw, ids, error);
}

// Whether a target has the entries that its loss needs.
static bool has_said(const struct hrt_data *data, int32_t target, const int32_t *ids,
                     const float *log_probs) {
    int64_t found = 0;
    for (int64_t k = 0; k < data->teachers.entries; k++) {
        const bool there = ids[k] == target && isfinite(log_probs[k]);
        if (data->said > 1 && k < data->said && !there) return false;
        found += there;
    }
    return found >= data->said;
}

// Without the entries of each target, losses of a policy would be no numbers.
static bool check_said(const struct hrt_data *data, struct place place, const int32_t *ids,
                       const float *log_probs, struct hrt_error *error) {
    const int64_t entries = data->teachers.entries;
    if (data->said == 0) return true;
    if (!read_sequence(data, place, data->input, data->target, error)) return false;
    for (int64_t t = 0; t < data->positions; t++) {
        if (data->target[t] < 0 ||
            has_said(data, data->target[t], ids + t * entries, log_probs + t * entries))
            continue;
        const struct piece piece = piece_at(place.split, place.at + t, 1);
        return hrt_fail(error,
                        "'%s' lacks entries of token %" PRId64 " of '%s': %" PRId64
                        " of its id are wanted in the row before",
                        data->teachers.file[data->teachers.of[piece.file]].path, piece.first + 1,
                        data->file[piece.file].path, data->said);
    }
    return true;
}

// The last token of a part teaches nothing where another part's follows: its teacher has not said that one.
static void blank_last(const struct hrt_teachers *teachers, float *log_probs, int64_t count) {
    for (int64_t i = 0; i < teachers->entries; i++)
        log_probs[(count - 1) * teachers->entries + i] = -INFINITY;
}

static bool read_teacher(const struct hrt_data *data, struct place place, int32_t *ids,
                         float *log_probs, struct hrt_error *error) {
    const struct hrt_teachers *teachers = &data->teachers;
    assert(teachers->entries > 0);
    for (int64_t done = 0; done < data->positions;) {
        const struct piece piece = piece_at(place.split, place.at + done, data->positions - done);
        const int64_t entry = done * teachers->entries;
        if (!hrt_data_teacher_file_read(&teachers->file[teachers->of[piece.file]], piece.first,
                                        piece.count, ids + entry, log_probs + entry, error))
            return false;
        if (piece.ends) blank_last(teachers, log_probs + entry, piece.count);
        done += piece.count;
    }
    return check_said(data, place, ids, log_probs, error);
}

bool hrt_data_draw_teacher(const struct hrt_data *data, uint64_t seed, uint64_t sequence,
                           int32_t *ids, float *log_probs, struct hrt_error *error) {
    return read_teacher(data, place_of_draw(data, seed, sequence), ids, log_probs, error);
}

bool hrt_data_window_teacher(const struct hrt_data *data, int64_t window, int32_t *ids,
                             float *log_probs, struct hrt_error *error) {
    return read_teacher(data, place_of_window(data, window), ids, log_probs, error);
}

void hrt_data_close(struct hrt_data *data) {
    for (int i = 0; i < data->files; i++) hrt_data_file_close(&data->file[i]);
    hrt_data_teachers_close(&data->teachers);
    free(data->file);
    free(data->train.part);
    free(data->validation.part);
    free(data->raw);
    free(data->token);
    free(data->weight);
    free(data->input);
    free(data->target);
    *data = (struct hrt_data){0};
}
