// A GPU as a device, through CUDA's runtime: one stream for all work. A library of its own, which only programs
// for target cuda are linked with.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>
#if __has_include(<nvtx3/nvToolsExt.h>) // A wheel of its own.
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX
#endif

#include "kernels/cpu/observe.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/store.h"
#include "kernels/launchers.h"
#include "runtime/device/device.h"
#include "runtime/device/gpu.h"
#include "runtime/device/pages.h"

// Where the device has failed nothing that was computed can be trusted.
static void check(struct hrt_device *device, const char *what, cudaError_t error) {
    const struct hkc_lane *lane = device->lane;
    const char *kernel = lane->error ? lane->failed : NULL;
    if (kernel) error = (cudaError_t)lane->error;
    if (error == cudaSuccess) return;
    fflush(stdout);
    fprintf(stderr, "error: %s: %s%s: %s (%s)\n", device->name, kernel ? "launching " : what,
            kernel ? kernel : "", cudaGetErrorString(error), cudaGetErrorName(error));
    if (device->end) device->end(device->end_context, HRT_EXIT_FAILED);
    exit(HRT_EXIT_FAILED); // Nobody else waits.
}

// The host polls its stream so often between two looks at others. After so many nanoseconds it sleeps in between: most
// waits are shorter, and a nap would end some 50 us too late.
enum { LOOKS = 100, AWAKE = 10000000 };

// ---- opening

static bool open_lane(struct hkc_lane *lane, int number, struct hrt_error *error) {
    cudaError_t status = cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking);
    if (status != cudaSuccess)
        return hrt_device_gpu_refuse(error, "its stream cannot be made", status);
    status = cudaMalloc(&lane->scratch, HKC_SCRATCH);
    if (status == cudaErrorMemoryAllocation)
        return hrt_fail(error, "not enough memory on GPU %d: kernels need %d MiB of scratch",
                        number, HKC_SCRATCH >> 20);
    if (status != cudaSuccess)
        return hrt_device_gpu_refuse(error, "its scratch memory cannot be taken", status);
    status = cudaDeviceGetAttribute(&lane->multiprocessors, cudaDevAttrMultiProcessorCount, number);
    if (status != cudaSuccess)
        return hrt_device_gpu_refuse(error, "it does not say how large it is", status);
    int major = 0;
    status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number);
    if (status != cudaSuccess)
        return hrt_device_gpu_refuse(error, "it does not say what it can do", status);
    lane->capability = 10 * major;
    return true;
}

// The device's `own`.
struct gpu {
    int number;
    cudaEvent_t mark[HRT_MARKS];
    struct hrt_pages *pages; // Memory that was taken HRT_IN_PARTS.
};

static bool open_marks(struct gpu *gpu, struct hrt_error *error) {
    for (int i = 0; i < HRT_MARKS; i++) {
        const cudaError_t status = cudaEventCreateWithFlags(&gpu->mark[i], cudaEventDisableTiming);
        if (status != cudaSuccess)
            return hrt_device_gpu_refuse(error, "its events cannot be made", status);
    }
    return true;
}

static void close_marks(struct gpu *gpu) {
    for (int i = 0; gpu && i < HRT_MARKS; i++) {
        if (gpu->mark[i]) cudaEventDestroy(gpu->mark[i]);
    }
    free(gpu);
}

// Programs are linked with it where there is cuBLASLt.
bool hkc_library_open(struct hkc_lane *lane, const char *path, char *why, size_t why_bytes)
    __attribute__((weak));

// Opens the library that HECATE_PRODUCTS names.
static bool open_library(struct hkc_lane *lane, struct hrt_error *error) {
    const char *path = getenv("HECATE_PRODUCTS");
    char why[256];
    if (!path || !*path) return true;
    if (!hkc_library_open)
        return hrt_fail_usage(error, "HECATE_PRODUCTS=%s: this program was linked without cuBLASLt",
                              path);
    return hkc_library_open(lane, path, why, sizeof why) ||
           hrt_fail_usage(error, "HECATE_PRODUCTS: %s", why);
}

