// The table of options, its parser and its help.
#include "runtime/cli/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/suggest.h"
#include "runtime/cli/openmp.h"
#include "runtime/data/teacher.h"

static const struct command_row {
    enum hrt_command command;
    const char *name, *doc;
} commands[] = {
    {HRT_TRAIN, "train", "train the model"},
    {HRT_EVAL, "eval", "loss of saved parameters on validation data"},
    {HRT_SAMPLE, "sample", "continue a prompt with saved parameters"},
    {HRT_EXPORT, "export", "write saved parameters as a Hugging Face folder"},
    {HRT_LINKS, "links", "measure what the links between ranks carry"},
    {HRT_INFO, "info", "describe the model, its memory and its settings"},
};

enum { COMMANDS = sizeof commands / sizeof *commands, PRINTED_WIDTH = 24 };
enum { RUNS = HRT_TRAIN | HRT_EVAL | HRT_SAMPLE, DRAWS = HRT_TRAIN | HRT_SAMPLE };
enum { LOADS = RUNS | HRT_EXPORT, ALL = LOADS | HRT_INFO | HRT_LINKS };

#define AT(field) offsetof(struct hrt_arguments, field)
#define SETTING HRT_TEXT, 0 // The setting's own rule holds.

// An option either stands for a setting (`key`) or fills in a field of struct hrt_arguments. The
// key "" is --set itself.
static const struct option_row {
    const char *name, *value; // "--steps", "N"; a flag has no value.
    int commands;             // Which take it.
    const char *key;
    struct hrt_value_rule rule;
    size_t offset;
    const char *doc;
} options[] = {
    {"--data", "FILE", HRT_TRAIN | HRT_EVAL, "data.train", SETTING,
     "training data, path or pattern; may be repeated, with shares: FILE=0.7"},
    {"--val", "FILE", HRT_TRAIN | HRT_EVAL, "data.val", SETTING,
     "validation data (default: the share data.held_out of each training file)"},
    {"--teacher", "FILE", HRT_TRAIN | HRT_EVAL, "data.teacher", SETTING,
     "files of a teacher, for `distill`: path or pattern; may be repeated"},
    {"--format", "NAME", HRT_TRAIN | HRT_EVAL, "data.format", SETTING,
     "bytes: any file; llmc: llm.c's .bin"},
    {"--steps", "N", HRT_TRAIN, "train.steps", SETTING, "optimizer steps"},
    {"--epochs", "X", HRT_TRAIN, "train.epochs", SETTING,
     "passes over the training data, instead of --steps"},
    {"--seed", "N", DRAWS, "train.seed", SETTING, "of every random number"},
    {"--log", "FILE", HRT_TRAIN, "log.jsonl", SETTING, "write one JSON object per step"},
    {"--tensorboard", "DIR", HRT_TRAIN, NULL, HRT_TEXT, AT(tensorboard),
     "write the numbers of every step into a folder for TensorBoard"},
    {"--metrics", "PORT", HRT_TRAIN, NULL, HRT_INTEGER(1, 65535), AT(metrics),
     "show those of the last step on 127.0.0.1:PORT/metrics, for Prometheus"},
    {"--checkpoint", "DIR", HRT_TRAIN, "checkpoint.dir", SETTING,
     "write checkpoints into this folder, at the end and when the settings say"},
    {"--resume", "[=DIR]", HRT_TRAIN, NULL, HRT_TEXT, AT(resume),
     "go on from the newest sound checkpoint there (default: of --checkpoint)"},
    {"--resume-changed", "[=KEYS]", HRT_TRAIN, NULL, HRT_TEXT, AT(resume_changed),
     "even with other settings or data, or those of KEYS: train.seed,data.train"},
    {"--load", "FILE", LOADS, NULL, HRT_TEXT, AT(load),
     "parameters: safetensors, or the folder of a checkpoint or of Hugging Face's"},
    {"--adapter", "DIR", LOADS, NULL, HRT_TEXT, AT(adapter),
     "adapters, from a folder of PEFT's (default: --load's, or fresh ones)"},
    {"--strict", NULL, LOADS, NULL, HRT_FLAG, AT(strict),
     "refuse parameters that are not finite, or another model's"},
    {"--to", "DIR", HRT_EXPORT, NULL, HRT_TEXT, AT(to), "the folder to make"},
    {"--like", "DIR", HRT_EXPORT, NULL, HRT_TEXT, AT(like),
     "take config.json, tokenizer and types from this folder (default: --load's)"},
    {"--merge", NULL, HRT_EXPORT, NULL, HRT_FLAG, AT(merge),
     "add adapters to their weights, and write the whole model"},
    {"--shard-bytes", "N", HRT_EXPORT, NULL, HRT_BYTES(1, 1e15), AT(shard_bytes),
     "of tensors in one file, at most (default 5G)"},
    {"--save", "FILE", HRT_TRAIN | HRT_LINKS, NULL, HRT_TEXT, AT(save),
     "write the parameters when training ends; or the rates of links"},
    {"--save-best", "FILE", HRT_TRAIN, NULL, HRT_TEXT, AT(save_best),
     "write the parameters after each evaluation with a lower loss than all before"},
    {"--sample", "N", HRT_TRAIN, NULL, HRT_INTEGER(1, 1e12), AT(sample),
     "then print a sample of N tokens"},
    {"--check-grad", "N", HRT_TRAIN, NULL, HRT_INTEGER(1, 1e12), AT(check_grad),
     "do not train: compare N gradients per tensor with differences (fp64)"},
    {"--route", "HOW", HRT_TRAIN, NULL, HRT_TEXT, AT(route),
     "force the experts: model (no), balanced, zipf:S, trace:FILE, ids:FILE"},
    {"--record-ids", "FILE", HRT_TRAIN, NULL, HRT_TEXT, AT(record_ids),
     "write which experts every token went to, for --route ids:FILE"},
    {"--record-loads", "FILE", HRT_TRAIN, NULL, HRT_TEXT, AT(record_loads),
     "write how many tokens every expert got, for trace:FILE and hecate-replay"},
    {"--profile", NULL, HRT_TRAIN, NULL, HRT_FLAG, AT(profile),
     "at the end, print where the time of a step went, kernel by kernel"},
    {"--trace", "FILE", HRT_TRAIN, NULL, HRT_TEXT, AT(trace),
     "write what ran when, for ui.perfetto.dev (the newest 128 Ki events)"},
    {"--pretend", "FILE", HRT_TRAIN, NULL, HRT_TEXT, AT(pretend),
     "compute nothing: kernels wait as long as on the device of FILE"},
    {"--sequences", "N", HRT_EVAL, NULL, HRT_INTEGER(1, 1e12), AT(sequences),
     "of the validation data (default: all)"},
    {"--json", NULL, HRT_EVAL, NULL, HRT_FLAG, AT(json),
     "print one JSON object: loss, perplexity, tokens, masked, held_out"},
    {"--logits", "FILE", HRT_EVAL, NULL, HRT_TEXT, AT(logits),
     "write the logits of these sequences: safetensors, to compare with others"},
    {"--losses", "FILE", HRT_EVAL, NULL, HRT_TEXT, AT(losses),
     "write the loss of each token of these sequences: safetensors"},
    {"--write-teacher", "FILE", HRT_EVAL, NULL, HRT_TEXT, AT(write_teacher),
     "write what the model says of the --val file, for --teacher of others"},
    {"--entries", "N", HRT_EVAL, NULL, HRT_INTEGER(1, HRT_TEACHER_ENTRIES), AT(entries),
     "with --write-teacher: likeliest successors of a token (default 64)"},
    {"--prompt", "TEXT", DRAWS, NULL, HRT_TEXT, AT(prompt),
     "text; ids without a tokenizer (default: the beginning of a text)"},
    {"--prompts", "FILE", HRT_SAMPLE, NULL, HRT_TEXT, AT(prompts),
     "a sample for each line of this file, drawn as for --prompt"},
    {"--samples", "N", HRT_SAMPLE, NULL, HRT_INTEGER(1, 1e9), AT(samples),
     "of each prompt (default 1), an empty line between two"},
    {"--tokenizer", "FILE", DRAWS, NULL, HRT_TEXT, AT(tokenizer),
     "a tokenizer.json, or none (default: that in the folder of --load)"},
    {"--stop", "TEXT", DRAWS, NULL, HRT_TEXT, AT(stop),
     "end a sample before this text, or token of the tokenizer"},
    {"--tokens", "N", HRT_SAMPLE, NULL, HRT_INTEGER(1, 1e12), AT(tokens),
     "tokens to draw (default 200)"},
    {"--temperature", "X", DRAWS, NULL, HRT_REAL(0, 1e6), AT(temperature),
     "0: always the likeliest token (default 0.8)"},
    {"--topk", "N", DRAWS, NULL, HRT_INTEGER(0, 1e12), AT(topk),
     "draw among the N likeliest (default 0: all)"},
    {"--topp", "X", DRAWS, NULL, HRT_REAL(1e-6, 1), AT(topp),
     "of these, the fewest with share X (default 1: all)"},
    {"--minp", "X", DRAWS, NULL, HRT_REAL(0, 1), AT(minp),
     "of these, those with X times the best share (default 0: all)"},
    {"--params", NULL, HRT_INFO, NULL, HRT_FLAG, AT(params), "list every parameter"},
    {"--threads", "N", LOADS, NULL, HRT_INTEGER(1, HRT_THREADS_MOST), AT(threads),
     "(default: OMP_NUM_THREADS, or all cores)"},
    {"--set", "KEY=VALUE", ALL, "", SETTING, "any setting that `info` lists; may be repeated"},
    {"--help", NULL, ALL, NULL, HRT_FLAG, AT(help), "print this"},
};

enum { OPTIONS = sizeof options / sizeof *options };

static const struct command_row *find_command(const char *name) {
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static const char *command_name(enum hrt_command command) {
    for (int i = 0; i < COMMANDS; i++) {
        if (commands[i].command == command) return commands[i].name;
    }
    return "";
}

// The option that `argument` ("--steps", "--steps=3") names, or NULL.
static const struct option_row *find_option(const char *argument) {
    const size_t length = strcspn(argument, "=");
    for (int i = 0; i < OPTIONS; i++) {
        if (strlen(options[i].name) == length && strncmp(options[i].name, argument, length) == 0)
            return &options[i];
    }
    return NULL;
}

static bool fail_option(const char *argument, enum hrt_command command, struct hrt_error *error) {
    struct hrt_suggestion suggestion = {.typed = argument};
    for (int i = 0; i < OPTIONS; i++) {
        if (options[i].commands & command) hrt_base_suggest(&suggestion, options[i].name);
    }
    if (suggestion.best)
        return hrt_fail_usage(error, "unknown option '%s'; did you mean '%s'?", argument,
                              suggestion.best);
    return hrt_fail_usage(error, "unknown option '%s'; see %s --help", argument,
                          command_name(command));
}

static bool fail_command(const char *name, const struct hrt_program *program,
                         struct hrt_error *error) {
    struct hrt_suggestion suggestion = {.typed = name};
    for (int i = 0; i < COMMANDS; i++) hrt_base_suggest(&suggestion, commands[i].name);
    if (suggestion.best)
        return hrt_fail_usage(error, "unknown command '%s'; did you mean '%s'?", name,
                              suggestion.best);
    return hrt_fail_usage(error, "unknown command '%s'; see %s --help", name, program->name);
}

// Applies --set `text`.
static bool apply_set(struct hrt_arguments *arguments, const char *text,
                      const struct hrt_program *program, struct hrt_error *error) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return hrt_fail_usage(error, "--set needs KEY=VALUE, not '%s'", text);
    char *key = strndup(text, (size_t)(equals - text));
    if (!key) return hrt_fail(error, "out of memory");
    const bool set = hrt_config_set(&arguments->config, program, key, equals + 1, key, error);
    free(key);
    return set;
}

