// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!q = tensor<2x8x2x6xf32, ["batch", "T", "G", "A"]>
!p = tensor<2x8x3x6xf32, ["batch", "T", "N", "A"]>
!v = tensor<2x8x4x3xf32, ["batch", "T", "H", "U"]>
!h = tensor<2x8x4xf32, ["batch", "T", "H"]>
!n = tensor<2x1x4x6x3xf32, ["batch", "chunks", "H", "A", "columns"]>
!m = tensor<2x2x4x6x3xf32, ["batch", "chunks", "H", "A", "columns"]>
!w = tensor<2x6x4xf32, ["G", "A", "K"]>
!l = tensor<2x6x9xf32, ["G", "A", "K"]>
!i = tensor<2x8xi32, ["batch", "T"]>

module {
  func.func @faults(%q: !q, %p: !p, %v: !v, %h: !h, %n: !n, %m: !m, %w: !w, %l: !l, %i: !i, %j: tensor<8xi32, ["T"]>) {
    // CHECK: recurrent_errors.mlir:[[@LINE+1]]:11: error: 'moe.causal_conv': w is tensor<2x8x4xf32, ["batch", "T", "H"]>, expected tensor<2x6x4xf32, ["G", "A", "H"]>
    %y0 = "moe.causal_conv"(%q, %h) : (!q, !h) -> !q
    // CHECK: :[[@LINE+1]]:11: error: 'moe.causal_conv': 9 taps, expected 1 to 8
    %y1 = "moe.causal_conv"(%q, %l) : (!q, !l) -> !q
    // CHECK: :[[@LINE+1]]:11: error: 'moe.causal_conv': begins is tensor<8xi32, ["T"]>, expected tensor<2x8xi32, ["batch", "T"]>
    %y2 = "moe.causal_conv"(%q, %w, %j) : (!q, !w, tensor<8xi32, ["T"]>) -> !q
    // CHECK: :[[@LINE+1]]:16: error: 'moe.causal_conv_grad': dy is
    %dx, %dw = "moe.causal_conv_grad"(%p, %q, %w) : (!p, !q, !w) -> (!q, !w)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': 4 value heads cannot share 3 key heads evenly
    %o0, %s0 = "moe.delta_rule"(%p, %p, %v, %h, %h) {scale = 0.4, chunk = 64} : (!p, !p, !v, !h, !h) -> (!v, !n)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': k is
    %o1, %s1 = "moe.delta_rule"(%q, %p, %v, %h, %h) {scale = 0.4, chunk = 64} : (!q, !p, !v, !h, !h) -> (!v, !n)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': decay is
    %o2, %s2 = "moe.delta_rule"(%q, %q, %v, %q, %h) {scale = 0.4, chunk = 64} : (!q, !q, !v, !q, !h) -> (!v, !n)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': chunk is 65, expected at most 64
    %o3, %s3 = "moe.delta_rule"(%q, %q, %v, %h, %h) {scale = 0.4, chunk = 65} : (!q, !q, !v, !h, !h) -> (!v, !n)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': chunk is 0, expected at least 1
    %o4, %s4 = "moe.delta_rule"(%q, %q, %v, %h, %h) {scale = 0.4, chunk = 0} : (!q, !q, !v, !h, !h) -> (!v, !n)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': the type of result 1 is not what its operands give
    %o5, %s5 = "moe.delta_rule"(%q, %q, %v, %h, %h) {scale = 0.4, chunk = 64} : (!q, !q, !v, !h, !h) -> (!v, !m)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.delta_rule': scale is not finite
    %o6, %s6 = "moe.delta_rule"(%q, %q, %v, %h, %h) {scale = 0x7FF0000000000000 : f64, chunk = 64} : (!q, !q, !v, !h, !h) -> (!v, !n)
    // CHECK: :[[@LINE+1]]:12: error: 'moe.delta_rule_grad': states is
    %g:6 = "moe.delta_rule_grad"(%v, %q, %q, %v, %h, %h, %m) {scale = 0.4, chunk = 64} : (!v, !q, !q, !v, !h, !h, !m) -> (!q, !q, !v, !h, !h, tensor<2x4x6x3xf32, ["batch", "H", "A", "columns"]>)
    return
  }
}
