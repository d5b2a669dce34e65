// hecate-leash COMMAND...: runs a test and leaves nothing behind it. All processes of the command end when
// the command has ended, when leash is told to end, or when the process that started leash has died: CTest that is
// killed does not tell its tests, and a shell that is killed does not tell what it waits for. The command has a
// TMPDIR of its own, removed behind it: launchers of MPI that share one remove it from under each other.
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char temporary[4096];

enum { GRACE_SECONDS = 5 }; // For what ends by itself, as a launcher's daemons do.

// Ends every child. Theirs become ours then, and end in the next round. Returns how many there were.
static int end_children(void) {
    int ended = 0;
    for (;;) {
        FILE *list = fopen("/proc/thread-self/children", "r");
        int pid;
        while (list && fscanf(list, "%d", &pid) == 1) kill(pid, SIGKILL);
        if (list) fclose(list);
        const pid_t gone = waitpid(-1, NULL, 0);
        if (gone > 0) ended++;
        if (gone < 0 && errno == ECHILD) return ended;
    }
}

// Waits for a signal. Returns its number, 0 after `seconds`.
static int wait_signal(const sigset_t *set, int seconds) {
    const struct timespec limit = {.tv_sec = seconds};
    const int number = seconds > 0 ? sigtimedwait(set, NULL, &limit) : sigwaitinfo(set, NULL);
    return number > 0 ? number : 0;
}

// Takes over children that have ended. Returns whether others are left; `status` is the command's.
static bool collect(pid_t command, int *status) {
    int each;
    pid_t gone;
    while ((gone = waitpid(-1, &each, WNOHANG)) > 0) {
        if (gone == command) *status = each;
    }
    return gone == 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    remove(path); // A file that cannot be removed stays, and is no fault of the test.
    return 0;
}

static void remove_temporary(void) {
    nftw(temporary, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// Returns whether it worked.
static bool make_temporary(void) {
    const char *parent = getenv("TMPDIR");
    const int length = snprintf(temporary, sizeof temporary, "%s/hecate-test.XXXXXX",
                                parent && *parent ? parent : "/tmp");
    return length < (int)sizeof temporary && mkdtemp(temporary) &&
           setenv("TMPDIR", temporary, 1) == 0;
}

static int end_as(int number) {
    end_children();
    remove_temporary();
    return 128 + number;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &before);
    const pid_t parent = getppid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) return 1; // It died before it could be watched.

    if (!make_temporary()) return perror("hecate-leash: TMPDIR"), 1;
    const pid_t command = fork();
    if (command < 0) return perror("fork"), remove_temporary(), 1;
    if (command == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(argv[1], argv + 1);
        fprintf(stderr, "hecate-leash: %s: %s\n", argv[1], strerror(errno));
        _exit(127);
    }
    int status = -1;
    bool others = true;
    while (status < 0) {
        const int number = wait_signal(&set, 0);
        if (number && number != SIGCHLD) return end_as(number);
        others = collect(command, &status);
    }
    const time_t limit = time(NULL) + GRACE_SECONDS;
    while (others && time(NULL) < limit) {
        const int number = wait_signal(&set, 1);
        if (number && number != SIGCHLD) return end_as(number);
        others = collect(command, &status);
    }
    const int left = others ? end_children() : 0;
    if (left) fprintf(stderr, "hecate-leash: ended %d processes that %s left\n", left, argv[1]);
    remove_temporary();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
