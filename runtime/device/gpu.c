// Chooses the GPU of a process, or names the part that is missing.
#include "runtime/device/gpu.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/base/world.h"

bool hrt_device_gpu_refuse(struct hrt_error *error, const char *what, cudaError_t status) {
    return hrt_fail(error, "this program is for a GPU (target cuda), and %s: %s", what,
                    cudaGetErrorString(status));
}

// Why the driver counts none.
static bool refuse_count(struct hrt_error *error, cudaError_t status) {
    int driver = 0, runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver); // 0: there is none.
    if (driver == 0)
        return hrt_fail(error, "this program is for a GPU (target cuda), and there is none: no "
                               "driver is installed (libcuda.so.1)");
    if (status == cudaErrorInsufficientDriver)
        return hrt_fail(error,
                        "this program is for a GPU (target cuda), and there is none: the driver is "
                        "for CUDA %d.%d, which is older than CUDA %d.%d (libcudart)",
                        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        return hrt_fail(error,
                        "this program is for a GPU (target cuda), and there is none among "
                        "CUDA_VISIBLE_DEVICES=%s",
                        visible);
    return hrt_device_gpu_refuse(error, "there is none", status);
}

static bool read_number(const char *text, int count, int *number, struct hrt_error *error) {
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > INT_MAX)
        return hrt_fail_usage(error, "HECATE_DEVICE is '%s', which is not the number of a GPU",
                              text);
    if (value >= count)
        return hrt_fail_usage(error,
                              "HECATE_DEVICE is %ld, but the GPUs that this process sees have the "
                              "numbers 0 to %d",
                              value, count - 1);
    *number = (int)value;
    return true;
}

bool hrt_device_gpu_choose(int local, int *number, struct hrt_error *error) {
    struct hrt_world world;
    const char *asked = getenv("HECATE_DEVICE");
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0)
        return refuse_count(error, status == cudaSuccess ? cudaErrorNoDevice : status);
    if (asked && *asked) {
        if (!read_number(asked, count, number, error)) return false;
    } else {
        if (!hrt_base_world_find(&world, error)) return false;
        *number = (world.local_rank < 0 ? local : world.local_rank) % count;
    }
    const cudaError_t chosen = cudaSetDevice(*number);
    return chosen == cudaSuccess || hrt_device_gpu_refuse(error, "it cannot be used", chosen);
}
