// cuBLASLt as a library of GEMMs. It is column-major: row-major Y = L R is the column-major Y' = R' L', so operands
// change places. Descriptors and the algorithm are found once for each shape.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/choices.h"

enum { ENTRIES = 512, ALIGNMENT = 16 }; // Operands begin at multiples of ALIGNMENT bytes.

struct entry {
    struct hkc_shape shape;
    bool used, found; // Not found: it has nothing for this shape.
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t first, second, result;
    cublasLtMatmulAlgo_t algorithm;
};

struct cublaslt {
    struct hkc_library library;
    cublasLtHandle_t handle;
    void *workspace;
    bool always; // Without a table.
    struct hkc_choices choices;
    struct entry entry[ENTRIES];
};

// A matrix that lies as `rows` rows of `columns`.
static cublasStatus_t describe(cublasLtMatrixLayout_t *layout, bool bf16, int64_t rows,
                               int64_t columns) {
    return cublasLtMatrixLayoutCreate(layout, bf16 ? CUDA_R_16BF : CUDA_R_32F, (uint64_t)columns,
                                      (uint64_t)rows, columns);
}

static cublasStatus_t describe_all(struct entry *e) {
    const struct hk_matmul_dims d = e->shape.dims;
    const bool bf16 = e->shape.bf16;
    const enum hkc_form form = e->shape.form;
    const cublasOperation_t turned = CUBLAS_OP_T;
    cublasStatus_t s = cublasLtMatmulDescCreate(&e->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!s && form == HKC_NT)
        s = cublasLtMatmulDescSetAttribute(e->product, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                           sizeof turned);
    if (!s && form == HKC_TN)
        s = cublasLtMatmulDescSetAttribute(e->product, CUBLASLT_MATMUL_DESC_TRANSB, &turned,
                                           sizeof turned);
    // The right operand is the first one.
    if (!s && form == HKC_TN) s = describe(&e->first, bf16, d.m, d.n);
    if (!s && form != HKC_TN) s = describe(&e->first, bf16, d.k, d.n);
    if (!s) s = describe(&e->second, bf16, d.m, form == HKC_NT ? d.n : d.k);
    if (!s && form == HKC_NN) s = describe(&e->result, bf16, d.m, d.n);
    if (!s && form == HKC_NT) s = describe(&e->result, bf16, d.m, d.k);
    if (!s && form == HKC_TN) s = describe(&e->result, false, d.k, d.n);
    return s;
}

static cublasStatus_t prefer(cublasLtMatmulPreference_t preference) {
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t workspace = HKC_LIBRARY_WORKSPACE;
    const uint32_t alignment = ALIGNMENT;
    // Parts of a sum are added by a kernel of their own, in order.
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasStatus_t s = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (!s)
        s = cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction);
    for (size_t i = 0; !s && i < sizeof alignments / sizeof *alignments; i++)
        s = cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment,
                                                 sizeof alignment);
    return s;
}

static void drop(struct entry *e) {
    if (e->result) cublasLtMatrixLayoutDestroy(e->result);
    if (e->second) cublasLtMatrixLayoutDestroy(e->second);
    if (e->first) cublasLtMatrixLayoutDestroy(e->first);
    if (e->product) cublasLtMatmulDescDestroy(e->product);
}

static void find(const struct cublaslt *lt, struct entry *e) {
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t best = {0};
    int count = 0;
    cublasStatus_t s = describe_all(e);
    if (!s) s = cublasLtMatmulPreferenceCreate(&preference);
    if (!s) s = prefer(preference);
    if (!s)
        s = cublasLtMatmulAlgoGetHeuristic(lt->handle, e->product, e->first, e->second, e->result,
                                           e->result, preference, 1, &best, &count);
    if (preference) cublasLtMatmulPreferenceDestroy(preference);
    e->algorithm = best.algo;
    e->found = !s && count == 1 && !best.state;
}

static bool equal(const struct hkc_shape *a, const struct hkc_shape *b) {
    return a->form == b->form && a->bf16 == b->bf16 && a->dims.m == b->dims.m &&
           a->dims.n == b->dims.n && a->dims.k == b->dims.k;
}

// NULL: there is no room for more shapes.
static struct entry *look_up(struct cublaslt *lt, const struct hkc_shape *shape) {
    const struct hk_matmul_dims d = shape->dims;
    const uint64_t hash = (uint64_t)d.m * 0x9e3779b97f4a7c15u ^
                          (uint64_t)d.n * 0xc2b2ae3d27d4eb4fu ^
                          ((uint64_t)d.k * 2 + shape->bf16) * 0x165667b19e3779f9u;
    for (uint64_t i = 0; i < ENTRIES; i++) {
        struct entry *e = &lt->entry[((hash >> 32) + (uint64_t)shape->form + i) % ENTRIES];
        if (e->used && equal(&e->shape, shape)) return e;
        if (e->used) continue;
        *e = (struct entry){.shape = *shape, .used = true};
        find(lt, e);
        return e;
    }
    return NULL;
}

static bool is_aligned(const void *at) {
    return (uintptr_t)at % ALIGNMENT == 0;
}

static bool product(struct hkc_library *library, struct hkc_lane *lane,
                    const struct hkc_product *p) {
    struct cublaslt *lt = (struct cublaslt *)library;
    const struct hk_matmul_dims d = p->shape.dims;
    const float one = 1, old = p->add ? 1 : 0;
    if (d.m < 1 || d.n < 1 || d.k < 1 || lane->error) return false;
    if (!is_aligned(p->left) || !is_aligned(p->right) || !is_aligned(p->result)) return false;
    if (!lt->always && !hkc_choose(&lt->choices, &p->shape)) return false;
    struct entry *e = look_up(lt, &p->shape);
    if (!e || !e->found) return false;
    const cublasStatus_t s =
        cublasLtMatmul(lt->handle, e->product, &one, p->right, e->first, p->left, e->second, &old,
                       p->result, e->result, p->result, e->result, &e->algorithm, lt->workspace,
                       HKC_LIBRARY_WORKSPACE, lane->stream);
    if (s != CUBLAS_STATUS_SUCCESS) {
        lane->error = cudaErrorUnknown;
        lane->failed = cublasLtGetStatusName(s);
    }
    return true;
}

static void close_library(struct hkc_library *library) {
    struct cublaslt *lt = (struct cublaslt *)library;
    for (int i = 0; i < ENTRIES; i++) drop(&lt->entry[i]);
    if (lt->handle) cublasLtDestroy(lt->handle);
    cudaFree(lt->workspace);
    free(lt);
}

void hkc_library_name(char *text, size_t bytes) {
    const size_t version = cublasLtGetVersion();
    snprintf(text, bytes, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
}

bool hkc_library_open(struct hkc_lane *lane, const char *path, char *why, size_t why_bytes) {
    struct cublaslt *lt = calloc(1, sizeof *lt);
    if (!lt) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    lt->library = (struct hkc_library){product, close_library};
    lt->always = !path;
    bool opened = !path || hkc_choices_read(&lt->choices, path, lane->capability, why, why_bytes);
    if (opened) {
        const cublasStatus_t s = cublasLtCreate(&lt->handle);
        const cudaError_t taken =
            s ? cudaSuccess : cudaMalloc(&lt->workspace, HKC_LIBRARY_WORKSPACE);
        opened = !s && !taken;
        if (!opened)
            snprintf(why, why_bytes, "cuBLASLt does not start: %s",
                     s ? cublasLtGetStatusString(s) : cudaGetErrorString(taken));
    }
    if (opened) {
        lane->library = &lt->library;
    } else {
        close_library(&lt->library);
    }
    return opened;
}