// Finds the value of an option, behind '=' or the next argument, which *at then is.
static bool find_value(const struct option_row *option, int argc, char **argv, int *at,
                       const char **value, struct hrt_error *error) {
    const char *equals = strchr(argv[*at], '=');
    *value = equals ? equals + 1 : "";
    if (!option->value && equals) return hrt_fail_usage(error, "%s takes no value", option->name);
    if (!option->value || equals) return true;
    if (*at + 1 == argc)
        return hrt_fail_usage(error, "%s needs a value: %s %s", option->name, option->name,
                              option->value);
    *value = argv[++*at];
    return true;
}

// Whether an option that may have a value has none.
static bool goes_without(const struct option_row *option, const char *argument) {
    return option->value && *option->value == '[' && !strchr(argument, '=');
}

// Applies the option at argv[*at], and steps over its value.
static bool apply_option(struct hrt_arguments *arguments, int argc, char **argv, int *at,
                         const struct hrt_program *program, struct hrt_error *error) {
    const char *argument = argv[*at], *value;
    const struct option_row *option = find_option(argument);
    if (!option) return fail_option(argument, arguments->command, error);
    if (!(option->commands & arguments->command))
        return hrt_fail_usage(error, "%s does not take %s", command_name(arguments->command),
                              option->name);
    if (goes_without(option, argument)) {
        *(const char **)((char *)arguments + option->offset) = "";
        return true;
    }
    if (!find_value(option, argc, argv, at, &value, error)) return false;
    if (!option->key)
        return hrt_config_parse(&option->rule, option->name, value,
                                (char *)arguments + option->offset, error);
    if (!*option->key) return apply_set(arguments, value, program, error);
    return hrt_config_set(&arguments->config, program, option->key, value, option->name, error);
}

