// config.json of a folder of Hugging Face's, as --from-hf reads it, and the model that is written for it.
//
// Promise: the written file is text of the language.
#include <stdio.h>
#include <stdlib.h>

#include "codegen/import/hf_model.h"
#include "lang/check.h"
#include "tests/fuzz/fuzz.h"

static FILE *nowhere;

// Sizes may be too large, or too many experts: the checker says so.
static void check(const char *path) {
    struct hec_arena arena = {0};
    struct hec_diag diag = {.out = nowhere};
    const struct hec_front_options options = {.path = path};
    struct hec_program *program = NULL;
    if (!hec_front_print_parse(&options, &diag, &arena, nowhere))
        fuzz_broken("what is written is text of the language");
    hec_front(&options, &diag, &arena, &program);
    hec_diag_flush(&diag);
    hec_diag_free(&diag);
    hec_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
        fuzz_hush_errors();
    }
    struct hec_arena arena = {0};
    struct hec_hf_config config;
    struct hec_hf_model model;
    if (hec_hf_open(&config, &arena, fuzz_file(0, data, size)) &&
        hec_hf_read_model(&config, &model)) {
        struct hec_writer out = {.arena = &arena};
        hec_hf_write_model(&model, &out);
        check(fuzz_file(1, out.text, out.length));
    }
    hec_hf_close(&config);
    hec_arena_free(&arena);
    return 0;
}
