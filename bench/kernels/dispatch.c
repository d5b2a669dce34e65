// Whether the cores are this program's own, seen by how fast instructions begin.
#include <omp.h>

#include "bench/kernels/bench.h"

// Instructions that wait for nothing: where another program uses the other half of the core, each begins half
// as many.
static double time_of_instructions(void) {
    const double start = omp_get_wtime();
    for (int i = 0; i < 4000; i++) __asm__ volatile(".rept 60\n\tnop\n\t.endr");
    return omp_get_wtime() - start;
}

double bench_dispatch(void) {
    double slowest = 0;
#pragma omp parallel reduction(max : slowest)
    slowest = time_of_instructions();
    return slowest;
}
