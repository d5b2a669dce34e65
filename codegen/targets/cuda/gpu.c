// The GPUs of this machine, asked of CUDA's driver, which hecatec does without.
#include "codegen/targets/cuda/gpu.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

// Values from cuda.h, which do not change.
enum { MAJOR = 75, MINOR = 76 };

struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*get)(int *device, int number);
    int (*attribute)(int *value, int attribute, int device);
};

static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found); // ISO C has no cast from objects to functions.
    return found != NULL;
}

static bool open_driver(struct driver *driver) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); // Stays: drivers have threads.
    return library && find(library, "cuInit", &driver->init) &&
           find(library, "cuDeviceGetCount", &driver->count) &&
           find(library, "cuDeviceGet", &driver->get) &&
           find(library, "cuDeviceGetAttribute", &driver->attribute) && driver->init(0) == 0;
}

// Whether `all`, names with | between them, has `name`.
static bool has(const char *all, const char *name) {
    const size_t length = strlen(name);
    for (; all; all = strchr(all, '|') ? strchr(all, '|') + 1 : NULL) {
        if (strncmp(all, name, length) == 0 && (all[length] == '\0' || all[length] == '|'))
            return true;
    }
    return false;
}

const char *hec_gpus_here(struct hec_arena *arena) {
    struct driver driver;
    const char *all = NULL;
    int count = 0;
    if (!open_driver(&driver) || driver.count(&count) != 0) return NULL;
    for (int i = 0; i < count; i++) {
        int device, major, minor;
        if (driver.get(&device, i) != 0 || driver.attribute(&major, MAJOR, device) != 0 ||
            driver.attribute(&minor, MINOR, device) != 0)
            return NULL;
        const char *name = hec_arena_format(arena, "sm_%d%d", major, minor);
        if (!has(all, name)) all = all ? hec_arena_format(arena, "%s|%s", all, name) : name;
    }
    return all;
}
