#include "runtime/net/rendezvous.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

#define FIRST_WORD "hecate-rendezvous"

// Whether an open file is this user's and begins as one of ours does; leaves the position behind that word.
static bool is_ours(FILE *file, const char *path, struct hrt_error *error) {
    struct stat status;
    char word[sizeof FIRST_WORD] = "";
    if (fstat(fileno(file), &status) != 0 || fread(word, 1, sizeof word - 1, file) == 0 ||
        strcmp(word, FIRST_WORD) != 0)
        return hrt_fail_usage(error,
                              "'%s' is there and is no rendezvous file: HECATE_RENDEZVOUS takes "
                              "the name of a file that is not there yet",
                              path);
    if (status.st_uid != geteuid() || status.st_mode & 022)
        return hrt_fail_usage(error,
                              "the rendezvous file '%s' %s, so ranks do not trust it: name one in "
                              "a folder of your own (HECATE_RENDEZVOUS)",
                              path,
                              status.st_uid != geteuid() ? "belongs to another user"
                                                         : "can be written by other users");
    return true;
}

// Opens what is there. False: `error`. True with *file NULL: nothing is there.
static bool open_file(const char *path, FILE **file, struct hrt_error *error) {
    const char *why;
    struct stat status;
    *file = NULL;
    if (stat(path, &status) != 0 && errno == ENOENT) return true;
    errno = 0;
    *file = hf_input(path, false, &why);
    if (*file || errno == ENOENT) return true; // Rank 0 may just have removed it.
    return hrt_fail_usage(error, "cannot read the rendezvous file '%s': %s", path, why);
}

// Whether nothing that is of use would be lost.
static bool may_replace(const char *path, struct hrt_error *error) {
    FILE *file;
    if (!open_file(path, &file, error)) return false;
    const bool may = !file || is_ours(file, path, error);
    if (file) fclose(file);
    return may;
}

bool hrt_net_rendezvous_write(struct hrt_rendezvous_file *file, const char *path,
                              const struct hrt_rendezvous *what, struct hrt_error *error) {
    const char *why;
    struct stat status = {0};
    struct hf_replacement made;
    *file = (struct hrt_rendezvous_file){0};
    if (!may_replace(path, error)) return false;
    if (!hf_replace_begin(&made, path, &why))
        return hrt_fail(error, "cannot write the rendezvous file '%s': %s", path, why);
    const bool written = fchmod(fileno(made.file), 0600) == 0 && // It holds a key.
                         fprintf(made.file, FIRST_WORD " %s %llu %d %s\n", what->host, what->boot,
                                 what->port, what->key) > 0 &&
                         fstat(fileno(made.file), &status) == 0;
    if (!hf_replace_end(&made, written, &why))
        return hrt_fail(error, "cannot write the rendezvous file '%s': %s", path, why);
    memcpy(file->path, made.target, sizeof file->path);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return true;
}

void hrt_net_rendezvous_remove(const struct hrt_rendezvous_file *file) {
    struct stat status;
    if (!*file->path || lstat(file->path, &status) != 0) return;
    if (status.st_dev == file->device && status.st_ino == file->inode) unlink(file->path);
}

bool hrt_net_rendezvous_read(const char *path, struct hrt_rendezvous *what,
                             struct hrt_error *error) {
    FILE *file;
    if (!open_file(path, &file, error)) return false;
    if (!file) return hrt_fail(error, "%s: %s", path, strerror(ENOENT));
    const bool ours = is_ours(file, path, error);
    const bool read = ours && fscanf(file, " %255s %llu %d %64s", what->host, &what->boot,
                                     &what->port, what->key) == 4;
    fclose(file);
    if (!ours || read) return read;
    return hrt_fail(error, "%s is not whole", path);
}
