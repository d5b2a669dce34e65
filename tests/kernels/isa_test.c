// The choice of instruction set: the words of HECATE_ISA, and the end of a program with a wrong one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cpu/isa.h"

// Exit code of a process that calls hk_isa under HECATE_ISA=value, 100 + isa when it returns; its
// standard error goes to `message`.
static int exit_code(const char *value, char *message, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        setenv("HECATE_ISA", value, 1);
        _exit(100 + (int)hk_isa());
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

static void the_environment_names_the_build(void **state) {
    (void)state;
    char message[256];
    for (int isa = HK_ISA_PORTABLE; isa <= (int)hk_isa_best(); isa++) {
        const char *name = hk_isa_name((enum hk_isa)isa);
        assert_int_equal(exit_code(name, message, sizeof message), 100 + isa);
    }
    assert_int_equal(exit_code("", message, sizeof message), 100 + (int)hk_isa_best());
}

static void an_unknown_name_is_an_error(void **state) {
    (void)state;
    char message[256];
    assert_int_equal(exit_code("sse9", message, sizeof message), 2);
    assert_string_equal(message,
                        "HECATE_ISA=sse9: unknown; one of avx512bf16, avx512, avx2, portable\n");
}

static void a_set_that_the_processor_lacks_is_an_error(void **state) {
    (void)state;
    if (hk_isa_best() == HK_ISA_AVX512BF16) skip(); // Lacks nothing we could name.
    char message[256];
    assert_int_equal(exit_code("avx512bf16", message, sizeof message), 2);
    assert_non_null(strstr(message, "HECATE_ISA=avx512bf16: this processor offers only "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_names_the_build),
        cmocka_unit_test(an_unknown_name_is_an_error),
        cmocka_unit_test(a_set_that_the_processor_lacks_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
