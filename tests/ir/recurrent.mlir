// RUN: hec-ir-tool --gradient %s | FileCheck %s

!q = tensor<2x65x2x6xf32, ["batch", "T", "G", "A"]>
!v = tensor<2x65x4x3xf32, ["batch", "T", "H", "U"]>
!h = tensor<2x65x4xf32, ["batch", "T", "H"]>
!n = tensor<2x2x4x6x3xf32, ["batch", "chunks", "H", "A", "columns"]>
!w = tensor<2x6x4xf32, ["G", "A", "K"]>
!i = tensor<2x65xi32, ["batch", "T"]>

module {
  // 65 positions are two chunks. States and documents are told to the gradient, too.
  // CHECK-LABEL: func.func @delta(
  // CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x65x2x6xf32{{[^%]*}}%[[V:[^:]*]]: tensor{{[^%]*}}%[[D:[^:]*]]: tensor{{[^%]*}}%[[I:[^:]*]]: tensor
  // CHECK:         %[[B:.*]] = "moe.documents"(%[[I]])
  // CHECK-NEXT:    %[[O:.*]]:2 = "moe.delta_rule"(%[[Q]], %[[Q]], %[[V]], %[[D]], %[[D]], %[[B]])
  // CHECK-NEXT:    %[[DO:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[G:.*]]:6 = "moe.delta_rule_grad"(%[[DO]], %[[Q]], %[[Q]], %[[V]], %[[D]], %[[D]], %[[O]]#1, %[[B]]) {chunk = 64 : i64, scale = 4.0
  // CHECK-NEXT:    %[[DQ:.*]] = "moe.add"(%[[G]]#0, %[[G]]#1)
  // CHECK-NEXT:    %[[DD:.*]] = "moe.add"(%[[G]]#3, %[[G]]#4)
  // CHECK-NEXT:    return %[[O]]#0, %[[DQ]], %[[G]]#2, %[[DD]]
  func.func @delta(%q: !q, %v: !v, %d: !h, %ids: !i) -> !v {
    %b = "moe.documents"(%ids) {end = 7} : (!i) -> !i
    %out, %states = "moe.delta_rule"(%q, %q, %v, %d, %d, %b) {scale = 0.4, chunk = 64} : (!q, !q, !v, !h, !h, !i) -> (!v, !n)
    return %out : !v
  }

  // CHECK-LABEL: func.func @conv(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor{{[^%]*}}%[[W:[^:]*]]: tensor
  // CHECK:         %[[Y:.*]] = "moe.causal_conv"(%[[X]], %[[W]])
  // CHECK-NEXT:    %[[DY:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]]:2 = "moe.causal_conv_grad"(%[[DY]], %[[X]], %[[W]])
  // CHECK-NEXT:    return %[[Y]], %[[D]]#0, %[[D]]#1
  func.func @conv(%x: !q, %w: !w) -> !q {
    %y = "moe.causal_conv"(%x, %w) : (!q, !w) -> !q
    return %y : !q
  }
}
