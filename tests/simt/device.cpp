// The device of a process: the one it has chosen, of SIMT_DEVICES that look alike, all of SIMT_CAPABILITY or sm_90.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "fiber.h"

// For tests in C: whether the driver has code of `architectures` for the device, a cudaError_t.
extern "C" int simt_code_for(const char *architectures);

static int chosen;

static int devices(void) {
    const char *count = getenv("SIMT_DEVICES");
    return count ? atoi(count) : 1;
}

namespace simt {

// The shared memory that a block may have differs between devices: as in CUDA's programming guide.
static const struct kind_t {
    int capability;
    size_t shared;
} kinds[] = {{75, 64 << 10},   {80, 163 << 10},   {86, 99 << 10}, {89, 99 << 10},
             {90, SHARED_MAX}, {100, SHARED_MAX}, {120, 99 << 10}};

static const kind_t &kind() {
    const char *text = getenv("SIMT_CAPABILITY");
    const int capability = text ? atoi(text) : 90;
    for (const kind_t &one : kinds) {
        if (one.capability == capability) return one;
    }
    fail("SIMT_CAPABILITY=%s: there is no such device", text);
}

size_t shared_limit() {
    return kind().shared;
}

// By the rules of CUDA: machine code is for its own architecture, with an `a`, or for those of the same major number that are as
// new; PTX is for all that are as new. Returns how good it is, 0: not at all.
static int fitness(const char *word, size_t length) {
    const char *number = strchr(word, '_') + 1;
    const int of = atoi(number), here = kind().capability;
    if (word[length - 1] == 'a') return of == here && word[0] == 's' ? 2000 : 0;
    if (of > here) return 0;
    if (word[0] == 's') return of / 10 == here / 10 ? 1000 + of : 0;
    return of;
}

// The best of them, or "".
static std::string choose(const char *architectures) {
    std::string best;
    int most = 0;
    for (const char *at = architectures; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (fitness(at, length) > most) {
            most = fitness(at, length);
            best.assign(at, length);
        }
        at += length;
    }
    return best;
}

bool runs(const char *one, const char *architectures) {
    return choose(architectures) == one;
}

int code_of(void (*)(), const char *architectures) {
    return simt_code_for(architectures);
}

} // namespace simt

extern "C" {

int simt_code_for(const char *architectures) {
    return simt::choose(architectures).empty() ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= devices()) return cudaErrorInvalidDevice;
    chosen = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = chosen;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = devices();
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    *value = attribute == cudaDevAttrMultiProcessorCount            ? 4
             : attribute == cudaDevAttrComputeCapabilityMajor       ? simt::kind().capability / 10
             : attribute == cudaDevAttrComputeCapabilityMinor       ? simt::kind().capability % 10
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (int)simt::shared_limit()
                                                                    : 0;
    return cudaSuccess;
}

// Every process has a device of its own, unless SIMT_BUS says where all of theirs is.
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int) {
    const char *bus = getenv("SIMT_BUS");
    if (bus)
        snprintf(text, (size_t)bytes, "%s", bus);
    else
        snprintf(text, (size_t)bytes, "%04x:%02x:00.0", getpid() >> 8 & 0xffff, getpid() & 0xff);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error"
           : error == cudaErrorNoKernelImageForDevice
               ? "no kernel image is available for execution on the device"
               : "an error of the emulated device";
}

const char *cudaGetErrorName(cudaError_t error) {
    return cudaGetErrorString(error);
}
}