bool hrt_cli_options_parse(struct hrt_arguments *arguments, int argc, char **argv,
                           const struct hrt_program *program, struct hrt_error *error) {
    *arguments = (struct hrt_arguments){.entries = 64,
                                        .samples = 1,
                                        .tokens = 200,
                                        .temperature = 0.8,
                                        .topp = 1,
                                        .shard_bytes = 5000000000};
    if (!hrt_config_init(&arguments->config, program, error)) return false;
    if (argc < 2)
        return hrt_fail_usage(
            error,
            "a command is missing: train, eval, sample, export, links or info; see "
            "%s --help",
            program->name);
    arguments->help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    arguments->version = strcmp(argv[1], "--version") == 0;
    if (arguments->help || arguments->version) return true;

    const struct command_row *command = find_command(argv[1]);
    if (!command) return fail_command(argv[1], program, error);
    arguments->command = command->command;
    for (int at = 2; at < argc; at++) {
        if (strcmp(argv[at], "-h") == 0) {
            arguments->help = true;
        } else if (argv[at][0] != '-') {
            return hrt_fail_usage(error, "unexpected argument '%s'; see %s --help", argv[at],
                                  command->name);
        } else if (!apply_option(arguments, argc, argv, &at, program, error)) {
            return false;
        }
    }
    return true;
}

static void print_row(FILE *out, const char *name, const char *value, const char *doc) {
    const char *between = value && *value != '[' ? " " : "";
    const int used = fprintf(out, "  %s%s%s", name, between, value ? value : "");
    fprintf(out, "%*s%s\n", used < PRINTED_WIDTH ? PRINTED_WIDTH - used : 1, "", doc);
}

static void print_program_help(FILE *out, const struct hrt_program *program) {
    fprintf(out, "usage: %s COMMAND [OPTION...]\n\n%s, compiled by hecatec %s from %s\n\n",
            program->name, program->name, program->version, program->source);
    fprintf(out, "commands\n");
    for (int i = 0; i < COMMANDS; i++) print_row(out, commands[i].name, NULL, commands[i].doc);
    fprintf(out,
            "\n%s COMMAND --help lists a command's options. Exit codes: 0 done, 1 data, file "
            "or run failed,\n2 bad command line; 129, 130, 141 and 143 stopped by SIGHUP, SIGINT, "
            "SIGPIPE (nobody "
            "reads\nstandard output) and SIGTERM.\n",
            program->name);
}

void hrt_cli_options_help(FILE *out, const struct hrt_program *program, enum hrt_command command) {
    if (!command) {
        print_program_help(out, program);
        return;
    }
    fprintf(out, "usage: %s %s [OPTION...]\n\noptions\n", program->name, command_name(command));
    for (int i = 0; i < OPTIONS; i++) {
        if (options[i].commands & command)
            print_row(out, options[i].name, options[i].value, options[i].doc);
    }
}
