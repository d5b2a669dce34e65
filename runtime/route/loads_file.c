// Reading and writing tokens per expert.
#include "runtime/route/loads_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/route/records.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of loads are little-endian");

static const char magic[8] = {'H', 'L', 'O', 'A', 'D', 'S', '1', '\n'};
static const unsigned char zstd_magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
enum { HEAD_BYTES = sizeof magic + sizeof(struct hrt_loads_shape) };
static const uint64_t row_bytes_max = (uint64_t)1 << 32;

// Sets row_bytes.
static bool measure_row(struct hrt_loads_file *file, struct hrt_error *error) {
    const uint32_t size[] = {file->shape.layers, file->shape.devices, file->shape.microbatches,
                             file->shape.experts};
    uint64_t bytes = sizeof *file->row;
    for (int i = 0; i < 4; i++) {
        if (size[i] == 0 || bytes > row_bytes_max / size[i])
            return hrt_fail(error, "'%s' is damaged: a size in its head is zero or too large",
                            file->path);
        bytes *= size[i];
    }
    file->row_bytes = bytes;
    return true;
}

static bool take_row(struct hrt_loads_file *file, struct hrt_error *error) {
    file->row = calloc(1, file->row_bytes);
    return file->row || hrt_fail(error, "out of memory");
}

static bool fail_magic(const struct hrt_loads_file *file, const char *text,
                       struct hrt_error *error) {
    if (memcmp(text, zstd_magic, sizeof zstd_magic) == 0)
        return hrt_fail(error, "'%s' is compressed: decompress it first, zstd -d %s", file->path,
                        file->path);
    return hrt_fail(error, "'%s' is no file of loads: it does not begin with HLOADS1", file->path);
}

static bool read_head(struct hrt_loads_file *file, int64_t experts, struct hrt_error *error) {
    char text[sizeof magic] = {0};
    struct stat status;
    const bool read = hrt_route_file_read(file->fd, text, sizeof text, 0);
    if (!read || memcmp(text, magic, sizeof text) != 0) return fail_magic(file, text, error);
    if (!hrt_route_file_read(file->fd, &file->shape, sizeof file->shape, sizeof magic) ||
        fstat(file->fd, &status) != 0)
        return hrt_route_file_fail(file->path, "read", error);
    if (file->shape.iterations == 0)
        return hrt_fail(error, "'%s' is unfinished: the run that recorded it did not end",
                        file->path);
    if (file->shape.experts != experts)
        return hrt_fail(error, "'%s' has %" PRIu32 " experts, this model has %" PRId64, file->path,
                        file->shape.experts, experts);
    if (!measure_row(file, error)) return false;
    // Memory only for what is there: the head may claim anything.
    const uint64_t rows = (uint64_t)status.st_size - HEAD_BYTES;
    if (rows / file->row_bytes == file->shape.iterations && rows % file->row_bytes == 0)
        return take_row(file, error);
    return hrt_fail(error,
                    "'%s' is damaged: its head says %" PRIu32 " iterations of %zu bytes, and "
                    "%" PRIu64 " bytes follow",
                    file->path, file->shape.iterations, file->row_bytes, rows);
}

bool hrt_route_loads_file_open(struct hrt_loads_file *file, const char *path, int64_t experts,
                               struct hrt_error *error) {
    const char *why;
    *file = (struct hrt_loads_file){.path = path, .fd = hf_open_input(path, false, &why)};
    if (file->fd < 0) {
        *file = (struct hrt_loads_file){0};
        return hrt_fail(error, "cannot open '%s': %s", path, why);
    }
    return read_head(file, experts, error);
}

static int64_t row_at(const struct hrt_loads_file *file, uint32_t iteration) {
    return HEAD_BYTES + (int64_t)iteration * (int64_t)file->row_bytes;
}

