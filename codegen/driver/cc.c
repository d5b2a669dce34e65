// The C compiler that turns emitted C into a program: its arguments, and running it without a shell.
#include "codegen/driver/cc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/driver/output.h"

const char *hec_prefix(struct hec_arena *arena) {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return NULL;
    path[length] = '\0';
    for (int up = 0; up < 2; up++) { // PREFIX/bin/hecatec -> PREFIX
        char *slash = strrchr(path, '/');
        if (!slash) return NULL;
        *slash = '\0';
    }
    return hec_arena_copy(arena, path, strlen(path));
}

struct command {
    struct hec_arena *arena;
    const char *below_mpicc; // The compiler that mpicc is to call, or NULL.
    bool silent;
    HEC_VEC(char *) word;
};

static void add(struct command *c, const char *text) {
    HEC_PUSH(c->arena, &c->word, hec_arena_copy(c->arena, text, strlen(text)));
}

// --cc='ccache gcc' is two words.
static void add_words(struct command *c, const char *text) {
    for (;;) {
        text += strspn(text, " ");
        const size_t length = strcspn(text, " ");
        if (!length) return;
        HEC_PUSH(c->arena, &c->word, hec_arena_copy(c->arena, text, length));
        text += length;
    }
}

// Whether a word of the command is an MPI wrapper itself: mpicc, /opt/openmpi/bin/mpicc, mpicc.openmpi.
static bool is_wrapper(const char *cc) {
    while (*cc) {
        const size_t name = strcspn(cc, " /");
        if (strncmp(cc, "mpi", 3) == 0 && cc[name] != '/') return true;
        cc += name + (cc[name] != '\0');
    }
    return false;
}

// Programs of several ranks are compiled by mpicc, which knows where MPI is and calls the compiler that --cc names.
static void add_compiler(struct command *c, const char *cc, bool ranks) {
    const bool wrapped = ranks && !is_wrapper(cc);
    if (wrapped && strcmp(cc, "gcc") != 0) c->below_mpicc = cc;
    add_words(c, wrapped ? "mpicc" : cc);
}

static struct command command_of(struct hec_arena *arena, const struct hec_options *options,
                                 const char *prefix, bool ranks, const char *source,
                                 const char *output) {
    struct command c = {.arena = arena};
    add_compiler(&c, options->cc, ranks);
    add(&c, "-std=gnu17");
    add(&c, options->optimize);
    add(&c, hec_arena_format(arena, "-march=%s", options->march));
    // As the kernels are compiled: errno of sqrt and traps would keep loops from vectorizing.
    add(&c, "-fno-math-errno");
    add(&c, "-fno-trapping-math");
    add(&c, "-fopenmp");
    if (options->debug) add(&c, "-g");
    if (options->sanitize) add(&c, hec_arena_format(arena, "-fsanitize=%s", options->sanitize));
#ifdef HECATE_SANITIZE
    if (!options->sanitize) add(&c, "-fsanitize=address,undefined"); // As the libraries are.
#endif
    add(&c, hec_arena_format(arena, "-I%s/include", prefix));
    add(&c, hec_arena_format(arena, "-I%s/include/hecate", prefix));
    if (options->object) add(&c, "-c");
    add(&c, "-o");
    add(&c, output);
    add(&c, source);
    if (!options->object) {
        add(&c, hec_arena_format(arena, "-L%s/lib", prefix));
        if (ranks) add(&c, "-lhecate_comm_mpi");
        add(&c, "-lhecate_runtime");
        add(&c, "-lhecate_kernels");
        add(&c, "-ljansson");
        add(&c, "-lm");
    }
    HEC_PUSH(arena, &c.word, NULL);
    return c;
}

static void show_word(const char *word) {
    const bool plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                   "0123456789-_=+./,:@%")];
    if (plain) {
        fputs(word, stderr);
        return;
    }
    fputc('\'', stderr);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", stderr);
        else
            fputc(*word, stderr);
    }
    fputc('\'', stderr);
}

// As a shell would read it back.
static void show(const struct command *c) {
    if (c->below_mpicc) {
        fputs("OMPI_CC=", stderr);
        show_word(c->below_mpicc);
        fputc(' ', stderr);
    }
    for (int i = 0; c->word.item[i]; i++) {
        if (i) fputc(' ', stderr);
        show_word(c->word.item[i]);
    }
    fputc('\n', stderr);
}

// In the child: becomes the command. Returns when it cannot, with errno.
static void become(const struct command *c, int channel) {
    if (fcntl(channel, F_SETFD, FD_CLOEXEC) != 0) return;
    if (c->below_mpicc && setenv("OMPI_CC", c->below_mpicc, 1) != 0) return;
    const int nowhere = c->silent ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO), dup2(nowhere, STDERR_FILENO);
    execvp(c->word.item[0], c->word.item);
}

