// Names, renames and removals.
#include "runtime/store/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/base/text.h"
#include "runtime/store/checkpoint_part.h"

static const char prefix[] = "step-", partial[] = ".hecate-partial", lock_name[] = ".hecate-lock";

enum { LOCK_TRIES = 50, LOCK_PAUSE_US = 100000 };

static bool fail_in(const char *what, const char *path, struct hrt_error *error) {
    return hrt_fail(error, "cannot %s '%s': %s", what, path, strerror(errno));
}

bool hrt_store_folder_of(char path[PATH_MAX], const char *dir, int64_t step,
                         struct hrt_error *error) {
    char name[64];
    snprintf(name, sizeof name, "%s%" PRId64, prefix, step);
    return hrt_store_part_path(path, dir, name, error);
}

bool hrt_store_folder_of_partial(char path[PATH_MAX], const char *dir, int64_t step,
                                 struct hrt_error *error) {
    char name[64];
    snprintf(name, sizeof name, "%s%" PRId64 "%s", prefix, step, partial);
    return hrt_store_part_path(path, dir, name, error);
}

// The step of "step-1200"; 0: it is no such name.
static int64_t step_of(const char *name) {
    const char *digits = name + strlen(prefix);
    if (strncmp(name, prefix, strlen(prefix)) != 0 || *digits < '1' || *digits > '9') return 0;
    if (digits[strspn(digits, "0123456789")] || strlen(digits) > 18) return 0;
    return strtoll(digits, NULL, 10);
}

static void remove_partial(const char *dir) {
    DIR *folder = opendir(dir);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[PATH_MAX];
        struct hrt_error ignored;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            hrt_base_ends_with(entry->d_name, partial) &&
            hrt_store_part_path(path, dir, entry->d_name, &ignored))
            hf_remove_folder(path);
    }
    closedir(folder);
}

// A run that was killed a moment ago may still be about to end. False: it is another one's.
static bool take_lock(int lock) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
        usleep(LOCK_PAUSE_US);
    }
    return false;
}

bool hrt_store_folder_open(const char *dir, int *lock, struct hrt_error *error) {
    char path[PATH_MAX];
    if (!hrt_store_part_path(path, dir, lock_name, error)) return false;
    if (!hf_make_folder(dir)) return fail_in("make", dir, error);
    *lock = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (*lock < 0) return fail_in("write", path, error);
    if (!take_lock(*lock)) {
        close(*lock);
        *lock = -1;
        return hrt_fail(error, "another run writes its checkpoints into '%s'", dir);
    }
    remove_partial(dir);
    return true;
}

static int newest_first(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left < right) - (left > right);
}

// Counts them; stores them where `step` is not NULL.
static size_t read_steps(DIR *folder, int64_t *step, size_t room) {
    size_t count = 0;
    rewinddir(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const int64_t number = step_of(entry->d_name);
        if (!number) continue;
        if (step && count < room) step[count] = number;
        count++;
    }
    return count;
}

bool hrt_store_folder_list(const char *dir, int64_t **step, size_t *steps,
                           struct hrt_error *error) {
    *step = NULL;
    *steps = 0;
    DIR *folder = opendir(dir);
    if (!folder) return errno == ENOENT || fail_in("read", dir, error);
    const size_t room = read_steps(folder, NULL, 0);
    *step = calloc(room + 1, sizeof **step);
    if (*step) {
        const size_t found = read_steps(folder, *step, room);
        *steps = found < room ? found : room;
        qsort(*step, *steps, sizeof **step, newest_first);
    }
    closedir(folder);
    return *step || hrt_fail(error, "out of memory");
}

int64_t hrt_store_folder_newest(const char *path, char *dir) {
    static const char latest[] = "/latest";
    struct hrt_error ignored;
    int64_t *step, newest = 0;
    size_t steps;
    if (snprintf(dir, PATH_MAX, "%s", path) >= PATH_MAX) return 0;
    while (dir[0] && dir[1] && hrt_base_ends_with(dir, "/")) dir[strlen(dir) - 1] = '\0';
    if (hrt_base_ends_with(dir, latest)) dir[strlen(dir) - strlen(latest)] = '\0';
    if (hrt_store_folder_list(dir, &step, &steps, &ignored) && steps > 0) newest = step[0];
    free(step);
    return newest;
}

bool hrt_store_folder_begin(const char *dir, int64_t step, struct hrt_error *error) {
    char path[PATH_MAX];
    if (!hrt_store_folder_of_partial(path, dir, step, error)) return false;
    if (!hf_remove_folder(path)) return fail_in("remove", path, error);
    return mkdir(path, 0777) == 0 || fail_in("make", path, error);
}

static bool write_latest(const char *dir, int64_t step, struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    struct hf_replacement latest;
    if (!hrt_store_part_path(path, dir, "latest", error)) return false;
    if (!hf_replace_begin(&latest, path, &why))
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    const bool written = fprintf(latest.file, "%s%" PRId64 "\n", prefix, step) > 0;
    return hf_replace_end(&latest, written, &why) ||
           hrt_fail(error, "cannot write '%s': %s", path, why);
}

// One of the same step, of which a run has resumed with an older one, goes away: both change places, where the file
// system can do that.
static bool put_in_place(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return hf_remove_folder(from);
    if (errno == EINVAL || errno == ENOSYS) hf_remove_folder(to);
    return rename(from, to) == 0;
}

bool hrt_store_folder_publish(const char *dir, int64_t step, struct hrt_error *error) {
    char from[PATH_MAX], to[PATH_MAX];
    if (!hrt_store_folder_of_partial(from, dir, step, error) ||
        !hrt_store_folder_of(to, dir, step, error))
        return false;
    if (!hf_sync_folder(from) || !put_in_place(from, to) || !hf_sync_folder(dir))
        return fail_in("write", to, error);
    return write_latest(dir, step, error);
}

void hrt_store_folder_drop(const char *dir, int64_t step) {
    char path[PATH_MAX];
    struct hrt_error ignored;
    if (hrt_store_folder_of_partial(path, dir, step, &ignored)) hf_remove_folder(path);
}

// Hidden before it is taken apart: half of one is never seen.
static bool remove_step(const char *dir, int64_t step, struct hrt_error *error) {
    char path[PATH_MAX], hidden[PATH_MAX];
    if (!hrt_store_folder_of(path, dir, step, error) ||
        !hrt_store_folder_of_partial(hidden, dir, step, error))
        return false;
    return (rename(path, hidden) == 0 && hf_remove_folder(hidden)) ||
           fail_in("remove", path, error);
}

bool hrt_store_folder_prune(const char *dir, int64_t keep, int64_t keep_every,
                            struct hrt_error *error) {
    int64_t *step;
    size_t steps;
    bool pruned = hrt_store_folder_list(dir, &step, &steps, error);
    for (size_t i = (size_t)keep; i < steps; i++) {
        if (keep_every > 0 && step[i] % keep_every == 0) continue;
        pruned = remove_step(dir, step[i], error) && pruned;
    }
    free(step);
    return pruned;
}