bool hrt_route_loads_file_read(struct hrt_loads_file *file, int64_t iteration,
                               struct hrt_error *error) {
    const uint32_t wanted = (uint32_t)(iteration % file->shape.iterations);
    return hrt_route_file_read(file->fd, file->row, file->row_bytes, row_at(file, wanted)) ||
           hrt_route_file_fail(file->path, "read", error);
}

bool hrt_route_loads_file_create(struct hrt_loads_file *file, const char *path,
                                 struct hrt_loads_shape shape, struct hrt_error *error) {
    const char *why;
    shape.iterations = 0;
    *file = (struct hrt_loads_file){
        .path = path,
        .fd = hf_open_output(path, O_CREAT | O_TRUNC, &why),
        .shape = shape,
    };
    if (file->fd < 0) {
        *file = (struct hrt_loads_file){0};
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    }
    if (!measure_row(file, error) || !take_row(file, error)) return false;
    return (hrt_route_file_write(file->fd, magic, sizeof magic, 0) &&
            hrt_route_file_write(file->fd, &shape, sizeof shape, sizeof magic)) ||
           hrt_route_file_fail(path, "write", error);
}

// Whether the file that is there begins as it would, but for its number of iterations, and is long enough.
static bool check_begin(const char *path, struct hrt_loads_shape shape, int64_t bytes,
                        struct hrt_error *error) {
    const char *why;
    char text[sizeof magic];
    struct hrt_loads_shape there;
    struct stat status;
    const int fd = hf_open_input(path, false, &why);
    if (fd < 0) return hrt_fail(error, "'%s' cannot go on with the run: %s", path, why);
    const bool read = hrt_route_file_read(fd, text, sizeof text, 0) &&
                      hrt_route_file_read(fd, &there, sizeof there, sizeof magic) &&
                      fstat(fd, &status) == 0;
    close(fd);
    there.iterations = shape.iterations;
    if (!read || memcmp(text, magic, sizeof text) != 0 || memcmp(&there, &shape, sizeof shape) != 0)
        return hrt_fail(error, "'%s' cannot go on: it is not the record of such a run", path);
    return status.st_size >= bytes ||
           hrt_fail(error, "'%s' cannot go on: it ends before the checkpoint", path);
}

bool hrt_route_loads_file_go_on(struct hrt_loads_file *file, const char *path,
                                struct hrt_loads_shape shape, struct hrt_error *error) {
    const char *why;
    *file = (struct hrt_loads_file){.path = path, .fd = -1, .shape = shape};
    if (!measure_row(file, error) ||
        !check_begin(path, shape, row_at(file, shape.iterations), error))
        return file->path = NULL, false;
    file->fd = hf_open_output(path, 0, &why);
    if (file->fd < 0) {
        *file = (struct hrt_loads_file){0};
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    }
    shape.iterations = 0;
    if (!take_row(file, error)) return false;
    return (ftruncate(file->fd, row_at(file, file->shape.iterations)) == 0 &&
            hrt_route_file_write(file->fd, &shape, sizeof shape, sizeof magic)) ||
           hrt_route_file_fail(path, "write", error);
}

bool hrt_route_loads_file_append(struct hrt_loads_file *file, struct hrt_error *error) {
    if (!hrt_route_file_write(file->fd, file->row, file->row_bytes,
                              row_at(file, file->shape.iterations)))
        return hrt_route_file_fail(file->path, "write", error);
    file->shape.iterations++;
    return true;
}

bool hrt_route_loads_file_finish(struct hrt_loads_file *file, struct hrt_error *error) {
    return hrt_route_file_write(file->fd, &file->shape, sizeof file->shape, sizeof magic) ||
           hrt_route_file_fail(file->path, "write", error);
}

bool hrt_route_loads_file_close(struct hrt_loads_file *file, struct hrt_error *error) {
    const struct hrt_loads_file open = *file;
    *file = (struct hrt_loads_file){0};
    free(open.row);
    if (!open.path || close(open.fd) == 0) return true;
    return hrt_route_file_fail(open.path, "write", error);
}
