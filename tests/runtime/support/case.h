// Shared by the runtime's tests: cmocka, files in a directory of the test's own, expected errors.
#ifndef HECATE_TESTS_RUNTIME_SUPPORT_CASE_H
#define HECATE_TESTS_RUNTIME_SUPPORT_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

// The bigram model of support/bigram.c; `bigram` is what the test was linked with.
extern const struct hrt_program bigram;

// Values that the host may touch, laid out by a placement.
#define TEST_BUFFER(placed, at) (&(const struct hrt_buffer){.placement = (placed), .values = (at)})

// Enters a fresh directory below /tmp, or comes back and removes it; cmocka's group fixtures.
int test_enter_directory(void **state);
int test_leave_directory(void **state);

// Writes `bytes` at `data` to the file `name`.
void test_write(const char *name, const void *data, size_t bytes);

// Writes an llm.c file: a header of (magic, version, claimed tokens), then `count` tokens of
// `token_bytes` each, and `extra` bytes more.
struct test_llmc {
    int32_t magic, version, claimed;
    int token_bytes;
    const uint32_t *token;
    int count, extra;
};
void test_write_llmc(const char *name, struct test_llmc file);

// Makes an llm.c file one of sequences of `packed` tokens with whole documents, of which `group` belong together (0:
// one), and writes the weights of its `count` tokens, NAME.weights.
void test_pack_llmc(const char *name, int32_t packed, int32_t group, const bool *counts,
                    int64_t count);

// Writes `count` bytes of text that repeats.
void test_write_text(const char *name, size_t count);

// The whole file, with a zero behind it; freed by the caller. NULL: it does not exist.
char *test_read(const char *name, size_t *bytes);

// Fails unless `failed` is false, `error` has `code` and its text is `text`.
void test_expect_error(bool result, const struct hrt_error *error, enum hrt_exit code,
                       const char *text);

#endif
