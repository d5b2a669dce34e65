// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!q = tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>
!k = tensor<2x8x2x6xf32, ["batch", "T", "G", "A"]>
!v = tensor<2x8x2x3xf32, ["batch", "T", "G", "U"]>
!o = tensor<2x8x4x3xf32, ["batch", "T", "H", "U"]>
!l = tensor<2x4x8xf32, ["batch", "H", "T"]>
!n = tensor<2x8x3x6xf32, ["batch", "T", "N", "A"]>
!m = tensor<2x8x3x3xf32, ["batch", "T", "N", "U"]>
!x = tensor<2x8x6xf32, ["batch", "T", "A"]>
!y = tensor<2x8x5xf32, ["batch", "T", "O"]>
!t = tensor<9x6xf32, ["T", "A"]>
!u = tensor<8x5xf32, ["T", "O"]>

module {
  func.func @faults(%q: !q, %k: !k, %v: !v, %n: !n, %m: !m, %x: !x, %y: !y, %o: !o, %l: !l, %t: !t, %u: !u,
                    %d: tensor<2x8x4x6xf64, ["batch", "T", "H", "A"]>, %j: tensor<8xi32, ["T"]>) {
    // CHECK: attention_errors.mlir:[[@LINE+1]]:16: error: 'moe.sdpa': v is tensor<2x8x2x3xf32, ["batch", "T", "G", "U"]>, expected tensor<2x8x3x3xf32, ["batch", "T", "N", "U"]>
    %o0, %l0 = "moe.sdpa"(%q, %n, %v) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !n, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.sdpa': 4 heads cannot share 3 key and value heads evenly
    %o1, %l1 = "moe.sdpa"(%q, %n, %m) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !n, !m) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.sdpa': q is tensor<2x8x6xf32, ["batch", "T", "A"]>, expected [batch, T, heads, width]
    %o2, %l2 = "moe.sdpa"(%x, %k, %v) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!x, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.sdpa': a window needs causal attention
    %o3, %l3 = "moe.sdpa"(%q, %k, %v) {causal = false, window = 3, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.sdpa': window is -3, expected at least 0
    %o4, %l4 = "moe.sdpa"(%q, %k, %v) {causal = true, window = -3, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.sdpa': scale is not finite
    %o5, %l5 = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, scale = 0x7FF0000000000000 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:16: error: 'moe.sdpa': the type of result 1 is not what its operands give
    %o6, %l6 = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !x)
    // CHECK: :[[@LINE+1]]:24: error: 'moe.sdpa_grad': lse is tensor<2x8x6xf32, ["batch", "T", "A"]>, expected tensor<2x4x8xf32, ["batch", "H", "T"]>
    %dq7, %dk7, %dv7 = "moe.sdpa_grad"(%o, %q, %k, %v, %o, %x) {causal = true, window = 0, scale = 0.4} : (!o, !q, !k, !v, !o, !x) -> (!q, !k, !v)
    // CHECK: :[[@LINE+1]]:24: error: 'moe.sdpa_grad': dout is
    %dq8, %dk8, %dv8 = "moe.sdpa_grad"(%q, %q, %k, %v, %o, %l) {causal = true, window = 0, scale = 0.4} : (!q, !q, !k, !v, !o, !l) -> (!q, !k, !v)
    // CHECK: :[[@LINE+1]]:10: error: 'moe.rope': table is tensor<9x6xf32, ["T", "A"]>, expected tensor<8x6xf32, ["T", "A"]>
    %9 = "moe.rope"(%q, %t) : (!q, !t) -> !q
    // CHECK: :[[@LINE+1]]:11: error: 'moe.rope': the width 5 is odd
    %10 = "moe.rope"(%y, %u) : (!y, !u) -> !y
    // CHECK: :[[@LINE+1]]:11: error: 'moe.rope': x is tensor<8x5xf32, ["T", "O"]>, expected at least 3 dimensions
    %11 = "moe.rope"(%u, %u) : (!u, !u) -> !u
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': rounds is for operands of f32
    %o12, %l12 = "moe.sdpa"(%d, %d, %d) {causal = true, window = 0, scale = 0.4, rounds = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
      : (tensor<2x8x4x6xf64, ["batch", "T", "H", "A"]>, tensor<2x8x4x6xf64, ["batch", "T", "H", "A"]>, tensor<2x8x4x6xf64, ["batch", "T", "H", "A"]>)
      -> (tensor<2x8x4x6xf64, ["batch", "T", "H", "A"]>, tensor<2x4x8xf64, ["batch", "H", "T"]>)
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': sinks is tensor<2x4x8xf32, ["batch", "H", "T"]>, expected tensor<4xf32, ["H"]>
    %o13, %l13 = "moe.sdpa"(%q, %k, %v, %l) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>} : (!q, !k, !v, !l) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:12: error: 'moe.sinks_grad': sinks is tensor<2x4x8xf32, ["batch", "H", "T"]>, expected tensor<4xf32, ["H"]>
    %s14 = "moe.sinks_grad"(%o, %o, %l, %l) : (!o, !o, !l, !l) -> tensor<4xf32, ["H"]>
    // CHECK: :[[@LINE+1]]:12: error: 'moe.sinks_grad': out is tensor<2x8x6xf32, ["batch", "T", "A"]>, expected [batch, T, heads, width]
    %s15 = "moe.sinks_grad"(%o, %x, %l, %l) : (!o, !x, !l, !l) -> tensor<4xf32, ["H"]>
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': a chunk needs causal attention
    %o16, %l16 = "moe.sdpa"(%q, %k, %v) {causal = false, window = 0, chunk = 4, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': chunk is 0, expected at least 1
    %o17, %l17 = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, chunk = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': cap is 0, expected a positive number
    %o18, %l18 = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, scale = 0.4, cap = 0.0, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': cap is inf, expected a positive number
    %o19, %l19 = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, scale = 0.4, cap = 0x7FF0000000000000 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:18: error: 'moe.sdpa': begins is tensor<2x4x8xf32, ["batch", "H", "T"]>, expected tensor<2x8xi32, ["batch", "T"]>
    %o20, %l20 = "moe.sdpa"(%q, %k, %v, %l) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>} : (!q, !k, !v, !l) -> (!o, !l)
    // CHECK: :[[@LINE+1]]:27: error: 'moe.sdpa_grad': begins is tensor<2x4x8xf32, ["batch", "H", "T"]>, expected tensor<2x8xi32, ["batch", "T"]>
    %dq21, %dk21, %dv21 = "moe.sdpa_grad"(%o, %q, %k, %v, %o, %l, %l) {causal = true, window = 0, scale = 0.4} : (!o, !q, !k, !v, !o, !l, !l) -> (!q, !k, !v)
    // CHECK: :[[@LINE+1]]:11: error: 'moe.documents': ids is tensor<2x8x6xf32, ["batch", "T", "A"]>, expected tensor<2x8x6xi32, ["batch", "T", "A"]>
    %22 = "moe.documents"(%x) {end = 7} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.documents': finds documents of tokens [batch, T]
    %23 = "moe.documents"(%j) {end = 7} : (tensor<8xi32, ["T"]>) -> tensor<8xi32, ["T"]>
    return
  }
}
// CHECK-NOT: error:
