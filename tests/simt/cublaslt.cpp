// cuBLASLt as far as kernels/cuda/cublaslt.c calls it: a plain product on the host, in double, when the stream comes to it.
// Layouts and types must fit together, operands must be memory of the device, and the workspace is made useless.
#include <stdint.h>
#include <string.h>

#include <vector>

#include <cublasLt.h>

#include "streams.h"

namespace {

struct layout_t {
    cudaDataType type;
    int64_t rows, columns, stride; // Column-major.
};

struct product_t {
    bool turned[2];
};

layout_t layout_of(cublasLtMatrixLayout_t of) {
    return *(const layout_t *)of;
}

size_t bytes_of(cudaDataType type) {
    if (type != CUDA_R_32F && type != CUDA_R_16BF) simt::fail("cuBLASLt: type %d", (int)type);
    return type == CUDA_R_32F ? 4 : 2;
}

double get(const layout_t &l, const void *at, int64_t row, int64_t column) {
    const int64_t i = column * l.stride + row;
    if (l.type == CUDA_R_32F) return ((const float *)at)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void put(const layout_t &l, void *at, int64_t row, int64_t column, double sum) {
    const int64_t i = column * l.stride + row;
    const float value = (float)sum;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1); // To the nearest, ties to even.
    if (l.type == CUDA_R_32F) {
        ((float *)at)[i] = value;
    } else {
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    }
}

void check(const layout_t &l, const void *at, const char *what) {
    const size_t bytes = bytes_of(l.type) * (size_t)((l.columns - 1) * l.stride + l.rows);
    const simt::place_t place = simt::place_of(at, bytes);
    if (place != simt::ON_DEVICE && place != simt::PINNED)
        simt::fail("cuBLASLt: %s, %zu bytes at %p, is not of the device", what, bytes, at);
    if ((uintptr_t)at % 16) simt::fail("cuBLASLt: %s, %p, is not aligned", what, at);
}

} // namespace

extern "C" {

size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = (cublasLtHandle_t) new int;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete (int *)handle;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusName(cublasStatus_t) {
    return "a status of the double";
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return cublasLtGetStatusName(status);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *desc = (cublasLtMatmulDesc_t) new product_t();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    delete (product_t *)desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t) {
    if (attribute != CUBLASLT_MATMUL_DESC_TRANSA && attribute != CUBLASLT_MATMUL_DESC_TRANSB)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    ((product_t *)desc)->turned[attribute == CUBLASLT_MATMUL_DESC_TRANSB] =
        *(const cublasOperation_t *)value == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
    if (stride < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
    *layout = (cublasLtMatrixLayout_t) new layout_t{type, (int64_t)rows, (int64_t)columns, stride};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete (layout_t *)layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    *preference = (cublasLtMatmulPreference_t) new int;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete (int *)preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void *, size_t) {
    return CUBLAS_STATUS_SUCCESS;
}

// For products of a single term it has nothing, so that callers see that, too.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t *result, int *count) {
    const bool *turned = ((product_t *)desc)->turned;
    const layout_t x = layout_of(a), y = layout_of(b), z = layout_of(d);
    const int64_t height = turned[0] ? x.columns : x.rows, width = turned[1] ? y.rows : y.columns;
    const int64_t terms = turned[0] ? x.rows : x.columns;
    if (x.type != y.type || (z.type != x.type && z.type != CUDA_R_32F) || c != d ||
        terms != (turned[1] ? y.columns : y.rows) || z.rows != height || z.columns != width)
        simt::fail("cuBLASLt: operands do not fit together");
    *count = most > 0 && terms > 1;
    *result = cublasLtMatmulHeuristicResult_t();
    result->state = *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    return result->state;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
    const product_t product = *(const product_t *)desc;
    const layout_t x = layout_of(a_layout), y = layout_of(b_layout), z = layout_of(d_layout);
    const float factor = *(const float *)alpha, old = *(const float *)beta;
    check(x, a, "A");
    check(y, b, "B");
    check(z, d, "D");
    if (simt::place_of(workspace, workspace_bytes) != simt::ON_DEVICE)
        simt::fail("cuBLASLt: the workspace is not of the device");
    simt::enqueue(stream, "a product of cuBLASLt", [=] {
        const int64_t terms = product.turned[0] ? x.rows : x.columns;
        memset(workspace, 0xff, 1024);
        for (int64_t i = 0; i < z.rows * z.columns; i++) {
            const int64_t row = i % z.rows, column = i / z.rows;
            double sum = 0;
            for (int64_t t = 0; t < terms; t++)
                sum += (product.turned[0] ? get(x, a, t, row) : get(x, a, row, t)) *
                       (product.turned[1] ? get(y, b, column, t) : get(y, b, t, column));
            sum *= factor;
            put(z, d, row, column, old != 0 ? sum + old * get(z, d, row, column) : sum);
        }
        return true;
    });
    return CUBLAS_STATUS_SUCCESS;
}
}
