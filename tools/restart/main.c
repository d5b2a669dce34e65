// hecate-run: starts a training program, and starts it again from its newest checkpoint when it fails.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/restart/progress.h"

enum { DONE = 0, BAD_COMMAND = 2, NOT_STARTED = 127, BY_SIGNAL = 128 };
enum { FAILURES = 3, FAILURES_MOST = 1000000, PAUSE_MOST = 60 };

static const char help[] =
    "usage: hecate-run [--failures N] COMMAND...\n"
    "\n"
    "Runs COMMAND, a training program or a launcher with one, such as\n"
    "  hecate-run mpirun -n 8 ./model train --data book.txt --checkpoint ck\n"
    "When it fails it is run again, and goes on from the newest checkpoint in --checkpoint:\n"
    "hecate-run adds --resume where the command has none. A command line that is refused\n"
    "(exit code 2) is not run again.\n"
    "\n"
    "  -f, --failures N    give up after N failures in a row without a newer checkpoint (3)\n"
    "  -h, --help          this text\n"
    "\n"
    "SIGTERM, SIGINT, SIGHUP and SIGUSR1 go to COMMAND; after one of the first three it is not\n"
    "run again.\n"
    "The exit code is that of the last run; of one that a signal ended 128 and its number.\n";

struct job {
    char **command; // With --resume, and NULL at its end.
    const char *checkpoints;
    long failures; // It gives up after so many.
    sigset_t watched, before;
    bool stopping;
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("hecate-run: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

// ---- the command

// The folder after --checkpoint, or NULL; whether the command resumes by itself.
static const char *find_checkpoints(char *const *command, bool *resumes) {
    static const char option[] = "--checkpoint";
    const size_t length = sizeof option - 1;
    const char *folder = NULL;
    *resumes = false;
    for (int i = 0; command[i]; i++) {
        if (strcmp(command[i], option) == 0 && command[i + 1]) folder = command[i + 1];
        if (strncmp(command[i], option, length) == 0 && command[i][length] == '=')
            folder = command[i] + length + 1;
        if (strncmp(command[i], "--resume", 8) == 0) *resumes = true;
    }
    return folder && *folder ? folder : NULL;
}

static bool prepare(struct job *job, int count, char **command) {
    bool resumes;
    job->checkpoints = find_checkpoints(command, &resumes);
    if (!job->checkpoints) {
        say("the command needs --checkpoint DIR: without it every run would begin anew");
        return false;
    }
    job->command = calloc((size_t)count + 2, sizeof *job->command);
    if (!job->command) {
        say("out of memory");
        return false;
    }
    memcpy(job->command, command, (size_t)count * sizeof *command);
    if (!resumes) job->command[count] = "--resume";
    return true;
}

// Returns what to end with; -1: go on.
static int parse(struct job *job, int argc, char **argv) {
    static const struct option known[] = {
        {"failures", required_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "+f:h", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return DONE;
        }
        if (option != 'f') return BAD_COMMAND; // getopt has said why.
        char *end;
        job->failures = strtol(optarg, &end, 10);
        if (!*optarg || *end || job->failures < 1 || job->failures > FAILURES_MOST) {
            say("--failures is '%s'; it takes 1 to %d", optarg, FAILURES_MOST);
            return BAD_COMMAND;
        }
    }
    if (optind < argc) return prepare(job, argc - optind, argv + optind) ? -1 : BAD_COMMAND;
    say("which command? (hecate-run --help)");
    return BAD_COMMAND;
}

// ---- one run

static pid_t start(const struct job *job) {
    const pid_t child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM); // Should this one be killed.
    sigprocmask(SIG_SETMASK, &job->before, NULL);
    execvp(job->command[0], job->command);
    say("cannot run '%s': %s", job->command[0], strerror(errno));
    _exit(NOT_STARTED);
}

// Forwards a signal to the command. A signal of the terminal has reached it already.
static void forward(struct job *job, const siginfo_t *info, pid_t child) {
    if (info->si_signo != SIGUSR1) job->stopping = true;
    if (child > 0 && info->si_code <= 0) kill(child, info->si_signo);
}

// Returns the command's exit code.
static int run(struct job *job) {
    const pid_t child = start(job);
    int status;
    if (child < 0) {
        say("cannot start a process: %s", strerror(errno));
        return NOT_STARTED;
    }
    while (waitpid(child, &status, WNOHANG) != child) {
        siginfo_t info;
        if (sigwaitinfo(&job->watched, &info) > 0 && info.si_signo != SIGCHLD)
            forward(job, &info, child);
    }
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

// Waits before the next run, longer after each failure; less when told to stop.
static void pause_for(struct job *job, long failures) {
    struct timespec left = {.tv_sec = failures < 6 ? 1 << failures : PAUSE_MOST};
    const time_t end = time(NULL) + left.tv_sec;
    siginfo_t info;
    while (!job->stopping && left.tv_sec > 0) {
        if (sigtimedwait(&job->watched, &info, &left) > 0 && info.si_signo != SIGCHLD)
            forward(job, &info, 0);
        left.tv_sec = end - time(NULL);
    }
}

// ---- runs, one after the other

static int keep_running(struct job *job) {
    for (long failures = 0;;) {
        const int64_t from = restart_newest(job->checkpoints);
        const int code = run(job);
        const int64_t newest = restart_newest(job->checkpoints);
        if (code == DONE || code == BAD_COMMAND || code == NOT_STARTED || job->stopping)
            return code;
        failures = newest > from ? 0 : failures + 1;
        if (failures >= job->failures) {
            say("exit code %d; gives up after %ld failures without a newer checkpoint than that of "
                "step %lld",
                code, failures, (long long)newest);
            return code;
        }
        say("exit code %d; runs it again from step %lld", code, (long long)newest);
        pause_for(job, failures);
        if (job->stopping) return code;
    }
}

int main(int argc, char **argv) {
    static const int watched[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    struct job job = {.failures = FAILURES};
    const int bad = parse(&job, argc, argv);
    if (bad >= 0) return bad;
    sigemptyset(&job.watched);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&job.watched, watched[i]);
    sigprocmask(SIG_BLOCK, &job.watched, &job.before);
    const int code = keep_running(&job);
    free(job.command);
    return code;
}
