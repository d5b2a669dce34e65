// The table of block sizes: its valid files, the refusal of a wrong one, and that no bit of a GEMM
// depends on it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cpu/blocking.h"
#include "kernels/cpu/isa.h"
#include "kernels/matmul/matmul.h"

static const struct hk_blocking small[HK_PRECISIONS] = {
    {12, 18, 24, 10}, {30, 12, 12, 11}, {384, 24, 768, 30}};

static char path[] = "/tmp/hecate-blocking-XXXXXX";

static void write_file(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

// Exit code of a process that uses the sizes under HECATE_BLOCKING=path, 100 when they are `small`,
// 101 when they are the default; its standard error goes to `message`.
static int exit_code(const char *value, char *message, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        setenv("HECATE_BLOCKING", value, 1);
        struct hk_blocking standard[HK_PRECISIONS];
        hk_blocking_default(standard);
        if (memcmp(hk_blocking(), small, sizeof small) == 0) _exit(100);
        _exit(memcmp(hk_blocking(), standard, sizeof standard) == 0 ? 101 : 102);
    }
    close(ends[1]);
    const ssize_t length = read(ends[0], message, size - 1);
    message[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    char message[256];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    hk_blocking_write(file, small);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(exit_code(path, message, sizeof message), 100);
    assert_int_equal(exit_code("", message, sizeof message), 101);
}

static void expect_refused(const char *head, const char *rest, const char *want) {
    char text[512], message[256];
    snprintf(text, sizeof text, "hecate-blocking 1 %s\n%s", head ? head : hk_isa_name(hk_isa()),
             rest);
    write_file(text);
    assert_int_equal(exit_code(path, message, sizeof message), 2);
    assert_non_null(strstr(message, path));
    if (!strstr(message, want)) fail_msg("'%s' lacks '%s'", message, want);
}

#define LINE(name, nn, team) name " nn_rows=" nn " nt_rows=96 tn_rows=96 team=" team "\n"

static void a_wrong_file_is_refused(void **state) {
    (void)state;
    const char *good = LINE("f32", "96", "18"), *f64 = LINE("f64", "96", "18");
    char message[256], text[512];
    assert_int_equal(exit_code("/nowhere/sizes", message, sizeof message), 2);
    assert_non_null(strstr(message, "/nowhere/sizes: "));
    expect_refused("sse9", good, "measured for sse9, but this process uses ");
    expect_refused("avx512 and more", good, ":1: not a table of block sizes");
    expect_refused(NULL, "", ":2: not the sizes that belong here");
    expect_refused(NULL, f64, ":2: not the sizes that belong here");
    expect_refused(NULL, "f32 nn_rows=96 nt_rows=96 tn_rows=96\n", ":2: not the sizes");
    expect_refused(NULL, LINE("f32", "0", "18"), ":2: sizes out of bounds");
    expect_refused(NULL, LINE("f32", "390", "18"), ":2: sizes out of bounds");
    expect_refused(NULL, LINE("f32", "97", "18"), ":2: sizes out of bounds");
    expect_refused(NULL, LINE("f32", "-96", "18"), ":2: sizes out of bounds");
    expect_refused(NULL, LINE("f32", "96", "63"), ":2: sizes out of bounds");
    snprintf(text, sizeof text, "%s%s", good, LINE("f64", "5", "18"));
    expect_refused(NULL, text, ":3: sizes out of bounds");
    snprintf(text, sizeof text, "%s%s%smore\n", good, f64, LINE("bf16", "96", "18"));
    expect_refused(NULL, text, ":5: more than a table");
}

enum { rows = 500, width = 200, depth = 150 };

static float a[rows * depth], b[256 * depth], c[rows * width], out[3][rows * 256];
static hk_bf16 weights[256 * (depth + 1)];

// All forms in both precisions, one behind the other.
static void run_all(float *result) {
    const struct hk_matmul_dims dims = {.m = rows, .n = width, .k = depth};
    memset(result, 0, sizeof out[0]);
    hk_matmul_nn_f32(result, a, b, HK_PANELS, dims, HK_ADD, NULL);
    hk_matmul_nn_bf16(result, a, weights, HK_PANELS, dims, HK_ADD, NULL);
    hk_matmul_nt_f32(result, c, b, HK_PANELS, dims, HK_ADD, NULL);
    hk_matmul_nt_bf16(result, c, weights, HK_PANELS, dims, HK_ADD, NULL);
    hk_matmul_tn_f32(result, a, c, HK_PANELS, dims, HK_ADD);
    hk_matmul_tn_bf16(result, a, c, HK_PANELS, dims, HK_ADD);
}

static void no_bit_depends_on_the_sizes(void **state) {
    (void)state;
    struct hk_blocking standard[HK_PRECISIONS];
    for (int i = 0; i < rows * depth; i++) a[i] = (float)(i * 7 % 1013) / 512 - 1;
    for (int i = 0; i < 256 * depth; i++) b[i] = (float)(i * 11 % 1019) / 512 - 1;
    for (int i = 0; i < rows * width; i++) c[i] = (float)(i * 13 % 1021) / 512 - 1;
    hk_round_panels_bf16(weights, b, depth, width);
    hk_blocking_default(standard);
    hk_blocking_use(standard);
    run_all(out[0]);
    hk_blocking_use(small);
    run_all(out[1]);
    standard[HK_F32] = small[HK_BF16];
    standard[HK_BF16] = small[HK_F32];
    hk_blocking_use(standard);
    run_all(out[2]);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    assert_memory_equal(out[0], out[2], sizeof out[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_wrong_file_is_refused),
        cmocka_unit_test(no_bit_depends_on_the_sizes),
    };
    const int file = mkstemp(path);
    if (file < 0 || close(file) != 0) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
