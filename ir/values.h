// How values are kept: which operands and results may be bf16.
//
// A tensor of bf16 holds numbers of f32, rounded when they were written. On targets with bf16_values, reading one is
// reading an f32, for loops, sums, copies (which change one type into the other) and slots. A kernel has one form of
// f32 and perhaps one of bf16, whose operands and results kernels.def lists under `values`: all of these are bf16 then,
// and no others. On all targets moe.get may give the rounded copy of a parameter, for GEMMs that round.
#ifndef HECATE_IR_VALUES_H
#define HECATE_IR_VALUES_H

#include "ir/core/kernel.h"

// Whether the operand (with `result`, the result) `index` of what `kernel` computes is bf16 in its form of bf16.
bool hec_kernel_keeps_bf16(const struct hec_kernel *kernel, bool result, int index);

// Whether the operation takes any mix of f32 and bf16.
bool hec_takes_bf16(MlirOperation op);

// Whether the operation moves rows between ranks. These are its operand and its result 0; those of a set are all bf16,
// or none is.
bool hec_moves_rows(MlirOperation op);

// An fssdp.dispatch of the set; null: nothing is sent to its experts.
MlirOperation hec_dispatch_of(MlirOperation set);

// Whether `call` calls the form of its kernel whose name ends with bf16.
bool hec_call_is_bf16(MlirOperation call);

// Reports an operand or result of bf16 that may not be.
bool hec_values_verify(MlirOperation op);

#endif
