// How long OpenMP's threads spin at a barrier before they sleep.
#include "runtime/cli/spin.h"

#include <stdlib.h>
#include <unistd.h>

void hrt_limit_spinning(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME")) return;
    if (setenv("GOMP_SPINCOUNT", "1000", 1) != 0) return;
    if (setenv("KMP_BLOCKTIME", "1", 1) != 0) return; // LLVM's OpenMP; milliseconds.
    execv("/proc/self/exe", argv);
}
