// eval: the loss of saved parameters on validation data.
#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "runtime/cli/command.h"
#include "runtime/params/state.h"
#include "runtime/train/create.h"
#include "runtime/train/outputs.h"
#include "runtime/train/ranks.h"
#include "runtime/train/trainer.h"

static bool open_data(const struct hrt_run *run, struct hrt_data *data, struct hrt_error *error) {
    if (!hrt_cli_run_open_data(run, data, error)) return false;
    if (data->validation.windows > 0) return true;
    return hrt_fail(error,
                    "no validation data: the last %g %% of no file has the %" PRId64
                    " tokens of a sequence; give --val FILE",
                    100 * data->held_out, data->positions + 1);
}

// Opens the file of --write-teacher. It needs validation data that is one whole file.
static bool form_teacher(const struct hrt_run *run, const struct hrt_data *data,
                         struct hrt_teacher_file *said, struct hrt_error *error) {
    const struct hrt_arguments *a = run->arguments;
    if (!a->write_teacher) return true;
    if (a->sequences || data->validation_cut || data->validation.parts != 1 || data->mask.rate > 0)
        return hrt_fail_usage(error, data->mask.rate > 0
                                         ? "--write-teacher needs a model of next tokens"
                                         : "--write-teacher is of one whole file: give it as --val "
                                           "FILE, without --sequences");
    const struct hrt_data_file *file = &data->file[data->validation.part[0].file];
    hrt_train_entries_form(said, run->program, a->entries, data->said > 0);
    said->tokens = file->tokens;
    return hrt_data_file_checksum(file, &said->checksum, error);
}

// Over the sequences that --sequences leaves, with the files of --logits, --losses and --write-teacher.
static bool run_through(const struct hrt_run *run, struct hrt_data *data, struct hrt_state *state,
                        struct hrt_validation *validation, struct hrt_error *error) {
    const struct hrt_arguments *a = run->arguments;
    const int64_t sequences = a->sequences;
    int64_t windows[HRT_SOURCES_MAX];
    struct hrt_outputs outputs = {.logits.path = a->logits,
                                  .losses.path = a->losses,
                                  .teacher.path = a->write_teacher,
                                  .of_targets = data->said > 0};
    if (!hrt_train_ranks_agree(run->comm, form_teacher(run, data, &outputs.said, error), error))
        return false;
    if (!a->logits && !a->losses && !a->write_teacher)
        return hrt_train_evaluate(state, data, sequences, NULL, validation, error);
    if (!hrt_train_outputs_open(&outputs, state, hrt_data_val_windows(data, sequences, windows),
                                error))
        return false;
    const bool done = hrt_train_evaluate(state, data, sequences, &outputs, validation, error);
    return hrt_train_outputs_close(&outputs, state, done, error) && done;
}

// Without teacher entries a loss against a teacher is unknown.
static bool is_known(const struct hrt_loss *loss, const struct hrt_data *data) {
    return !loss->teacher || data->teachers.entries > 0;
}

// The losses of sources, as a member of the JSON object.
static void print_json_sources(const struct hrt_data *data,
                               const struct hrt_validation *validation) {
    if (data->val_sources < 2) return;
    json_t *losses = json_object();
    for (int i = 0; i < data->val_sources; i++) {
        const struct hrt_data_source *source = &data->val_source[i];
        const double loss = validation->source_loss[i];
        json_object_setn_new(losses, source->name, (size_t)source->name_bytes,
                             isfinite(loss) ? json_real(loss) : json_null());
    }
    printf(", \"sources\": ");
    json_dumpf(losses, stdout, 0);
    json_decref(losses);
}

static void print_json(const struct hrt_run *run, const struct hrt_data *data,
                       const struct hrt_validation *validation) {
    printf("{\"loss\": %.17g, \"perplexity\": %.17g, \"tokens\": %.17g"
           ", \"masked\": %s, \"held_out\": %s",
           validation->loss, fmin(exp(validation->loss), DBL_MAX), validation->targets,
           data->mask.rate > 0 ? "true" : "false", data->validation_cut ? "true" : "false");
    for (int i = 0; i < run->program->losses; i++) {
        const struct hrt_loss *loss = &run->program->loss[i];
        printf("%s\"%s\": ", i ? ", " : ", \"losses\": {", loss->name);
        printf(is_known(loss, data) ? "%.17g" : "null", validation->named[i]);
    }
    if (run->program->losses) putchar('}');
    print_json_sources(data, validation);
    puts("}");
}

// How many tokens, or the sum of their weights.
static const char *tokens_text(char text[32], double tokens) {
    snprintf(text, 32, tokens == floor(tokens) ? "%.0f" : "%.2f", tokens);
    return text;
}

static void print_result(const struct hrt_run *run, const struct hrt_data *data,
                         const struct hrt_validation *validation) {
    char text[32];
    printf("validation loss %.6f, perplexity %.4g, %s %stokens", validation->loss,
           exp(validation->loss), tokens_text(text, validation->targets),
           data->mask.rate > 0 ? "masked " : "");
    if (data->validation_cut)
        printf(" from the last %g %% of each file\n", 100 * data->held_out);
    else
        printf("\n");
    for (int i = 0; i < run->program->losses; i++) {
        if (is_known(&run->program->loss[i], data))
            printf("loss %s %.6f\n", run->program->loss[i].name, validation->named[i]);
    }
    for (int i = 0; data->val_sources > 1 && i < data->val_sources; i++)
        printf("loss of %.*s %.6f, %s tokens\n", data->val_source[i].name_bytes,
               data->val_source[i].name, validation->source_loss[i],
               tokens_text(text, validation->source_targets[i]));
}

static bool evaluate(const struct hrt_run *run, struct hrt_data *data, struct hrt_state *state,
                     struct hrt_error *error) {
    if (!hrt_train_ranks_agree(run->comm, open_data(run, data, error), error) ||
        !hrt_cli_run_create_state(run, state, data, false, error))
        return false;
    struct hrt_validation validation;
    if (!run_through(run, data, state, &validation, error)) return false;
    double sum = validation.loss; // The same on all ranks: a sum over them.
    for (int i = 0; i < run->program->losses; i++) sum += validation.named[i];
    if (!isfinite(sum)) {
        hrt_fail(error, "the validation loss is not finite (%g)", sum);
        return hrt_train_ranks_agree(run->comm, false, error);
    }
    (run->arguments->json ? print_json : print_result)(run, data, &validation);
    return true;
}

int hrt_cli_command_eval(const struct hrt_run *run, struct hrt_error *error) {
    if (!run->arguments->load) {
        hrt_fail_usage(error, "eval needs trained parameters: --load FILE");
        return (int)error->code;
    }
    struct hrt_data data = {0};
    struct hrt_state state = {.program = run->program};
    const bool done = evaluate(run, &data, &state, error);
    if (!done) hrt_cli_run_report(run, error);
    hrt_train_state_destroy(&state);
    hrt_data_close(&data);
    return done ? HRT_EXIT_DONE : (int)error->code;
}
