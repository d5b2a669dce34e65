// The device of a process: the one it has chosen, of SIMT_DEVICES that look alike.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fiber.h"

static int chosen;

static int devices(void) {
    const char *count = getenv("SIMT_DEVICES");
    return count ? atoi(count) : 1;
}

extern "C" {

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
             : attribute == cudaDevAttrComputeCapabilityMajor       ? 9
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? simt::SHARED_MAX
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
    return error == cudaSuccess ? "no error" : "an error of the emulated device";
}

const char *cudaGetErrorName(cudaError_t error) {
    return cudaGetErrorString(error);
}
}
