// kernel_case: shared by the kernel tests: seeded inputs, outputs full of NaN, bounds, gradients
// by central differences. Every test is built for float and for double (HK_BITS) and run on every
// instruction set of the machine (HECATE_ISA). Tests of kernels with a CUDA twin are built for it, too
// (HK_TARGET_CUDA): in float, with the doubles of target cpu as reference. There all that a kernel
// is handed lies in arrays of this file, as a device reaches no others. Where activations may be bf16,
// once more for that (HK_VALUES_BF16): all inputs are numbers that bf16 can hold, so that only the
// rounding of a result comes on top of float's bounds.
#ifndef HECATE_TESTS_KERNELS_KERNEL_CASE_H
#define HECATE_TESTS_KERNELS_KERNEL_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/types.h"

// A kernel is called by HK(name, arguments...), one of integers alone, whose name has no type, by
// HK_INTS; HK_NAME(name) is its function for this build's type on target cpu.
#ifdef HK_TARGET_CUDA
#include "kernels/cuda/lane.h"
struct hkc_lane *test_lane(void);
void test_join(const char *kernel); // Waits for the lane; fails if a launch has.
#ifdef HK_VALUES_BF16               // tests/kernels/cuda/values.h
#define HK(name, ...) values_##name(__VA_ARGS__)
#else
#define HK(name, ...) (hkc_##name##_f32(test_lane(), __VA_ARGS__), test_join(#name))
#endif
#define HK_INTS(name, ...) (hkc_##name(test_lane(), __VA_ARGS__), test_join(#name))
#else
#define HK(name, ...) HK_NAME(name)(__VA_ARGS__)
#define HK_INTS(name, ...) hk_##name(__VA_ARGS__)
#endif

#if HK_BITS == 32
typedef float real;
#define HK_NAME(name) hk_##name##_f32
#define EPSILON ((double)FLT_EPSILON) // Twice the unit roundoff.
#else
typedef double real;
#define HK_NAME(name) hk_##name##_f64
#define EPSILON DBL_EPSILON
#endif

// By how much, relatively, storing a value may change it: half a unit of its last place.
#ifdef HK_VALUES_BF16
#define VALUE_EPSILON 0x1p-8
#else
#define VALUE_EPSILON 0.0
#endif

// Differences between targets: layouts of weights that kernels take (enum hk_layout), from HK_ROWS on; every APART-th
// row is also computed alone; whether sums over rows run in ascending order. Emulation is slow: of many
// combinations of sizes one in SHARE is tested, and no product of more than WORK_MAX multiplications.
#ifdef HK_TARGET_CUDA
enum { LAYOUTS = 1, APART = 61, ASCENDING = 0, SHARE = 7, WORK_MAX = 1400000 };
#else
enum { LAYOUTS = 2, APART = 1, ASCENDING = 1, SHARE = 1, WORK_MAX = INT32_MAX };
#endif

// Whether a library computes products (HK_BY_LIBRARY), which chooses by shape: then a row alone may have other bits.
#ifdef HK_BY_LIBRARY
enum { ROWS_ALONE = 0 };
#else
enum { ROWS_ALONE = 1 };
#endif

// The type of references: more digits than either kernel has.
typedef long double wide;

// `x` as memory holds it.
real test_value(real x);

// Arrays of `count` elements, equal for equal seeds. They end in a guard, which test_free_all
// checks before it frees them all.
void *test_array(int64_t count, size_t size);
real *test_reals(int64_t count, uint64_t seed); // Values, uniform in [-1, 1).
real *test_nans(int64_t count);                 // Outputs that nobody has written yet.
real *test_copy(const real *from, int64_t count);
double *test_widened(const real *from, int64_t count);
double *test_doubles(int64_t count);
int32_t *test_ints(int64_t count, int32_t below, uint64_t seed); // Uniform in [0, below).
void **test_pointers(int64_t count);
void test_free_all(void);

// Fails unless |got - want| <= bound; a NaN fails.
void assert_near(const char *what, int64_t index, real got, wide want, double bound);

// The same for a result that is a value: it was rounded as it was stored.
void assert_value_near(const char *what, int64_t index, real got, wide want, double bound);

void assert_same_bits(const char *what, const real *a, const real *b, int64_t count);

// Runs `run` with 1 thread into `out`, which is what the caller then checks, and with 2 and 3
// threads into copies of what `out` was before: all must agree bit by bit. For CUDA, by other
// schedules of the emulator in place of threads.
void run_with_threads(void (*run)(const void *context, real *out), const void *context, real *out,
                      int64_t count);

// Compares `got` with central differences of `loss` by the elements of x, which it changes and
// restores. `rounding` is what the kernel's own arithmetic may be off by.
//
// With step h = 2^-17 the difference is off by h^2 times a third derivative of order |loss| + 1,
// 6e-11, and by DBL_EPSILON / h of the terms summed, 3e-11 of them: 1e-7 (|loss| + 1) leaves room
// for the constants, and is far below any gradient that is wrong.
void check_gradient(const char *what, const real *got, double *x, int64_t count,
                    double (*loss)(const void *context), const void *context, double rounding);

// The same for gradients of values: `written` is what the kernel stored and rounded, `got` without what
// stood there before.
void check_value_gradient(const char *what, const real *got, const real *written, double *x,
                          int64_t count, double (*loss)(const void *context), const void *context,
                          double rounding);

// Runs the tests, or exits with 77 (skipped) where this machine lacks what they run on: the
// instruction set that HECATE_ISA asks for, a device.
int run_kernel_tests(const struct CMUnitTest *tests, size_t count);
#define RUN_KERNEL_TESTS(tests) run_kernel_tests(tests, sizeof(tests) / sizeof *(tests))

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

#endif
