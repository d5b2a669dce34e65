// Writing safetensors.
#include "runtime/params/store.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/params/tensor.h"
#include "runtime/transport/transport.h"

enum { ALIGNMENT = 64, BLOCK = 4096, LOCK_TRIES = 50, LOCK_PAUSE_US = 100000 };

struct named_tensor {
    char path[HRT_PATH_MAX];
    struct hrt_tensor tensor;
};

struct listing { // Sorted by path, as the file is.
    struct named_tensor *entry;
    size_t entries;
};

static int by_path(const void *a, const void *b) {
    const struct named_tensor *left = a, *right = b;
    return strcmp(left->path, right->path);
}

static bool list_tensors(struct listing *list, const struct hrt_program *program,
                         struct hrt_error *error) {
    size_t tensors = 0;
    for (int i = 0; i < program->params; i++)
        tensors += (size_t)hrt_param_tensors(program, &program->param[i]);
    *list = (struct listing){.entry = calloc(tensors + 1, sizeof *list->entry)};
    if (!list->entry) return hrt_fail(error, "out of memory");

    struct hrt_tensor tensor = {0};
    while (hrt_tensor_next(program, &tensor)) {
        if (tensor.param->init == HRT_INIT_ROPE) continue;
        struct named_tensor *entry = &list->entry[list->entries++];
        entry->tensor = tensor;
        hrt_tensor_path(&tensor, entry->path);
    }
    qsort(list->entry, list->entries, sizeof *list->entry, by_path);
    return true;
}

