// The C compiler that turns emitted C into a program: its arguments, and running it without a shell.
#include "codegen/driver/cc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/base/command.h"
#include "codegen/base/prefix.h"
#include "codegen/base/status.h"
#include "codegen/driver/libraries.h"

// Whether a word of the command is an MPI wrapper itself: mpicc, /opt/openmpi/bin/mpicc, mpicc.openmpi.
static bool is_wrapper(const char *cc) {
    while (*cc) {
        const size_t name = strcspn(cc, " /");
        if (strncmp(cc, "mpi", 3) == 0 && cc[name] != '/') return true;
        cc += name + (cc[name] != '\0');
    }
    return false;
}

// Programs whose ranks MPI joins are compiled by mpicc, which knows where MPI is and calls the compiler that --cc names.
static void add_compiler(struct hec_command *c, const char *cc, bool mpi) {
    const bool wrapped = mpi && !is_wrapper(cc);
    if (wrapped && strcmp(cc, "gcc") != 0) c->below_mpicc = cc;
    hec_command_add_words(c, wrapped ? "mpicc" : cc);
}

static bool joined_by(const struct hec_build *how, const char *back_end) {
    return how->ranks && strcmp(how->ranks, back_end) == 0;
}

static struct hec_command command_of(const struct hec_build *how, const char *prefix,
                                     const char *output) {
    struct hec_arena *arena = how->arena;
    const struct hec_options *options = how->options;
    struct hec_command c = {.arena = arena};
    add_compiler(&c, options->cc, joined_by(how, "mpi"));
    hec_command_add(&c, "-std=gnu17");
    hec_command_add(&c, options->optimize);
    hec_command_add(&c, hec_arena_format(arena, "-march=%s", options->march));
    // As the kernels are compiled: errno of sqrt and traps would keep loops from vectorizing.
    hec_command_add(&c, "-fno-math-errno");
    hec_command_add(&c, "-fno-trapping-math");
    hec_command_add(&c, "-fopenmp");
    if (options->debug) hec_command_add(&c, "-g");
    if (options->sanitize)
        hec_command_add(&c, hec_arena_format(arena, "-fsanitize=%s", options->sanitize));
#ifdef HECATE_SANITIZE
    if (!options->sanitize)
        hec_command_add(&c, "-fsanitize=address,undefined"); // As the libraries are.
#endif
    hec_command_add(&c, hec_arena_format(arena, "-I%s/include", prefix));
    hec_command_add(&c, hec_arena_format(arena, "-I%s/include/hecate", prefix));
    if (options->object) hec_command_add(&c, "-c");
    hec_command_add(&c, "-o");
    hec_command_add(&c, output);
    hec_command_add(&c, how->source);
    if (!options->object) {
        hec_command_add(&c, hec_arena_format(arena, "-L%s/lib", prefix));
        if (how->ranks)
            hec_command_add(&c, hec_arena_format(arena, "-lhecate_comm_%s", how->ranks));
        for (int i = 0; how->link && how->link[i]; i++) hec_command_add(&c, how->link[i]);
        hec_command_add(&c, "-lhecate_runtime");
        hec_command_add(&c, "-lhecate_tokenizer");
        hec_command_add(&c, "-lhecate_kernels");
        if (joined_by(how, "tcp")) hec_command_add(&c, "-lgcrypt");
        hec_command_add(&c, "-lpcre2-8");
        hec_command_add(&c, "-lutf8proc");
        hec_command_add(&c, "-ljansson");
        hec_command_add(&c, "-ldeflate");
        hec_command_add(&c, "-lm");
    }
    return c;
}

// The word behind `text` in the first line that has it; NULL: there is none.
static const char *word_behind(struct hec_arena *arena, const char *source, const char *text) {
    FILE *file = fopen(source, "r");
    char *line = NULL;
    size_t room = 0;
    const char *found = NULL;
    while (file && !found && getline(&line, &room, file) >= 0) {
        const char *at = strstr(line, text);
        if (at) at += strlen(text), found = hec_arena_copy(arena, at, strcspn(at, ", \n"));
    }
    free(line);
    if (file) fclose(file);
    return found;
}

const char *hec_cc_ranks(struct hec_arena *arena, const char *source) {
    return word_behind(arena, source, ".backend = &hrt_net_comm_");
}

const char *hec_cc_device(struct hec_arena *arena, const char *source) {
    return word_behind(arena, source, ".device = &hrt_device_");
}

// Whether the library that joins ranks was built; complains where it was not.
static bool have_back_end(struct hec_arena *arena, const char *prefix,
                          const struct hec_build *how) {
    const char *library = hec_arena_format(arena, "%s/lib/libhecate_comm_%s.a", prefix, how->ranks);
    if (access(library, R_OK) == 0) return true;
    fprintf(stderr,
            "hecatec: error: cannot link a program of several ranks: there is no %s\n"
            "  hecatec was built without %s, and build it again\n",
            library,
            joined_by(how, "mpi") ? "Open MPI: install libopenmpi-dev and openmpi-bin"
                                  : "HECATE_TCP: install libgcrypt20-dev");
    return false;
}

// Whether the compiler finds OpenMP: an empty library that includes and links it.
static bool has_openmp(struct hec_arena *arena, const char *cc) {
    static const char *const words[] = {"-fopenmp",  "-include", "omp.h", "-shared",  "-o",
                                        "/dev/null", "-x",       "c",     "/dev/null"};
    struct hec_command c = {.arena = arena, .said = "/dev/null"};
    hec_command_add_words(&c, cc);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) hec_command_add(&c, words[i]);
    return hec_command_run(&c) == 0;
}

int hec_cc_run(const struct hec_build *how, const char *output) {
    struct hec_arena *arena = how->arena;
    const struct hec_options *options = how->options;
    const char *prefix = hec_prefix(arena);
    if (!hec_have_headers(arena)) return 3;
    if (!options->cc[strspn(options->cc, " ")]) {
        hec_fail("--cc names no command");
        return 2;
    }
    if (how->ranks && !options->object && !options->dry_run && !have_back_end(arena, prefix, how))
        return 3;
    struct hec_command c = command_of(how, prefix, output);
    if (options->verbose || options->dry_run) hec_command_show(&c);
    if (options->dry_run) return 0;
    if (!hec_check_libraries(&c, prefix)) return 3;

    const int status = hec_command_run(&c);
    if (status == 0) return 0;
    hec_command_complain(&c, "the C compiler", status);
    if (status == -1 && joined_by(how, "mpi"))
        fprintf(stderr, "  programs of several ranks are linked with Open MPI: install "
                        "libopenmpi-dev and openmpi-bin\n");
    if (status > 0 && !WIFSIGNALED(status) && strstr(options->cc, "clang") &&
        !has_openmp(arena, options->cc))
        fprintf(stderr, "  it finds no OpenMP, which clang does not bring along: install "
                        "libomp-dev\n");
    return 3;
}
