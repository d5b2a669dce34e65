// Virtual memory of the device: reserved addresses, memory without an address, and pages that bring the two together.
// Its range lies behind those of memory.cpp. Without a page nothing can be read. Fresh pages are full of ones (NaN).
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <map>
#include <string>

#include <cuda.h>

#include "streams.h"

namespace simt {

enum : size_t { PAGE = 2 << 20 };

static std::map<const char *, size_t> reserved; // Their bytes.
static std::map<const char *, size_t> mapped;   // Bytes of what stands there, memory by memory.
static std::map<const char *, bool> allowed;    // Whether the device may touch it.
static std::map<const char *, bool> hosts;      // Whether the host has it.
struct memory {
    size_t bytes;
    bool on_host;
};

static std::map<CUmemGenericAllocationHandle, memory> memories;
static size_t created; // Bytes of those of the device.

size_t virtual_bytes() {
    return created;
}

static void protect(const char *at, size_t bytes, bool open) {
    mprotect((void *)at, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// Neighbours that the device may touch, as one.
static std::map<const char *, size_t> spans;

static void find_spans() {
    const char *end = NULL;
    size_t *last = NULL;
    spans.clear();
    for (const auto &one : mapped) {
        if (!allowed[one.first]) continue;
        if (one.first != end) last = &spans[one.first];
        *last += one.second;
        end = one.first + one.second;
    }
}

void open_virtual_to_host(bool open) {
    for (const auto &span : spans) protect(span.first, span.second, open);
}

// Whether bytes that stand here are neither all of the device nor all of the host.
bool virtual_mixes(const void *at, size_t bytes) {
    const auto first = hosts.upper_bound((const char *)at);
    if (first == hosts.begin()) return false;
    for (auto one = std::prev(first); one != hosts.end() && one->first < (const char *)at + bytes;
         ++one) {
        if (one->first + mapped[one->first] > (const char *)at &&
            one->second != std::prev(first)->second)
            return true;
    }
    return false;
}

// 1: all of it stands, 0: it is nowhere here, -1: something of it does not.
int virtual_holds(const void *at, size_t bytes) {
    const char *from = (const char *)at, *end = from + (bytes ? bytes : 1);
    const range_t range = virtual_range();
    if (from < (const char *)range.begin || from >= (const char *)range.end) return 0;
    while (from < end) {
        auto next = mapped.upper_bound(from);
        if (next == mapped.begin()) return -1;
        const auto &one = *std::prev(next);
        if (from >= one.first + one.second || !allowed[one.first]) return -1;
        from = one.first + one.second;
    }
    return 1;
}

// For reports of faults: "byte N of reservation M", in the order of the addresses; "": nobody has reserved it.
std::string virtual_name(const void *at) {
    int number = 0;
    for (const auto &one : reserved) {
        const char *address = (const char *)at;
        if (address >= one.first && address < one.first + one.second)
            return "byte " + std::to_string(address - one.first) + " of reservation " +
                   std::to_string(number) + ", where no memory stands";
        number++;
    }
    return "";
}

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *,
                            CUmemAllocationGranularity_flags) {
    *bytes = PAGE;
    return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *to, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
    refuse_capture("reserving addresses");
    if (bytes == 0 || bytes % PAGE != 0) return CUDA_ERROR_INVALID_VALUE;
    const range_t range = virtual_range();
    const char *at = (const char *)range.begin;
    for (const auto &one : reserved) {
        if ((size_t)(one.first - at) >= bytes) break;
        at = one.first + one.second;
    }
    if ((size_t)((const char *)range.end - at) < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    reserved[at] = bytes;
    *to = (CUdeviceptr)at;
    return CUDA_SUCCESS;
}

static CUresult free_addresses(CUdeviceptr at, size_t bytes) {
    const auto one = reserved.find((const char *)at);
    if (one == reserved.end() || one->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto inside = mapped.lower_bound(one->first);
    if (inside != mapped.end() && inside->first < one->first + bytes)
        fail("cuMemAddressFree of addresses behind which memory stands");
    reserved.erase(one);
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *memory, size_t bytes,
                       const CUmemAllocationProp *kind, unsigned long long) {
    static CUmemGenericAllocationHandle last;
    const bool on_host = kind->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (bytes == 0 || bytes % PAGE != 0 || kind->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        (!on_host && kind->location.type != CU_MEM_LOCATION_TYPE_DEVICE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!on_host && bytes > memory_left()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!on_host) created += bytes;
    *memory = ++last;
    memories[last] = {bytes, on_host};
    count_memory();
    return CUDA_SUCCESS;
}

static CUresult release_memory(CUmemGenericAllocationHandle memory) {
    const auto one = memories.find(memory);
    if (one == memories.end()) return CUDA_ERROR_INVALID_VALUE;
    if (!one->second.on_host) created -= one->second.bytes;
    memories.erase(one);
    return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr to, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle memory, unsigned long long) {
    const char *at = (const char *)to;
    const auto one = memories.find(memory);
    const auto inside = reserved.upper_bound(at);
    if (one == memories.end() || one->second.bytes != bytes || offset != 0 || to % PAGE != 0 ||
        inside == reserved.begin() ||
        at + bytes > std::prev(inside)->first + std::prev(inside)->second)
        return CUDA_ERROR_INVALID_VALUE;
    const auto next = mapped.lower_bound(at);
    if (next != mapped.end() && next->first < at + bytes) return CUDA_ERROR_INVALID_VALUE;
    if (mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != at)
        fail("no memory for a page: %s", strerror(errno));
    memset((void *)at, 0xff, bytes);
    forget_accesses(at, bytes);
    mapped[at] = bytes;
    allowed[at] = false;
    hosts[at] = one->second.on_host;
    protect(at, bytes, false);
    return CUDA_SUCCESS;
}

// It does not wait for work that still touches the pages, which then finds nothing there.
static CUresult unmap(CUdeviceptr from, size_t bytes) {
    const char *at = (const char *)from;
    const auto one = mapped.find(at);
    if (one == mapped.end() || one->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    mmap((void *)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
         0);
    mapped.erase(one);
    allowed.erase(at);
    hosts.erase(at);
    find_spans();
    return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr to, size_t bytes, const CUmemAccessDesc *access, size_t) {
    const char *at = (const char *)to;
    const auto one = mapped.find(at);
    if (one == mapped.end() || one->second != bytes ||
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
        access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    allowed[at] = true;
    find_spans();
    protect(at, bytes, true);
    protect_memory();
    return CUDA_SUCCESS;
}

void *virtual_function(const char *name) {
    static const std::map<std::string, void *> all = {
        {"cuMemGetAllocationGranularity", (void *)granularity},
        {"cuMemAddressReserve", (void *)reserve},
        {"cuMemAddressFree", (void *)free_addresses},
        {"cuMemCreate", (void *)create},
        {"cuMemRelease", (void *)release_memory},
        {"cuMemMap", (void *)map},
        {"cuMemUnmap", (void *)unmap},
        {"cuMemSetAccess", (void *)set_access},
    };
    const auto one = all.find(name);
    return one == all.end() ? NULL : one->second;
}

} // namespace simt
