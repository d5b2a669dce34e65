// A double of CUDA's driver, as far as hecatec asks it: DRIVER_GPUS are the capabilities of its GPUs, "89 120"; "none" is a driver
// that cannot begin.
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NO_DEVICE = 100, MAJOR = 75 };

// The number of words; that with this number is in *capability.
static int read_gpus(int wanted, int *capability) {
    const char *text = getenv("DRIVER_GPUS");
    int count = 0;
    for (char *end = NULL; text; text = end) {
        const long number = strtol(text, &end, 10);
        if (end == text) break;
        if (count++ == wanted) *capability = (int)number;
    }
    return count;
}

int cuInit(unsigned flags) {
    const char *text = getenv("DRIVER_GPUS");
    return text && strcmp(text, "none") == 0 ? NO_DEVICE : (int)flags;
}

int cuDeviceGetCount(int *count) {
    int capability;
    *count = read_gpus(-1, &capability);
    return SUCCESS;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int capability = 0;
    read_gpus(device, &capability);
    *value = attribute == MAJOR ? capability / 10 : capability % 10;
    return SUCCESS;
}
