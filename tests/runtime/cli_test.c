// Unit test of runtime/cli and runtime/base: values, settings, options, suggestions.
#include "runtime/base/suggest.h"
#include "runtime/cli/openmp.h"
#include "runtime/cli/options.h"
#include "runtime/data/file.h"
#include "runtime/program.h"
#include "tests/runtime/support/case.h"

static const char *suggestion_for(const char *typed) {
    static const char *const known[] = {"train.steps", "train.seed", "log.every", "eval"};
    struct hrt_suggestion suggestion = {.typed = typed};
    for (int i = 0; i < 4; i++) hrt_base_suggest(&suggestion, known[i]);
    return suggestion.best;
}

static void close_names_are_suggested(void **state) {
    (void)state;
    assert_string_equal(suggestion_for("train.step"), "train.steps");
    assert_string_equal(suggestion_for("trian.steps"), "train.steps");
    assert_string_equal(suggestion_for("train.sede"), "train.seed");
    assert_string_equal(suggestion_for("evla"), "eval");
    assert_null(suggestion_for("evxx"));
    assert_null(suggestion_for(""));
    assert_null(suggestion_for("something else entirely"));
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = '\0';
    assert_null(suggestion_for(longest));
}

static void ranks_share_cores(void **state) {
    (void)state;
    assert_int_equal(hrt_cli_threads_of_rank(64, 64, 1), 64); // Alone.
    assert_int_equal(hrt_cli_threads_of_rank(64, 64, 4), 16); // Not bound.
    assert_int_equal(hrt_cli_threads_of_rank(64, 64, 3), 21);
    assert_int_equal(hrt_cli_threads_of_rank(32, 64, 4), 16); // Two on each socket.
    assert_int_equal(hrt_cli_threads_of_rank(32, 64, 3), 16); // One socket has two.
    assert_int_equal(hrt_cli_threads_of_rank(16, 64, 4), 16); // Each has its own cores.
    assert_int_equal(hrt_cli_threads_of_rank(1, 64, 4), 1);
    assert_int_equal(hrt_cli_threads_of_rank(2, 2, 8), 1); // More ranks than cores.
}

static void launchers_tell_local_ranks(void **state) {
    (void)state;
    assert_int_equal(hrt_cli_local_ranks(), 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),3", 1);
    assert_int_equal(hrt_cli_local_ranks(), 4);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1); // mpirun below srun.
    assert_int_equal(hrt_cli_local_ranks(), 2);
    setenv("LOCAL_WORLD_SIZE", "none", 1);
    assert_int_equal(hrt_cli_local_ranks(), 2);
    unsetenv("LOCAL_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
}

static void integers_take_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t expected;
    } good[] = {{"12", 12},
                {"4Mi", 4 << 20},
                {"2k", 2000},
                {"-3", -3},
                {"1Ki", 1024},
                {"3G", 3000000000},
                {"2Gi", 1ll << 31},
                {"1T", 1000000000000},
                {"1Ti", 1ll << 40},
                {"1e6", 1000000},
                {"1e15", 1000000000000000},
                {"1.5Ki", 1536},
                {"1e-3M", 1000},
                {"9007199254740991", 9007199254740991}};
    const struct hrt_value_rule rule = HRT_INTEGER(0, 0), bytes = HRT_BYTES(0, 0);
    struct hrt_error error = {0};
    int64_t value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(hrt_config_parse(&rule, "n", good[i].text, &value, &error));
        assert_true(value == good[i].expected);
    }
    static const char *const bad[] = {"",
                                      "x",
                                      "1.5",
                                      "3 M",
                                      "9223372036854775808",
                                      "9007199254740993",
                                      "9223372036854775807k",
                                      "1e400",
                                      "0x10",
                                      "nan",
                                      "-inf",
                                      "1e-3",
                                      "1GiB",
                                      "4B",
                                      "1KiiB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hrt_config_parse(&rule, "n", bad[i], &value, &error));
    assert_true(hrt_config_parse(&bytes, "n", "1.5GiB", &value, &error) && value == 3ll << 29);
    assert_true(hrt_config_parse(&bytes, "n", "4B", &value, &error) && value == 4);
    assert_true(hrt_config_parse(&bytes, "n", "4k", &value, &error) && value == 4000);
    assert_false(hrt_config_parse(&bytes, "n", "4BB", &value, &error));
}

