// Target cpu: other numbers of threads change no bit.
#include "tests/kernels/target.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa.h"

bool target_is_here(void) {
    const char *wanted = getenv("HECATE_ISA");
    for (int isa = hk_isa_best() + 1; isa <= HK_ISA_AVX512BF16; isa++) {
        if (wanted && strcmp(wanted, hk_isa_name((enum hk_isa)isa)) == 0) return false;
    }
    return true;
}

void *target_allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) abort();
    return memory;
}

void target_free(void *memory) {
    free(memory);
}

void target_vary(int way) {
    omp_set_num_threads(way + 1);
}
