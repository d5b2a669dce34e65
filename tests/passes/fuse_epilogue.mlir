// RUN: hecate-opt --passes=fuse-epilogue %s > %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: hecate-opt --passes=fuse-epilogue %t.mlir > %t.again && cmp %t.mlir %t.again

!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!h = tensor<2x8x6xf32, ["batch", "T", "F"]>
!t = tensor<8x6xf32, ["T", "F"]>
!w = tensor<4x6xf32, ["D", "F"]>
!g = tensor<6xf32, ["F"]>
!q = tensor<2x8x3x2xf32, ["batch", "T", "H", "A"]>
!wq = tensor<4x3x2xf32, ["D", "H", "A"]>
!a = tensor<2xf32, ["A"]>
!rx = tensor<32x4xf32, ["rows", "D"]>
!rh = tensor<32x6xf32, ["rows", "F"]>
!gate = tensor<32xf32, ["rows"]>
!we = tensor<3x4x6xf32, ["E", "D", "F"]>
!be = tensor<3x6xf32, ["E", "F"]>
!first = tensor<4xi32, ["first"]>
!s = tensor<f32>
module {
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "g", type = !g, layers = 0 : i64, path = "g", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.slot"() {sym_name = "h", type = !h, layers = 0 : i64} : () -> ()

  // Bias and activation: they rise over another product, the bias' parameter before their own one.
  // CHECK-LABEL: func.func @bias(
  // CHECK:         %[[G:.*]] = "moe.get"() {param = @g}
  // CHECK-NEXT:    %[[B:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[H:.*]] = "moe.fused"(%[[B]], %[[G]]) ({
  // CHECK:           "moe.gelu"
  // CHECK:         }) {epilogue = true,
  // CHECK-NEXT:    "moe.stash"(%[[B]]) {slot = @h}
  // CHECK-NEXT:    %[[Q:.*]] = "moe.contract"
  // CHECK-NEXT:    return %[[H]], %[[Q]]
  func.func @bias(%x: !x, %wq: !wq) -> (!h, !q) {
    %w = "moe.get"() {param = @w} : () -> !w
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    "moe.stash"(%b) {slot = @h} : (!h) -> ()
    %q = "moe.contract"(%x, %wq) : (!x, !wq) -> !q
    %g = "moe.get"() {param = @g} : () -> !g
    %h = "moe.fused"(%b, %g) ({
    ^bb0(%p: !h, %c: !g):
      %s = "moe.add"(%p, %c) : (!h, !g) -> !h
      %r = "moe.gelu"(%s) : (!h) -> !h
      vector.yield %r : !h
    }) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !g) -> !h
    return %h, %q : !h, !q
  }
  // The gate of experts, of two products: it belongs to the second. One value per row, one scalar.
  // CHECK-LABEL: func.func @gate(
  // CHECK:         %[[A:.*]] = "moe.grouped_contract"
  // CHECK-NEXT:    %[[B:.*]] = "moe.grouped_contract"
  // CHECK-NEXT:    "moe.fused"(%[[A]], %[[B]], %{{.*}}, %{{.*}}) ({
  // CHECK:         }) {epilogue = true,
  func.func @gate(%x: !rx, %w1: !we, %w3: !we, %first: !first, %gate: !gate, %s: !s) -> !rh {
    %a = "moe.grouped_contract"(%x, %w1, %first) : (!rx, !we, !first) -> !rh
    %b = "moe.grouped_contract"(%x, %w3, %first) : (!rx, !we, !first) -> !rh
    %h = "moe.fused"(%a, %b, %gate, %s) ({
    ^bb0(%p: !rh, %q: !rh, %r: !gate, %o: !s):
      %0 = "moe.silu"(%p) : (!rh) -> !rh
      %1 = "moe.mul"(%0, %q) : (!rh, !rh) -> !rh
      %2 = "moe.mul"(%1, %r) : (!rh, !gate) -> !rh
      %3 = "moe.mul"(%2, %o) : (!rh, !s) -> !rh
      vector.yield %3 : !rh
    }) {operandSegmentSizes = array<i32: 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!rh, !rh, !gate, !s) -> !rh
    return %h : !rh
  }
  // The bias of experts: what spreads it over the rows is computed before the product.
  // CHECK-LABEL: func.func @expert_bias(
  // CHECK:         %[[S:.*]] = "moe.spread"
  // CHECK-NEXT:    %[[B:.*]] = "moe.grouped_contract"
  // CHECK-NEXT:    "moe.fused"(%[[B]], %[[S]]) ({
  func.func @expert_bias(%x: !rx, %w1: !we, %b1: !be, %first: !first) -> !rh {
    %b = "moe.grouped_contract"(%x, %w1, %first) : (!rx, !we, !first) -> !rh
    %s = "moe.spread"(%b1, %first) : (!be, !first) -> !rh
    %h = "moe.fused"(%b, %s) ({
    ^bb0(%p: !rh, %q: !rh):
      %0 = "moe.add"(%p, %q) : (!rh, !rh) -> !rh
      %1 = "moe.relu"(%0) : (!rh) -> !rh
      vector.yield %1 : !rh
    }) {operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!rh, !rh) -> !rh
    return %h : !rh
  }
  // Behind the product of a gradient; an operation that stands alone.
  // CHECK-LABEL: func.func @gradient(
  // CHECK:         %[[D:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[R:.*]] = "moe.fused"(%[[D]], %arg{{.*}}) ({
  // CHECK-NEXT:    ^bb0(%[[P:.*]]: tensor<{{.*}}>, %[[Q:.*]]: tensor
  // CHECK-NEXT:      %[[S:.*]] = "moe.silu_grad"(%[[P]], %[[Q]])
  // CHECK-NEXT:      vector.yield %[[S]]
  // CHECK-NEXT:    }) {epilogue = true, operandSegmentSizes
  // CHECK-NEXT:    return %[[R]]
  func.func @gradient(%dh: !h, %w: !w, %x: !x) -> !x {
    %d = "moe.contract"(%dh, %w) : (!h, !w) -> !x
    %r = "moe.silu_grad"(%d, %x) : (!x, !x) -> !x
    return %r : !x
  }
  // A value that both sides of an operation read is one input.
  // CHECK-LABEL: func.func @square(
  // CHECK:         "moe.fused"(%{{[0-9]+}}) ({
  func.func @square(%x: !x, %w: !w) -> !h {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %r = "moe.mul"(%b, %b) : (!h, !h) -> !h
    return %r : !h
  }
  // The second loop over a result stays one.
  // CHECK-LABEL: func.func @twice(
  // CHECK:         "moe.fused"
  // CHECK:         epilogue = true
  // CHECK-NOT:     moe.fused
  // CHECK:         "moe.exp"
  // CHECK:         return
  func.func @twice(%x: !x, %w: !w) -> (!h, !h) {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %r = "moe.silu"(%b) : (!h) -> !h
    %e = "moe.exp"(%b) : (!h) -> !h
    return %r, %e : !h, !h
  }
  // It waits for a product that has an epilogue of its own: both rise, and stay together.
  // CHECK-LABEL: func.func @beside(
  // CHECK:         %[[Q:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[E:.*]] = "moe.fused"(%[[Q]])
  // CHECK:         }) {epilogue = true,
  // CHECK-NEXT:    %[[G:.*]] = "moe.sum"(%[[Q]])
  // CHECK-NEXT:    %[[B:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[R:.*]] = "moe.fused"(%[[B]], %[[G]])
  // CHECK:         }) {epilogue = true,
  // CHECK-NEXT:    return %[[R]], %[[E]]
  func.func @beside(%x: !x, %y: !x, %w: !w) -> (!h, !h) {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %q = "moe.contract"(%y, %w) : (!x, !w) -> !h
    %e = "moe.silu"(%q) : (!h) -> !h
    %g = "moe.sum"(%q) : (!h) -> !g
    %r = "moe.mul"(%b, %g) : (!h, !g) -> !h
    return %r, %e : !h, !h
  }
  // What that epilogue needs rises before its product.
  // CHECK-LABEL: func.func @beside_with_bias(
  // CHECK:         %[[S:.*]] = "moe.sum"
  // CHECK-NEXT:    %[[Q:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[E:.*]] = "moe.fused"(%[[Q]], %[[S]])
  // CHECK:         }) {epilogue = true,
  // CHECK-NEXT:    %[[G:.*]] = "moe.sum"(%[[E]])
  // CHECK-NEXT:    %[[B:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[R:.*]] = "moe.fused"(%[[B]], %[[G]])
  // CHECK:         }) {epilogue = true,
  // CHECK-NEXT:    return %[[R]]
  func.func @beside_with_bias(%x: !x, %y: !x, %w: !w, %h: !h) -> !h {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %s = "moe.sum"(%h) : (!h) -> !g
    %q = "moe.contract"(%y, %w) : (!x, !w) -> !h
    %e = "moe.add"(%q, %s) : (!h, !g) -> !h
    %g = "moe.sum"(%e) : (!h) -> !g
    %r = "moe.mul"(%b, %g) : (!h, !g) -> !h
    return %r : !h
  }
  // The negative. The gradient of weights has no rows; a scalar product no blocks.
  // CHECK-LABEL: func.func @weights(
  // CHECK-NOT:     epilogue
  // CHECK:         return
  func.func @weights(%x: !x, %h: !h, %t: !t) -> !w {
    %b = "moe.contract"(%x, %h) : (!x, !h) -> !w
    %r = "moe.silu"(%b) : (!w) -> !w
    return %r : !w
  }
  // What is told by a part of the row, or of the column, alone: the position, the place in the head.
  // CHECK-LABEL: func.func @parts(
  // CHECK-NOT:     epilogue
  // CHECK:         return
  func.func @parts(%x: !x, %w: !w, %t: !t, %wq: !wq, %a: !a) -> (!h, !q) {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %r = "moe.mul"(%b, %t) : (!h, !t) -> !h
    %c = "moe.contract"(%x, %wq) : (!x, !wq) -> !q
    %s = "moe.mul"(%c, %a) : (!q, !a) -> !q
    return %r, %s : !h, !q
  }
  // It waits for what is computed behind the product.
  // CHECK-LABEL: func.func @later(
  // CHECK-NOT:     epilogue
  // CHECK:         return
  func.func @later(%x: !x, %w: !w) -> !h {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %g = "moe.sum"(%b) : (!h) -> !g
    %r = "moe.mul"(%b, %g) : (!h, !g) -> !h
    return %r : !h
  }
  // It reads a slot that is written in between.
  // CHECK-LABEL: func.func @slot(
  // CHECK-NOT:     epilogue
  // CHECK:         return
  func.func @slot(%x: !x, %w: !w, %o: !h) -> !h {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    "moe.stash"(%o) {slot = @h} : (!h) -> ()
    %f = "moe.fetch"() {slot = @h} : () -> !h
    %r = "moe.mul"(%b, %f) : (!h, !h) -> !h
    return %r : !h
  }
  // The product adds to %s in its place: nothing is left to be done.
  // CHECK-LABEL: func.func @sum(
  // CHECK-NOT:     epilogue
  // CHECK:         return
  func.func @sum(%a: !h, %x: !x, %w: !w) -> !h {
    %s = "moe.silu"(%a) : (!h) -> !h
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %r = "moe.add"(%s, %b) : (!h, !h) -> !h
    return %r : !h
  }
  // Not across the edge of a loop.
  // CHECK-LABEL: func.func @loop(
  // CHECK-NOT:     epilogue
  // CHECK:         return
  func.func @loop(%x: !x, %w: !w, %a: !h) -> !h {
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %a) -> (!h) {
      %m = "moe.mul"(%h, %b) : (!h, !h) -> !h
      scf.yield %m : !h
    }
    return %r : !h
  }
}
