// nvcc: its arguments, and the libraries that programs for a GPU link.
#include "codegen/targets/cuda/nvcc.h"

#include <string.h>
#include <unistd.h>

#include "codegen/base/command.h"
#include "codegen/base/output.h"
#include "codegen/base/prefix.h"
#include "codegen/base/status.h"
#include "codegen/base/version.h"
#include "codegen/targets/cuda/gpu.h"
#include "ir/target/target.h"

// sm_90a has the virtual architecture compute_90a; compute_80 is PTX, which drivers compile.
static void add_architecture(struct hec_command *c, const char *name, size_t length) {
    const int digits = (int)(length - (size_t)(strchr(name, '_') + 1 - name));
    const char *number = strchr(name, '_') + 1;
    hec_command_add(c, "-gencode");
    hec_command_add(c, hec_arena_format(c->arena, "arch=compute_%.*s,code=%.*s", digits, number,
                                        (int)length, name));
}

static void add_architectures(struct hec_command *c, const char *all) {
    for (const char *at = all; *at; at += *at == '|') {
        const size_t length = strcspn(at, "|");
        add_architecture(c, at, length);
        at += length;
    }
    char *list = hec_arena_format(c->arena, "-DHKC_ARCHITECTURES=\"%s\"", all);
    for (char *at = list; *at; at++) *at = *at == '|' ? ' ' : *at;
    hec_command_add(c, list);
}

// The GPUs that are here, and PTX for others as old or newer. NULL: none, or one that nvcc may not know.
static const char *architectures_here(struct hec_arena *arena) {
    const char *here = hec_gpus_here(arena);
    for (const char *at = here; at && *at; at += *at == '|') {
        const int length = (int)strcspn(at, "|");
        if (!hec_target_find(HEC_STR(hec_arena_format(arena, "cuda:%.*s", length, at))))
            return NULL;
        at += length;
    }
    return here ? hec_arena_format(arena, "%s|compute_80", here) : NULL;
}

// The architectures that `target` names; without one those of the GPUs that are here, or all.
static const char *architectures_of(struct hec_arena *arena, const char *target) {
    const char *one = strchr(target, ':');
    const char *here = one ? NULL : architectures_here(arena);
    if (here) return here;
    return one && strcmp(one, ":all") != 0 ? one + 1
                                           : hec_target_find(HEC_STR(target))->compiled_for;
}

// Returns the exit status of hecatec.
static int run(const struct hec_build *build, const char *object) {
    struct hec_arena *arena = build->arena;
    const struct hec_options *options = build->options;
    // Objects that the C compiler can link: nothing of C++'s runtime.
    static const char *const flags[] = {
        "-x",  "cu",         "-std=c++17",
        "-O3", "-Xcompiler", "-fno-exceptions,-fno-rtti,-fno-threadsafe-statics"};
    const char *prefix = hec_prefix(arena);
    if (!hec_have_headers(arena)) return HEC_EXIT_CC;
    if (!options->nvcc[strspn(options->nvcc, " ")]) {
        hec_fail("--nvcc names no command");
        return HEC_EXIT_COMMAND_LINE;
    }
    struct hec_command c = {.arena = arena};
    hec_command_add_words(&c, options->nvcc);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) hec_command_add(&c, flags[i]);
    add_architectures(&c, architectures_of(arena, build->target));
    if (options->debug) hec_command_add(&c, "-lineinfo");
    hec_command_add(&c, hec_arena_format(arena, "-I%s/include", prefix));
    hec_command_add(&c, hec_arena_format(arena, "-I%s/include/hecate", prefix));
    hec_command_add(&c, "-c");
    hec_command_add(&c, "-o");
    hec_command_add(&c, object);
    hec_command_add(&c, build->source);
    if (options->verbose || options->dry_run) hec_command_show(&c);
    if (options->dry_run) return HEC_EXIT_DONE;
    const int status = hec_command_run(&c);
    if (status == 0) return HEC_EXIT_DONE;
    hec_command_complain(&c, "nvcc", status);
    if (status == -1) fprintf(stderr, "  --nvcc says where it is\n");
    return HEC_EXIT_CC;
}

