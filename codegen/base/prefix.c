// The installation that this executable belongs to.
#include "codegen/base/prefix.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *hec_prefix(struct hec_arena *arena) {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return NULL;
    path[length] = '\0';
    for (int up = 0; up < 2; up++) { // PREFIX/bin/hecatec -> PREFIX
        char *slash = strrchr(path, '/');
        if (!slash) return NULL;
        *slash = '\0';
    }
    return hec_arena_copy(arena, path, strlen(path));
}

bool hec_have_headers(struct hec_arena *arena) {
    const char *prefix = hec_prefix(arena);
    const char *header =
        prefix ? hec_arena_format(arena, "%s/include/hecate/runtime/program.h", prefix) : NULL;
    if (prefix && access(header, R_OK) == 0) return true;
    fprintf(stderr,
            "hecatec: error: cannot find the headers of the runtime: %s\n"
            "  they are looked for beside the program that runs, in ../include\n",
            header ? header : "/proc/self/exe cannot be read");
    return false;
}
