// RUN: hec-ir-tool --gradient %s | FileCheck %s
//
// Norms: the gradient is one operation with a result for every parameter that wants one.

!x = tensor<2x4x3x5xf32, ["batch", "T", "H", "A"]>
!s = tensor<2x4x3xf32, ["batch", "T", "H"]>
!t = tensor<2x4xf32, ["batch", "T"]>
!a = tensor<5xf32, ["A"]>
!w = tensor<3x5xf32, ["H", "A"]>

module {
  // CHECK-LABEL: func.func @rmsnorm(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x3x5xf32{{[^%]*}}%[[G:[^:]*]]: tensor
  // CHECK:         %[[Y:.*]]:2 = "moe.rmsnorm"(%[[X]], %[[G]])
  // CHECK-NEXT:    %[[DY:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]]:2 = "moe.rmsnorm_grad"(%[[DY]], %[[X]], %[[Y]]#1, %[[G]]) {over = 1 : i64}
  // CHECK-SAME:      -> (tensor<2x4x3x5xf32, ["batch", "T", "H", "A"]>, tensor<5xf32, ["A"]>)
  // CHECK-NEXT:    return %[[Y]]#0, %[[D]]#0, %[[D]]#1
  func.func @rmsnorm(%x: !x, %g: !a) -> !x {
    %y, %rstd = "moe.rmsnorm"(%x, %g) {eps = 1.0e-5, over = 1} : (!x, !a) -> (!x, !s)
    return %y : !x
  }

  // CHECK-LABEL: func.func @rmsnorm_plain(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor
  // CHECK:         %[[Y:.*]]:2 = "moe.rmsnorm"
  // CHECK-NEXT:    %[[DY:.*]] = "moe.fill"
  // CHECK-NEXT:    %[[D:.*]] = "moe.rmsnorm_grad"(%[[DY]], %[[X]], %[[Y]]#1) {over = 2 : i64}
  // CHECK-NEXT:    return %[[Y]]#0, %[[D]] :
  func.func @rmsnorm_plain(%x: !x) -> !x {
    %y, %rstd = "moe.rmsnorm"(%x) {eps = 1.0e-5, over = 2} : (!x) -> (!x, !t)
    return %y : !x
  }

  // A gain that is not trained is an operand of the gradient, but has no result.
  // CHECK-LABEL: func.func @rmsnorm_frozen(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x3x5xf32{{[^%]*}}%[[G:[^:]*]]: tensor
  // CHECK:         %[[D:[^:]*]] = "moe.rmsnorm_grad"(%{{.*}}, %[[X]], %{{.*}}#1, %[[G]])
  func.func @rmsnorm_frozen(%x: !x, %g: !a loc("constant")) -> !x {
    %y, %rstd = "moe.rmsnorm"(%x, %g) {eps = 1.0e-5, over = 1} : (!x, !a) -> (!x, !s)
    return %y : !x
  }

  // CHECK-LABEL: func.func @layernorm(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x3x5xf32{{[^%]*}}%[[G:[^:]*]]: tensor<3x5xf32{{[^%]*}}%[[B:[^:]*]]: tensor
  // CHECK:         %[[Y:.*]]:3 = "moe.layernorm"(%[[X]], %[[G]], %[[B]])
  // CHECK-NEXT:    %[[DY:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]]:3 = "moe.layernorm_grad"(%[[DY]], %[[X]], %[[Y]]#1, %[[Y]]#2, %[[G]]) {over = 2 : i64}
  // CHECK-NEXT:    return %[[Y]]#0, %[[D]]#0, %[[D]]#1, %[[D]]#2
  func.func @layernorm(%x: !x, %g: !w, %b: !w) -> !x {
    %y, %mean, %rstd = "moe.layernorm"(%x, %g, %b) {eps = 1.0e-5, over = 2} : (!x, !w, !w) -> (!x, !t, !t)
    return %y : !x
  }

  // CHECK-LABEL: func.func @layernorm_plain(
  // CHECK:         %[[D:[^:]*]] = "moe.layernorm_grad"(%{{.*}}, %{{.*}}, %{{.*}}#1, %{{.*}}#2) {over = 1 : i64}
  func.func @layernorm_plain(%x: !x) -> !x {
    %y, %mean, %rstd = "moe.layernorm"(%x) {eps = 1.0e-5, over = 1} : (!x) -> (!x, !s, !s)
    return %y : !x
  }
}
