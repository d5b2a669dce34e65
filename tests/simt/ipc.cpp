// Memory that processes share: memory of a device by handles, memory of the host that devices reach, and streams that
// wait for values in it. A handle names a file of the process that made it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "streams.h"

namespace {

struct handle_t {
    int process, file, notes;
    size_t offset, bytes;
};
static_assert(sizeof(handle_t) <= sizeof(cudaIpcMemHandle_t),
              "it is passed in place of CUDA's own");

// SIMT_IPC=FAULT:N plants a fault in the N-th call of this process that may have it, counted from 0; FAULT:all in all of them.
bool is_planted(const char *fault) {
    static const char *planted = getenv("SIMT_IPC");
    static int calls;
    const size_t length = strlen(fault);
    if (!planted || strncmp(planted, fault, length) != 0 || planted[length] != ':') return false;
    return strcmp(planted + length, ":all") == 0 || calls++ == atoi(planted + length + 1);
}

uint32_t *value_at(CUdeviceptr at, const char *what) {
    const void *address = (const void *)at;
    if (at % sizeof(uint32_t) != 0 || simt::registered_word(address) < 0)
        simt::fail("%s: %p is not a word of the host's that devices reach", what, address);
    return (uint32_t *)at;
}

CUresult wait_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
    const uint32_t *word = value_at(at, "cuStreamWaitValue32");
    const size_t number = (size_t)simt::registered_word(word);
    if (flags != CU_STREAM_WAIT_VALUE_GEQ && flags != CU_STREAM_WAIT_VALUE_EQ)
        return CUDA_ERROR_INVALID_VALUE;
    const bool equal = flags == CU_STREAM_WAIT_VALUE_EQ;
    if (is_planted(equal ? "unready" : "untaken")) return CUDA_SUCCESS;
    simt::enqueue(stream, "a wait for a value", [=] {
        const uint32_t there = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        const bool done = equal ? there == value : (int32_t)(there - value) >= 0;
        if (done) simt::follow_word(stream->number, number, value, equal);
        return done;
    });
    return CUDA_SUCCESS;
}

CUresult write_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned) {
    uint32_t *word = value_at(at, "cuStreamWriteValue32");
    if (is_planted("unwritten")) return CUDA_SUCCESS;
    if (is_planted("number")) value++;
    if (is_planted("die")) _Exit(9);
    const auto store = [=] {
        simt::publish_past(stream->number, (size_t)simt::registered_word(word), value);
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
        return true;
    };
    if (is_planted("early")) {
        store();
    } else {
        simt::enqueue(stream, "a write of a value", store);
    }
    return CUDA_SUCCESS;
}

} // namespace

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at) {
    handle_t own = {getpid(), -1, -1, (size_t)at % 4096, 0};
    if (is_planted("handle")) return cudaErrorNotSupported;
    own.file = simt::share_pages(at, &own.bytes);
    if (own.file < 0) return cudaErrorInvalidValue;
    simt::note_memory(at, own.bytes, simt::make_notes(&own.notes));
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &own, sizeof own);
    return cudaSuccess;
}

// A process cannot open a handle of its own.
cudaError_t cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t handle, unsigned flags) {
    handle_t other;
    char path[64], notes[64];
    memcpy(&other, &handle, sizeof other);
    if (is_planted("open") || flags != cudaIpcMemLazyEnablePeerAccess || other.process == getpid())
        return cudaErrorInvalidResourceHandle;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", other.process, other.file);
    snprintf(notes, sizeof notes, "/proc/%d/fd/%d", other.process, other.notes);
    *at = simt::map_pages(path, other.offset, other.bytes);
    simt::notes_t *noted = *at ? simt::map_notes(notes) : NULL;
    if (!noted) return cudaErrorMapBufferObjectFailed;
    simt::note_memory(*at, other.bytes, noted);
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *at) {
    simt::forget_memory(at);
    return simt::unmap_pages(at) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags) {
    if (is_planted("register")) return cudaErrorNotSupported;
    if (flags != cudaHostRegisterMapped || (size_t)at % 4096 || bytes % 4096)
        return cudaErrorInvalidValue;
    simt::register_host(at, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *at) {
    return simt::unregister_host(at) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

cudaError_t cudaHostGetDevicePointer(void **seen, void *at, unsigned) {
    *seen = at;
    return simt::place_of(at, 1) == simt::PINNED ? cudaSuccess : cudaErrorInvalidValue;
}

// With SIMT_IPC=old:0 the driver has none of them.
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
    *function = strcmp(name, "cuStreamWaitValue32") == 0    ? (void *)wait_value
                : strcmp(name, "cuStreamWriteValue32") == 0 ? (void *)write_value
                                                            : simt::virtual_function(name);
    if (is_planted("old")) *function = NULL;
    *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
}
