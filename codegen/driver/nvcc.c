// nvcc: its arguments, and what programs for a GPU are linked with.
#include "codegen/driver/nvcc.h"

#include <string.h>
#include <unistd.h>

#include "codegen/driver/cc.h"
#include "codegen/driver/command.h"
#include "codegen/driver/status.h"
#include "codegen/driver/version.h"
#include "ir/target/target.h"

// compute_90a is the virtual architecture of sm_90a.
static void add_architecture(struct hec_command *c, const char *name, size_t length) {
    const int digits = (int)(length - strlen("sm_"));
    const char *number = name + strlen("sm_");
    hec_command_add(c, "-gencode");
    hec_command_add(c, hec_arena_format(c->arena, "arch=compute_%.*s,code=sm_%.*s", digits, number,
                                        digits, number));
}

static void add_architectures(struct hec_command *c, const char *target) {
    const char *one = strchr(target, ':');
    if (one) {
        add_architecture(c, one + 1, strlen(one + 1));
        return;
    }
    const char *all = hec_target_find(HEC_STR(target))->architectures;
    while (*all) {
        const size_t length = strcspn(all, "|");
        add_architecture(c, all, length);
        all += length + (all[length] == '|');
    }
}

int hec_nvcc_run(struct hec_arena *arena, const struct hec_options *options, const char *target,
                 const char *source, const char *object) {
    // Objects that the C compiler can link: nothing of C++'s runtime.
    static const char *const flags[] = {
        "-x",  "cu",         "-std=c++17",
        "-O3", "-Xcompiler", "-fno-exceptions,-fno-rtti,-fno-threadsafe-statics"};
    const char *prefix = hec_prefix(arena);
    if (!hec_have_headers(arena)) return HEC_EXIT_CC;
    if (!options->nvcc[strspn(options->nvcc, " ")]) {
        fprintf(stderr, "hecatec: error: --nvcc names no command\n");
        return HEC_EXIT_COMMAND_LINE;
    }
    struct hec_command c = {.arena = arena};
    hec_command_add_words(&c, options->nvcc);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) hec_command_add(&c, flags[i]);
    add_architectures(&c, target);
    if (options->debug) hec_command_add(&c, "-lineinfo");
    hec_command_add(&c, hec_arena_format(arena, "-I%s/include", prefix));
    hec_command_add(&c, hec_arena_format(arena, "-I%s/include/hecate", prefix));
    hec_command_add(&c, "-c");
    hec_command_add(&c, "-o");
    hec_command_add(&c, object);
    hec_command_add(&c, source);
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

// What moves messages looks whether NCCL's executor is there, which opens NCCL's library when the program needs it: others
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

const char *const *hec_nvcc_link(struct hec_arena *arena, const struct hec_options *options,
                                 const char *object, bool ranks) {
    if (!options->dry_run && !have_libraries(arena, ranks)) return NULL;
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
