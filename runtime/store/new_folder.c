// From NAME.hecate-partial to NAME.
#include "runtime/store/new_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "files/files.h"

static const char partial[] = ".hecate-partial";

static bool fail_at(const struct hrt_new_folder *folder, const char *what) {
    return hrt_fail(folder->error, "cannot %s '%s': %s", what, folder->to, strerror(errno));
}

bool hrt_store_new_folder_name(struct hrt_new_folder *folder, const char *to,
                               struct hrt_error *error) {
    size_t length = strlen(to);
    struct stat about;
    folder->to = to;
    folder->error = error;
    while (length > 1 && to[length - 1] == '/') length--;
    if (lstat(to, &about) == 0) return hrt_fail(error, "'%s' is there already", to);
    if (length + sizeof partial > PATH_MAX)
        return hrt_fail(error, "'%.200s...' is too long for a folder", to);
    snprintf(folder->path, sizeof folder->path, "%.*s%s", (int)length, to, partial);
    return true;
}

bool hrt_store_new_folder_begin(struct hrt_new_folder *folder) {
    if (hf_remove_folder(folder->path) && mkdir(folder->path, 0777) == 0) return true;
    return fail_at(folder, "make");
}

static bool sync_parent(const char *path) {
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (!slash) return hf_sync_folder(".");
    slash[slash == parent] = '\0';
    return hf_sync_folder(parent);
}

bool hrt_store_new_folder_end(struct hrt_new_folder *folder, bool written) {
    char to[PATH_MAX];
    snprintf(to, sizeof to, "%.*s", (int)(strlen(folder->path) - strlen(partial)), folder->path);
    if (written &&
        (!hf_sync_folder(folder->path) || rename(folder->path, to) != 0 || !sync_parent(to)))
        written = fail_at(folder, "write");
    if (!written) hf_remove_folder(folder->path);
    return written;
}
