// Device memory of the cases, and the numbers in it: random ones, since tensor cores draw less power, and so run faster, on
// numbers that are all alike.
#include "bench/gpu/gpu_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

enum { TAKEN_MAX = 256 };
// The host draws that many numbers of an array; behind them they come again, copied by the device.
enum { DRAWN_MAX = 1 << 22 };

static void *taken[TAKEN_MAX];
static int takes;

void gpu_check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "gpu_bench: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

static void *take(size_t bytes) {
    void *memory = NULL;
    if (takes == TAKEN_MAX) gpu_check(cudaErrorMemoryAllocation, "too many arrays");
    gpu_check(cudaMalloc(&memory, bytes), "taking memory");
    return taken[takes++] = memory;
}

static cudaStream_t open_stream(void) {
    cudaStream_t stream;
    gpu_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    return stream;
}

static void close_stream(cudaStream_t stream, const char *what) {
    gpu_check(cudaStreamSynchronize(stream), what);
    gpu_check(cudaStreamDestroy(stream), "a stream");
}

// Fills `bytes` with `from`, `count` bytes of the host, again and again: each copy doubles what there is.
static void repeat(char *to, size_t bytes, const void *from, size_t count) {
    const cudaStream_t stream = open_stream();
    if (count > bytes) count = bytes;
    gpu_check(cudaMemcpyAsync(to, from, count, cudaMemcpyDefault, stream), "copying");
    for (size_t done = count; done < bytes;) {
        const size_t next = done < bytes - done ? done : bytes - done;
        gpu_check(cudaMemcpyAsync(to + done, to, next, cudaMemcpyDefault, stream), "copying");
        done += next;
    }
    close_stream(stream, "copying");
}

static void *copy_of(const void *from, size_t bytes) {
    void *to = take(bytes);
    repeat(to, bytes, from, bytes);
    return to;
}

static void *host(int64_t count, size_t size) {
    void *memory = calloc((size_t)count, size);
    if (!memory) gpu_check(cudaErrorMemoryAllocation, "memory of the host");
    return memory;
}

// splitmix64.
static uint64_t random_bits(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// Nearly normal, of mean 0 and variance 1: the sum of four uniform numbers.
static float random_normal(uint64_t *state) {
    const uint64_t bits = random_bits(state);
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += (float)(bits >> 16 * i & 0xffff) * 0x1p-16F - 0.5F;
    return sum * 1.7320508F;
}

// Other numbers in every array.
static uint64_t seed_of_array(void) {
    return (uint64_t)takes << 32;
}

void *gpu_room(size_t bytes) {
    void *memory = take(bytes);
    const cudaStream_t stream = open_stream();
    gpu_check(cudaMemsetAsync(memory, 0, bytes, stream), "filling memory");
    close_stream(stream, "filling memory");
    return memory;
}

float *gpu_floats(int64_t count) {
    const int64_t drawn = count < DRAWN_MAX ? count : DRAWN_MAX;
    float *value = host(drawn, sizeof *value), *there = take((size_t)count * sizeof *value);
    uint64_t state = seed_of_array();
    for (int64_t i = 0; i < drawn; i++) value[i] = random_normal(&state);
    repeat((char *)there, (size_t)count * sizeof *value, value, (size_t)drawn * sizeof *value);
    free(value);
    return there;
}

hk_bf16 *gpu_values(int64_t count) {
    const int64_t drawn = count < DRAWN_MAX ? count : DRAWN_MAX;
    hk_bf16 *value = host(drawn, sizeof *value), *there = take((size_t)count * sizeof *value);
    uint64_t state = seed_of_array();
    for (int64_t i = 0; i < drawn; i++) value[i] = hk_bf16_round(random_normal(&state));
    repeat((char *)there, (size_t)count * sizeof *value, value, (size_t)drawn * sizeof *value);
    free(value);
    return there;
}

int32_t *gpu_ints(const int32_t *values, int64_t count) {
    return copy_of(values, (size_t)count * sizeof *values);
}

void *gpu_pointers(void *base, size_t stride, int64_t count) {
    char **pointer = host(count, sizeof *pointer);
    for (int64_t i = 0; i < count; i++) pointer[i] = (char *)base + (size_t)i * stride;
    void *there = copy_of(pointer, (size_t)count * sizeof *pointer);
    free(pointer);
    return there;
}

int32_t *gpu_draw(int64_t count, int32_t below) {
    int32_t *value = host(count, sizeof *value);
    uint64_t state = seed_of_array();
    for (int64_t i = 0; i < count; i++)
        value[i] = (int32_t)((random_bits(&state) >> 33) % (uint64_t)below);
    int32_t *there = gpu_ints(value, count);
    free(value);
    return there;
}

int32_t *gpu_starts(int64_t count, int64_t each) {
    int32_t *first = host(count + 1, sizeof *first);
    for (int64_t i = 0; i <= count; i++) first[i] = (int32_t)(i * each);
    int32_t *there = gpu_ints(first, count + 1);
    free(first);
    return there;
}

void gpu_free_all(void) {
    while (takes > 0) gpu_check(cudaFree(taken[--takes]), "giving memory back");
}
