// hec_check_tool: the front of the compiler as a program, for the text tests of this folder.
//
//   hec_check_tool [-D NAME=VALUE] [--set KEY=VALUE] [--parse | --check | --target=T] FILE
//   hec_check_tool --settings | --builtins
//
// Further flags: --color=always --error-limit=N --library=DIR --cluster=FILE
#include <stdlib.h>
#include <string.h>

#include "lang/builtins.h"
#include "lang/check.h"
#include "lang/settings.h"

enum { FLAGS_MAX = 32 };

struct arguments {
    struct hec_front_options options;
    const char *defines[FLAGS_MAX], *sets[FLAGS_MAX];
    const char *mode, *target;
};

static bool starts(const char *text, const char *prefix) {
    return !strncmp(text, prefix, strlen(prefix));
}

static void read_arguments(int count, char **values, struct arguments *arguments,
                           struct hec_diag *diag) {
    arguments->options.defines = arguments->defines;
    arguments->options.sets = arguments->sets;
    for (int i = 1; i < count; i++) {
        const char *text = values[i];
        const bool more = i + 1 < count;
        if (!strcmp(text, "-D") && more && arguments->options.defines_count < FLAGS_MAX)
            arguments->defines[arguments->options.defines_count++] = values[++i];
        else if (!strcmp(text, "--set") && more && arguments->options.sets_count < FLAGS_MAX)
            arguments->sets[arguments->options.sets_count++] = values[++i];
        else if (!strcmp(text, "--color=always"))
            diag->colour = HEC_COLOUR_ALWAYS;
        else if (starts(text, "--error-limit="))
            diag->error_limit = (uint32_t)atoi(text + 14);
        else if (starts(text, "--library="))
            arguments->options.library = text + 10;
        else if (starts(text, "--cluster="))
            arguments->options.cluster = text + 10;
        else if (starts(text, "--target="))
            arguments->target = text + 9;
        else if (starts(text, "--"))
            arguments->mode = text + 2;
        else
            arguments->options.path = text;
    }
}

int main(int count, char **values) {
    struct hec_arena arena = {0};
    struct hec_diag diag = {.out = stderr};
    struct arguments arguments = {.mode = "check"};
    read_arguments(count, values, &arguments, &diag);
    if (!strcmp(arguments.mode, "settings")) {
        hec_settings_print(stdout);
        return 0;
    }
    if (!strcmp(arguments.mode, "builtins")) {
        hec_builtins_print(stdout);
        return 0;
    }
    if (!arguments.options.path) return 2;

    bool good;
    struct hec_program *program = NULL;
    if (!strcmp(arguments.mode, "parse")) {
        good = hec_front_print_parse(&arguments.options, &diag, &arena, stdout);
    } else {
        good = hec_front(&arguments.options, &diag, &arena, &program);
        if (good && arguments.target)
            good = hec_check_target(program, arguments.target, &diag);
        else if (good)
            hec_program_print(program, stdout);
    }
    fflush(stdout);
    hec_diag_flush(&diag);
    hec_diag_free(&diag);
    hec_arena_free(&arena);
    return good ? 0 : 1;
}
