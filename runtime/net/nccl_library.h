// NCCL's library, opened when a program needs it: one whose ranks share GPUs starts where there is none.
#ifndef HECATE_RUNTIME_NET_NCCL_LIBRARY_H
#define HECATE_RUNTIME_NET_NCCL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

// Opens libnccl.so.2, which the dynamic linker finds as it finds libraries of the program, once per process. Its
// functions can be called then. On false `why` has the linker's reason. NULL in a program that is
// linked with NCCL itself.
bool hrt_nccl_library_open(char *why, size_t bytes) __attribute__((weak));

#endif
