// hrt_cli_main: from argv to an exit code.
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "files/files.h"
#include "kernels/cpu/isa.h"
#include "runtime/base/world.h"
#include "runtime/cli/command.h"
#include "runtime/cli/crowd.h"
#include "runtime/cli/openmp.h"
#include "runtime/cli/run_files.h"
#include "runtime/cli/same.h"
#include "runtime/net/backend.h"
#include "runtime/params/placement.h"
#include "runtime/train/ranks.h"

// Whether it computes.
static bool needs_ranks(const struct hrt_run *run) {
    const struct hrt_arguments *arguments = run->arguments;
    return !arguments->help && !arguments->version && arguments->command != HRT_INFO;
}

static int run_command(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_arguments *arguments = run->arguments;
    if (arguments->help) {
        hrt_cli_options_help(stdout, run->program, arguments->command);
        return HRT_EXIT_DONE;
    }
    if (arguments->version) {
        printf("%s, compiled by hecatec %s\n", run->program->name, run->program->version);
        return HRT_EXIT_DONE;
    }
    if (arguments->threads) omp_set_num_threads((int)arguments->threads);
    if (needs_ranks(run) && hrt_cli_openmp_spins()) hrt_cli_watch_cores();
    switch (arguments->command) {
    case HRT_TRAIN:
        return hrt_cli_command_train(run, error);
    case HRT_EVAL:
        return hrt_cli_command_eval(run, error);
    case HRT_SAMPLE:
        return hrt_cli_command_sample(run, error);
    case HRT_EXPORT:
        return hrt_cli_command_export(run, error);
    case HRT_LINKS:
        return hrt_cli_command_links(run, error);
    case HRT_INFO:
        return hrt_cli_command_info(run, error);
    }
    return HRT_EXIT_USAGE;
}

// Whether this processor has what the program was compiled for.
static bool check_processor(const struct hrt_program *program, struct hrt_error *error) {
    const char *lacks = NULL;
#ifdef __x86_64__
    __builtin_cpu_init();
    const enum hrt_instructions wanted = program->instructions;
    if (wanted >= HRT_INSTRUCTIONS_AVX512 && !__builtin_cpu_supports("avx512f")) lacks = "AVX-512";
    if (wanted >= HRT_INSTRUCTIONS_AVX2 && !__builtin_cpu_supports("avx2")) lacks = "AVX2";
#endif
    if (!lacks) return true;
    return hrt_fail(error,
                    "compiled for a processor with %s, which this one lacks; compile it here, or "
                    "with hecatec --march=x86-64-v2 or -v3",
                    lacks);
}

// Whether a launcher started this process as one of several, all of which will join.
static bool has_others(const struct hrt_program *program) {
    struct hrt_world world = {0};
    struct hrt_error ignored = {0};
    return program->world && hrt_base_world_find(&world, &ignored) && world.size > 1;
}

// Joins the ranks, including those that cannot run (`sound` false): all others see a rank that was started differently,
// and nobody waits for it. Only rank 0 prints: the others' output is discarded.
static bool join(const struct hrt_run *run, int argc, char **argv, bool sound,
                 struct hrt_error *error) {
    const struct hrt_program *program = run->program;
    struct hrt_comm *comm = run->comm;
    const struct hrt_comm_backend *backend =
        program->backend ? program->backend : &hrt_net_comm_self;
    struct hrt_error failed = {0};
    if (!backend->open(comm, hrt_base_topology_path(), &failed)) {
        if (sound) *error = failed;
        return false;
    }
    if (!program->world) return hrt_params_placement_create(run->placement, program, 0, error);
    hrt_net_comm_be_patient(comm, true); // Training alone is in a hurry.
    if (sound && comm->rank > 0 && !freopen("/dev/null", "w", stdout))
        sound = hrt_fail(error, "cannot open /dev/null: %s", strerror(errno));
    if (!hrt_train_ranks_agree(comm, sound, error) || !hrt_cli_same_start(run, argc, argv, error))
        return false;
    if (!needs_ranks(run)) return true;
    if (comm->size == program->world)
        return hrt_params_placement_create(run->placement, program, comm->rank, error);
    const bool mpi = strcmp(backend->name, "mpi") == 0;
    return hrt_fail_usage(error,
                          "compiled for %" PRId64 " ranks (cluster.nodes x cluster.devices), but "
                          "%d run; start it %s %" PRId64 "%s",
                          program->world, comm->size, mpi ? "with mpirun -n" : "as", program->world,
                          mpi ? "" : " ranks");
}

// Whether the threads that it shall compute with are possible.
static bool check_threads(const struct hrt_arguments *arguments, struct hrt_error *error) {
    if (!arguments->threads && !hrt_cli_check_openmp(error)) return false;
    return hrt_cli_check_stacks(
        arguments->threads ? (int)arguments->threads : omp_get_max_threads(), error);
}

// From the command line to ranks that have met.
static bool start(const struct hrt_run *run, int argc, char **argv, struct hrt_error *error) {
    const struct hrt_program *program = run->program;
    const bool sound = check_processor(program, error) &&
                       hrt_cli_options_parse(run->arguments, argc, argv, program, error) &&
                       (!needs_ranks(run) || (check_threads(run->arguments, error) &&
                                              hrt_cli_run_check_files(run, error)));
    const bool others = has_others(program);
    if (!others && (!sound || !needs_ranks(run))) return sound;
    if (sound) hk_isa(); // One that HECATE_ISA ends is not waited for yet.
    return join(run, argc, argv, sound, error);
}

int hrt_cli_main(int argc, char **argv, const struct hrt_program *program) {
    hf_hold_standard();
    hrt_cli_prepare_openmp(argv);
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is told.
    struct hrt_placement placement = {.program = program};
    struct hrt_error error = {0};
    struct hrt_arguments arguments;
    struct hrt_comm comm;
    const struct hrt_run run = {program, &placement, &arguments, &comm, NULL};
    hrt_net_comm_open_self(&comm);

    const bool started = start(&run, argc, argv, &error);
    int code = started ? run_command(&run, &error) : (int)error.code;
    if (fflush(stdout) != 0 && !error.code) {
        hrt_fail(&error, "cannot write to standard output: %s", strerror(errno));
        code = HRT_EXIT_FAILED;
    }
    hrt_cli_run_report(&run, &error);
    hrt_net_comm_close(&comm);
    hrt_params_placement_destroy(&placement);
    return code;
}
