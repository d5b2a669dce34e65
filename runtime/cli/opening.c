// The first lines of a training run.
#include "runtime/cli/opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/isa.h"
#include "runtime/cli/openmp.h"
#include "runtime/log/progress.h"
#include "runtime/log/run_header.h"

void hrt_cli_opening_data(const struct hrt_data *data) {
    char train[32], validation[32];
    hrt_log_format_count(train, sizeof train, (double)data->train.tokens);
    hrt_log_format_count(validation, sizeof validation, (double)data->validation.tokens);
    printf("data: %s tokens for training, ", train);
    if (data->validation.windows == 0)
        printf("none for validation (the last %g %% of no file has %" PRId64 ")\n",
               100 * data->held_out, data->positions + 1);
    else if (data->validation_cut)
        printf("%s for validation (the last %g %% of each file)\n", validation,
               100 * data->held_out);
    else if (data->held_out > 0)
        printf("%s for validation (the last %g %% of each training file is left out)\n", validation,
               100 * data->held_out);
    else
        printf("%s for validation\n", validation);
    if (data->left_out)
        printf("data: %d files that match are too short for a sequence and left out\n",
               data->left_out);
}

// The order of the data, and how often the run reads it.
static void print_epochs(const struct hrt_trainer *trainer) {
    static const char *const order[] = {"shuffle", "sequential", "random, with replacement"};
    const int64_t steps = trainer->config->train_steps;
    const double sequences = (double)hrt_train_trainer_sequences(trainer, steps);
    printf("order: %s%s; %" PRId64 " step%s %.3g epochs\n", order[trainer->data->order],
           trainer->data->train.part->packed ? " of whole documents" : "", steps,
           steps > 1 ? "s read" : " reads", sequences / (double)hrt_data_epoch(trainer->data));
}

// The sources of a mixture, and how often the run reads each.
static void print_sources(const struct hrt_trainer *trainer) {
    const struct hrt_data *data = trainer->data;
    const int64_t all = hrt_train_trainer_sequences(trainer, trainer->config->train_steps);
    int64_t tokens[HRT_SOURCES_MAX];
    if (data->sources < 2) return;
    hrt_data_count(data, (uint64_t)trainer->config->train_seed, (uint64_t)all, tokens);
    for (int i = 0; i < data->sources; i++) {
        const struct hrt_data_source *source = &data->source[i];
        char has[32];
        hrt_log_format_count(has, sizeof has, (double)source->split.tokens);
        printf("source: %s of %s tokens, %.3g epochs\n", source->name, has,
               (double)tokens[i] / (double)source->split.tokens);
    }
}

void hrt_cli_opening_rates(const struct hrt_rates *rates) {
    for (int i = 0; i < rates->count; i++) {
        const struct hrt_rate_piece *piece = &rates->piece[i];
        const bool stays = piece->form == HRT_RATE_constant;
        printf("%s%s ", i ? ", " : "", hrt_train_rate_word(piece->form));
        if (!stays && piece->jumps) printf("from %.3g ", rates->lr * piece->from);
        printf("%s%.3g", stays ? "" : "to ", rates->lr * piece->to);
        if (piece->falls > 1) printf(" %" PRId64 " times", piece->falls);
        printf(" until step %" PRId64, piece->begin + piece->steps);
    }
    putchar('\n');
}

// Ranks, devices, and the size of a step.
void hrt_cli_opening_run(const struct hrt_trainer *trainer) {
    const struct hrt_program *program = trainer->program;
    const int ranks = trainer->comm->size, nodes = trainer->comm->nodes,
              threads = hrt_cli_openmp_threads();
    char of_ranks[32] = "";
    if (ranks > 1) {
        printf("ranks: %d on %d node%s, experts: %s\n", ranks, nodes, nodes > 1 ? "s" : "",
               program->loads ? hrt_log_policy_of(program) : "none");
        snprintf(of_ranks, sizeof of_ranks, "%d ranks x ", ranks);
    }
    if (hrt_device_is_apart(&trainer->state->device))
        printf("device: %s", trainer->state->device.backend->name);
    else
        printf("device: cpu (%s), %d thread%s", hk_isa_name(hk_isa()), threads,
               threads > 1 ? "s" : "");
    printf("%s, %s\n", ranks > 1 ? " a rank" : "", hrt_log_precision_of(program));
    printf("step: %" PRId64 " tokens = %s%" PRId64 " x %" PRId64 " sequences of %" PRId64 "\n",
           trainer->tokens, of_ranks, trainer->iterations, trainer->batch, program->positions);
    print_epochs(trainer);
    if (trainer->config->train_schedule == HRT_SCHEDULE_pieces) {
        fputs("learning rate: ", stdout);
        hrt_cli_opening_rates(&trainer->rates);
    }
    print_sources(trainer);
}

// Settings of the user that mean nothing beside others.
static void warn_of_meaningless(const struct hrt_trainer *trainer) {
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        if (!hrt_config_given(trainer->config, row) || hrt_config_counts(trainer->config, row))
            continue;
        const struct hrt_setting_row *parent = hrt_config_parent(row);
        char *word = hrt_config_text(trainer->config, parent);
        hrt_warn(trainer->program->name, "%s has no meaning with %s = %s; it has with: %s",
                 row->key, parent->key, word ? word : "", row->of);
        free(word);
    }
}

void hrt_cli_opening_warnings(const struct hrt_trainer *trainer) {
    const int64_t warmup = trainer->config->train_schedule_warmup,
                  steps = trainer->config->train_steps;
    warn_of_meaningless(trainer);
    if (trainer->config->train_schedule != HRT_SCHEDULE_pieces && warmup > steps)
        hrt_warn(trainer->program->name,
                 "the learning rate rises for %" PRId64 " steps (train.schedule.warmup), but the "
                 "run has %" PRId64 ": it ends at %.3g of lr",
                 warmup, steps, (double)steps / (double)warmup);
}