static json_t *entry_of(const struct hrt_param *param, enum hrt_precision precision,
                        int64_t *offset) {
    const int64_t begin = *offset;
    json_t *shape = json_array();
    for (int i = 0; i < param->rank; i++)
        json_array_append_new(shape, json_integer(param->shape[i]));
    *offset += hrt_param_size(param) * hrt_element_bytes(precision);
    return json_pack("{s:s s:o s:[I I]}", "dtype", precision == HRT_FP64 ? "F64" : "F32", "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)*offset);
}

// The header as text, padded with blanks so that the tensors begin at a multiple of ALIGNMENT.
// Freed by the caller; NULL: out of memory.
static char *header_text(const struct hrt_program *program, const struct listing *list) {
    json_t *header = json_object();
    json_object_set_new(header, "__metadata__",
                        json_pack("{s:s s:s s:s}", "format", "pt", "model", program->name,
                                  "hecatec", program->version));
    int64_t offset = 0;
    for (size_t i = 0; i < list->entries; i++)
        json_object_set_new(header, list->entry[i].path,
                            entry_of(list->entry[i].tensor.param, program->precision, &offset));
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (!text) return NULL;

    const size_t length = strlen(text), start = sizeof(uint64_t) + length;
    const size_t padding = (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;
    char *padded = malloc(length + padding + 1);
    if (padded) {
        memcpy(padded, text, length);
        memset(padded + length, ' ', padding);
        padded[length + padding] = '\0';
    }
    free(text);
    return padded;
}

// Sends a tensor of this rank to rank 0, or receives it there; returns where it lies then.
static const void *move_tensor(const struct hrt_placement *placement, struct hrt_comm *comm,
                               const void *params, const struct hrt_tensor *tensor, void *room) {
    const size_t element = (size_t)hrt_element_bytes(placement->program->precision);
    const size_t bytes = (size_t)tensor->param->elements * element;
    const char *own = (const char *)params + (size_t)tensor->offset * element;
    const int owner = hrt_tensor_rank(placement, tensor);
    struct hrt_step step;
    struct hrt_steps steps = {.step = &step, .room = 1};
    if (owner == 0) return own;
    if (comm->rank == 0) {
        hrt_steps_receive(&steps, owner, room, bytes, -1);
    } else if (comm->rank == owner) {
        hrt_steps_send(&steps, 0, own, bytes, -1);
    } else {
        return NULL;
    }
    hrt_join(comm, hrt_submit(comm, HRT_LANE_SAVE, &steps), "the parameters to be saved");
    return room;
}

// `at`: the tensor's first element.
static bool write_tensor(FILE *file, const struct hrt_program *program, const void *at,
                         const struct hrt_tensor *tensor) {
    const size_t bytes = (size_t)hrt_element_bytes(program->precision);
    const int64_t size = hrt_param_size(tensor->param);
    struct hrt_tensor here = *tensor;
    double block[BLOCK]; // Or floats.
    here.offset = 0;
    for (int64_t first = 0; first < size; first += BLOCK) {
        const int64_t left = size - first, count = left < BLOCK ? left : BLOCK;
        hrt_tensor_read(program, at, &here, first, count, block);
        if (fwrite(block, bytes, (size_t)count, file) != (size_t)count) return false;
    }
    return true;
}

// What is written, and by whom.
struct saving {
    const struct hrt_placement *placement;
    const struct hrt_program *program; // Of that.
    struct hrt_comm *comm;             // NULL: everything is here.
    const void *params;
    void *room; // For one tensor of another rank.
    struct listing list;
    size_t brought; // Of the list.
};

// Brings the next tensor.
static const void *bring(struct saving *saving) {
    const struct hrt_tensor *tensor = &saving->list.entry[saving->brought++].tensor;
    const size_t element = (size_t)hrt_element_bytes(saving->program->precision);
    if (saving->comm)
        return move_tensor(saving->placement, saving->comm, saving->params, tensor, saving->room);
    return (const char *)saving->params + (size_t)tensor->offset * element;
}

// Tensors of other ranks come one at a time.
static bool write_all(FILE *file, struct saving *saving, const char *header) {
    const uint64_t length = strlen(header);
    if (fwrite(&length, sizeof length, 1, file) != 1) return false;
    if (fwrite(header, 1, length, file) != length) return false;
    for (size_t i = 0; i < saving->list.entries; i++) {
        const struct hrt_tensor *tensor = &saving->list.entry[i].tensor;
        if (!write_tensor(file, saving->program, bring(saving), tensor)) return false;
    }
    return fflush(file) == 0 && fsync(fileno(file)) == 0;
}

// The name under which a file is written before it replaces `target`: one name, so that what a killed run has left
// is written over by the next.
static bool temporary_name(const char *target, char temporary[PATH_MAX]) {
    if (snprintf(temporary, PATH_MAX, "%s.hecate-partial", target) < PATH_MAX) return true;
    errno = ENAMETOOLONG;
    return false;
}

// Whether `fd` is what the name means: another run may have renamed it meanwhile.
static bool is_named(int fd, const char *path) {
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && S_ISREG(opened.st_mode) &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Opens the temporary file and locks it: so other runs keep away while this one writes; the lock ends with the
// process. Whoever has it longer than a check takes is writing. -1: errno.
static int open_locked(const char *temporary, mode_t mode) {
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    for (int i = 0; i < LOCK_TRIES; i++) {
        const int fd = open(temporary, flags, mode);
        if (fd < 0) return -1;
        const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (locked && is_named(fd, temporary)) return fd;
        close(fd);
        usleep(LOCK_PAUSE_US);
    }
    errno = EBUSY;
    return -1;
}

// Opens the temporary file of `target`, empty, with the owner and rights of the file that it will replace.
static FILE *open_temporary(const char *target, char temporary[PATH_MAX]) {
    struct stat status;
    if (!temporary_name(target, temporary)) return NULL;
    const bool replaces = stat(target, &status) == 0;
    const int fd = open_locked(temporary, replaces ? 0600 : 0666);
    if (fd < 0) return NULL;
    const int owned = replaces ? fchown(fd, status.st_uid, status.st_gid) : 0;
    (void)owned; // As far as this user may.
    const bool ready =
        ftruncate(fd, 0) == 0 && (!replaces || fchmod(fd, status.st_mode & 07777) == 0);
    FILE *file = ready ? fdopen(fd, "w") : NULL;
    if (file) return file;
    const int failure = errno;
    unlink(temporary);
    close(fd);
    errno = failure;
    return NULL;
}

static bool fail_write(const char *path, struct hrt_error *error) {
    if (errno == EBUSY)
        return hrt_fail(error, "cannot write '%s': another run is writing it", path);
    return hrt_fail(error, "cannot write '%s': %s", path, strerror(errno));
}

// What is there must be a file that may be replaced: no folder, and no device either, which a rename
// would put a file in the place of.
static bool check_target(const char *path, struct hrt_error *error) {
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) return true;
    if (!S_ISDIR(status.st_mode))
        return hrt_fail(error, "cannot write '%s': it is not a regular file", path);
    errno = EISDIR;
    return fail_write(path, error);
}

// Makes the rename durable: the directory is what records it.
static bool sync_directory(const char *path) {
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash) slash[slash == directory] = '\0';
    FILE *opened = fopen(slash ? directory : ".", "re");
    if (!opened) return false;
    const bool synced = fsync(fileno(opened)) == 0;
    fclose(opened);
    return synced;
}

// `path` may be a symbolic link: what it names is replaced.
static bool write_file(struct saving *saving, const char *header, const char *path,
                       struct hrt_error *error) {
    char temporary[PATH_MAX], target[PATH_MAX];
    if (!check_target(path, error)) return false;
    FILE *file = hf_target(path, target) ? open_temporary(target, temporary) : NULL;
    if (!file) return fail_write(path, error);
    const bool written = write_all(file, saving, header) && rename(temporary, target) == 0;
    const int failure = errno;
    if (!written) unlink(temporary);
    const bool closed = fclose(file) == 0; // Not before: the lock ends with it.
    if (!written) errno = failure;
    return (written && closed && sync_directory(target)) || fail_write(path, error);
}

// The largest tensor, stored.
static size_t room_bytes(const struct hrt_program *program) {
    int64_t most = 1;
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].elements > most) most = program->param[i].elements;
    }
    return (size_t)(most * hrt_element_bytes(program->precision));
}