// HECATE_GRAPHS=off: every kernel is asked for one by one, as profilers show it best.
static bool open_graphs(bool *records, struct hrt_error *error) {
    const char *asked = getenv("HECATE_GRAPHS");
    *records = !asked || !*asked;
    return *records || strcmp(asked, "off") == 0 ||
           hrt_fail_usage(error, "HECATE_GRAPHS=%s: it can only be \"off\"", asked);
}

static void close_lane(struct hkc_lane *lane) {
    if (lane->stream) cudaStreamSynchronize(lane->stream);
    if (lane->library) lane->library->close(lane->library);
    cudaFree(lane->scratch);
    if (lane->stream) cudaStreamDestroy(lane->stream);
    free(lane);
}

static void close_gpu(struct hrt_device *device) {
    if (device->lane) close_lane(device->lane);
    close_marks(device->own);
    device->lane = NULL;
    device->own = NULL;
}

// Kernels of a library and of the program itself are compiled apart.
int hkc_program_code(const char **compiled_for) __attribute__((weak));

// Names GPU `number`. False: there is no code for it.
static bool find_code(int number, char *name, size_t bytes, bool *warpgroups,
                      struct hrt_error *error) {
    const char *compiled_for = "", *whose = "kernels";
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number);
    snprintf(name, bytes, "GPU %d (sm_%d%d)", number, major, minor);
    int status = hkc_library_code(&compiled_for, warpgroups);
    if (status == cudaSuccess && hkc_program_code) {
        whose = "loops";
        status = hkc_program_code(&compiled_for);
    }
    return status == cudaSuccess ||
           hrt_fail(error, "%s: the program's %s are compiled for other GPUs (%s): %s", name, whose,
                    compiled_for, cudaGetErrorString((cudaError_t)status));
}

static bool open_gpu(struct hrt_device *device, struct hrt_error *error) {
    int number = 0;
    bool warpgroups = false;
    if (!hrt_device_gpu_choose(device->local, &number, error) ||
        !find_code(number, device->name, sizeof device->name, &warpgroups, error))
        return false;
    cudaDeviceGetPCIBusId(device->address, sizeof device->address, number);
    device->lane = calloc(1, sizeof *device->lane);
    struct gpu *gpu = device->own = calloc(1, sizeof *gpu);
    const bool room = device->lane && gpu;
    if (room) device->lane->warpgroups = warpgroups, gpu->number = number;
    if (room && open_lane(device->lane, number, error) && open_library(device->lane, error) &&
        open_graphs(&device->records, error) && open_marks(gpu, error))
        return true;
    close_gpu(device);
    return room ? false : hrt_fail(error, "out of memory");
}

void hkc_library_name(char *text, size_t bytes) __attribute__((weak));

// Describes the GPU that this process would take, or the part that is missing.
static void describe_gpu(char *text, size_t bytes) {
    char library[48] = "", name[64];
    struct hrt_error error = {0};
    int number = 0, devices = 0, driver = 0, runtime = 0, major = 0, minor = 0, processors = 0;
    bool warpgroups;
    if (!hrt_device_gpu_choose(0, &number, &error) ||
        !find_code(number, name, sizeof name, &warpgroups, &error)) {
        snprintf(text, bytes, "%s", error.text);
        return;
    }
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    cudaGetDeviceCount(&devices);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, number);
    if (hkc_library_name) {
        strcpy(library, ", ");
        hkc_library_name(library + 2, sizeof library - 2);
    }
    snprintf(text, bytes, "GPU %d of %d: sm_%d%d, %d multiprocessors; driver %d.%d, CUDA %d.%d%s",
             number, devices, major, minor, processors, driver / 1000, driver % 1000 / 10,
             runtime / 1000, runtime % 1000 / 10, library);
}

// ---- memory

static void fill(struct hrt_device *device, void *at, int byte, size_t bytes) {
    check(device, "clearing memory", cudaMemsetAsync(at, byte, bytes, device->lane->stream));
}

