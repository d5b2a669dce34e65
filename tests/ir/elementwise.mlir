// RUN: hec-ir-tool --gradient %s | FileCheck %s
//
// Elementwise operations and their gradients. Dimensions are matched by name; what an operand lacks
// is broadcast, and its gradient is summed back over that.

!x = tensor<2x4x3xf32, ["batch", "T", "D"]>
!b = tensor<3xf32, ["D"]>
!s = tensor<f32>

module {
  // The wider operand gives the result its dimensions, on whichever side it stands.
  // CHECK-LABEL: func.func @add(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x3xf32{{[^%]*}}%[[B:[^:]*]]: tensor<3xf32
  // CHECK:         %[[R:.*]] = "moe.add"(%[[B]], %[[X]])
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DB:.*]] = "moe.sum"(%[[DR]]) : ({{.*}}) -> tensor<3xf32, ["D"]>
  // CHECK-NEXT:    return %[[R]], %[[DR]], %[[DB]] :
  func.func @add(%x: !x, %b: !b) -> !x {
    %r = "moe.add"(%b, %x) : (!b, !x) -> !x
    return %r : !x
  }

  // CHECK-LABEL: func.func @sub(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x3xf32{{[^%]*}}%[[S:[^:]*]]: tensor<f32>
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[N:.*]] = "moe.neg"(%[[DR]])
  // CHECK-NEXT:    %[[DS:.*]] = "moe.sum"(%[[N]]) : ({{.*}}) -> tensor<f32>
  // CHECK-NEXT:    return %{{.*}}, %[[DR]], %[[DS]] :
  func.func @sub(%x: !x, %s: !s) -> !x {
    %r = "moe.sub"(%x, %s) : (!x, !s) -> !x
    return %r : !x
  }

  // Used twice: both parts of the gradient are added.
  // CHECK-LABEL: func.func @square(
  // CHECK-SAME:    %[[X:.*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D0:.*]] = "moe.mul"(%[[DR]], %[[X]])
  // CHECK-NEXT:    %[[D1:.*]] = "moe.mul"(%[[DR]], %[[X]])
  // CHECK-NEXT:    %[[DX:.*]] = "moe.add"(%[[D0]], %[[D1]])
  // CHECK-NEXT:    return %{{.*}}, %[[DX]] :
  func.func @square(%x: !x) -> !x {
    %r = "moe.mul"(%x, %x) : (!x, !x) -> !x
    return %r : !x
  }

  // A gate per token and head, broadcast along the last dimension.
  // CHECK-LABEL: func.func @mul(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x3xf32{{[^%]*}}%[[G:[^:]*]]: tensor<2x4xf32
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.mul"(%[[DR]], %[[G]])
  // CHECK-NEXT:    %[[P:.*]] = "moe.mul"(%[[DR]], %[[X]])
  // CHECK-NEXT:    %[[DG:.*]] = "moe.sum"(%[[P]]) : ({{.*}}) -> tensor<2x4xf32, ["batch", "T"]>
  // CHECK-NEXT:    return %{{.*}}, %[[DX]], %[[DG]] :
  func.func @mul(%x: !x, %g: tensor<2x4xf32, ["batch", "T"]>) -> !x {
    %r = "moe.mul"(%x, %g) : (!x, tensor<2x4xf32, ["batch", "T"]>) -> !x
    return %r : !x
  }

  // Dimensions go on both sides of the one that stays: columns are summed, then rows.
  // CHECK-LABEL: func.func @mul_inner(
  // CHECK:         %[[S0:.*]] = "moe.sum"(%{{.*}}) : ({{.*}}) -> tensor<2x4xf32, ["batch", "T"]>
  // CHECK-NEXT:    %[[S1:.*]] = "moe.sum"(%[[S0]]) : ({{.*}}) -> tensor<4xf32, ["T"]>
  // CHECK-NEXT:    return %{{.*}}, %{{.*}}, %[[S1]] :
  func.func @mul_inner(%x: !x, %p: tensor<4xf32, ["T"]>) -> !x {
    %r = "moe.mul"(%x, %p) : (!x, tensor<4xf32, ["T"]>) -> !x
    return %r : !x
  }

  // What has no gradient costs nothing.
  // CHECK-LABEL: func.func @constant(
  // CHECK:         "moe.mul"
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.mul"(%[[DR]],
  // CHECK-NEXT:    return %{{.*}}, %[[DX]] :
  func.func @constant(%x: !x, %c: !b loc("constant")) -> !x {
    %r = "moe.mul"(%x, %c) : (!x, !b) -> !x
    return %r : !x
  }

  // CHECK-LABEL: func.func @div(
  // CHECK-SAME:    %[[A:[^:]*]]: tensor<2x4x3xf32{{[^%]*}}%[[B:[^:]*]]: tensor<2x4x3xf32
  // CHECK:         %[[R:.*]] = "moe.div"(%[[A]], %[[B]])
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DA:.*]] = "moe.div"(%[[DR]], %[[B]])
  // CHECK-NEXT:    %[[P:.*]] = "moe.mul"(%[[DA]], %[[R]])
  // CHECK-NEXT:    %[[DB:.*]] = "moe.neg"(%[[P]])
  // CHECK-NEXT:    return %[[R]], %[[DA]], %[[DB]] :
  func.func @div(%a: !x, %b: !x) -> !x {
    %r = "moe.div"(%a, %b) : (!x, !x) -> !x
    return %r : !x
  }

  // The gradient goes where the value came from.
  // CHECK-LABEL: func.func @minimum(
  // CHECK-SAME:    %[[A:[^:]*]]: tensor<2x4x3xf32{{[^%]*}}%[[B:[^:]*]]: tensor<2x4x3xf32
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.select_less"(%[[A]], %[[B]], %[[DR]])
  // CHECK-NEXT:    "moe.select_less"(%[[B]], %[[A]], %[[DR]])
  func.func @minimum(%a: !x, %b: !x) -> !x {
    %r = "moe.minimum"(%a, %b) : (!x, !x) -> !x
    return %r : !x
  }

  // CHECK-LABEL: func.func @maximum(
  // CHECK-SAME:    %[[A:[^:]*]]: tensor<2x4x3xf32{{[^%]*}}%[[B:[^:]*]]: tensor<f32>
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.select_less"(%[[B]], %[[A]], %[[DR]])
  // CHECK-NEXT:    %[[D:.*]] = "moe.select_less"(%[[A]], %[[B]], %[[DR]])
  // CHECK-NEXT:    "moe.sum"(%[[D]]) : ({{.*}}) -> tensor<f32>
  func.func @maximum(%a: !x, %b: !s) -> !x {
    %r = "moe.maximum"(%a, %b) : (!x, !s) -> !x
    return %r : !x
  }

  // exp and sqrt use their result again.
  // CHECK-LABEL: func.func @roots(
  // CHECK:         %[[N:.*]] = "moe.neg"
  // CHECK-NEXT:    %[[E:.*]] = "moe.exp"(%[[N]])
  // CHECK-NEXT:    %[[R:.*]] = "moe.sqrt"(%[[E]])
  // CHECK-NEXT:    %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[T:.*]] = "moe.add"(%[[R]], %[[R]])
  // CHECK-NEXT:    %[[DE:.*]] = "moe.div"(%[[DR]], %[[T]])
  // CHECK-NEXT:    %[[DN:.*]] = "moe.mul"(%[[DE]], %[[E]])
  // CHECK-NEXT:    %[[DX:.*]] = "moe.neg"(%[[DN]])
  // CHECK-NEXT:    return %[[R]], %[[DX]]
  func.func @roots(%x: !x) -> !x {
    %n = "moe.neg"(%x) : (!x) -> !x
    %e = "moe.exp"(%n) : (!x) -> !x
    %r = "moe.sqrt"(%e) : (!x) -> !x
    return %r : !x
  }

  // CHECK-LABEL: func.func @activations(
  // CHECK-SAME:    %[[X:.*]]: tensor
  // CHECK-NEXT:    %[[A:.*]] = "moe.silu"(%[[X]])
  // CHECK-NEXT:    %[[B:.*]] = "moe.gelu"(%[[A]])
  // CHECK-NEXT:    %[[C:.*]] = "moe.gelu_erf"(%[[B]])
  // CHECK-NEXT:    %[[D:.*]] = "moe.relu"(%[[C]])
  // CHECK-NEXT:    %[[E:.*]] = "moe.sigmoid"(%[[D]])
  // CHECK-NEXT:    %[[F:.*]] = "moe.tanh"(%[[E]])
  // CHECK-NEXT:    %[[DF:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DE:.*]] = "moe.tanh_grad"(%[[DF]], %[[E]])
  // CHECK-NEXT:    %[[DD:.*]] = "moe.sigmoid_grad"(%[[DE]], %[[D]])
  // CHECK-NEXT:    %[[DC:.*]] = "moe.relu_grad"(%[[DD]], %[[C]])
  // CHECK-NEXT:    %[[DB:.*]] = "moe.gelu_erf_grad"(%[[DC]], %[[B]])
  // CHECK-NEXT:    %[[DA:.*]] = "moe.gelu_grad"(%[[DB]], %[[A]])
  // CHECK-NEXT:    %[[DX:.*]] = "moe.silu_grad"(%[[DA]], %[[X]])
  // CHECK-NEXT:    return %[[F]], %[[DX]]
  func.func @activations(%x: !x) -> !x {
    %a = "moe.silu"(%x) : (!x) -> !x
    %b = "moe.gelu"(%a) : (!x) -> !x
    %c = "moe.gelu_erf"(%b) : (!x) -> !x
    %d = "moe.relu"(%c) : (!x) -> !x
    %e = "moe.sigmoid"(%d) : (!x) -> !x
    %f = "moe.tanh"(%e) : (!x) -> !x
    return %f : !x
  }

  // CHECK-LABEL: func.func @sum(
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1{{.*}} -> tensor<2xf32, ["batch"]>
  // CHECK-NEXT:    %[[Z:.*]] = "moe.fill"() {value = 0{{.*}} -> tensor<2x4x3xf32
  // CHECK-NEXT:    "moe.add"(%[[Z]], %[[DR]])
  func.func @sum(%x: !x) -> tensor<2xf32, ["batch"]> {
    %r = "moe.sum"(%x) : (!x) -> tensor<2xf32, ["batch"]>
    return %r : tensor<2xf32, ["batch"]>
  }

  // CHECK-LABEL: func.func @fused(
  // CHECK:         "moe.fused"
  func.func @fused(%x: !x loc("constant"), %b: !b loc("constant")) -> !x {
    %r = "moe.fused"(%x, %b) ({
    ^bb0(%u: !x, %v: !b):
      %p = "moe.mul"(%u, %v) : (!x, !b) -> !x
      %q = "moe.silu"(%p) : (!x) -> !x
      vector.yield %q : !x
    }) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!x, !b) -> !x
    %c = "moe.copy"(%r) : (!x) -> !x
    return %c : !x
  }
}
