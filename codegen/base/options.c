// The command line of hecatec. One table drives reading, checking and --help.
#include "codegen/base/options.h"

#include <stddef.h>
#include <string.h>

#include "codegen/base/status.h"
#include "codegen/base/version.h"
#include "lang/base/str.h"

// How an option's value is written.
enum value_form {
    NO_VALUE,       // -v
    AFTER_EQUALS,   // --passes=TEXT
    MAYBE_EQUALS,   // --save-temps or --save-temps=DIR; sets a flag, too
    NEXT_ARGUMENT,  // -o FILE or -oFILE
    NEXT_OR_EQUALS, // --set KEY=VALUE or --set=KEY=VALUE
    IN_NAME,        // -O2: the option's own spelling is the value
};

struct option {
    const char *name;
    enum value_form form;
    bool list;           // May be given several times; all count. Else the last one does.
    size_t field;        // In struct hec_options: bool, const char * or struct hec_texts.
    size_t value;        // MAYBE_EQUALS: where the value goes.
    const char *choices; // Words allowed, with | between them; NULL: any text.
    const char *shown;   // Stands for the value, in --help.
    const char *help;    // NULL: not shown.
};

#define FIELD(name) offsetof(struct hec_options, name)

static const struct option table[] = {
    {"-o", NEXT_ARGUMENT, .field = FIELD(output), .shown = " FILE",
     .help = "Write the output to FILE; for text, - is standard output"},
    {"-S", NO_VALUE, .field = FIELD(emit_c), .help = "Stop after emitting C"},
    {"-c", NO_VALUE, .field = FIELD(object), .help = "Stop after compiling to an object file"},
    {"-fsyntax-only", NO_VALUE, .field = FIELD(syntax_only), .help = "Check the model only"},
    {"-D", NEXT_ARGUMENT, true, FIELD(defines), .shown = " NAME=VALUE",
     .help = "Override a dim or let of the model"},
    {"--set", NEXT_OR_EQUALS, true, FIELD(sets), .shown = " KEY=VALUE",
     .help = "Override a setting: --set train.steps=100"},
    {"--cluster", AFTER_EQUALS, .field = FIELD(cluster), .shown = "=FILE",
     .help = "Take the cluster section from FILE instead of the model's"},
    {"--from-hf", AFTER_EQUALS, .field = FIELD(from_hf), .shown = "=DIR",
     .help = "Write the .moe file of a Hugging Face folder's config.json, to -o"},
    {"--target", AFTER_EQUALS, .field = FIELD(target), .shown = "=TARGET",
     .help = "Target of the program (see --print-targets)"},
    {"--compile-to", AFTER_EQUALS, .field = FIELD(compile_to), .shown = "=STAGE",
     .help = "Stop after STAGE and print it (see --print-stages)"},
    {"--compile-from", AFTER_EQUALS, .field = FIELD(compile_from), .shown = "=STAGE",
     .help = "The input is what --compile-to=STAGE printed"},
    {"--passes", AFTER_EQUALS, .field = FIELD(passes), .shown = "=LIST",
     .help = "Run these passes instead of the default ones: 'a,b(option=value)'"},
    {"--print-ir-after", AFTER_EQUALS, true, FIELD(print_after), .shown = "=PASS|all",
     .help = "Print the IR after a pass to standard error"},
    {"--time-passes", NO_VALUE, .field = FIELD(time_passes),
     .help = "Say how long each stage took"},
    {"--explain", AFTER_EQUALS, .field = FIELD(explain),
     .choices = "shapes|memory|settings|plan|comm", .shown = "=WHAT",
     .help = "Report on shapes, memory, settings, plan (how experts move) or comm"},
    {"--profile", AFTER_EQUALS, .field = FIELD(profile), .shown = "=FILE",
     .help = "Loads recorded by a run (--record-loads), to plan with"},
    {"--emit-plan", AFTER_EQUALS, .field = FIELD(emit_plan), .shown = "=FILE",
     .help = "Write how experts move, and who owns them, to FILE"},
    {"--plan", AFTER_EQUALS, .field = FIELD(plan), .shown = "=FILE",
     .help = "Take that from FILE instead of searching"},
    {"--autotune", MAYBE_EQUALS, .field = FIELD(autotune), .value = FIELD(autotune_seconds),
     .shown = "[=SECONDS]", .help = "Choose the settings of section parallel by simulated steps"},
    {"--measure", AFTER_EQUALS, .field = FIELD(measure), .shown = "=N[,SECONDS]",
     .help = "With it: run the N best, each for SECONDS at most; that decides"},
    {"--launch", AFTER_EQUALS, .field = FIELD(launch), .shown = "=COMMAND",
     .help = "Command that starts these ranks: 'mpirun -n RANKS' by default"},
    {"--simulate", MAYBE_EQUALS, .field = FIELD(simulate), .value = FIELD(simulate_steps),
     .shown = "[=STEPS]", .help = "Say how long steps would take on the model's cluster, and why"},
    {"--trace", AFTER_EQUALS, .field = FIELD(trace), .shown = "=FILE",
     .help = "With --simulate: all devices' lanes, for Perfetto"},
    {"--json", NO_VALUE, .field = FIELD(json), .help = "With --simulate: the report as JSON"},
    {"-v", NO_VALUE, .field = FIELD(verbose), .help = "Show the commands that are run"},
    {"-###", NO_VALUE, .field = FIELD(dry_run), .help = "Show them without running them"},
    {"--save-temps", MAYBE_EQUALS, .field = FIELD(save_temps), .value = FIELD(save_temps_folder),
     .shown = "[=DIR]", .help = "Keep the emitted C and the IR of every stage"},
    {"--tune", MAYBE_EQUALS, .field = FIELD(tune), .value = FIELD(tune_file), .shown = "[=FILE]",
     .help = "Measure block sizes for this machine; HECATE_BLOCKING=FILE uses them"},
    {"--calibrate", MAYBE_EQUALS, .field = FIELD(calibrate), .value = FIELD(calibrate_file),
     .shown = "[=FILE]",
     .help = "Measure how long kernels take here; cluster.device.measured uses it"},
    {"-O0", IN_NAME, .field = FIELD(optimize), .shown = "..-O3",
     .help = "Optimization of the emitted C; -O3 by default"},
    {"-O1", IN_NAME, .field = FIELD(optimize)},
    {"-O2", IN_NAME, .field = FIELD(optimize)},
    {"-O3", IN_NAME, .field = FIELD(optimize)},
    {"-g", NO_VALUE, .field = FIELD(debug), .help = "Debugging information in the program"},
    {"--march", AFTER_EQUALS, .field = FIELD(march), .shown = "=CPU",
     .help = "Instruction set of the emitted C: native (default), x86-64-v3, ..."},
    {"-fsanitize", AFTER_EQUALS, .field = FIELD(sanitize), .shown = "=LIST",
     .help = "Passed to the C compiler: address,undefined"},
    {"--cc", AFTER_EQUALS, .field = FIELD(cc), .shown = "=COMMAND",
     .help = "The C compiler, gcc or clang; mpicc calls it for several ranks"},
    {"--ranks", AFTER_EQUALS, .field = FIELD(ranks), .choices = "mpi|tcp", .shown = "=WHAT",
     .help = "Transport between ranks: mpi, the default of cpu, or tcp, that of cuda"},
    {"--nvcc", AFTER_EQUALS, .field = FIELD(nvcc), .shown = "=COMMAND",
     .help = "CUDA's compiler, for target cuda"},
    {"--error-limit", AFTER_EQUALS, .field = FIELD(error_limit), .shown = "=N",
     .help = "Show at most N errors; 0: all; 20 by default"},
    {"--color", AFTER_EQUALS, .field = FIELD(color), .choices = "auto|always|never",
     .shown = "=WHEN", .help = "Colors in messages: auto, always or never"},
    {"-w", NO_VALUE, .field = FIELD(no_warnings), .help = "No warnings"},
    {"-Werror", NO_VALUE, .field = FIELD(warnings_are_errors), .help = "Warnings are errors"},
    {"--print-targets", NO_VALUE, .field = FIELD(print_targets), .help = "List the targets"},
    {"--print-stages", NO_VALUE, .field = FIELD(print_stages), .help = "List the stages"},
    {"--print-passes", NO_VALUE, .field = FIELD(print_passes),
     .help = "List the passes and their options"},
    {"--print-builtins", NO_VALUE, .field = FIELD(print_builtins),
     .help = "List the functions of the language"},
    {"--debug-crash-after", AFTER_EQUALS, .field = FIELD(crash_after), .shown = "=STAGE"},
    {"--version", NO_VALUE, .field = FIELD(version), .help = "Print the version"},
    {"--help", NO_VALUE, .field = FIELD(help), .help = "Print this"},
};
enum { OPTIONS = sizeof table / sizeof *table };

