// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Products whose dimensions do not fit, or would need a transpose.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<6x9xf32, ["D", "V"]>
!l = tensor<2x4x9xf32, ["batch", "T", "V"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!e = tensor<3x6x5xf32, ["E", "D", "F"]>
!g = tensor<16x5xf32, ["rows", "F"]>
!f = tensor<4xi32, ["first"]>

module {
  func.func @faults(%x: !x, %w: !w, %y: tensor<6x9x2xf32, ["D", "V", "K"]>, %s: tensor<7x9xf32, ["D", "V"]>,
                    %t: tensor<6x2x4xf32, ["D", "batch", "T"]>, %d: tensor<6x9xf64, ["D", "V"]>,
                    %i: tensor<2x4xi32, ["batch", "T"]>, %q: tensor<2x6x5xf32, ["H", "D", "A"]>) {
    // CHECK: contract_errors.mlir:[[@LINE+1]]:10: error: 'moe.contract': dimension K is in only one of the operands and the result
    %0 = "moe.contract"(%x, %y) : (!x, tensor<6x9x2xf32, ["D", "V", "K"]>) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': dimension D has the sizes 6 and 7
    %1 = "moe.contract"(%x, %s) : (!x, tensor<7x9xf32, ["D", "V"]>) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': not yet: dimension batch is in both operands and the result
    %2 = "moe.contract"(%x, %x) : (!x, !x) -> tensor<2x4xf32, ["batch", "T"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': not yet: tensor<2x4x6xf32, ["batch", "T", "D"]> by tensor<6x9xf32, ["D", "V"]> to tensor<9x2x4xf32, ["V", "batch", "T"]> needs a transpose
    %3 = "moe.contract"(%x, %w) : (!x, !w) -> tensor<9x2x4xf32, ["V", "batch", "T"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': not yet: {{.*}} needs a transpose
    %4 = "moe.contract"(%x, %q) : (!x, tensor<2x6x5xf32, ["H", "D", "A"]>) -> tensor<2x4x2x5xf32, ["batch", "T", "H", "A"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': operands and result must all be of f32, or of f64
    %5 = "moe.contract"(%x, %d) : (!x, tensor<6x9xf64, ["D", "V"]>) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': operands and result must all be of f32, or of f64
    %6 = "moe.contract"(%i, %i) : (tensor<2x4xi32, ["batch", "T"]>, tensor<2x4xi32, ["batch", "T"]>) -> tensor<i32>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': not yet: batch may only be the first dimension of the rows
    %7 = "moe.contract"(%w, %t) : (!w, tensor<6x2x4xf32, ["D", "batch", "T"]>) -> tensor<9x2x4xf32, ["V", "batch", "T"]>
    return
  }

  func.func @rounds(%x: !x, %w: !w, %b: tensor<6x9xbf16, ["D", "V"]>, %y: tensor<2x4x6xbf16, ["batch", "T", "D"]>, %l: !l,
                    %d: tensor<2x4x6xf64, ["batch", "T", "D"]>, %lb: tensor<2x4x9xbf16, ["batch", "T", "V"]>) {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': with rounds a and the result must be of f32, b of bf16
    %0 = "moe.contract"(%x, %w) {rounds = true} : (!x, !w) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': operands and result must all be of f32, or of f64
    %1 = "moe.contract"(%x, %b) : (!x, tensor<6x9xbf16, ["D", "V"]>) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': with rounds a and the result must be of f32, b of bf16
    %2 = "moe.contract"(%y, %b) {rounds = true} : (tensor<2x4x6xbf16, ["batch", "T", "D"]>, tensor<6x9xbf16, ["D", "V"]>) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': with rounds a and the result must be of f32, b of bf16
    %3 = "moe.contract"(%d, %b) {rounds = true} : (tensor<2x4x6xf64, ["batch", "T", "D"]>, tensor<6x9xbf16, ["D", "V"]>) -> tensor<2x4x9xf64, ["batch", "T", "V"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': with rounds a and the result must be of f32, b of f32, too
    %4 = "moe.contract"(%x, %lb) {rounds = true} : (!x, tensor<2x4x9xbf16, ["batch", "T", "V"]>) -> !w
    // CHECK: :[[@LINE+1]]:10: error: 'moe.contract': with rounds a and the result must be of f32, b of f32, too
    %5 = "moe.contract"(%x, %l) {rounds = true} : (!x, !l) -> tensor<6x9xbf16, ["D", "V"]>
    // Good: a weight's product and its gradient.
    // CHECK-NOT: :[[@LINE+1]]:
    %6 = "moe.contract"(%x, %b) {rounds = true} : (!x, tensor<6x9xbf16, ["D", "V"]>) -> !l
    // CHECK-NOT: :[[@LINE+1]]:
    %7 = "moe.contract"(%x, %l) {rounds = true} : (!x, !l) -> !w
    return
  }

  func.func @grouped(%x: !r, %w: !e, %y: !g, %f: !f, %h: tensor<3xi32, ["first"]>, %n: tensor<16x3xf32, ["rows", "E"]>,
                     %t: tensor<3x5x6x2xf32, ["E", "F", "D", "K"]>) {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.grouped_contract': first is tensor<3xi32, ["first"]>, expected tensor<4xi32, ["first"]>
    %0 = "moe.grouped_contract"(%x, %w, %h) : (!r, !e, tensor<3xi32, ["first"]>) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.grouped_contract': a and one of b and r must start with rows, the other with the experts
    %1 = "moe.grouped_contract"(%w, %x, %f) : (!e, !r, !f) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.grouped_contract': a and one of b and r must start with rows, the other with the experts
    %2 = "moe.grouped_contract"(%x, %y, %f) : (!r, !g, !f) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.grouped_contract': the expert dimension E may be in one tensor only
    %3 = "moe.grouped_contract"(%n, %w, %f) : (tensor<16x3xf32, ["rows", "E"]>, !e, !f) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.grouped_contract': dimension K is in only one of the operands and the result
    %4 = "moe.grouped_contract"(%x, %t, %f) : (!r, tensor<3x5x6x2xf32, ["E", "F", "D", "K"]>, !f) -> !g
    return
  }

  func.func @gathered(%x: !x, %w: !e, %y: !g, %rows: !r, %f: !f, %p: tensor<16xi32, ["rows"]>, %q: tensor<8xi32, ["rows"]>,
                      %s: tensor<2x4x2xi32, ["batch", "T", "picks"]>) {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gathered_contract': pair is tensor<8xi32, ["rows"]>, expected tensor<16xi32, ["rows"]>
    %0 = "moe.gathered_contract"(%x, %w, %f, %q, %s) : (!x, !e, !f, tensor<8xi32, ["rows"]>, tensor<2x4x2xi32, ["batch", "T", "picks"]>) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gathered_contract': one of a and b must be of the route's tokens, the other not
    %1 = "moe.gathered_contract"(%rows, %w, %f, %p, %s) : (!r, !e, !f, tensor<16xi32, ["rows"]>, tensor<2x4x2xi32, ["batch", "T", "picks"]>) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gathered_contract': one of a and b must be of the route's tokens, the other not
    %2 = "moe.gathered_contract"(%x, %x, %f, %p, %s) : (!x, !x, !f, tensor<16xi32, ["rows"]>, tensor<2x4x2xi32, ["batch", "T", "picks"]>) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gathered_contract': a and one of b and r must start with rows, the other with the experts
    %3 = "moe.gathered_contract"(%x, %y, %f, %p, %s) : (!x, !g, !f, tensor<16xi32, ["rows"]>, tensor<2x4x2xi32, ["batch", "T", "picks"]>) -> !g
    return
  }

  func.func @swiglu(%x: !r, %w: !e, %v: tensor<3x6x4xf32, ["E", "D", "F"]>, %f: !f, %g: tensor<16xf32, ["rows"]>,
                    %h: tensor<8xf32, ["rows"]>, %y: !x) {
    // CHECK: :[[@LINE+1]]:12: error: 'moe.swiglu': c is tensor<3x6x4xf32, ["E", "D", "F"]>, expected tensor<3x6x5xf32, ["E", "D", "F"]>
    %0:3 = "moe.swiglu"(%x, %w, %v, %f, %g) : (!r, !e, tensor<3x6x4xf32, ["E", "D", "F"]>, !f, tensor<16xf32, ["rows"]>) -> (!g, !g, !g)
    // CHECK: :[[@LINE+1]]:12: error: 'moe.swiglu': scale is tensor<8xf32, ["rows"]>, expected tensor<16xf32, ["rows"]>
    %1:3 = "moe.swiglu"(%x, %w, %w, %f, %h) : (!r, !e, !e, !f, tensor<8xf32, ["rows"]>) -> (!g, !g, !g)
    // CHECK: :[[@LINE+1]]:12: error: 'moe.swiglu': b is tensor<3x6x5xf32, ["E", "D", "F"]>, expected the experts' dimension, a's columns and those of gated
    %2:3 = "moe.swiglu"(%y, %w, %w, %f, %g) : (!x, !e, !e, !f, tensor<16xf32, ["rows"]>) -> (!g, !g, !g)
    // CHECK: :[[@LINE+1]]:12: error: 'moe.swiglu': ab is tensor<16x6xf32, ["rows", "D"]>, expected tensor<16x5xf32, ["rows", "F"]>
    %3:3 = "moe.swiglu"(%x, %w, %w, %f, %g) : (!r, !e, !e, !f, tensor<16xf32, ["rows"]>) -> (!r, !g, !g)
    return
  }

  func.func @spread(%b: tensor<3x6xf32, ["E", "D"]>, %x: !r, %f: !f, %h: tensor<3xi32, ["first"]>) {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.spread': tensor<3x6xf32, ["E", "D"]> and tensor<16x5xf32, ["rows", "F"]> are not a vector per expert and per row
    %0 = "moe.spread"(%b, %f) : (tensor<3x6xf32, ["E", "D"]>, !f) -> !g
    // CHECK: :[[@LINE+1]]:10: error: 'moe.spread': first is
    %1 = "moe.spread"(%b, %h) : (tensor<3x6xf32, ["E", "D"]>, tensor<3xi32, ["first"]>) -> !r
    // CHECK: :[[@LINE+1]]:10: error: 'moe.spread_grad': the tensor by expert is tensor<f32>, expected at least 1 dimensions
    %2 = "moe.spread_grad"(%x, %f) : (!r, !f) -> tensor<f32>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.spread_grad': {{.*}} are not a vector per expert and per row
    %3 = "moe.spread_grad"(%x, %f) : (!r, !f) -> tensor<3x5xf32, ["E", "F"]>
    return
  }
}
// CHECK-NOT: error:
