// Reserves, maps and unmaps. The functions are the driver's; nothing links with its library.
#include "runtime/device/pages.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

// name of the function, as this file calls it
#define FUNCTIONS(X)                                                                               \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)

struct driver {
#define DECLARE(name) __typeof__(&(name)) name;
    FUNCTIONS(DECLARE)
#undef DECLARE
};

struct hrt_pages {
    struct driver driver;
    CUmemAllocationProp kind[2]; // One for each home.
    CUmemAccessDesc access;      // The GPU's, wherever pages are.
    char *base;
    size_t pages;
    int32_t *users;                       // [pages] Touches that have not been left.
    CUmemGenericAllocationHandle *memory; // [pages] Of those with users.
    struct hrt_pages *later;
};

// Some page is the host's. One is enough for all of a process: such programs copy page by page.
static atomic_bool has_host_pages;

static bool find(const char *name, void *function) {
    enum { VERSION = 12000 };
    enum cudaDriverEntryPointQueryResult found;
    void *address = NULL;
    if (cudaGetDriverEntryPointByVersion(name, &address, VERSION, cudaEnableDefault, &found) !=
            cudaSuccess ||
        found != cudaDriverEntryPointSuccess || !address)
        return false;
    memcpy(function, &address, sizeof address);
    return true;
}

static bool find_all(struct driver *driver) {
#define FIND(name) &&find(#name, &driver->name)
    return true FUNCTIONS(FIND);
#undef FIND
}

// Whether the device's own pages are as large, or parts of ours.
static bool fits(const struct hrt_pages *pages) {
    size_t bytes = 0;
    const CUresult found = pages->driver.cuMemGetAllocationGranularity(
        &bytes, &pages->kind[HRT_AT_DEVICE], CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return found == CUDA_SUCCESS && bytes > 0 && HRT_PAGE_BYTES % bytes == 0;
}

static bool reserve(struct hrt_pages *pages) {
    CUdeviceptr base = 0;
    pages->users = calloc(pages->pages, sizeof *pages->users);
    pages->memory = calloc(pages->pages, sizeof *pages->memory);
    if (!pages->users || !pages->memory || !find_all(&pages->driver) || !fits(pages) ||
        pages->driver.cuMemAddressReserve(&base, pages->pages * HRT_PAGE_BYTES, HRT_PAGE_BYTES, 0,
                                          0) != CUDA_SUCCESS)
        return false;
    pages->base = (char *)(uintptr_t)base;
    return true;
}

// The node of the host's memory that is nearest to the GPU; 0 where the machine does not tell.
static int host_node(int gpu) {
    int node = -1;
    const cudaError_t found = cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, gpu);
    return found == cudaSuccess && node >= 0 ? node : 0;
}

struct hrt_pages *hrt_device_pages_reserve(int gpu, size_t bytes, struct hrt_pages *later) {
    struct hrt_pages *pages = calloc(1, sizeof *pages);
    if (!pages) return NULL;
    pages->later = later;
    pages->pages = bytes / HRT_PAGE_BYTES + 1;
    pages->access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    pages->access.location.id = gpu;
    pages->access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pages->kind[HRT_AT_DEVICE] = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = pages->access.location};
    pages->kind[HRT_AT_HOST] = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = host_node(gpu)}};
    if (reserve(pages)) return pages;
    free(pages->users);
    free(pages->memory);
    free(pages);
    return NULL;
}

static CUdeviceptr address_of(const struct hrt_pages *pages, size_t page) {
    return (CUdeviceptr)(uintptr_t)pages->base + page * HRT_PAGE_BYTES;
}

static void drop(struct hrt_pages *pages, size_t page) {
    pages->driver.cuMemUnmap(address_of(pages, page), HRT_PAGE_BYTES);
    pages->driver.cuMemRelease(pages->memory[page]);
}

struct hrt_pages *hrt_device_pages_release(struct hrt_pages *pages) {
    struct hrt_pages *later = pages->later;
    for (size_t i = 0; i < pages->pages; i++) {
        if (pages->users[i] > 0) drop(pages, i);
    }
    pages->driver.cuMemAddressFree(address_of(pages, 0), pages->pages * HRT_PAGE_BYTES);
    free(pages->users);
    free(pages->memory);
    free(pages);
    return later;
}

