// Facts of this rank, one after the other as name and value, and how they are compared.
#include "runtime/cli/same.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cpu/isa.h"
#include "runtime/net/transport.h"
#include "runtime/store/peft.h"
#include "runtime/train/ranks.h"

enum { PIECE = 4096, READ_MOST = 16 << 20 };

// ---- facts

struct facts {
    char *text; // "name\0value\0name\0value\0"
    size_t bytes;
    FILE *out; // Writes them.
};

static void end_text(struct facts *facts) {
    fputc('\0', facts->out);
}

static void begin_fact(struct facts *facts, const char *name) {
    fputs(name, facts->out);
    end_text(facts);
}

// `value` NULL: there is none.
static void add_fact(struct facts *facts, const char *name, const char *value) {
    begin_fact(facts, name);
    fprintf(facts->out, value ? "is '%s'" : "is missing", value);
    end_text(facts);
}

// FNV-1a over what is read of a file of `bytes` bytes, `most` of them at most. False: errno says why.
static bool sum_content(int fd, int64_t bytes, int64_t most, uint64_t *sum) {
    unsigned char piece[PIECE];
    const int64_t pieces = (bytes + PIECE - 1) / PIECE, last = bytes > PIECE ? bytes - PIECE : 0;
    const int64_t count = pieces < most / PIECE ? pieces : most / PIECE;
    *sum = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < count; i++) {
        const double at = count > 1 ? (double)last * (double)i / (double)(count - 1) : 0;
        const int64_t offset = count == pieces ? i * PIECE : (int64_t)at;
        const ssize_t got = pread(fd, piece, PIECE, offset);
        if (got < 0) return false;
        for (ssize_t k = 0; k < got; k++) *sum = (*sum ^ piece[k]) * 0x100000001b3u;
    }
    return true;
}

bool hrt_cli_content_text(char text[HRT_CONTENT_TEXT], int fd, int files) {
    struct stat status;
    uint64_t sum;
    int64_t most = READ_MOST / (files ? files : 1);
    if (most < 2 * PIECE) most = 2 * PIECE;
    const bool read = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                      sum_content(fd, status.st_size, most, &sum);
    if (read)
        snprintf(text, HRT_CONTENT_TEXT, "%" PRId64 " bytes and checksum %016" PRIx64,
                 (int64_t)status.st_size, sum);
    else
        snprintf(text, HRT_CONTENT_TEXT, "cannot be read");
    return read;
}

// Describes the content of an open file.
static void describe(struct facts *facts, int fd, int files) {
    char text[HRT_CONTENT_TEXT];
    const bool read = hrt_cli_content_text(text, fd, files);
    fprintf(facts->out, "%s%s", read ? "has " : "", text);
}

// Adds the content of a file. Its name is compared with the command line.
static void add_path(struct facts *facts, const char *name, const char *path) {
    if (!path) return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    begin_fact(facts, name);
    if (fd >= 0) {
        describe(facts, fd, 1);
    } else {
        fprintf(facts->out, "cannot be opened (%s)", strerror(errno));
    }
    end_text(facts);
    if (fd >= 0) close(fd);
}

// Adds a file, or the first file in a folder of weights.
static void add_load(struct facts *facts, const char *path) {
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "model.safetensors.index.json"};
    add_path(facts, "the file of --load", path);
    for (int i = 0; path && i < 3; i++) {
        char file[PATH_MAX];
        if (snprintf(file, sizeof file, "%s/%s", path, names[i]) < PATH_MAX)
            add_path(facts, names[i], file);
    }
}

static void add_adapter(struct facts *facts, const char *path) {
    static const char *const names[] = {HRT_PEFT_CONFIG, HRT_PEFT_WEIGHTS};
    for (int i = 0; path && i < 2; i++) {
        char file[PATH_MAX];
        if (snprintf(file, sizeof file, "%s/%s", path, names[i]) < PATH_MAX)
            add_path(facts, names[i], file);
    }
}

// Adds one of `files` that are open: its path and its content.
static void add_open_file(struct facts *facts, const char *what, int number, const char *path,
                          int fd, int files) {
    char text[64];
    snprintf(text, sizeof text, "%s %d", what, number);
    begin_fact(facts, text);
    fprintf(facts->out, "'%s' ", path);
    describe(facts, fd, files);
    end_text(facts);
}

static void add_data(struct facts *facts, const struct hrt_data *data) {
    char text[64];
    if (!data) return;
    const struct hrt_teachers *teachers = &data->teachers;
    for (int i = 0; i < teachers->files; i++)
        add_open_file(facts, "teacher's file", i + 1, teachers->file[i].path, teachers->file[i].fd,
                      teachers->files);
    snprintf(text, sizeof text, "%d", data->files);
    add_fact(facts, "the number of data files", text);
    for (int i = 0; i < data->files; i++)
        add_open_file(facts, "data file", i + 1, data->file[i].path, data->file[i].fd, data->files);
}

// Values by the names of their options.
static void add_arguments(struct facts *facts, int argc, char *const *argv) {
    char name[64];
    int number = 1;
    for (int i = 1; i <= argc; i++) {
        const char *argument = i < argc ? argv[i] : NULL, *before = argv[i - 1];
        if (argument && strncmp(argument, "--threads", 9) == 0) {
            i += argument[9] == '\0';
            continue;
        }
        const bool named =
            i > 1 && argument && strncmp(before, "--", 2) == 0 && !strchr(before, '=');
        snprintf(name, sizeof name, "argument %d", number++);
        add_fact(facts, named ? before : name, argument);
    }
}