struct parser {
    struct hec_arena *arena;
    int argc, at;
    char **argv;
    struct hec_options *options;
};

static bool complain_unknown(const char *argument) {
    const char *names[OPTIONS];
    for (int i = 0; i < OPTIONS; i++) names[i] = table[i].name;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(argument, "="), argument);
    const char *close = hec_closest(word, names, OPTIONS);
    fprintf(stderr, "hecatec: error: unknown option '%s'", argument);
    if (close) fprintf(stderr, "; did you mean '%s'?", close);
    fprintf(stderr, "\n");
    return false;
}

static bool is_choice(const char *choices, const char *value) {
    const size_t length = strlen(value);
    while (choices) {
        if (strncmp(choices, value, length) == 0 && (!choices[length] || choices[length] == '|')) {
            return length > 0;
        }
        choices = strchr(choices, '|');
        if (choices) choices++;
    }
    return false;
}

// "auto|always|never" -> "auto, always, never".
static void print_choices(FILE *out, const char *choices) {
    for (; *choices; choices++) {
        if (*choices == '|')
            fputs(", ", out);
        else
            fputc(*choices, out);
    }
}

static bool store(struct parser *p, const struct option *option, const char *value) {
    if (option->choices && !is_choice(option->choices, value)) {
        fprintf(stderr, "hecatec: error: unknown value '%s' of %s; it can be ", value,
                option->name);
        print_choices(stderr, option->choices);
        fprintf(stderr, "\n");
        return false;
    }
    void *field = (char *)p->options + option->field;
    if (option->list) {
        struct hec_texts *texts = field;
        HEC_PUSH(p->arena, &texts->text, value);
    } else {
        *(const char **)field = value;
    }
    return true;
}

// Returns the text behind the option's name in `argument` when it can be this option, else NULL.
static const char *match(const struct option *option, const char *argument) {
    const size_t length = strlen(option->name);
    if (strncmp(argument, option->name, length) != 0) return NULL;
    const char *rest = argument + length;
    switch (option->form) {
    case NO_VALUE:
    case IN_NAME:
        return *rest ? NULL : rest;
    case AFTER_EQUALS:
    case MAYBE_EQUALS:
    case NEXT_OR_EQUALS:
        return *rest && *rest != '=' ? NULL : rest;
    case NEXT_ARGUMENT:
        return rest;
    }
    return NULL;
}

static bool take(struct parser *p, const struct option *option, const char *rest) {
    bool *flag = (bool *)((char *)p->options + option->field);
    switch (option->form) {
    case NO_VALUE:
        *flag = true;
        return true;
    case IN_NAME:
        return store(p, option, option->name);
    case MAYBE_EQUALS:
        *flag = true;
        if (*rest) *(const char **)((char *)p->options + option->value) = rest + 1;
        return true;
    case AFTER_EQUALS:
    case NEXT_ARGUMENT:
    case NEXT_OR_EQUALS:
        break;
    }
    if (option->form != NEXT_ARGUMENT && *rest == '=') rest++;
    if (!*rest && option->form != AFTER_EQUALS && p->at + 1 < p->argc) rest = p->argv[++p->at];
    if (*rest) return store(p, option, rest);
    return hec_fail("%s needs a value: %s%s", option->name, option->name, option->shown);
}