void *hrt_device_pages_base(const struct hrt_pages *pages) {
    return pages->base;
}

struct hrt_pages **hrt_device_pages_find(struct hrt_pages **first, const void *at) {
    for (; *first; first = &(*first)->later) {
        const uintptr_t base = (uintptr_t)(*first)->base;
        if ((uintptr_t)at >= base && (uintptr_t)at < base + (*first)->pages * HRT_PAGE_BYTES)
            return first;
    }
    return NULL;
}

static size_t page_of(const struct hrt_pages *pages, const void *at) {
    const size_t page = (size_t)((const char *)at - pages->base) / HRT_PAGE_BYTES;
    assert(page < pages->pages);
    return page;
}

static bool add(struct hrt_pages *pages, size_t page, enum hrt_home home) {
    const struct driver *driver = &pages->driver;
    CUmemGenericAllocationHandle *memory = &pages->memory[page];
    if (driver->cuMemCreate(memory, HRT_PAGE_BYTES, &pages->kind[home], 0) != CUDA_SUCCESS)
        return false;
    if (driver->cuMemMap(address_of(pages, page), HRT_PAGE_BYTES, 0, *memory, 0) != CUDA_SUCCESS) {
        driver->cuMemRelease(*memory);
        return false;
    }
    if (driver->cuMemSetAccess(address_of(pages, page), HRT_PAGE_BYTES, &pages->access, 1) ==
        CUDA_SUCCESS)
        return true;
    drop(pages, page);
    return false;
}

static void leave(struct hrt_pages *pages, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        assert(pages->users[i] > 0);
        if (--pages->users[i] == 0) drop(pages, i);
    }
}

// The part of `bytes` from `at` that lies in one page.
static size_t in_page(const void *at, size_t bytes) {
    const size_t left = HRT_PAGE_BYTES - (uintptr_t)at % HRT_PAGE_BYTES;
    return left < bytes ? left : bytes;
}

static bool zero(char *from, const char *to, cudaStream_t stream) {
    bool zeroed = true;
    for (size_t bytes; zeroed && from < to; from += bytes) {
        bytes = (size_t)(to - from);
        if (has_host_pages) bytes = in_page(from, bytes);
        zeroed = cudaMemsetAsync(from, 0, bytes, stream) == cudaSuccess;
    }
    return zeroed;
}

bool hrt_device_pages_touch(struct hrt_pages *pages, void *at, size_t bytes, enum hrt_home home,
                            cudaStream_t stream) {
    if (bytes == 0) return true;
    if (home == HRT_AT_HOST) has_host_pages = true;
    char *from = at, *to = from + bytes;
    const size_t first = page_of(pages, from), last = page_of(pages, to - 1);
    for (size_t i = first; i <= last; i++) {
        if (pages->users[i] == 0 && !add(pages, i, home)) {
            leave(pages, first, i);
            return false;
        }
        if (pages->users[i]++ > 0) continue;
        if (i == first) from = pages->base + first * HRT_PAGE_BYTES;
        if (i == last) to = pages->base + (last + 1) * HRT_PAGE_BYTES;
    }
    return zero(from, to, stream);
}

cudaError_t hrt_device_pages_copy(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    cudaError_t status = cudaSuccess;
    for (size_t at = 0, part; status == cudaSuccess && at < bytes; at += part) {
        part = bytes - at;
        if (has_host_pages) part = in_page((const char *)from + at, in_page((char *)to + at, part));
        status = cudaMemcpyAsync((char *)to + at, (const char *)from + at, part, cudaMemcpyDefault,
                                 stream);
    }
    return status;
}

void hrt_device_pages_leave(struct hrt_pages *pages, void *at, size_t bytes) {
    if (bytes == 0) return;
    leave(pages, page_of(pages, at), page_of(pages, (char *)at + bytes - 1) + 1);
}

bool hrt_device_pages_leaves(const struct hrt_pages *pages, const void *at, size_t bytes) {
    if (bytes == 0) return false;
    const size_t last = page_of(pages, (const char *)at + bytes - 1);
    for (size_t i = page_of(pages, at); i <= last; i++) {
        if (pages->users[i] == 1) return true;
    }
    return false;
}
