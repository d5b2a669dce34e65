// library: dense GEMMs by NVIDIA's cuBLASLt, in place of the own ones (cuda/products.h) where a table says so.
//
// The own ones are the default: a row has the same bits for any other rows. A library chooses by shape; for one
// shape, on one kind of device and in one version, it gives the same bits every time (cuBLAS's documentation), since no
// way of adding is allowed whose order is open. fp32 is fp32: no TF32.
#ifndef HECATE_KERNELS_CUDA_LIBRARY_H
#define HECATE_KERNELS_CUDA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/cuda/lane.h"
#include "kernels/dims.h"

#ifdef __cplusplus
extern "C" {
#endif

// As in matmul.h: C = A B, A = C B^T, B = A^T C.
enum hkc_form { HKC_NN, HKC_NT, HKC_TN, HKC_FORMS };

struct hkc_shape {
    enum hkc_form form;
    bool bf16; // A, B and C are; the B of tn is float.
    struct hk_matmul_dims dims;
};

struct hkc_product {
    struct hkc_shape shape;
    const void *left, *right; // In the order of the form.
    void *result;
    bool add; // To the result.
};

// The choices for a lane's GEMMs.
struct hkc_library {
    // Asks for the GEMM, on the lane. False: nothing was asked for; the own kernels compute it.
    bool (*product)(struct hkc_library *library, struct hkc_lane *lane,
                    const struct hkc_product *product);
    void (*close)(struct hkc_library *library);
};

enum { HKC_LIBRARY_WORKSPACE = 32 << 20 }; // Device memory that an open library has.

// Opens cuBLASLt for the lane, with the table at `path` (choices.h); NULL: it computes all that it can. The lane has it
// from then on, and the caller closes it. False: `why` gives the reason.
bool hkc_library_open(struct hkc_lane *lane, const char *path, char *why, size_t why_bytes);

// Its name and version, such as "cuBLASLt 13.0.2". Needs no device.
void hkc_library_name(char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
