// RUN: hec-ir-tool --gradient %s | FileCheck %s

!e = tensor<9x6xf32, ["V", "D"]>
!i = tensor<2x4xi32, ["batch", "T"]>
!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!l = tensor<2x4x9xf32, ["batch", "T", "V"]>
!n = tensor<2x4xf32, ["batch", "T"]>
!s = tensor<f32>

module {
  // CHECK-LABEL: func.func @gather(
  // CHECK-SAME:    %{{[^:]*}}: tensor<9x6xf32{{[^%]*}}%[[I:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]] = "moe.gather_grad"(%[[DR]], %[[I]]) : ({{.*}}) -> tensor<9x6xf32, ["V", "D"]>
  // CHECK-NEXT:    return %{{.*}}, %[[D]] :
  func.func @gather(%e: !e, %ids: !i) -> !x {
    %r = "moe.gather"(%e, %ids) : (!e, !i) -> !x
    return %r : !x
  }

  // CHECK-LABEL: func.func @ahead(
  // CHECK:         %[[A:.*]] = "moe.ahead"(%{{.*}}) {by = 2 : i64} : (tensor<2x4xi32, ["batch", "T"]>) -> tensor<2x4xi32, ["batch", "T"]>
  // CHECK:         "moe.gather_grad"(%{{.*}}, %[[A]])
  func.func @ahead(%e: !e, %targets: !i) -> !x {
    %ids = "moe.ahead"(%targets) {by = 2} : (!i) -> !i
    %r = "moe.gather"(%e, %ids) : (!e, !i) -> !x
    return %r : !x
  }

  // CHECK-LABEL: func.func @cross_entropy(
  // CHECK-SAME:    %[[L:[^:]*]]: tensor<2x4x9xf32{{[^%]*}}%[[T:[^:]*]]: tensor<2x4xi32{{[^%]*}}%[[S:[^:]*]]: tensor
  // CHECK:         %[[R:.*]]:2 = "moe.cross_entropy"(%[[L]], %[[T]], %[[S]])
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]] = "moe.cross_entropy_grad"(%[[DR]], %[[L]], %[[R]]#1, %[[T]], %[[S]])
  // CHECK-NEXT:    return %[[R]]#0, %[[D]] :
  func.func @cross_entropy(%l: !l, %t: !i, %s: !s) -> !s {
    %loss, %lse = "moe.cross_entropy"(%l, %t, %s) : (!l, !i, !s) -> (!s, !n)
    return %loss : !s
  }

  // CHECK-LABEL: func.func @distill(
  // CHECK-SAME:    %[[L:[^:]*]]: tensor<2x4x9xf32{{[^%]*}}%[[S:[^:]*]]: tensor
  // CHECK:         %[[R:.*]]:3 = "moe.distill"(%[[L]], %[[S]]) {temperature = 2.000000e+00 : f64}
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]] = "moe.distill_grad"(%[[DR]], %[[L]], %[[R]]#2, %[[S]]) {temperature = 2.000000e+00 : f64}
  // CHECK-NEXT:    return %[[R]]#0, %[[D]] :
  func.func @distill(%l: !l, %s: !s) -> !s {
    %loss, %losses, %lse = "moe.distill"(%l, %s) {temperature = 2.0} : (!l, !s) -> (!s, !n, !n)
    return %loss : !s
  }
}
