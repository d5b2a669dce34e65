// RUN: hec-ir-tool --gradient %s | FileCheck %s

!q = tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>
!k = tensor<2x8x2x6xf32, ["batch", "T", "G", "A"]>
!v = tensor<2x8x2x3xf32, ["batch", "T", "G", "U"]>
!o = tensor<2x8x4x3xf32, ["batch", "T", "H", "U"]>
!l = tensor<2x4x8xf32, ["batch", "H", "T"]>
!t = tensor<8x6xf32, ["T", "A"]>
!i = tensor<2x8xi32, ["batch", "T"]>

module {
  // Heads share keys and values in groups; values may have another width than keys.
  // CHECK-LABEL: func.func @sdpa(
  // CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x8x4x6xf32{{[^%]*}}%[[K:[^:]*]]: tensor<2x8x2x6xf32{{[^%]*}}%[[V:[^:]*]]: tensor
  // CHECK:         %[[O:.*]]:2 = "moe.sdpa"(%[[Q]], %[[K]], %[[V]])
  // CHECK-NEXT:    %[[DO:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]]:3 = "moe.sdpa_grad"(%[[DO]], %[[Q]], %[[K]], %[[V]], %[[O]]#0, %[[O]]#1) {causal = true, scale = 4.0{{.*}}, window = 0 : i64}
  // CHECK-NEXT:    return %[[O]]#0, %[[D]]#0, %[[D]]#1, %[[D]]#2
  func.func @sdpa(%q: !q, %k: !k, %v: !v) -> !o {
    %out, %lse = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    return %out : !o
  }

  // Documents are told to the gradient, too.
  // CHECK-LABEL: func.func @documents(
  // CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x8x4x6xf32{{[^%]*}}%[[K:[^:]*]]: tensor<2x8x2x6xf32{{[^%]*}}%[[V:[^:]*]]: tensor{{[^%]*}}%[[I:[^:]*]]: tensor{{[^%]*}}%[[S:[^:]*]]: tensor
  // CHECK:         %[[B:.*]] = "moe.documents"(%[[I]]) {end = 7 : i64}
  // CHECK-NEXT:    %[[O:.*]]:2 = "moe.sdpa"(%[[Q]], %[[K]], %[[V]], %[[S]], %[[B]])
  // CHECK-NEXT:    %[[DO:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]]:3 = "moe.sdpa_grad"(%[[DO]], %[[Q]], %[[K]], %[[V]], %[[O]]#0, %[[O]]#1, %[[B]])
  // CHECK-NEXT:    %[[DS:.*]] = "moe.sinks_grad"(%[[DO]], %[[O]]#0, %[[O]]#1, %[[S]])
  // CHECK-NEXT:    return %[[O]]#0, %[[D]]#0, %[[D]]#1, %[[D]]#2, %[[DS]]
  func.func @documents(%q: !q, %k: !k, %v: !v, %ids: !i, %s: tensor<4xf32, ["H"]>) -> !o {
    %begins = "moe.documents"(%ids) {end = 7} : (!i) -> !i
    %out, %lse = "moe.sdpa"(%q, %k, %v, %s, %begins) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}
      : (!q, !k, !v, tensor<4xf32, ["H"]>, !i) -> (!o, !l)
    return %out : !o
  }

  // Sinks change neither what the other gradients need, nor how they are made.
  // CHECK-LABEL: func.func @sinks(
  // CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x8x4x6xf32{{[^%]*}}%[[K:[^:]*]]: tensor<2x8x2x6xf32{{[^%]*}}%[[V:[^:]*]]: tensor{{[^%]*}}%[[S:[^:]*]]: tensor
  // CHECK:         %[[O:.*]]:2 = "moe.sdpa"(%[[Q]], %[[K]], %[[V]], %[[S]])
  // CHECK-NEXT:    %[[DO:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]]:3 = "moe.sdpa_grad"(%[[DO]], %[[Q]], %[[K]], %[[V]], %[[O]]#0, %[[O]]#1)
  // CHECK-NEXT:    %[[DS:.*]] = "moe.sinks_grad"(%[[DO]], %[[O]]#0, %[[O]]#1, %[[S]])
  // CHECK-NEXT:    return %[[O]]#0, %[[D]]#0, %[[D]]#1, %[[D]]#2, %[[DS]]
  func.func @sinks(%q: !q, %k: !k, %v: !v, %s: tensor<4xf32, ["H"]>) -> !o {
    %out, %lse = "moe.sdpa"(%q, %k, %v, %s) {causal = true, window = 0, scale = 0.4, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>} : (!q, !k, !v, tensor<4xf32, ["H"]>) -> (!o, !l)
    return %out : !o
  }

  // A cap and chunks are the gradient's, too.
  // CHECK-LABEL: func.func @capped(
  // CHECK:         "moe.sdpa_grad"{{.*}} {cap = 3.0{{.*}}, causal = true, chunk = 4 : i64, scale = 4.0{{.*}}, window = 0 : i64}
  func.func @capped(%q: !q, %k: !k, %v: !v) -> !o {
    %out, %lse = "moe.sdpa"(%q, %k, %v) {causal = true, window = 0, chunk = 4, scale = 0.4, cap = 30.0, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !k, !v) -> (!o, !l)
    return %out : !o
  }

  // CHECK-LABEL: func.func @rope(
  // CHECK-SAME:    %{{[^:]*}}: tensor<2x8x4x6xf32{{[^%]*}}%[[T:[^:]*]]: tensor
  // CHECK:         %[[DY:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.rope_grad"(%[[DY]], %[[T]])
  // CHECK-NEXT:    return %{{.*}}, %[[DX]] :
  func.func @rope(%x: !q, %t: !t loc("constant")) -> !q {
    %y = "moe.rope"(%x, %t) : (!q, !t) -> !q
    return %y : !q
  }
}
