// planted: the question of a copy of a kernel whether a fault is chosen (tests/kernels/cuda/faults).
#ifndef HECATE_TESTS_SIMT_PLANTED_H
#define HECATE_TESTS_SIMT_PLANTED_H

extern "C" int simt_planted; // SIMT_FAULT; 0: none.

// Whether the process has the fault. nvcc gets a macro in its place. The race detector need not see the variable.
static inline bool planted(int fault) {
    int there;
    asm("movl simt_planted(%%rip), %0" : "=r"(there));
    return fault == there;
}

#endif
