// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!q = tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>
!n = tensor<2x8x4x4xf32, ["batch", "T", "H", "N"]>
!r = tensor<2x8x2xf32, ["batch", "T", "R"]>
!s = tensor<2x8x3xf32, ["batch", "T", "S"]>
!t = tensor<2x4x8x4xf32, ["batch", "H", "T", "N"]>

module {
  func.func @faults(%q: !q, %n: !n, %r: !r, %s: !s, %t: !t, %i: tensor<2x8xi32, ["batch", "T"]>) {
    // CHECK: parts_errors.mlir:[[@LINE+1]]:10: error: 'moe.slice': elements 3 to 6 are not in a dimension of size 6
    %0 = "moe.slice"(%q) {begin = 3} : (!q) -> !n
    // CHECK: :[[@LINE+1]]:10: error: 'moe.slice': elements -1 to 2 are not in a dimension of size 6
    %1 = "moe.slice"(%q) {begin = -1} : (!q) -> !n
    // CHECK: :[[@LINE+1]]:10: error: 'moe.slice': tensor<2x8x2xf32, ["batch", "T", "R"]> is no part of tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]> along one dimension
    %2 = "moe.slice"(%q) {begin = 0} : (!q) -> !r
    // CHECK: :[[@LINE+1]]:10: error: 'moe.slice': tensor<2x4x8x4xf32, ["batch", "H", "T", "N"]> is no part of
    %3 = "moe.slice"(%q) {begin = 0} : (!q) -> !t
    // CHECK: :[[@LINE+1]]:10: error: 'moe.slice': tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]> is no part of
    %4 = "moe.slice"(%q) {begin = 0} : (!q) -> !q
    // CHECK: :[[@LINE+1]]:10: error: 'moe.slice_grad': elements 4 to 7 are not in a dimension of size 6
    %5 = "moe.slice_grad"(%n) {begin = 4} : (!n) -> !q
    // CHECK: :[[@LINE+1]]:10: error: 'moe.concat': the parts have 5 elements together, the result 6
    %6 = "moe.concat"(%r, %s) : (!r, !s) -> tensor<2x8x6xf32, ["batch", "T", "A"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.concat': elements 4 to 6 are not in a dimension of size 6
    %7 = "moe.concat"(%n, %s) : (!n, !s) -> !q
    // CHECK: :[[@LINE+1]]:10: error: 'moe.concat': tensor<2x8x4x4xf32, ["batch", "T", "H", "N"]> is no part of
    %8 = "moe.concat"(%n, %r) : (!n, !r) -> tensor<2x8x6xf32, ["batch", "T", "A"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.concat': a part is tensor<2x8xi32
    %9 = "moe.concat"(%i, %r) : (tensor<2x8xi32, ["batch", "T"]>, !r) -> tensor<2x8x4xf32, ["batch", "T", "A"]>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.transpose': tensor<2x8x2xf32, ["batch", "T", "R"]> does not have the dimensions of tensor<2x8x3xf32, ["batch", "T", "S"]>
    %10 = "moe.transpose"(%s) : (!s) -> !r
    // CHECK: :[[@LINE+1]]:11: error: 'moe.transpose': tensor<3x8x2xf32, ["S", "T", "batch"]> does not have the dimensions of
    %11 = "moe.transpose"(%r) : (!r) -> tensor<3x8x2xf32, ["S", "T", "batch"]>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.transpose': the operand is tensor<2x8xi32
    %12 = "moe.transpose"(%i) : (tensor<2x8xi32, ["batch", "T"]>) -> tensor<8x2xf32, ["T", "batch"]>
    return
  }
}