static void values_outside_their_rule_are_refused(void **state) {
    (void)state;
    static const char choices[] = "one|two";
    const struct {
        struct hrt_value_rule rule;
        const char *text, *expected;
    } bad[] = {
        {HRT_INTEGER(1, 10), "11", "n is 11; it must be from 1 to 10"},
        {HRT_INTEGER(1, 10), "ten", "n needs an integer, not 'ten'"},
        {HRT_REAL(0, 1), "-0.5", "n is -0.5; it must be from 0 to 1"},
        {HRT_REAL(0, 1), "nan", "n needs a number, not 'nan'"},
        {HRT_REAL(0, 1), "0.5x", "n needs a number, not '0.5x'"},
        {HRT_PAIR(0, 1), "0.9", "n needs two numbers, as in 0.9,0.95, not '0.9'"},
        {HRT_PAIR(0, 1), "0.9,0.95,1", "n needs two numbers, as in 0.9,0.95, not '0.9,0.95,1'"},
        {HRT_PAIR(0, 0.99), "0.9,1", "n is 0.9,1; it must be from 0 to 0.99"},
        {HRT_CHOICE(choices), "three", "n cannot be 'three'; it may be: one, two"},
        {HRT_TEXT, "", "n is empty"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char out[4096];
        struct hrt_error error = {0};
        test_expect_error(hrt_config_parse(&bad[i].rule, "n", bad[i].text, out, &error), &error,
                          HRT_EXIT_USAGE, bad[i].expected);
    }
}

static void pairs_may_be_written_as_lists(void **state) {
    (void)state;
    const struct hrt_value_rule rule = HRT_PAIR(0, 1);
    struct hrt_error error = {0};
    double pair[2];
    assert_true(hrt_config_parse(&rule, "n", "[0.9, 0.95]", pair, &error));
    assert_true(pair[0] == 0.9 && pair[1] == 0.95);
    assert_true(hrt_config_parse(&rule, "n", "0.5,0.25", pair, &error));
    assert_true(pair[0] == 0.5 && pair[1] == 0.25);
}

// Parses a command line of `program`, given without its name.
static bool parse_for(const struct hrt_program *program, struct hrt_arguments *arguments,
                      struct hrt_error *error, const char *line) {
    static char text[256];
    char *argv[16] = {"bigram"};
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) argv[argc++] = at;
    *error = (struct hrt_error){0};
    return hrt_cli_options_parse(arguments, argc, argv, program, error);
}

static bool parse(struct hrt_arguments *arguments, struct hrt_error *error, const char *line) {
    return parse_for(&bigram, arguments, error, line);
}

static void data_on_the_command_line_replaces_the_programs(void **state) {
    (void)state;
    static const struct hrt_setting settings[] = {{"data.train", "from/the.moe"}, {"data.val", ""}};
    struct hrt_program program = bigram;
    struct hrt_arguments a;
    struct hrt_error error;
    program.setting = settings;
    program.settings = 2;
    assert_true(parse_for(&program, &a, &error, "train"));
    assert_int_equal(a.config.train_objective, HRT_OBJECTIVE_next_token);
    assert_int_equal(a.config.data_train.count, 1);
    assert_string_equal(a.config.data_train.text[0], "from/the.moe");
    assert_int_equal(a.config.data_val.count, 0);
    assert_true(parse_for(&program, &a, &error, "train --data a --set data.train=b"));
    assert_int_equal(a.config.data_train.count, 2);
    assert_string_equal(a.config.data_train.text[0], "a");
    assert_string_equal(a.config.data_train.text[1], "b");
}