static bool save(struct saving *saving, const char *path, struct hrt_error *error) {
    if (!list_tensors(&saving->list, saving->program, error)) return false;
    bool saved = true;
    if (saving->comm && saving->comm->rank > 0) {
        while (saving->brought < saving->list.entries) bring(saving);
    } else {
        if (saving->comm) saving->room = malloc(room_bytes(saving->program));
        char *header = header_text(saving->program, &saving->list);
        saved = header && (!saving->comm || saving->room) ? write_file(saving, header, path, error)
                                                          : hrt_fail(error, "out of memory");
        // A file that cannot be written keeps no other rank waiting.
        while (saving->room && saving->brought < saving->list.entries) bring(saving);
        free(header);
        free(saving->room);
    }
    free(saving->list.entry);
    return saved;
}

bool hrt_store_save(const struct hrt_placement *placement, const void *params, const char *path,
                    struct hrt_error *error) {
    struct saving saving = {
        .placement = placement, .program = placement->program, .params = params};
    return save(&saving, path, error);
}

bool hrt_store_gather(const struct hrt_placement *placement, const void *params,
                      struct hrt_comm *comm, const char *path, struct hrt_error *error) {
    struct saving saving = {
        .placement = placement, .program = placement->program, .params = params};
    if (placement->owner) saving.comm = comm;
    if (!placement->owner && comm->rank > 0) return true; // Rank 0 has everything.
    return save(&saving, path, error);
}

bool hrt_store_check_writable(const char *path, struct hrt_error *error) {
    char temporary[PATH_MAX], target[PATH_MAX];
    if (!check_target(path, error)) return false;
    sigset_t all, before; // Behind a signal in between, the empty file would stay.
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    FILE *file = hf_target(path, target) ? open_temporary(target, temporary) : NULL;
    const int why = errno;
    if (file) unlink(temporary);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    if (!file) return fail_write(path, error);
    fclose(file);
    return true;
}
