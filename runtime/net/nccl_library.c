// NCCL's functions under their own names: each calls that of the library, once it has been opened.
#include "runtime/net/nccl_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <nccl.h>

#define HRT_NCCL(name, parameters, arguments)                                                      \
    static ncclResult_t(*name##_there) parameters;                                                 \
    ncclResult_t name parameters {                                                                 \
        return name##_there ? name##_there arguments : ncclSystemError;                            \
    }
#include "runtime/net/nccl_functions.def"
#undef HRT_NCCL

static const char *(*error_string)(ncclResult_t result);

const char *ncclGetErrorString(ncclResult_t result) {
    return error_string ? error_string(result) : "its library is not open";
}

static bool find(void *library, const char *name, void *to, char *why, size_t bytes) {
    void *function = dlsym(library, name);
    if (function) memcpy(to, &function, sizeof function);
    if (!function) snprintf(why, bytes, "libnccl.so.2 has no %s", name);
    return function;
}

bool hrt_nccl_library_open(char *why, size_t bytes) {
    static void *library;
    if (library) return true;
    void *found = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!found) snprintf(why, bytes, "%s", dlerror());
    bool all = found && find(found, "ncclGetErrorString", &error_string, why, bytes);
#define HRT_NCCL(name, parameters, arguments)                                                      \
    all = all && find(found, #name, &name##_there, why, bytes);
#include "runtime/net/nccl_functions.def"
#undef HRT_NCCL
    if (all) library = found;
    return all;
}
