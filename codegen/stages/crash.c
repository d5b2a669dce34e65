// Internal errors. The handler runs in a process that is broken: it allocates nothing, and has the IR
// that shows the fault made by a fresh process.
#include "codegen/stages/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 256, STACK_BYTES = 64 * 1024 };

static char *arguments[ARGUMENTS_MAX + 4];
static int arguments_count;
static const char *volatile now_doing = "starting";
static const char *volatile last_stage;
static char reproducer[4096];
static char to_stage[256];
static char stack[STACK_BYTES]; // The fault may be that there is no stack left.
static const char again[] = "HECATE_MAKES_REPRODUCER"; // Set for the second process.

static void say(const char *text) {
    const ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

// Runs this program up to the last good stage. Returns whether the file was made.
static bool make_reproducer(void) {
    if (!last_stage || !*reproducer || getenv(again)) return false;
    if (strlen(last_stage) + sizeof "--compile-to=" > sizeof to_stage) return false;
    const int file = mkstemps(reproducer, (int)strlen(".mlir"));
    if (file < 0) return false;
    close(file);
    strcpy(to_stage, "--compile-to=");
    strcat(to_stage, last_stage);
    static char output[] = "-o";
    int count = arguments_count;
    arguments[count++] = to_stage;
    arguments[count++] = output;
    arguments[count++] = reproducer;
    arguments[count] = NULL;
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        setenv(again, "1", 1); // It may crash, too, and shall not start a third one.
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) unlink(reproducer);
    return status == 0;
}

_Noreturn void hec_crash(void) {
    static volatile sig_atomic_t entered;
    if (entered) _exit(70);
    entered = 1;
    say("hecatec: internal error while ");
    say(now_doing);
    say("; this is a bug of hecatec, please report it\n");
    if (make_reproducer()) {
        say("  the IR that shows it is in ");
        say(reproducer);
        say(" (--compile-from=");
        say(last_stage);
        say(")\n");
    } else {
        say("  the command line and the model show it\n");
    }
    _exit(70);
}

static void on_fault(int number) {
    (void)number;
    hec_crash();
}

void hec_crash_guard(int argc, char **argv) {
    for (arguments_count = 0; arguments_count < argc && arguments_count < ARGUMENTS_MAX;) {
        // The second run must not crash on purpose, too.
        char *argument = argv[arguments_count];
        static char harmless[] = "-w";
        const bool crash = strncmp(argument, "--debug-crash", strlen("--debug-crash")) == 0;
        arguments[arguments_count++] = crash ? harmless : argument;
    }
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    static const char name[] = "/hecatec-XXXXXX.mlir";
    if (strlen(folder) + sizeof name <= sizeof reproducer) {
        strcpy(reproducer, folder);
        strcat(reproducer, name);
    }
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct sigaction action = {.sa_handler = on_fault,
                                         .sa_flags = SA_ONSTACK | SA_NODEFER};
#ifdef HECATE_SANITIZE
        if (faults[i] != SIGABRT) continue; // The sanitizers say more.
#endif
        sigaction(faults[i], &action, NULL);
    }
}

void hec_crash_progress(const char *doing, const char *stage) {
    now_doing = doing;
    last_stage = stage;
}
