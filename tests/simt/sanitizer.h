// sanitizer: tells AddressSanitizer of stacks and memory; nothing where it is not built in.
#ifndef HECATE_TESTS_SIMT_SANITIZER_H
#define HECATE_TESTS_SIMT_SANITIZER_H

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define simt_start_switch __sanitizer_start_switch_fiber
#define simt_finish_switch __sanitizer_finish_switch_fiber
#define simt_poison ASAN_POISON_MEMORY_REGION
#define simt_unpoison ASAN_UNPOISON_MEMORY_REGION
#else
static inline void simt_start_switch(void **, const void *, size_t) {
}
static inline void simt_finish_switch(void *, const void **, size_t *) {
}
static inline void simt_poison(const void *, size_t) {
}
static inline void simt_unpoison(const void *, size_t) {
}
#endif

#endif
