// Files that hecatec writes.
#define _GNU_SOURCE // FTW_PHYS
#include "codegen/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/base/status.h"
#include "files/files.h"

// Read by the signal handler: an entry is there when its first byte is.
enum { TEMPORARIES_MAX = 24, PATH_BYTES = 4096 };
static char temporary[TEMPORARIES_MAX][PATH_BYTES];

// The program that is run: its group, the folder for what it leaves behind, the signal that came meanwhile, and
// whether it has taken longer than it may.
enum { PATIENCE_SECONDS = 5 };
static volatile sig_atomic_t child_group, ending, late;
static char child_folder[PATH_BYTES];
static sigset_t unheld; // The signals that were blocked before a program was begun.

static const int guarded[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
enum { GUARDED = sizeof guarded / sizeof *guarded };

static void remove_all(void) {
    for (int i = 0; i < TEMPORARIES_MAX; i++) {
        if (temporary[i][0]) unlink(temporary[i]);
    }
}

static void end_by(int number) {
    remove_all();
    signal(number, SIG_DFL);
    raise(number);
}

// While a program runs, hecatec waits for its end: only then can nobody make another file. The first signal asks
// it to end, a second one, or the alarm, kills it. An alarm without a signal says that the program's time is over.
static void on_signal(int number) {
    const bool alarmed = number == SIGALRM;
    if (child_group <= 0) {
        if (!alarmed) end_by(number);
        return;
    }
    kill(-child_group, ending || late ? SIGKILL : SIGTERM);
    if (!ending && alarmed) late = 1;
    if (!ending && !alarmed) ending = number;
    alarm(PATIENCE_SECONDS);
}

void hec_output_guard(void) {
    atexit(remove_all);
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is complained of.
    for (int i = 0; i < GUARDED; i++) {
        struct sigaction action = {.sa_handler = on_signal}, old;
        sigaction(guarded[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) sigaction(guarded[i], &action, NULL); // As nohup wants.
    }
}

static bool complain(const char *path) {
    return hec_fail("cannot write '%s': %s", path, strerror(errno));
}

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

const char *hec_output_child_begin(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &unheld);
    const char *above = temporary_folder();
    const int length = snprintf(child_folder, sizeof child_folder, "%s/hecatec-XXXXXX", above);
    errno = ENAMETOOLONG;
    if (length < (int)sizeof child_folder && mkdtemp(child_folder)) return child_folder;
    sigprocmask(SIG_SETMASK, &unheld, NULL);
    complain(above);
    return NULL;
}

void hec_output_child(pid_t child, unsigned seconds) {
    child_group = (sig_atomic_t)child;
    for (int i = 0; i < GUARDED && child == 0; i++) {
        struct sigaction action;
        sigaction(guarded[i], NULL, &action);
        if (action.sa_handler == on_signal) signal(guarded[i], SIG_DFL);
    }
    if (child > 0) {
        signal(SIGALRM, on_signal);
        prctl(PR_SET_CHILD_SUBREAPER,
              1); // Processes that the program leaves become ours to wait for.
        alarm(seconds);
    }
    sigprocmask(SIG_SETMASK, &unheld, NULL);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    remove(path);
    return 0;
}

bool hec_output_child_end(void) {
    if (ending || late) {
        while (waitpid(-(pid_t)child_group, NULL, 0) > 0 || errno == EINTR) continue;
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &unheld);
    child_group = 0;
    alarm(0);
    nftw(child_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    sigprocmask(SIG_SETMASK, &unheld, NULL);
    if (ending) end_by(ending);
    const bool in_time = !late;
    late = 0;
    return in_time;
}

static bool remember(const char *path) {
    const size_t bytes = strlen(path) + 1;
    int at = 0;
    while (at < TEMPORARIES_MAX && temporary[at][0]) at++;
    if (at == TEMPORARIES_MAX || bytes < 2 || bytes > PATH_BYTES) return false;
    memcpy(temporary[at] + 1, path + 1, bytes - 1); // The first byte last: then the rest is there.
    temporary[at][0] = path[0];
    return true;
}

static void forget(const char *path) {
    for (int i = 0; i < TEMPORARIES_MAX; i++) {
        if (strcmp(temporary[i], path) == 0) temporary[i][0] = '\0';
    }
}

static struct hf_files files; // The files of this compilation.

bool hec_output_note(bool written, const char *role, const char *path) {
    char why[HF_WHY];
    if (!path || strcmp(path, "-") == 0) return true;
    if (hf_files_add(&files, written ? HF_WRITTEN : HF_READ, role, path, why)) return true;
    return hec_fail("%s", why);
}

// Makes a file of a new name from the template `made`, remembered unless it is `kept`. No signal comes between,
// behind which the file would stay. Returns its descriptor, or -1: errno.
static int make(char *made, int suffix, bool kept) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int file = mkstemps(made, suffix);
    if (file >= 0 && !kept && !remember(made)) {
        unlink(made);
        close(file);
        errno = ENAMETOOLONG;
        file = -1;
    }
    const int why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return file;
}

static bool is_special(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

const char *hec_output_begin(struct hec_arena *arena, const char *path) {
    if (is_special(path)) return path;
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        complain(path);
        return NULL;
    }
    char *made = hec_arena_format(arena, "%s.XXXXXX", path);
    const int file = make(made, 0, false);
    if (file < 0) {
        complain(path);
        return NULL;
    }
    close(file);
    return made;
}

bool hec_output_commit(const char *made, const char *path, mode_t mode) {
    if (strcmp(made, path) == 0) return true;
    const mode_t mask = umask(0); // Reading it is setting it.
    umask(mask);
    if (chmod(made, mode & ~mask) != 0 || rename(made, path) != 0) return complain(path);
    forget(made);
    return true;
}

static bool write_all(int file, const char *text, size_t length) {
    while (length) {
        const ssize_t written = write(file, text, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        text += written, length -= (size_t)written;
    }
    return true;
}

bool hec_output_write(struct hec_arena *arena, const char *path, const char *text, size_t length) {
    if (strcmp(path, "-") == 0) {
        return write_all(STDOUT_FILENO, text, length) || complain("standard output");
    }
    const char *made = hec_output_begin(arena, path);
    if (!made) return false;
    const int file = open(made, O_WRONLY | O_TRUNC);
    if (file < 0) return complain(path);
    const bool good = write_all(file, text, length);
    if (close(file) != 0 || !good) return complain(path);
    return hec_output_commit(made, path, 0666);
}

const char *hec_output_temporary(struct hec_arena *arena, const char *folder, const char *suffix,
                                 bool kept) {
    char *made = hec_arena_format(arena, "%s/hecatec-XXXXXX%s",
                                  folder ? folder : temporary_folder(), suffix);
    const int file = make(made, (int)strlen(suffix), kept);
    if (file < 0) {
        complain(made);
        return NULL;
    }
    close(file);
    return made;
}

void hec_output_discard(const char *path) {
    unlink(path);
    forget(path);
}
