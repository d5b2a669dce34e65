// Files and errors of the runtime's tests.
#define _GNU_SOURCE
#include "tests/runtime/support/case.h"

#include <ftw.h>
#include <unistd.h>

static char directory[64];

int test_enter_directory(void **state) {
    (void)state;
    strcpy(directory, "/tmp/hecate-test-XXXXXX");
    return mkdtemp(directory) ? chdir(directory) : -1;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    return remove(path);
}

int test_leave_directory(void **state) {
    (void)state;
    if (chdir("/") != 0) return -1;
    return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void test_write(const char *name, const void *data, size_t bytes) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

void test_write_llmc(const char *name, struct test_llmc file) {
    const size_t bytes = 1024 + (size_t)(file.count * file.token_bytes + file.extra);
    char *data = calloc(1, bytes);
    assert_non_null(data);
    memcpy(data, (int32_t[]){file.magic, file.version, file.claimed}, 12);
    for (int i = 0; i < file.count; i++)
        memcpy(data + 1024 + i * file.token_bytes, &file.token[i], (size_t)file.token_bytes);
    test_write(name, data, bytes);
    free(data);
}

void test_pack_llmc(const char *name, int32_t packed, int32_t group, const bool *counts,
                    int64_t count) {
    const int32_t header[] = {packed, group};
    char path[64];
    unsigned char weights[16 + 1024] = "hcweight";
    assert_true(count <= 8 * 1024);
    memcpy(weights + 8, &count, sizeof count);
    for (int64_t i = 0; i < count; i++) weights[16 + i / 8] |= (unsigned char)(counts[i] << i % 8);
    snprintf(path, sizeof path, "%s.weights", name);
    test_write(path, weights, 16 + ((size_t)count + 7) / 8);
    FILE *file = fopen(name, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 12, SEEK_SET), 0);
    assert_int_equal(fwrite(header, sizeof header, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

void test_write_text(const char *name, size_t count) {
    static const char text[] = "a fox and a dog met at the old well; ";
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++) fputc(text[i % (sizeof text - 1)], file);
    assert_int_equal(fclose(file), 0);
}

char *test_read(const char *name, size_t *bytes) {
    FILE *file = fopen(name, "r");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    char *data = calloc(1, size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, size, file), size);
    fclose(file);
    if (bytes) *bytes = size;
    return data;
}

void test_expect_error(bool result, const struct hrt_error *error, enum hrt_exit code,
                       const char *text) {
    assert_false(result);
    assert_string_equal(error->text, text);
    assert_int_equal(error->code, code);
}
