// RUN: hec-ir-tool --cost %s | FileCheck %s
//
// Floating-point operations and bytes: products 2 m n k, attention over half of the pairs when causal.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<6x5xf32, ["D", "F"]>
!y = tensor<2x4x5xf32, ["batch", "T", "F"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!q = tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>
!l = tensor<2x4x8xf32, ["batch", "H", "T"]>

module {
  // CHECK: moe.param flops 0 bytes 0
  "moe.param"() {sym_name = "w", type = !w, layers = 0, path = "w", init = "zeros", decay = true, trainable = true} : () -> ()
  func.func @f(%x: !x, %r: !r, %q: !q, %first: tensor<4xi32, ["first"]>, %e: tensor<3x6x5xf32, ["E", "D", "F"]>) {
    // CHECK-NEXT: moe.get flops 0 bytes 0
    %w = "moe.get"() {param = @w} : () -> !w
    // CHECK-NEXT: moe.contract flops 480 bytes 472
    %y = "moe.contract"(%x, %w) : (!x, !w) -> !y
    // CHECK-NEXT: moe.contract flops 480 bytes 472
    %dw = "moe.contract"(%x, %y) : (!x, !y) -> !w
    // CHECK-NEXT: moe.grouped_contract flops 960 bytes 1080
    %g = "moe.grouped_contract"(%r, %e, %first) : (!r, tensor<3x6x5xf32, ["E", "D", "F"]>, tensor<4xi32, ["first"]>) -> tensor<16x5xf32, ["rows", "F"]>
    // CHECK-NEXT: moe.grouped_contract flops 960 bytes 1080
    %dg = "moe.grouped_contract"(%r, %g, %first) : (!r, tensor<16x5xf32, ["rows", "F"]>, tensor<4xi32, ["first"]>) -> tensor<3x6x5xf32, ["E", "D", "F"]>
    // CHECK-NEXT: moe.silu flops 40 bytes 320
    %s = "moe.silu"(%y) : (!y) -> !y
    // CHECK-NEXT: moe.sdpa flops 6144 bytes 6400
    %o, %lse = "moe.sdpa"(%q, %q, %q) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !q, !q) -> (!q, !l)
    // CHECK-NEXT: moe.sdpa flops 12288 bytes 6400
    %o2, %lse2 = "moe.sdpa"(%q, %q, %q) {causal = false, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !q, !q) -> (!q, !l)
    // CHECK-NEXT: moe.sdpa flops 3072 bytes 6400
    %o3, %lse3 = "moe.sdpa"(%q, %q, %q) {causal = true, window = 2, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !q, !q) -> (!q, !l)
    // CHECK-NEXT: moe.sdpa flops 3072 bytes 6400
    %o4, %lse4 = "moe.sdpa"(%q, %q, %q) {causal = true, window = 0, chunk = 4, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !q, !q) -> (!q, !l)
    // CHECK-NEXT: moe.sdpa_grad flops 12288 bytes 12544
    %dq, %dk, %dv = "moe.sdpa_grad"(%o, %q, %q, %q, %o, %lse) {causal = true, window = 0, scale = 0.4} : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
    // CHECK-NEXT: moe.fused flops 80 bytes 320
    // CHECK-NEXT: moe.neg
    // CHECK-NEXT: moe.exp
    %u = "moe.fused"(%y) ({
    ^bb0(%a: !y):
      %n = "moe.neg"(%a) : (!y) -> !y
      %m = "moe.exp"(%n) : (!y) -> !y
      vector.yield %m : !y
    }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!y) -> !y
    return
  }
}