static void own_data_drops_the_programs_validation(void **state) {
    (void)state;
    static const struct hrt_setting settings[] = {{"data.train", "from/the.moe"},
                                                  {"data.val", "its/validation"}};
    struct hrt_program program = bigram;
    struct hrt_arguments a;
    struct hrt_error error;
    program.setting = settings;
    program.settings = 2;
    assert_true(parse_for(&program, &a, &error, "train"));
    assert_int_equal(a.config.data_val.count, 1);
    assert_true(parse_for(&program, &a, &error, "train --data a"));
    assert_int_equal(a.config.data_val.count, 0);
    assert_true(parse_for(&program, &a, &error, "train --val v --data a"));
    assert_int_equal(a.config.data_val.count, 1);
    assert_string_equal(a.config.data_val.text[0], "v");
    assert_true(parse_for(&program, &a, &error, "train --data a --val v"));
    assert_int_equal(a.config.data_val.count, 1);
}

static void the_objective_is_the_programs(void **state) {
    (void)state;
    static const struct hrt_setting settings[] = {{"train.objective", "masked"},
                                                  {"train.objective.rate", "0.2"}};
    struct hrt_program program = bigram;
    struct hrt_arguments a;
    struct hrt_error error;
    program.setting = settings;
    program.settings = 2;
    assert_true(parse_for(&program, &a, &error, "train --set train.objective.rate=0.3"));
    assert_int_equal(a.config.train_objective, HRT_OBJECTIVE_masked);
    assert_true(a.config.train_objective_rate == 0.3);
    const bool parsed = parse_for(&program, &a, &error, "train --set train.objective=next_token");
    test_expect_error(
        parsed, &error, HRT_EXIT_USAGE,
        "'train.objective' is fixed at 'masked' when the program is compiled; compile "
        "again with hecatec --set train.objective=next_token");
}

static void settings_come_from_the_program_then_the_command_line(void **state) {
    (void)state;
    struct hrt_arguments a;
    struct hrt_error error;
    assert_true(parse(&a, &error, "train"));
    assert_int_equal(a.config.train_steps, 20);             // The program's.
    assert_true(a.config.train_optimizer_lr == 0.01);       // The program's.
    assert_true(a.config.train_optimizer_betas[1] == 0.95); // The default.
    assert_int_equal(a.config.data_format, HRT_DATA_FORMAT_bytes);
    assert_null(a.config.log_jsonl);
    assert_int_equal(a.config.train_tokens, 0); // "auto".
    assert_true(a.config.train_optimizer_clip == 1);
    assert_true(parse(&a, &error,
                      "train --log x --set log.jsonl=none --set train.tokens=4Ki "
                      "--set train.optimizer.clip=none"));
    assert_null(a.config.log_jsonl);
    assert_int_equal(a.config.train_tokens, 4096);
    assert_true(a.config.train_optimizer_clip == 0);
    assert_true(parse(&a, &error,
                      "train --steps 7 --set train.optimizer.lr=0.5 --format=llmc --steps=8 "
                      "--data a --data b --val c --log out"));
    assert_int_equal(a.config.train_steps, 8);
    assert_true(a.config.train_optimizer_lr == 0.5);
    assert_int_equal(a.config.data_format, HRT_DATA_FORMAT_llmc);
    assert_int_equal(a.config.data_train.count, 2);
    assert_string_equal(a.config.data_train.text[1], "b");
    assert_string_equal(a.config.data_val.text[0], "c");
    assert_string_equal(a.config.log_jsonl, "out");
    assert_true(a.config.train_epochs == 0);
    assert_true(parse(&a, &error, "train --epochs 0.5"));
    assert_true(a.config.train_epochs == 0.5);
    assert_true(parse(&a, &error, "train --epochs none --steps 3"));
    assert_true(a.config.train_epochs == 0);
}

