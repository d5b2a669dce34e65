// RUN: hec-ir-tool --gradient %s | FileCheck %s

!x = tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>

module {
  // The gradient is made of the result.
  // CHECK-LABEL: func.func @softmax(
  // CHECK:         %[[R:.*]] = "moe.softmax"(%{{.*}}) {over = 2 : i64}
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.softmax_grad"(%[[DR]], %[[R]]) {over = 2 : i64}
  // CHECK-NEXT:    return %[[R]], %[[DX]] :
  func.func @softmax(%x: !x) -> !x {
    %r = "moe.softmax"(%x) {over = 2} : (!x) -> !x
    return %r : !x
  }
}
