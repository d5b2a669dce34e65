// Command lines, one word per line: of training programs, of hecatec, of hecate-replay.
//
// Promises: a refusal says why; accepted options can be printed.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/base/options.h"
#include "runtime/cli/options.h"
#include "tests/fuzz/fuzz.h"
#include "tools/replay/options.h"

static const struct hrt_setting settings[] = {
    {"cluster.devices", "1"}, {"train.objective", "next_token"}, {"train.steps", "300"}};
static const struct hrt_program program = {
    .name = "fuzz", .source = "fuzz.moe", .version = "1", .settings = 3, .setting = settings};

static jmp_buf replay_ended;
static bool in_replay;

// options_parse of hecate-replay ends the process where it refuses; linked with --wrap=exit.
_Noreturn void __real_exit(int status);
_Noreturn void __wrap_exit(int status);
_Noreturn void __wrap_exit(int status) {
    if (in_replay) longjmp(replay_ended, 1);
    __real_exit(status);
}

static void replay(int words, char **word) {
    static struct options options;
    in_replay = true;
    if (setjmp(replay_ended) == 0) options_parse(&options, words, word);
    in_replay = false;
}

static void compiler(int words, char **word) {
    struct hec_arena arena = {0};
    struct hec_options options;
    hec_options_parse(&arena, words, word, &options);
    hec_arena_free(&arena);
}

static void trainer(int words, char **word, FILE *nowhere) {
    struct hrt_arguments arguments;
    struct hrt_error error = {0};
    if (!hrt_cli_options_parse(&arguments, words, word, &program, &error)) {
        if (!*error.text || error.code != HRT_EXIT_USAGE) fuzz_broken("a refusal says why");
        return;
    }
    hrt_config_print(nowhere, &arguments.config, &program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *nowhere;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    fuzz_hush_errors();
    for (int program_of = 0; program_of < 3; program_of++) {
        char *word[FUZZ_WORDS_MAX + 2] = {"fuzz"};
        char *text = fuzz_text(data, size); // Programs may write to their words.
        const int words = 1 + fuzz_words(text, size, word + 1);
        word[words] = NULL;
        if (program_of == 0) trainer(words, word, nowhere);
        if (program_of == 1) compiler(words, word);
        if (program_of == 2) replay(words, word);
        free(text);
    }
    return 0;
}