// Runs the command and waits. Returns its status as wait gives it, or -1 with errno when it could not
// be started: the child sends back why over a pipe that a successful exec closes.
static int run(const struct command *c) {
    int channel[2], reason = 0, status = 0;
    if (pipe(channel) != 0) return -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        const int why = errno;
        close(channel[0]), close(channel[1]);
        errno = why;
        return -1;
    }
    if (child == 0) {
        setpgid(0, 0); // A group of its own: a signal ends what it starts, too.
        close(channel[0]);
        become(c, channel[1]);
        reason = errno;
        const ssize_t sent = write(channel[1], &reason, sizeof reason);
        _exit(sent == sizeof reason ? 127 : 126);
    }
    setpgid(child, child); // Whoever comes first.
    hec_output_child(child);
    close(channel[1]);
    const bool failed = read(channel[0], &reason, sizeof reason) == (ssize_t)sizeof reason;
    close(channel[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    hec_output_child(0);
    errno = reason;
    return failed ? -1 : status;
}

bool hec_cc_needs_mpi(const char *source) {
    FILE *file = fopen(source, "r");
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    while (file && !found && getline(&line, &room, file) >= 0) {
        found = strstr(line, ".backend = &hrt_comm_mpi") != NULL;
    }
    free(line);
    if (file) fclose(file);
    return found;
}

// Whether the library that joins ranks was built; complains where it was not.
static bool have_mpi(struct hec_arena *arena, const char *prefix) {
    const char *library = hec_arena_format(arena, "%s/lib/libhecate_comm_mpi.a", prefix);
    if (access(library, R_OK) == 0) return true;
    fprintf(stderr,
            "hecatec: error: cannot link a program of several ranks: there is no %s\n"
            "  hecatec was built without Open MPI: install libopenmpi-dev and openmpi-bin, and "
            "build it again\n",
            library);
    return false;
}

// Whether the compiler finds OpenMP: an empty library that includes and links it.
static bool has_openmp(struct hec_arena *arena, const char *cc) {
    static const char *const words[] = {"-fopenmp",  "-include", "omp.h", "-shared",  "-o",
                                        "/dev/null", "-x",       "c",     "/dev/null"};
    struct command c = {.arena = arena, .silent = true};
    add_words(&c, cc);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add(&c, words[i]);
    HEC_PUSH(arena, &c.word, NULL);
    return run(&c) == 0;
}

int hec_cc_run(struct hec_arena *arena, const struct hec_options *options, bool ranks,
               const char *source, const char *output) {
    const char *prefix = hec_prefix(arena);
    const char *header =
        prefix ? hec_arena_format(arena, "%s/include/hecate/runtime/program.h", prefix) : NULL;
    if (!prefix || access(header, R_OK) != 0) {
        fprintf(stderr,
                "hecatec: error: cannot find the headers of the runtime: %s\n"
                "  they are looked for beside the program that runs, in ../include\n",
                header ? header : "/proc/self/exe cannot be read");
        return 3;
    }
    if (!options->cc[strspn(options->cc, " ")]) {
        fprintf(stderr, "hecatec: error: --cc names no command\n");
        return 2;
    }
    if (ranks && !options->object && !options->dry_run && !have_mpi(arena, prefix)) return 3;
    const struct command c = command_of(arena, options, prefix, ranks, source, output);
    if (options->verbose || options->dry_run) show(&c);
    if (options->dry_run) return 0;

    const int status = run(&c);
    if (status == 0) return 0;
    if (status == -1) {
        fprintf(stderr, "hecatec: error: cannot run the C compiler '%s': %s\n", c.word.item[0],
                strerror(errno));
        if (ranks)
            fprintf(stderr, "  programs of several ranks are linked with Open MPI: install "
                            "libopenmpi-dev and openmpi-bin\n");
    } else if (WIFSIGNALED(status)) {
        fprintf(stderr, "hecatec: error: the C compiler '%s' was ended by signal %d (%s)\n",
                c.word.item[0], WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        fprintf(stderr,
                "hecatec: error: the C compiler '%s' failed with status %d; -v shows how "
                "it was called, --save-temps keeps the C\n",
                c.word.item[0], WEXITSTATUS(status));
        if (strstr(options->cc, "clang") && !has_openmp(arena, options->cc))
            fprintf(stderr, "  it finds no OpenMP, which clang does not bring along: install "
                            "libomp-dev\n");
    }
    return 3;
}