// ---- linking

static const char *library_path(struct hec_arena *arena, const char *name) {
    return hec_arena_format(arena, "%s/lib/lib%s.a", hec_prefix(arena), name);
}

static bool have_libraries(struct hec_arena *arena, bool ranks) {
    static const char *const library[] = {"hecate_device_cuda", "hecate_kernels_cuda",
                                          "hecate_transport_cuda"};
    for (int i = 0; i < 2 + ranks; i++) {
        const char *path = library_path(arena, library[i]);
        if (access(path, R_OK) == 0) continue;
        fprintf(stderr,
                "hecatec: error: cannot link a program for target cuda: there is no %s\n"
                "  hecatec was built without CUDA, or its libraries are not built yet (cmake "
                "--build); -S writes the program's source\n",
                path);
        return false;
    }
    return true;
}

// Products by cuBLASLt, or messages by NCCL, which a program does without.
static bool have(struct hec_arena *arena, const char *name) {
    return access(library_path(arena, name), R_OK) == 0;
}

// A library by its path, and found there when the program starts; or by name where no path is known.
static void add_library(struct hec_command *words, const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    hec_command_add(words, *path ? path : name);
    if (slash)
        hec_command_add(
            words, hec_arena_format(words->arena, "-Wl,-rpath,%.*s", (int)(slash - path), path));
}

// The transport looks for NCCL's executor, which opens NCCL's library when the program needs it: other programs
// start where there is none.
static void add_ranks(struct hec_command *words) {
    const char *slash = strrchr(HECATE_NCCL, '/');
    hec_command_add(words, "-lhecate_transport_cuda");
    if (!have(words->arena, "hecate_transport_nccl")) return;
    hec_command_add(words, "-Wl,-u,hrt_executor_nccl");
    hec_command_add(words, "-lhecate_transport_nccl");
    hec_command_add(words, "-Wl,-u,hrt_nccl_library_open");
    hec_command_add(words, "-lhecate_nccl_library");
    if (slash)
        hec_command_add(words, hec_arena_format(words->arena, "-Wl,-rpath,%.*s",
                                                (int)(slash - HECATE_NCCL), HECATE_NCCL));
}

static const char *const *link_words(struct hec_arena *arena, const char *object, bool ranks) {
    struct hec_command words = {.arena = arena};
    hec_command_add(&words, object);
    if (ranks) add_ranks(&words);
    hec_command_add(&words, "-lhecate_device_cuda");
    hec_command_add(&words, "-lhecate_kernels_cuda");
    if (*HECATE_CUBLASLT && have(arena, "hecate_cublaslt")) {
        hec_command_add(&words, "-Wl,-u,hkc_library_open"); // The device looks whether it is there.
        hec_command_add(&words, "-lhecate_cublaslt");
        add_library(&words, HECATE_CUBLASLT, "-lcublasLt");
    }
    add_library(&words, HECATE_CUDART, "-lcudart");
    HEC_PUSH(arena, &words.word, NULL);
    return (const char *const *)words.word.item;
}

int hec_nvcc_compile(struct hec_build *build) {
    struct hec_arena *arena = build->arena;
    const struct hec_options *o = build->options;
    if (o->object) {
        hec_fail("-c: a program for a GPU is two objects");
        return HEC_EXIT_COMMAND_LINE;
    }
    const char *object = o->dry_run ? hec_arena_format(arena, "/tmp/%s.cu.o", build->name)
                                    : hec_output_temporary(arena, NULL, ".cu.o", false);
    if (!object || (!o->dry_run && !have_libraries(arena, build->ranks))) return HEC_EXIT_CC;
    build->link = link_words(arena, object, build->ranks);
    return run(build, object);
}
