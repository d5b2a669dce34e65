// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Token ids are below the module's vocabulary: so are tables' rows and logits.

!e = tensor<9x6xf32, ["V", "D"]>
!i = tensor<2x4xi32, ["batch", "T"]>
!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!l = tensor<2x4x9xf32, ["batch", "T", "V"]>
!n = tensor<2x4xf32, ["batch", "T"]>
!s = tensor<f32>

module attributes {hecate.vocabulary = 10 : i64} {
  func.func @faults(%e: !e, %i: !i, %x: !x, %l: !l, %n: !n, %s: !s) {
    // CHECK: vocabulary_errors.mlir:[[@LINE+1]]:10: error: 'moe.gather': table takes token ids up to 8, they go up to 9
    %0 = "moe.gather"(%e, %i) : (!e, !i) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gather_grad': dtable takes token ids up to 8, they go up to 9
    %1 = "moe.gather_grad"(%x, %i) : (!x, !i) -> !e
    // CHECK: :[[@LINE+1]]:19: error: 'moe.cross_entropy': logits takes token ids up to 8, they go up to 9
    %loss, %lse = "moe.cross_entropy"(%l, %i, %s) : (!l, !i, !s) -> (!s, !n)
    // CHECK: :[[@LINE+1]]:10: error: 'moe.cross_entropy_grad': logits takes token ids up to 8, they go up to 9
    %2 = "moe.cross_entropy_grad"(%s, %l, %n, %i, %s) : (!s, !l, !n, !i, !s) -> !l
    return
  }
}
