// info: prints the program's model, its memory, and its settings.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/format.h"
#include "runtime/cli/command.h"
#include "runtime/cli/opening.h"
#include "runtime/device/device.h"
#include "runtime/log/progress.h"
#include "runtime/net/backend.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/policy.h"
#include "runtime/train/memory.h"

enum { SYMBOL_WIDTH = 36, SHAPE_WIDTH = 28 };

struct counts {
    int64_t total, active; // Elements that can be trained; those one token uses.
    int64_t frozen;
};

static struct counts count_params(const struct hrt_program *program) {
    struct counts counts = {0};
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (!param->trainable && !param->frozen) continue;
        const int64_t layers = param->layers * hrt_params_size(param);
        const struct hrt_set *set = param->set < 0 ? NULL : &program->set[param->set];
        counts.total += set ? layers * set->experts : layers;
        counts.active += set ? layers * set->topk : layers;
        if (param->frozen) counts.frozen += set ? layers * set->experts : layers;
    }
    return counts;
}

static void print_bytes(const char *what, double bytes) {
    char size[32];
    hrt_format_bytes(size, sizeof size, bytes);
    printf("  %-14s %s\n", what, size);
}

static void print_memory_at(const struct hrt_run *run, enum hrt_memory_place place,
                            const char *title) {
    struct hrt_memory_line line[HRT_MEMORY_LINES];
    const int lines = hrt_train_memory_list(run->program, hrt_cli_run_trains(run), line);
    const char *of_a_rank = run->program->world ? ", of a rank" : "";
    double total = 0;
    int printed = 0;
    for (int i = 0; i < lines; i++) {
        if (line[i].place != place) continue;
        if (printed++ == 0) printf("%s in training%s\n", title, of_a_rank);
        print_bytes(line[i].what, line[i].bytes);
        total += line[i].bytes;
    }
    if (printed > 1) print_bytes("total", total);
}

static void print_memory(const struct hrt_run *run) {
    print_memory_at(run, HRT_ON_DEVICE, "memory of the device");
    print_memory_at(run, HRT_PINNED, "pinned memory");
    print_memory_at(run, HRT_ON_HOST, "memory");
    print_bytes("while saving",
                hrt_train_memory_saving(run->program, run->arguments->config.checkpoint_memory));
}

// Budgets are those of the planner's own policies; others replicate as they were made to.
static void print_movement(const struct hpl_movement *m) {
    static const char *const calibrated[] = {"", ", calibrated where it pays", ", calibrated"};
    const struct hpl_policy *policy = hpl_policy_find(m->policy);
    printf("  movement       %s", m->policy);
    if (policy && policy->calibrates)
        printf(": at most %" PRId64 " replicas of a rank and layer, %" PRId64
               " chunks into a node%s",
               m->slots, m->overlap, calibrated[m->calibrate]);
    printf("\n                 replicas are %s", m->rematerialize ? "gathered again for backward"
                                                 : m->lifetime == HPL_LIFETIME_STEP
                                                     ? "kept for a step"
                                                     : "kept until backward");
    if (m->lifetime == HPL_LIFETIME_STEP) printf("; their gradients leave once a step");
    if (m->reshard_every)
        printf("; owners may change every %" PRId64 " iterations", m->reshard_every);
    printf("\n");
}

static void print_model(const struct hrt_program *program) {
    char total[32], active[32], flops[32];
    const struct counts counts = count_params(program);
    hrt_log_format_count(total, sizeof total, (double)counts.total);
    hrt_log_format_count(active, sizeof active, (double)counts.active);
    hrt_log_format_count(flops, sizeof flops, program->flops_per_token);
    printf("%s, compiled by hecatec %s from %s\n", program->name, program->version,
           program->source);
    printf("  precision      %s\n", program->precision == HRT_FP64 ? "fp64"
                                    : program->bind_rounded        ? "bf16, sums and the rest fp32"
                                                                   : "fp32");
    if (program->device && program->device->describe) {
        char device[256];
        program->device->describe(device, sizeof device);
        printf("  device         %s\n", device);
    }
    if (program->executor) {
        char messages[128];
        hrt_net_executor_describe(program->executor, messages, sizeof messages);
        printf("  messages       between devices: %s\n", messages);
    }
    printf("  vocabulary     %" PRId64 "\n", program->vocabulary);
    printf("  positions      %" PRId64 "\n", program->positions);
    printf("  microbatch     %" PRId64 "\n", program->batch);
    if (program->world)
        printf("  ranks          %" PRId64 ", %s\n", program->world,
               program->movement ? "each expert owned by one"
               : program->owned  ? "each expert on one"
                                 : "all experts on each");
    if (program->movement) print_movement(program->movement);
    if (program->nodes) printf("  rows           cross once to a node\n");
    if (program->gradients_bf16) printf("  gradients      travel in bf16, sums fp32\n");
    printf("  parameters     %s (%" PRId64 "), %s active per token\n", total, counts.total, active);
    if (counts.frozen) {
        char frozen[32];
        hrt_log_format_count(frozen, sizeof frozen, (double)counts.frozen);
        printf("  frozen         %s (%" PRId64 ")\n", frozen, counts.frozen);
    }
    printf("  FLOP per token %s, forward and backward\n", flops);
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        printf("  experts        %s: %" PRId64 " layers, top %" PRId64 " of %" PRId64 "\n",
               set->name, set->layers, set->topk, set->experts);
    }
}

static const char *state_of(const struct hrt_run *run, const struct hrt_param *param) {
    const struct hrt_program *program = run->program;
    const bool muon = run->arguments->config.train_optimizer == HRT_OPTIMIZER_muon && param->muon;
    for (int i = 0; i < program->loads; i++) { // Balancing moves it once a step.
        if (program->load[i].select_bias == param - program->param) return "by loads";
    }
    if (param->frozen) return "frozen";
    if (!param->trainable) return "constant";
    return muon ? "by muon" : "by adamw";
}

static void print_param(const struct hrt_run *run, const struct hrt_param *param) {
    char shape[128] = "[";
    for (int i = 0; i < param->rank; i++) {
        const size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%s=%" PRId64, i ? ", " : "", param->dim[i],
                 param->shape[i]);
    }
    const int64_t tensors = hrt_params_tensors(run->program, param);
    printf("  %-*s %s]%*s x%-6" PRId64 " %s%s%s%s\n", SYMBOL_WIDTH, param->path, shape,
           (int)strlen(shape) < SHAPE_WIDTH ? SHAPE_WIDTH - (int)strlen(shape) : 0, "", tensors,
           state_of(run, param), param->trainable && param->decay ? ", decays" : "",
           param->role ? ", " : "", param->role ? param->role : "");
}

int hrt_cli_command_info(const struct hrt_run *run, struct hrt_error *error) {
    const struct hrt_program *program = run->program;
    const struct hrt_config *config = &run->arguments->config;
    struct hrt_rates rates;
    const bool steps_known = config->train_epochs == 0;
    if (steps_known && !hrt_train_rates(&rates, config, error)) return (int)error->code;
    print_model(program);
    if (steps_known) {
        fputs("  learning rate  ", stdout);
        hrt_cli_opening_rates(&rates);
    }
    print_memory(run);
    if (run->arguments->params) {
        printf("parameters (path, shape, tensors, optimizer, role)\n");
        for (int i = 0; i < program->params; i++) print_param(run, &program->param[i]);
    }
    hrt_config_print(stdout, config, program);
    return HRT_EXIT_DONE;
}
