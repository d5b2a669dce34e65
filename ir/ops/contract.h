// GEMMs by dimension names: which matrices a contract multiplies.
#ifndef HECATE_IR_OPS_CONTRACT_H
#define HECATE_IR_OPS_CONTRACT_H

#include "ir/core/ir.h"

enum hec_contract_form {
    HEC_CONTRACT_NN, // r[M, N] = a[M, K] b[K, N]
    HEC_CONTRACT_NT, // r[M, K] = a[M, N] b[K, N]^T
    HEC_CONTRACT_TN, // r[K, N] = a[M, K]^T b[M, N]
};

// The matrix of the right operand of the forward GEMM, K x N, keeps its letters in all three
// forms: NT is the gradient of NN's left operand, TN that of its right one. Each group of dimensions
// may be empty (size 1). In a GEMM by expert, `m` is [rows] and the expert dimension is in none; a gathered operand
// counts as the rows that it becomes.
struct hec_contract {
    enum hec_contract_form form;
    struct hec_tensor m, n, k;
};

// Whether `op` is moe.contract, moe.grouped_contract or moe.gathered_contract, or a call of a kernel that computes one.
bool hec_is_product(MlirOperation op);

// Whether `v`, an operand of an operation that gathers (moe.gathered_contract, moe.gathered_swiglu) or its call, has
// the rows of tokens.
bool hec_is_gathered(MlirOperation op, MlirValue v);

// The type of `v`, an operand of any GEMM by expert or its call: where it is gathered, of the rows that it becomes.
struct hec_tensor hec_rows_at(MlirOperation op, MlirValue v);

// Takes apart such a GEMM. False when its dimensions are in no such
// order; the verifier refuses those.
bool hec_contract_of(MlirOperation op, struct hec_contract *contract);

#endif
