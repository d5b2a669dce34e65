// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!x = tensor<2x4x5xf32, ["batch", "T", "D"]>
!s = tensor<2x4xf32, ["batch", "T"]>
!d = tensor<5xf32, ["D"]>
!f = tensor<5xf32, ["F"]>

module {
  func.func @faults(%x: !x, %g: !d, %f: !f, %s: !s, %i: tensor<2x5xi32, ["T", "D"]>) {
    // CHECK: norm_errors.mlir:[[@LINE+1]]:16: error: 'moe.rmsnorm': gain is tensor<5xf32, ["F"]>, expected tensor<5xf32, ["D"]>
    %y0, %r0 = "moe.rmsnorm"(%x, %f) {eps = 1.0e-5, over = 1} : (!x, !f) -> (!x, !s)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.rmsnorm': over is 4, but x has 3 dimensions
    %y1, %r1 = "moe.rmsnorm"(%x) {eps = 1.0e-5, over = 4} : (!x) -> (!x, !s)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.rmsnorm': over is 0, but x has 3 dimensions
    %y2, %r2 = "moe.rmsnorm"(%x) {eps = 1.0e-5, over = 0} : (!x) -> (!x, !s)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.rmsnorm': eps must not be negative
    %y3, %r3 = "moe.rmsnorm"(%x) {eps = -1.0, over = 1} : (!x) -> (!x, !s)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.rmsnorm': the type of result 1 is not what its operands give
    %y4, %r4 = "moe.rmsnorm"(%x) {eps = 1.0e-5, over = 1} : (!x) -> (!x, !d)
    // CHECK: :[[@LINE+1]]:21: error: 'moe.layernorm': gain is tensor<5xf32, ["F"]>, expected tensor<5xf32, ["D"]>
    %y5, %m5, %r5 = "moe.layernorm"(%x, %f, %f) {eps = 1.0e-5, over = 1} : (!x, !f, !f) -> (!x, !s, !s)
    // CHECK: :[[@LINE+1]]:21: error: 'moe.layernorm': 4 operands, expected at most 3
    %y6, %m6, %r6 = "moe.layernorm"(%x, %g, %g, %g) {eps = 1.0e-5, over = 1} : (!x, !d, !d, !d) -> (!x, !s, !s)
    // CHECK: :[[@LINE+1]]:11: error: 'moe.rmsnorm_grad': dy is tensor<5xf32, ["D"]>, expected tensor<2x4x5xf32, ["batch", "T", "D"]>
    %d7 = "moe.rmsnorm_grad"(%g, %x, %s) {over = 1} : (!d, !x, !s) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.rmsnorm_grad': rstd is
    %d8 = "moe.rmsnorm_grad"(%x, %x, %g) {over = 1} : (!x, !x, !d) -> !x
    // CHECK: :[[@LINE+1]]:16: error: 'moe.rmsnorm_grad': 2 results, expected at most 1
    %d9, %e9 = "moe.rmsnorm_grad"(%x, %x, %s) {over = 1} : (!x, !x, !s) -> (!x, !d)
    // CHECK: :[[@LINE+1]]:12: error: 'moe.layernorm_grad': mean is
    %d10 = "moe.layernorm_grad"(%x, %x, %g, %s) {over = 1} : (!x, !x, !d, !s) -> !x
    // CHECK: :[[@LINE+1]]:12: error: 'moe.layernorm_grad': gain is tensor<5xf32, ["F"]>
    %d11 = "moe.layernorm_grad"(%x, %x, %s, %s, %f) {over = 1} : (!x, !x, !s, !s, !f) -> !x
    // CHECK: :[[@LINE+1]]:18: error: 'moe.rmsnorm': x is tensor<2x5xi32, ["T", "D"]>, expected a tensor of f32 or f64
    %y12, %r12 = "moe.rmsnorm"(%i) {eps = 1.0e-5, over = 1} : (tensor<2x5xi32, ["T", "D"]>) -> (tensor<2x5xi32, ["T", "D"]>, tensor<2xi32, ["T"]>)
    return
  }
}
// CHECK-NOT: error:
