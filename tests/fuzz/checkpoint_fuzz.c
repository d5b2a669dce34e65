// Metadata of a checkpoint: index.json, as it is and with a checksum that fits, and the history of moving experts, in
// state.json and in a rank's file of loads.
//
// Promises: files of an index lie in its folder; a history that fits names ranks that there are; counts that are taken
// can be planned with; a refusal says why.
#include <inttypes.h>
#include <jansson.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/history.h"
#include "runtime/experts/moves.h"
#include "runtime/store/checkpoint_part.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 2, EXPERTS = 3 };

static const struct hrt_set set = {.name = "sparse", .experts = EXPERTS, .topk = 1, .layers = 1};
static const struct hpl_movement movement = {
    .policy = "fssdp", .slots = 1, .overlap = 1, .window = 1};
static const struct hrt_program program = {
    .name = "fuzz", .sets = 1, .set = &set, .world = RANKS, .owned = true, .movement = &movement};
static const struct hpl_movement periodic = {.policy = "eplb", .slots = 1, .window = 1};
static const struct hrt_program periodic_program = {
    .name = "fuzz", .sets = 1, .set = &set, .world = RANKS, .owned = true, .movement = &periodic};

// In place of runtime/experts, which would bring the kernels along.
uint64_t hrt_experts_hash(uint64_t hash, const void *data, size_t bytes) {
    (void)data, (void)bytes;
    return hash;
}

static void write_index(const char *folder, const void *data, size_t size) {
    char path[PATH_MAX];
    struct hrt_error error;
    if (!hrt_store_part_path(path, folder, "index.json", &error)) abort();
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

static void read_index(const char *folder) {
    struct hrt_index index;
    struct hrt_error error = {0};
    if (!hrt_store_index_read(folder, &index, &error)) {
        if (!*error.text || !error.code) fuzz_broken("a refusal says why");
        return;
    }
    for (int i = 0; i < index.parts; i++) {
        if (strchr(index.part[i].name, '/') || *index.part[i].name == '.' ||
            index.part[i].bytes < 0)
            fuzz_broken("files of an index lie in its folder");
    }
    if (index.step < 1 || index.ranks < 1) fuzz_broken("an index has a step");
    hrt_store_index_free(&index);
}

// The same with the checksum of what it says.
static void read_summed(const char *folder, json_t *index) {
    char sum[16];
    json_object_del(index, "crc32");
    char *text = json_dumps(index, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) return;
    snprintf(sum, sizeof sum, "%08" PRIx32, libdeflate_crc32(0, text, strlen(text)));
    free(text);
    json_object_set_new(index, "crc32", json_string(sum));
    text = json_dumps(index, 0);
    if (text) write_index(folder, text, strlen(text));
    free(text);
    read_index(folder);
}

static const int32_t nodes[RANKS] = {0, 0};

static void read_history(const json_t *history, const struct hrt_program *program) {
    const struct hrt_comm comm = {.size = RANKS, .nodes = 1, .node_of = nodes};
    int32_t owner[EXPERTS], *owners[] = {owner};
    struct hrt_placement placement = {.program = program, .owner = owners};
    if (!hrt_experts_fssdp_fits(history, &placement, &comm)) return;
    hrt_experts_fssdp_recall_owners(history, &placement);
    for (int i = 0; i < EXPERTS; i++) {
        if (owner[i] < 0 || owner[i] >= RANKS) fuzz_broken("owners are ranks");
    }
}

static void read_counts(const void *data, size_t size) {
    struct hrt_comm comm = {.size = RANKS, .nodes = 1, .node_of = nodes};
    uint32_t window[RANKS * EXPERTS] = {0};
    struct hrt_moving_layer layer = {.window = window};
    struct hrt_moving_set moving = {.set = &set, .layer = &layer};
    struct hrt_fssdp fssdp = {
        .program = &program, .movement = &movement, .comm = &comm, .set = &moving};
    struct hrt_error error = {0};
    if (!hrt_experts_fssdp_recall_counts(&fssdp, fuzz_file(0, data, size), &error)) {
        if (!*error.text || !error.code) fuzz_broken("a refusal says why");
        return;
    }
    int64_t rows = 0;
    for (int i = 0; i < EXPERTS; i++) rows += window[i];
    if (rows > HPL_ROWS_MAX / RANKS) fuzz_broken("counts can be planned with");
    for (int i = EXPERTS; i < RANKS * EXPERTS; i++) {
        if (window[i]) fuzz_broken("counts are of one rank");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char folder[] = "/tmp/checkpoint_fuzz.XXXXXX";
    static bool made;
    if (!made && !mkdtemp(folder)) abort();
    made = true;
    write_index(folder, data, size);
    read_index(folder);
    json_t *json = json_loadb((const char *)data, size, 0, NULL);
    if (json_is_object(json)) {
        read_history(json, &program);
        read_history(json, &periodic_program);
        read_summed(folder, json);
    }
    json_decref(json);
    read_counts(data, size);
    return 0;
}
