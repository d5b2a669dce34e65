// target: the functions of the tested target that kernel_case.h needs; one file each.
#ifndef HECATE_TESTS_KERNELS_TARGET_H
#define HECATE_TESTS_KERNELS_TARGET_H

#include <stdbool.h>
#include <stddef.h>

bool target_is_here(void);
void *target_allocate(
    size_t bytes); // Host and device both reach it. Ends the test when there is no memory.
void target_free(void *memory);
void target_vary(int way); // 0, 1, 2: a change of the launch that must not change a bit.

#endif