static bool take_argument(struct parser *p) {
    const char *argument = p->argv[p->at];
    if (*argument != '-' || !argument[1]) {
        if (p->options->input)
            return hec_fail("two inputs, '%s' and '%s'; one program is compiled "
                            "at a time",
                            p->options->input, argument);
        p->options->input = argument;
        return true;
    }
    if (strcmp(argument, "-h") == 0) argument = "--help";
    for (int i = 0; i < OPTIONS; i++) {
        const char *rest = match(&table[i], argument);
        if (rest) return take(p, &table[i], rest);
    }
    return complain_unknown(argument);
}

bool hec_options_parse(struct hec_arena *arena, int argc, char **argv,
                       struct hec_options *options) {
    struct parser p = {.arena = arena, .argc = argc, .argv = argv, .options = options};
    *options = (struct hec_options){.color = "auto",
                                    .error_limit = "20",
                                    .optimize = "-O3",
                                    .march = "native",
                                    .cc = "gcc",
                                    .nvcc = *HECATE_NVCC ? HECATE_NVCC : "nvcc"};
    for (p.at = 1; p.at < argc; p.at++) {
        if (!take_argument(&p)) return false;
    }
    return true;
}

static void add_word(struct hec_texts *words, struct hec_arena *arena, const struct option *option,
                     const char *value) {
    if (option->form == IN_NAME && strcmp(option->name, value) != 0) return; // Another row's.
    if (option->form == NEXT_ARGUMENT) HEC_PUSH(arena, &words->text, option->name);
    HEC_PUSH(arena, &words->text,
             option->form == IN_NAME || option->form == NEXT_ARGUMENT
                 ? value
                 : hec_arena_format(arena, "%s=%s", option->name, value));
}

struct hec_texts hec_options_words(const struct hec_options *options, struct hec_arena *arena) {
    struct hec_texts words = {0};
    for (int i = 0; i < OPTIONS; i++) {
        const struct option *option = &table[i];
        const char *field = (const char *)options + option->field;
        if (option->list) {
            const struct hec_texts *texts = (const struct hec_texts *)field;
            for (int k = 0; k < texts->text.count; k++)
                add_word(&words, arena, option, texts->text.item[k]);
        } else if (option->form == NO_VALUE || option->form == MAYBE_EQUALS) {
            const char *const *value = (const char *const *)((const char *)options + option->value);
            if (!*(const bool *)field) continue;
            if (option->form == MAYBE_EQUALS && *value)
                add_word(&words, arena, option, *value);
            else
                HEC_PUSH(arena, &words.text, option->name);
        } else if (*(const char *const *)field) {
            add_word(&words, arena, option, *(const char *const *)field);
        }
    }
    if (options->input) HEC_PUSH(arena, &words.text, options->input);
    return words;
}

void hec_options_help(FILE *out) {
    fprintf(out, "usage: hecatec [options] file.moe\n\n"
                 "Compiles a description of a mixture-of-experts transformer into a training "
                 "program,\n./<model> by default.\n\n");
    for (int i = 0; i < OPTIONS; i++) {
        if (!table[i].help) continue;
        char left[40];
        snprintf(left, sizeof left, "%s%s", table[i].name, table[i].shown ? table[i].shown : "");
        fprintf(out, "  %-26s %s\n", left, table[i].help);
    }
    fprintf(
        out,
        "\nExit status: 0 done; 1 errors in the input; 2 bad command line;\n"
        "3 the C compiler, or a program of --measure, is missing or failed; 70 internal error.\n");
}
