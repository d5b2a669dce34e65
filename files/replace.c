// Replacing files: under another name first, then in one step.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

enum { LOCK_TRIES = 50, LOCK_PAUSE_US = 100000 };

// One name, so that what a killed run has left is written over by the next.
static bool temporary_name(struct hf_replacement *replacement) {
    if (snprintf(replacement->temporary, PATH_MAX, "%s.hecate-partial", replacement->target) <
        PATH_MAX)
        return true;
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
// process. A process that holds it longer than a check takes is writing. -1: errno.
static int open_locked(const char *temporary, mode_t mode) {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
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

// Opens the temporary file, empty, with the owner and rights of the file that it will replace.
static FILE *open_temporary(struct hf_replacement *replacement) {
    struct stat status;
    if (!temporary_name(replacement)) return NULL;
    const bool replaces = stat(replacement->target, &status) == 0;
    const int fd = open_locked(replacement->temporary, replaces ? 0600 : 0666);
    if (fd < 0) return NULL;
    const int owned = replaces ? fchown(fd, status.st_uid, status.st_gid) : 0;
    (void)owned; // As far as this user may.
    const bool ready =
        ftruncate(fd, 0) == 0 && (!replaces || fchmod(fd, status.st_mode & 07777) == 0);
    FILE *file = ready ? fdopen(fd, "w") : NULL;
    if (file) return file;
    const int failure = errno;
    unlink(replacement->temporary);
    close(fd);
    errno = failure;
    return NULL;
}

static bool fail(const char **why) {
    *why = errno == EBUSY ? "another run is writing it" : strerror(errno);
    return false;
}

// The target must be a file that may be replaced: no folder, and no device either, which a rename
// would put a file in the place of.
static bool check_target(const char *path, const char **why) {
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) return true;
    *why = S_ISDIR(status.st_mode) ? strerror(EISDIR) : "it is not a regular file";
    return false;
}

bool hf_replace_begin(struct hf_replacement *replacement, const char *path, const char **why) {
    *replacement = (struct hf_replacement){0};
    if (!check_target(path, why)) return false;
    if (hf_target(path, replacement->target)) replacement->file = open_temporary(replacement);
    return replacement->file || fail(why);
}

bool hf_sync_folder(const char *path) {
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool synced = fsync(fd) == 0;
    close(fd);
    return synced;
}

// The folder is what records a rename.
static bool sync_folder_of(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    return hf_sync_folder(slash ? folder : ".");
}

bool hf_replace_end(struct hf_replacement *replacement, bool written, const char **why) {
    const bool renamed = written && fflush(replacement->file) == 0 &&
                         fsync(fileno(replacement->file)) == 0 &&
                         rename(replacement->temporary, replacement->target) == 0;
    const int failure = errno;
    if (!renamed) unlink(replacement->temporary);
    const bool closed = fclose(replacement->file) == 0; // Not before: the lock ends with it.
    if (!renamed) errno = failure;
    return (renamed && closed && sync_folder_of(replacement->target)) || fail(why);
}

bool hf_can_replace(const char *path, const char **why) {
    struct hf_replacement replacement;
    sigset_t all, before; // Behind a signal in between, the empty file would stay.
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool opened = hf_replace_begin(&replacement, path, why);
    if (opened) unlink(replacement.temporary);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (opened) fclose(replacement.file);
    return opened;
}

bool hf_remove_folder(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
    return rmdir(path) == 0;
}

bool hf_make_folder(const char *path) {
    char folder[PATH_MAX];
    const size_t length = strlen(path);
    if (length >= sizeof folder) return errno = ENAMETOOLONG, false;
    memcpy(folder, path, length + 1);
    for (size_t i = 1; i < length; i++) { // Those that it lies in, from the outermost on.
        if (folder[i] != '/') continue;
        folder[i] = '\0';
        const bool made = mkdir(folder, 0777) == 0 || errno == EEXIST;
        folder[i] = '/';
        if (!made) return false;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}
