// Which names mean one file.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

enum { LINKS_MAX = 40 };

// A file, or (name not NULL) one that would be made in this folder.
struct hf_file {
    enum hf_use use;
    const char *role;
    char *path, *name; // Owned. No path: an open descriptor, which is added before all else.
    dev_t device;
    ino_t inode;
};

// Replaces the last part of `path` by `link`, or all of it.
static bool follow(char path[PATH_MAX], const char *link) {
    char *slash = strrchr(path, '/');
    const size_t folder = *link == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
    if (folder + strlen(link) >= PATH_MAX) return errno = ENAMETOOLONG, false;
    strcpy(path + folder, link);
    return true;
}

bool hf_target(const char *path, char target[PATH_MAX]) {
    char link[PATH_MAX];
    if (strlen(path) >= PATH_MAX) return errno = ENAMETOOLONG, false;
    strcpy(target, path);
    for (int i = 0; i < LINKS_MAX; i++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) return true; // No link, or nothing there.
        link[length] = '\0';
        if (!follow(target, link)) return false;
    }
    return errno = ELOOP, false;
}

// Sets device, inode and name. False: there is nothing to compare.
static bool identify(struct hf_file *file) {
    struct stat status;
    char target[PATH_MAX];
    if (stat(file->path, &status) == 0) {
        file->device = status.st_dev;
        file->inode = status.st_ino;
        return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode);
    }
    if (!hf_target(file->path, target)) return false;
    char *slash = strrchr(target, '/');
    file->name = strdup(slash ? slash + 1 : target);
    if (slash) slash[slash == target] = '\0';
    if (stat(slash ? target : ".", &status) != 0) return false;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return file->name;
}

static bool is_same(const struct hf_file *a, const struct hf_file *b) {
    if (a->device != b->device || a->inode != b->inode || !a->name != !b->name) return false;
    return !a->name || strcmp(a->name, b->name) == 0;
}

static bool may_be_same(enum hf_use a, enum hf_use b) {
    const bool reads_a = a == HF_READ || a == HF_READ_FIRST;
    const bool reads_b = b == HF_READ || b == HF_READ_FIRST;
    return (reads_a && reads_b) || (a == HF_READ_FIRST && b == HF_REPLACED) ||
           (a == HF_REPLACED && b == HF_READ_FIRST);
}

static void release(struct hf_file *file) {
    free(file->path);
    free(file->name);
}

// Takes `file` over.
static bool add(struct hf_files *files, struct hf_file file, char why[HF_WHY]) {
    for (int i = 0; i < files->count; i++) {
        const struct hf_file *other = &files->file[i];
        if (may_be_same(file.use, other->use) || !is_same(&file, other)) continue;
        if (other->path)
            snprintf(why, HF_WHY, "%s '%s' is the same file as %s '%s'", file.role, file.path,
                     other->role, other->path);
        else
            snprintf(why, HF_WHY, "%s '%s' is the same file as %s", file.role, file.path,
                     other->role);
        release(&file);
        return false;
    }
    struct hf_file *grown = realloc(files->file, ((size_t)files->count + 1) * sizeof *files->file);
    if (!grown) {
        snprintf(why, HF_WHY, "out of memory");
        release(&file);
        return false;
    }
    files->file = grown;
    files->file[files->count++] = file;
    return true;
}

bool hf_files_add(struct hf_files *files, enum hf_use use, const char *role, const char *path,
                  char why[HF_WHY]) {
    struct hf_file file = {.use = use, .role = role, .path = strdup(path)};
    if (file.path && identify(&file)) return add(files, file, why);
    release(&file);
    return true;
}

bool hf_files_add_open(struct hf_files *files, enum hf_use use, const char *role, int descriptor,
                       char why[HF_WHY]) {
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return true;
    struct hf_file file = {
        .use = use, .role = role, .device = status.st_dev, .inode = status.st_ino};
    return add(files, file, why);
}

void hf_files_free(struct hf_files *files) {
    for (int i = 0; i < files->count; i++) release(&files->file[i]);
    free(files->file);
    *files = (struct hf_files){0};
}
