// mix: one file of blocks from several, as often as their weights say. The next block is from the file that lags most
// behind its share, the first of equals: so any begin of the mixture has nearly these shares, and nothing is drawn.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/file.h"
#include "tools/prepare/prepare.h"

enum { SOURCES_MOST = 256 };

struct part {
    char *path; // Owned.
    double weight;
    struct hrt_data_file file;
    bool opened;
    int64_t next, given; // Where the next block begins; tokens that were taken.
};

struct mixture {
    struct part part[SOURCES_MOST];
    int parts;
    double weights; // The sum of all.
    int64_t block;
    void *raw;        // [4 * block]
    int32_t *id;      // [block]
    uint16_t *weight; // [block]
};

static bool open_part(struct mixture *mixture, const char *argument, struct hrt_error *error) {
    struct part *part = &mixture->part[mixture->parts];
    const char *equal = strrchr(argument, '=');
    char *end = NULL;
    if (mixture->parts == SOURCES_MOST)
        return hrt_fail_usage(error, "more than %d files", SOURCES_MOST);
    part->weight = equal ? strtod(equal + 1, &end) : 0;
    if (!equal || end == equal + 1 || *end || !(part->weight > 0 && part->weight < 1e9))
        return hrt_fail_usage(error, "'%s': FILE=WEIGHT is wanted, with a weight above 0",
                              argument);
    part->path = strndup(argument, (size_t)(equal - argument));
    mixture->parts++;
    if (!part->path) return hrt_fail(error, "out of memory");
    part->opened =
        hrt_data_file_open(&part->file, part->path, HRT_DATA_FORMAT_llmc, INT32_MAX, error);
    if (!part->opened) return false;
    if (part->file.tokens < mixture->block)
        return hrt_fail(error, "'%s' has %" PRId64 " tokens, a block has %" PRId64 " (--block)",
                        part->path, part->file.tokens, mixture->block);
    mixture->weights += part->weight;
    return true;
}

static struct part *most_behind(struct mixture *mixture, int64_t written) {
    struct part *found = NULL;
    double most = 0;
    for (int i = 0; i < mixture->parts; i++) {
        struct part *part = &mixture->part[i];
        const double share = part->weight / mixture->weights;
        const double lag = share * (double)(written + mixture->block) - (double)part->given;
        if (!found || lag > most) found = part, most = lag;
    }
    return found;
}

static bool write_blocks(struct mixture *mixture, int64_t tokens, struct output *output,
                         struct hrt_error *error) {
    while (output->tokens < tokens) {
        struct part *part = most_behind(mixture, output->tokens);
        if (part->next + mixture->block > part->file.tokens) part->next = 0; // Again.
        if (!hrt_data_file_read(&part->file, part->next, mixture->block, INT32_MAX, mixture->raw,
                                mixture->id, error) ||
            !hrt_data_weights_read(&part->file.weights, part->path, part->next, mixture->block,
                                   mixture->weight, error) ||
            !output_add(output, mixture->id, mixture->weight, (size_t)mixture->block, error))
            return false;
        part->next += mixture->block;
        part->given += mixture->block;
    }
    return true;
}

static json_t *made_of(const struct mixture *mixture, struct hrt_error *error) {
    json_t *parts = json_array();
    for (int i = 0; i < mixture->parts; i++) {
        const struct part *part = &mixture->part[i];
        json_t *source = record_of(part->path, error);
        if (!source) {
            json_decref(parts);
            return NULL;
        }
        json_array_append_new(parts,
                              json_pack("{s:o, s:f}", "source", source, "weight", part->weight));
    }
    return json_pack("{s:o, s:I}", "mixture", parts, "block", (json_int_t)mixture->block);
}

// Whether the mixture is none of the files that it is made of.
static bool check_files(const struct mixture *mixture, const char *out, struct hrt_error *error) {
    struct hf_files files = {0};
    char why[HF_WHY];
    bool sound = true;
    for (int i = 0; sound && i < mixture->parts; i++) {
        const struct part *part = &mixture->part[i];
        sound = hf_files_add(&files, HF_READ, "a part", part->path, why);
    }
    sound = sound && hf_files_add(&files, HF_REPLACED, "--out", out, why);
    hf_files_free(&files);
    return sound || hrt_fail_usage(error, "%s", why);
}

static bool run(struct mixture *mixture, const struct options *o, struct hrt_error *error) {
    struct output output;
    int64_t vocabulary = 65536; // As wide as the widest.
    bool weighted = false;
    for (int i = 0; i < o->files; i++) {
        if (!open_part(mixture, o->file[i], error)) return false;
    }
    for (int i = 0; i < mixture->parts; i++) {
        if (mixture->part[i].file.token_bytes == 4) vocabulary = INT32_MAX;
        weighted |= mixture->part[i].file.weights.fd >= 0;
    }
    if (!check_files(mixture, o->out, error)) return false;
    mixture->raw = malloc((size_t)mixture->block * 4);
    mixture->id = malloc((size_t)mixture->block * sizeof *mixture->id);
    mixture->weight = malloc((size_t)mixture->block * sizeof *mixture->weight);
    if (!mixture->raw || !mixture->id || !mixture->weight) return hrt_fail(error, "out of memory");
    json_t *made = made_of(mixture, error);
    bool sound = made && output_begin(&output, o->out, vocabulary, weighted, 0, 0, error);
    if (sound) {
        sound = write_blocks(mixture, o->tokens, &output, error);
        sound = output_end(&output, sound, made, error);
    }
    json_decref(made);
    return sound;
}

static void print(const struct mixture *mixture) {
    for (int i = 0; i < mixture->parts; i++) {
        const struct part *part = &mixture->part[i];
        printf("%s: %" PRId64 " tokens, %.2f times the file\n", part->path, part->given,
               (double)part->given / (double)part->file.tokens);
    }
}

int mix(const struct options *o, struct hrt_error *error) {
    struct mixture *mixture = calloc(1, sizeof *mixture);
    bool done = false;
    if (!mixture)
        hrt_fail(error, "out of memory");
    else if (!o->out || !o->tokens)
        hrt_fail_usage(error, "--out=FILE and --tokens=N are wanted");
    else {
        mixture->block = o->block;
        done = run(mixture, o, error);
    }
    if (done) print(mixture);
    for (int i = 0; mixture && i < mixture->parts; i++) {
        if (mixture->part[i].opened) hrt_data_file_close(&mixture->part[i].file);
        free(mixture->part[i].path);
    }
    if (mixture) {
        free(mixture->raw);
        free(mixture->id);
        free(mixture->weight);
    }
    free(mixture);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
