// A loop over elements as a kernel of its own, and the launcher that host code calls. No iteration depends on
// another one: each is a thread. Where all tensors lie along the innermost loop or lack it, a thread has as many
// neighbours as fit in accesses of 16 bytes; the kernel is a template, whose form for one element serves the rest.
#ifndef HECATE_CODEGEN_TARGETS_CUDA_LOOP_H
#define HECATE_CODEGEN_TARGETS_CUDA_LOOP_H

#include "codegen/host/emitter.h"
#include "codegen/host/nest.h"
#include "codegen/host/part.h"

enum hec_device_use { HEC_DEVICE_READ, HEC_DEVICE_WRITTEN, HEC_DEVICE_ADDED };

// A pointer that is handed from the host to the kernel.
struct hec_device_pointer {
    MlirType type;
    const char *host; // As the host calls it.
    const char *name; // As the kernel calls it; set by hec_device_loop_begin.
    enum hec_device_use use;
    const struct hec_parts *
        parts; // The pointer is that of their whole; NULL: the nest and the type say what lies where.
    int part;
    const char *
        vector; // Its neighbours, a variable of the kernel; NULL: one element, read where it is used.
};

enum { HEC_DEVICE_POINTERS = 128 };

struct hec_device_loop {
    struct hec_nest nest;
    int threads; // Loops of the nest, from the outermost, whose iterations are threads.
    int pointers;
    struct hec_device_pointer pointer[HEC_DEVICE_POINTERS];
    const char *name; // Name of the launcher.
    int width; // Neighbours that a thread has at most: 8 where values are bf16, 4 of floats; 1: none.
    const char *fits; // When it may have them, for the launcher: "hkc_aligned(x, w) && D % 8 == 0".
};

// Adds a pointer, called like `name` in the kernel. Returns its index.
int hec_device_point(struct hec_device_loop *loop, MlirType type, const char *host,
                     const char *name, enum hec_device_use use);

// Begins the kernel; later statements go to its body, the current function's. It is called after `base`.
void hec_device_loop_begin(struct hec_emitter *e, struct hec_device_loop *loop, const char *base);

// The current element of a pointer, to be written: "x[r * D + j]", or "x_n.at[i]" of neighbours.
const char *hec_device_element(struct hec_emitter *e, const struct hec_device_loop *loop,
                               int pointer);
// The number in it: "hkc_float(x[r * D + j])" where elements are bf16.
const char *hec_device_number(struct hec_emitter *e, const struct hec_device_loop *loop,
                              int pointer);
// Function that rounds a number for it: "hkc_bf16"; NULL: none.
const char *hec_device_rounds(const struct hec_device_loop *loop, int pointer);

// Ends it, and writes the call of its launcher to the function of the host around it.
void hec_device_loop_end(struct hec_emitter *e, const struct hec_device_loop *loop);

#endif
