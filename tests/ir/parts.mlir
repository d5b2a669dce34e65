// RUN: hec-ir-tool --gradient %s | FileCheck %s

!q = tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>
!n = tensor<2x8x4x4xf32, ["batch", "T", "H", "N"]>
!r = tensor<2x8x2xf32, ["batch", "T", "R"]>

module {
  // CHECK-LABEL: func.func @slice(
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.slice_grad"(%[[DR]]) {begin = 2 : i64} : (tensor<2x8x4x4xf32{{.*}}) -> tensor<2x8x4x6xf32
  // CHECK-NEXT:    return %{{.*}}, %[[DX]] :
  func.func @slice(%x: !q) -> !n {
    %y = "moe.slice"(%x) {begin = 2} : (!q) -> !n
    return %y : !n
  }

  // What was broadcast over heads gets the sum over them.
  // CHECK-LABEL: func.func @concat(
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DN:.*]] = "moe.slice"(%[[DR]]) {begin = 0 : i64} : {{.*}} -> tensor<2x8x4x4xf32, ["batch", "T", "H", "N"]>
  // CHECK-NEXT:    %[[D:.*]] = "moe.slice"(%[[DR]]) {begin = 4 : i64} : {{.*}} -> tensor<2x8x4x2xf32, ["batch", "T", "H", "R"]>
  // CHECK-NEXT:    %[[S:.*]] = "moe.sum"(%[[D]]) : {{.*}} -> tensor<2x8x2xf32, ["batch", "T", "R"]>
  // CHECK-NEXT:    return %{{.*}}, %[[DN]], %[[S]] :
  func.func @concat(%n: !n, %r: !r) -> !q {
    %y = "moe.concat"(%n, %r) : (!n, !r) -> !q
    return %y : !q
  }

  // CHECK-LABEL: func.func @transpose(
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1{{.*}} -> tensor<4x2x8x6xf32, ["H", "batch", "T", "A"]>
  // CHECK-NEXT:    %[[DX:.*]] = "moe.transpose"(%[[DR]]) : {{.*}} -> tensor<2x8x4x6xf32, ["batch", "T", "H", "A"]>
  // CHECK-NEXT:    return %{{.*}}, %[[DX]] :
  func.func @transpose(%x: !q) -> tensor<4x2x8x6xf32, ["H", "batch", "T", "A"]> {
    %y = "moe.transpose"(%x) : (!q) -> tensor<4x2x8x6xf32, ["H", "batch", "T", "A"]>
    return %y : tensor<4x2x8x6xf32, ["H", "batch", "T", "A"]>
  }

  // CHECK-LABEL: func.func @interleaved(
  // CHECK:         "moe.rope_grad"(%{{.*}}) {interleaved = true}
  func.func @interleaved(%x: !q, %t: tensor<8x6xf32, ["T", "A"]> loc("constant")) -> !q {
    %y = "moe.rope"(%x, %t) {interleaved = true} : (!q, tensor<8x6xf32, ["T", "A"]>) -> !q
    return %y : !q
  }
}