static void add_start(struct facts *facts, const struct hrt_run *run, int argc, char *const *argv) {
    static const char *const variable[] = {"HECATE_COMM_TIMEOUT", "HECATE_COMM_PATIENCE",
                                           "HECATE_COMM_PROGRESS", "HECATE_ISA"};
    add_fact(facts, "the program", run->program->name);
    add_path(facts, "the program's file", "/proc/self/exe");
    add_arguments(facts, argc, argv);
    for (size_t i = 0; i < sizeof variable / sizeof *variable; i++)
        add_fact(facts, variable[i], getenv(variable[i]));
    add_fact(facts, "the instruction set of kernels", hk_isa_name(hk_isa()));
}

static void add_files(struct facts *facts, const struct hrt_run *run, const struct hrt_data *data) {
    const struct hrt_arguments *arguments = run->arguments;
    const char *route = arguments->route ? strchr(arguments->route, ':') : NULL;
    const bool forced = route && strncmp(arguments->route, "zipf", 4) != 0;
    add_load(facts, arguments->load);
    add_adapter(facts, arguments->adapter);
    add_path(facts, "the file of --pretend", arguments->pretend);
    add_path(facts, "the file of --route", forced ? route + 1 : NULL);
    add_data(facts, data);
}

// ---- comparing

// Gives rank 0's facts to all ranks; freed by the caller. NULL: out of memory, and the others wait.
static char *broadcast(struct hrt_comm *comm, const struct facts *own, int64_t *bytes) {
    const size_t ranks = (size_t)comm->size;
    *bytes = comm->rank == 0 ? (int64_t)own->bytes : 0;
    hrt_net_comm_all_reduce(comm, bytes, 1, HRT_INT64);
    char *all = malloc((size_t)*bytes + 1);
    size_t *count = calloc(3 * ranks, sizeof *count);
    struct hrt_steps steps = {.step = calloc(2 * ranks, sizeof(struct hrt_step)),
                              .room = 2 * comm->size};
    if (all && count && steps.step) {
        size_t *send = count, *recv = count + ranks, *offset = count + 2 * ranks;
        for (size_t r = 0; comm->rank == 0 && r < ranks; r++) send[r] = own->bytes;
        recv[0] = (size_t)*bytes;
        const struct hrt_exchange exchange = {send, offset, recv, offset};
        hrt_net_exchange_on(comm, HRT_LANE_SAVE, &steps, all, own->text, &exchange,
                            "how rank 0 was started");
    } else {
        free(all);
        all = NULL;
    }
    free(count);
    free(steps.step);
    return all;
}

// Compares with rank 0's facts, and says what the first difference is. Names are the same up to there.
static bool compare(const struct facts *own, const char *other, int64_t bytes, int rank,
                    struct hrt_error *error) {
    if ((int64_t)own->bytes == bytes && memcmp(own->text, other, (size_t)bytes) == 0) return true;
    const char *here = own->text, *there = other;
    while (here < own->text + own->bytes && there < other + bytes) {
        const char *name = here;
        here += strlen(here) + 1;
        there += strlen(there) + 1;
        if (strcmp(here, there) != 0) {
            char host[64] = "";
            gethostname(host, sizeof host - 1);
            return hrt_fail_usage(error,
                                  "rank %d (on %s) was not started as rank 0: %s %.300s, but "
                                  "%.300s on rank 0",
                                  rank, host, name, here, there);
        }
        here += strlen(here) + 1;
        there += strlen(there) + 1;
    }
    return hrt_fail_usage(error, "rank %d was not started as rank 0", rank);
}

static bool open_facts(struct facts *facts, struct hrt_error *error) {
    facts->out = open_memstream(&facts->text, &facts->bytes);
    return facts->out || hrt_fail(error, "out of memory");
}

// Closes and frees the facts. `sound`: they are there, on this rank.
static bool compare_all(struct hrt_comm *comm, struct facts *facts, bool sound,
                        struct hrt_error *error) {
    if (facts->out && fclose(facts->out) != 0) sound = hrt_fail(error, "out of memory");
    if (hrt_train_ranks_agree(comm, sound, error)) {
        int64_t bytes;
        char *other = broadcast(comm, facts, &bytes);
        if (!other) hrt_net_comm_abort(comm, HRT_EXIT_FAILED);
        sound = hrt_train_ranks_agree(comm, compare(facts, other, bytes, comm->rank, error), error);
        free(other);
    } else {
        sound = false;
    }
    free(facts->text);
    return sound;
}

bool hrt_cli_same_start(const struct hrt_run *run, int argc, char *const *argv,
                        struct hrt_error *error) {
    struct facts facts = {0};
    if (run->comm->size == 1) return true;
    const bool opened = open_facts(&facts, error);
    if (opened) add_start(&facts, run, argc, argv);
    return compare_all(run->comm, &facts, opened, error);
}

bool hrt_cli_same_files(const struct hrt_run *run, const struct hrt_data *data,
                        struct hrt_error *error) {
    struct facts facts = {0};
    if (run->comm->size == 1) return true;
    const bool opened = open_facts(&facts, error);
    if (opened) add_files(&facts, run, data);
    return compare_all(run->comm, &facts, opened, error);
}