static void *take_parts(struct hrt_device *device, size_t bytes) {
    struct gpu *gpu = device->own;
    struct hrt_pages *pages = hrt_device_pages_reserve(gpu->number, bytes, gpu->pages);
    if (!pages) return NULL;
    gpu->pages = pages;
    return hrt_device_pages_base(pages);
}

static void *take(struct hrt_device *device, enum hrt_memory memory, size_t bytes, bool sparse) {
    const size_t room = bytes ? bytes : 1;
    void *taken = NULL;
    (void)sparse; // Memory of a GPU is there once it is taken.
    if (memory == HRT_IN_PARTS) return take_parts(device, room);
    if (memory == HRT_OF_BOTH) {
        if (cudaMallocHost(&taken, room) != cudaSuccess) return NULL;
        return memset(taken, 0, room);
    }
    if (cudaMalloc(&taken, room) != cudaSuccess) {
        cudaGetLastError(); // It would be reported by the next launch.
        return NULL;
    }
    fill(device, taken, 0, room);
    return taken;
}

// Until `mark` has been passed; NULL: until all is done that was asked for. Where others may keep it waiting, the host looks
// after them.
static void wait_for(struct hrt_device *device, cudaEvent_t mark) {
    const int64_t begun = hk_clock();
    cudaStream_t stream = device->lane->stream;
    cudaError_t status = cudaErrorNotReady;
    while (device->look && status == cudaErrorNotReady) {
        for (int i = 0; i < LOOKS && status == cudaErrorNotReady; i++)
            status = mark ? cudaEventQuery(mark) : cudaStreamQuery(stream);
        if (status != cudaErrorNotReady) break;
        const int64_t waited = hk_clock() - begun;
        device->look(device->look_context, (double)waited * 1e-9);
        if (waited < AWAKE)
            sched_yield(); // To threads of NCCL, and of other ranks.
        else
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    if (!device->look) status = mark ? cudaEventSynchronize(mark) : cudaStreamSynchronize(stream);
    check(device, "computing", status);
}

static void join(struct hrt_device *device) {
    wait_for(device, NULL);
}

static void give(struct hrt_device *device, enum hrt_memory memory, void *taken, size_t bytes) {
    (void)bytes;
    if (!taken) return;
    join(device);
    struct gpu *gpu = device->own;
    struct hrt_pages **pages = hrt_device_pages_find(&gpu->pages, taken);
    if (pages) {
        *pages = hrt_device_pages_release(*pages);
        return;
    }
    check(device, "giving memory back",
          memory == HRT_OF_BOTH ? cudaFreeHost(taken) : cudaFree(taken));
}

static bool touch(struct hrt_device *device, void *at, size_t bytes, enum hrt_home home) {
    struct gpu *gpu = device->own;
    struct hrt_pages **pages = hrt_device_pages_find(&gpu->pages, at);
    return !pages || hrt_device_pages_touch(*pages, at, bytes, home, device->lane->stream);
}

// The driver takes pages away also from work that reads them.
static void leave(struct hrt_device *device, void *at, size_t bytes) {
    struct gpu *gpu = device->own;
    struct hrt_pages **pages = hrt_device_pages_find(&gpu->pages, at);
    if (!pages) return;
    if (hrt_device_pages_leaves(*pages, at, bytes)) join(device);
    hrt_device_pages_leave(*pages, at, bytes);
}

static void room(struct hrt_device *device, size_t *left, size_t *all) {
    check(device, "asking for room", cudaMemGetInfo(left, all));
}

// The runtime has read pageable memory when it returns, but may wait for the stream before it does. A few numbers
// therefore go along with a kernel.
static void write_gpu(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    const size_t words = bytes / sizeof(int32_t);
    if (words <= HKC_STORE_MOST && bytes % sizeof(int32_t) == 0) {
        hkc_store(device->lane, to, from, (int)words);
        return;
    }
    check(device, "writing", hrt_device_pages_copy(to, from, bytes, device->lane->stream));
}

// In a copy to pageable memory the host waits for the stream, and could not look after others.
static void read_gpu(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    if (device->look) join(device);
    check(device, "reading", hrt_device_pages_copy(to, from, bytes, device->lane->stream));
    join(device);
}

// To memory that is pinned: it runs on its own.
static void fetch_gpu(struct hrt_device *device, void *to, const void *from, size_t bytes) {
    check(device, "fetching", hrt_device_pages_copy(to, from, bytes, device->lane->stream));
}

static void mark_gpu(struct hrt_device *device, int mark) {
    const struct gpu *gpu = device->own;
    check(device, "marking", cudaEventRecord(gpu->mark[mark], device->lane->stream));
}

static void await_gpu(struct hrt_device *device, int mark) {
    const struct gpu *gpu = device->own;
    wait_for(device, gpu->mark[mark]);
}

// For NVIDIA's profilers. Without one it is a look at a pointer.
#ifdef HAVE_NVTX
static void range_gpu(const char *name) {
    if (name) {
        nvtxRangePushA(name);
    } else {
        nvtxRangePop();
    }
}
#endif

// ---- graphs

static void record_gpu(struct hrt_device *device) {
    check(device, "recording",
          cudaStreamBeginCapture(device->lane->stream, cudaStreamCaptureModeThreadLocal));
}

static void *recorded_gpu(struct hrt_device *device) {
    cudaGraph_t graph;
    cudaGraphExec_t recorded;
    check(device, "recording", cudaStreamEndCapture(device->lane->stream, &graph));
    check(device, "preparing what was recorded", cudaGraphInstantiate(&recorded, graph, 0));
    check(device, "recording", cudaGraphDestroy(graph));
    return recorded;
}

static void replay_gpu(struct hrt_device *device, void *recorded) {
    check(device, "replaying", cudaGraphLaunch(recorded, device->lane->stream));
}

static void forget_gpu(struct hrt_device *device, void *recorded) {
    join(device);
    check(device, "forgetting what was recorded", cudaGraphExecDestroy(recorded));
}

// ---- kernels

static void adamw_of(struct hkc_lane *lane, float *param, hk_bf16 *rounded, float *grad,
                     float *mean, float *variance, int64_t count,
                     const struct hk_adamw_rule *rule) {
    if (rounded) {
        hkc_adamw_rounded_f32(lane, param, rounded, grad, mean, variance, count, HK_ROWS, rule);
    } else {
        hkc_adamw_f32(lane, param, grad, mean, variance, count, rule);
    }
}

static void combine_of(struct hkc_lane *lane, void *y, const void *rows, const int32_t *slot,
                       int64_t tokens, int64_t picks, int64_t width, bool bf16) {
    if (bf16) {
        hkc_combine_bf16(lane, y, rows, slot, tokens, picks, width, HK_STORE);
    } else {
        hkc_combine_f32(lane, y, rows, slot, tokens, picks, width, HK_STORE);
    }
}

#define HRT_KERNEL(name, launcher, parameters, arguments)                                          \
    static void name##_gpu(struct hrt_device *device, HRT_LISTED parameters) {                     \
        launcher(device->lane, HRT_LISTED arguments);                                              \
    }
#include "runtime/device/kernels.def"
#undef HRT_KERNEL

const struct hrt_device_backend hrt_device_cuda = {
    .name = "cuda",
    .apart = true,
    .lane_bytes = HKC_SCRATCH,
    .open = open_gpu,
    .describe = describe_gpu,
    .close = close_gpu,
    .take = take,
    .give = give,
    .page_bytes = HRT_PAGE_BYTES,
    .touch = touch,
    .leave = leave,
    .room = room,
    .write = write_gpu,
    .read = read_gpu,
    .fetch = fetch_gpu,
    .join = join,
    .fill = fill,
#ifdef HAVE_NVTX
    .range = range_gpu,
#endif
    .mark = mark_gpu,
    .record = record_gpu,
    .recorded = recorded_gpu,
    .replay = replay_gpu,
    .forget = forget_gpu,
    .await = await_gpu,
#define HRT_KERNEL(name, launcher, parameters, arguments) .name = name##_gpu,
#include "runtime/device/kernels.def"
#undef HRT_KERNEL
};