static void wrong_command_lines_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *expected;
    } bad[] = {
        {"", "a command is missing: train, eval, sample, export, links or info; see bigram --help"},
        {"trian", "unknown command 'trian'; did you mean 'train'?"},
        {"destroy", "unknown command 'destroy'; see bigram --help"},
        {"train --stpes 3", "unknown option '--stpes'; did you mean '--steps'?"},
        {"train --frobnicate", "unknown option '--frobnicate'; see train --help"},
        {"train --steps", "--steps needs a value: --steps N"},
        {"train --steps x", "--steps needs an integer, not 'x'"},
        {"train --steps 0", "--steps is 0; it must be from 1 to 1e+12"},
        {"train file.txt", "unexpected argument 'file.txt'; see train --help"},
        {"train --tokens 3", "train does not take --tokens"},
        {"eval --profile", "eval does not take --profile"},
        {"train --profile=yes", "--profile takes no value"},
        {"train --trace", "--trace needs a value: --trace FILE"},
        {"info --params=3", "--params takes no value"},
        {"train --set steps", "--set needs KEY=VALUE, not 'steps'"},
        {"train --set train.stesp=3", "unknown setting 'train.stesp'; did you mean 'train.steps'?"},
        {"train --set a.b=3", "unknown setting 'a.b'; 'bigram info' lists all"},
        {"train --set train.steps=-1", "train.steps is -1; it must be from 1 to 1e+12"},
        {"train --steps 3 --epochs 2",
         "train.steps and train.epochs both say when the run ends: give one of them"},
        {"train --set train.epochs=2 --set train.steps=3",
         "train.steps and train.epochs both say when the run ends: give one of them"},
        {"train --epochs -1", "--epochs is -1; it must be from 0 to 1e+09"},
        {"train --set data.order=sorted",
         "data.order cannot be 'sorted'; it may be: shuffle, sequential, random"},
        {"train --set parallel.microbatch=8",
         "'parallel.microbatch' is fixed at '4' when the program is compiled; compile again with "
         "hecatec --set parallel.microbatch=8"},
        {"train --set train.schedule=cosin",
         "train.schedule cannot be 'cosin'; it may be: constant, cosine, linear, wsd, pieces"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hrt_arguments arguments;
        struct hrt_error error;
        const bool result = parse(&arguments, &error, bad[i].line);
        test_expect_error(result, &error, HRT_EXIT_USAGE, bad[i].expected);
    }
}

// Every option of a command's help is accepted by the command, and every line fits 100 columns.
static void help_lists_what_is_accepted(void **state) {
    (void)state;
    static const enum hrt_command commands[] = {HRT_TRAIN,  HRT_EVAL,  HRT_SAMPLE,
                                                HRT_EXPORT, HRT_LINKS, HRT_INFO};
    static const char *const names[] = {"train", "eval", "sample", "export", "links", "info"};
    for (int i = 0; i < 6; i++) {
        char *help = NULL;
        size_t bytes;
        FILE *out = open_memstream(&help, &bytes);
        hrt_cli_options_help(out, &bigram, commands[i]);
        fclose(out);
        int options = 0;
        for (char *rest, *line = strtok_r(help, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
            char name[64], command[128];
            assert_true(strlen(line) <= 100);
            if (sscanf(line, "  %63[^ []", name) != 1 || strncmp(name, "--", 2) != 0) continue;
            struct hrt_arguments arguments;
            struct hrt_error error;
            snprintf(command, sizeof command, "%s %s", names[i], name);
            parse(&arguments, &error, command);
            assert_null(strstr(error.text, "unknown"));
            assert_null(strstr(error.text, "does not take"));
            options++;
        }
        assert_true(options >= 3);
        free(help);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_names_are_suggested),
        cmocka_unit_test(ranks_share_cores),
        cmocka_unit_test(launchers_tell_local_ranks),
        cmocka_unit_test(integers_take_units),
        cmocka_unit_test(values_outside_their_rule_are_refused),
        cmocka_unit_test(pairs_may_be_written_as_lists),
        cmocka_unit_test(data_on_the_command_line_replaces_the_programs),
        cmocka_unit_test(own_data_drops_the_programs_validation),
        cmocka_unit_test(the_objective_is_the_programs),
        cmocka_unit_test(settings_come_from_the_program_then_the_command_line),
        cmocka_unit_test(wrong_command_lines_are_refused),
        cmocka_unit_test(help_lists_what_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
