// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!x = tensor<2x8x6xf32, ["batch", "T", "D"]>
!y = tensor<2x8x4xf32, ["batch", "T", "H"]>

module {
  func.func @faults(%x: !x, %y: !y, %i: tensor<2x8xi32, ["batch", "T"]>) {
    // CHECK: softmax_errors.mlir:[[@LINE+1]]:10: error: 'moe.softmax': over is 4, but a has 3 dimensions
    %0 = "moe.softmax"(%x) {over = 4} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.softmax': over is 0, but a has 3 dimensions
    %1 = "moe.softmax"(%x) {over = 0} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.softmax': a is tensor<2x8xi32
    %2 = "moe.softmax"(%i) {over = 1} : (tensor<2x8xi32, ["batch", "T"]>) -> tensor<2x8xi32, ["batch", "T"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.softmax': the type of result 0 is not what its operands give
    %3 = "moe.softmax"(%x) {over = 1} : (!x) -> !y
    // CHECK: :[[@LINE+1]]:10: error: 'moe.softmax_grad': dr is tensor<2x8x4xf32
    %4 = "moe.softmax_grad"(%y, %x) {over = 1} : (!y, !x) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.softmax_grad': over is 5, but r has 3 dimensions
    %5 = "moe.softmax_grad"(%x, %x) {over = 5} : (!x, !x) -> !x
    return
  }
}
