// Launchers' variables, and the topology file.
#include "runtime/base/world.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"

// Reads a number in [0, limit] that ends at a blank, a '-' or the end of the text.
static bool read_number(const char *text, long limit, long *number, const char **end) {
    char *stop;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *number = strtol(text, &stop, 10);
    if (end) *end = stop;
    return errno == 0 && *number <= limit && (end || *stop == '\0');
}

static bool read_variable(const char *name, int *number, struct hrt_error *error) {
    const char *text = getenv(name);
    long value;
    if (!text) return hrt_fail_usage(error, "the launcher set no %s", name);
    if (!read_number(text, INT_MAX, &value, NULL))
        return hrt_fail_usage(error, "%s is '%s', which is not a number of ranks", name, text);
    *number = (int)value;
    return true;
}

// The step of a batch script has this number (Slurm's SLURM_BATCH_SCRIPT, 0xfffffffb).
static bool in_slurm_step(void) {
    const char *step = getenv("SLURM_STEP_ID");
    return getenv("SLURM_PROCID") && step && strcmp(step, "4294967291") != 0;
}

// Sets *equal to whether the optional variable `name` (NULL: none) holds `number`.
static bool compare_variable(const char *name, int number, bool *equal, struct hrt_error *error) {
    int value;
    if (!name || !getenv(name)) return true;
    if (!read_variable(name, &value, error)) return false;
    *equal = value == number;
    return true;
}

bool hrt_base_world_find(struct hrt_world *world, struct hrt_error *error) {
    const char *rank = NULL, *size = NULL, *local = NULL;
    const char *here =
        NULL; // How many ranks are on this machine; of Slurm, how many machines there are.
    *world = (struct hrt_world){.size = 1};
    if (getenv("HECATE_RANK") || getenv("HECATE_RANKS")) {
        world->launcher = "HECATE_RANKS";
        rank = "HECATE_RANK", size = "HECATE_RANKS";
        local = getenv("HECATE_LOCAL_RANK") ? "HECATE_LOCAL_RANK" : NULL;
        world->local_rank = -1; // Ranks that have met know (hrt_net_comm_local).
        here = "HECATE_LOCAL_RANKS";
    } else if (getenv("RANK") && getenv("WORLD_SIZE") && getenv("MASTER_ADDR")) {
        world->launcher = "torchrun";
        rank = "RANK", size = "WORLD_SIZE", local = "LOCAL_RANK";
        here = "LOCAL_WORLD_SIZE";
    } else if (getenv("OMPI_COMM_WORLD_RANK")) {
        world->launcher = "mpirun";
        rank = "OMPI_COMM_WORLD_RANK", size = "OMPI_COMM_WORLD_SIZE";
        local = "OMPI_COMM_WORLD_LOCAL_RANK";
        here = "OMPI_COMM_WORLD_LOCAL_SIZE";
    } else if (in_slurm_step()) {
        world->launcher = "srun";
        rank = "SLURM_PROCID", size = "SLURM_NTASKS", local = "SLURM_LOCALID";
        here = "SLURM_STEP_NUM_NODES";
    } else {
        return true;
    }
    if (!read_variable(rank, &world->rank, error) || !read_variable(size, &world->size, error) ||
        (local && !read_variable(local, &world->local_rank, error)))
        return false;
    const bool slurm = strcmp(world->launcher, "srun") == 0;
    if (!compare_variable(here, slurm ? 1 : world->size, &world->here, error)) return false;
    if (world->rank < world->size) return true;
    return hrt_fail_usage(error, "%s is %d, but %s is %d", rank, world->rank, size, world->size);
}

const char *hrt_base_topology_path(void) {
    const char *path = getenv("HECATE_TOPOLOGY");
    return path && *path ? path : NULL;
}

struct reader {
    const char *path;
    int line, ranks;
    int32_t *node_of;
    struct hrt_error *error;
};

// Assigns the ranks of one word, "4" or "4-7", to `node`.
static bool read_ranks(const struct reader *reader, const char *word, int node) {
    long first, last;
    const char *end = word;
    bool sound = read_number(word, reader->ranks - 1, &first, &end);
    last = first;
    if (sound && *end == '-') sound = read_number(end + 1, reader->ranks - 1, &last, &end);
    if (!sound || *end || last < first)
        return hrt_fail_usage(reader->error,
                              "%s:%d: '%s' is neither a rank below %d nor a range of them",
                              reader->path, reader->line, word, reader->ranks);
    for (long rank = first; rank <= last; rank++) {
        if (reader->node_of[rank] >= 0)
            return hrt_fail_usage(reader->error, "%s:%d: rank %ld is in a node already",
                                  reader->path, reader->line, rank);
        reader->node_of[rank] = node;
    }
    return true;
}

// Reads one line: nothing, or the ranks of a node, which it counts.
static bool read_line(const struct reader *reader, char *line, int *nodes) {
    line[strcspn(line, "#")] = '\0';
    char *rest;
    char *word = strtok_r(line, " \t\r\n", &rest);
    if (!word) return true;
    for (; word; word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (!read_ranks(reader, word, *nodes)) return false;
    }
    ++*nodes;
    return true;
}

bool hrt_base_topology_read(const char *path, int ranks, int32_t *node_of, int *nodes,
                            struct hrt_error *error) {
    struct reader reader = {.path = path, .ranks = ranks, .node_of = node_of, .error = error};
    const char *why;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail_usage(error, "cannot read %s: %s", path, why);
    for (int r = 0; r < ranks; r++) node_of[r] = -1;
    *nodes = 0;
    char *line = NULL;
    size_t room = 0;
    bool sound = true;
    while (sound && getline(&line, &room, file) >= 0) {
        reader.line++;
        sound = read_line(&reader, line, nodes);
    }
    if (sound && ferror(file)) sound = hrt_fail_usage(error, "cannot read %s", path);
    for (int r = 0; r < ranks && sound; r++) {
        if (node_of[r] < 0) sound = hrt_fail_usage(error, "%s: rank %d is in no node", path, r);
    }
    free(line);
    fclose(file);
    return sound;
}
