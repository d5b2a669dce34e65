// RUN: hecate-opt --passes=fuse-elementwise %s | FileCheck %s

!h = tensor<2x8x6xf32, ["batch", "T", "F"]>
!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!w = tensor<4x6xf32, ["D", "F"]>
!g = tensor<6xf32, ["F"]>
!s = tensor<f32>
module {
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "g", type = !g, layers = 0 : i64, path = "g", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.slot"() {sym_name = "a", type = !h, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "h", type = !h, layers = 0 : i64} : () -> ()

  // %s sinks below the product %b; its memory vanishes. %g is broadcast, the constant moves inside.
  // CHECK-LABEL: func.func @chain(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor{{.*}}, %[[A:[^:]*]]: tensor{{.*}}, %[[G:[^:]*]]: tensor
  // CHECK-NOT:     moe.fill
  // CHECK:         %[[B:.*]] = "moe.contract"(%[[X]],
  // CHECK-NEXT:    %[[H:.*]] = "moe.fused"(%[[A]], %[[B]], %[[G]]) ({
  // CHECK-NEXT:    ^bb0(%[[P:.*]]: tensor<2x8x6xf32, ["batch", "T", "F"]>, %[[Q:.*]]: tensor<2x8x6xf32, ["batch", "T", "F"]>, %[[R:.*]]: tensor<6xf32, ["F"]>):
  // CHECK-NEXT:      %[[S:.*]] = "moe.silu"(%[[P]])
  // CHECK-NEXT:      %[[M:.*]] = "moe.mul"(%[[S]], %[[Q]])
  // CHECK-NEXT:      %[[N:.*]] = "moe.mul"(%[[M]], %[[R]])
  // CHECK-NEXT:      %[[HALF:.*]] = "moe.fill"() {value = 5.0
  // CHECK-NEXT:      %[[O:.*]] = "moe.mul"(%[[N]], %[[HALF]])
  // CHECK-NEXT:      vector.yield %[[O]]
  // CHECK:         return %[[H]]
  func.func @chain(%x: !x, %a: !h, %g: !g) -> !h {
    %w = "moe.get"() {param = @w} : () -> !w
    %s = "moe.silu"(%a) : (!h) -> !h
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %m = "moe.mul"(%s, %b) : (!h, !h) -> !h
    %n = "moe.mul"(%m, %g) : (!h, !g) -> !h
    %half = "moe.fill"() {value = 0.5 : f64} : () -> !s
    %o = "moe.mul"(%n, %half) : (!h, !s) -> !h
    return %o : !h
  }
  // Outputs: what is read outside. The stash follows its value; the fetch that %m waits for rises.
  // CHECK-LABEL: func.func @outputs(
  // CHECK-SAME:    %[[A:[^:]*]]: tensor{{.*}}, %[[W:[^:]*]]: tensor
  // CHECK-NEXT:    %[[F:.*]] = "moe.fetch"() {slot = @h}
  // CHECK-NEXT:    %[[O:.*]]:2 = "moe.fused"(%[[A]], %[[F]]) ({
  // CHECK:           vector.yield
  // CHECK:         "moe.stash"(%[[O]]#0) {slot = @a}
  // CHECK-NEXT:    %[[X:.*]] = "moe.contract"(%[[O]]#0, %[[W]])
  // CHECK-NEXT:    return %[[X]], %[[O]]#1
  func.func @outputs(%a: !h, %w: !w) -> (!x, !h) {
    %s = "moe.silu"(%a) : (!h) -> !h
    "moe.stash"(%s) {slot = @a} : (!h) -> ()
    %x = "moe.contract"(%s, %w) : (!h, !w) -> !x
    %f = "moe.fetch"() {slot = @h} : () -> !h
    %m = "moe.mul"(%s, %f) : (!h, !h) -> !h
    return %x, %m : !x, !h
  }
  // What sinks takes its stash along.
  // CHECK-LABEL: func.func @sink_with_stash(
  // CHECK:         "moe.contract"
  // CHECK-NEXT:    %[[O:.*]]:2 = "moe.fused"
  // CHECK:         "moe.stash"(%[[O]]#0) {slot = @a}
  // CHECK-NEXT:    return %[[O]]#1
  func.func @sink_with_stash(%a: !h, %x: !x, %w: !w) -> !h {
    %s = "moe.silu"(%a) : (!h) -> !h
    "moe.stash"(%s) {slot = @a} : (!h) -> ()
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %m = "moe.mul"(%s, %b) : (!h, !h) -> !h
    return %m : !h
  }
  // Two readers of one value, not of each other: one pass over it.
  // CHECK-LABEL: func.func @siblings(
  // CHECK-SAME:    %[[A:[^:]*]]: tensor{{.*}}, %[[B:[^:]*]]: tensor
  // CHECK-NEXT:    %[[O:.*]]:2 = "moe.fused"(%[[A]], %[[B]])
  func.func @siblings(%a: !h, %b: !h) -> (!h, !h) {
    %s = "moe.mul"(%a, %b) : (!h, !h) -> !h
    %t = "moe.exp"(%a) : (!h) -> !h
    return %s, %t : !h, !h
  }
  // The negative. Between %s and %m stands a product that reads the one and makes the other.
  // CHECK-LABEL: func.func @through_product(
  // CHECK-NOT:     moe.fused
  // CHECK:         return
  func.func @through_product(%a: !h, %w: !w) -> !h {
    %s = "moe.silu"(%a) : (!h) -> !h
    %x = "moe.contract"(%s, %w) : (!h, !w) -> !x
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %m = "moe.mul"(%s, %b) : (!h, !h) -> !h
    return %m : !h
  }
  // The slot that %f reads is written between: neither the fetch nor the stash may move.
  // CHECK-LABEL: func.func @write_between(
  // CHECK-NOT:     moe.fused
  // CHECK:         return
  func.func @write_between(%a: !h, %w: !w) -> (!h, !x) {
    %s = "moe.silu"(%a) : (!h) -> !h
    "moe.stash"(%s) {slot = @h} : (!h) -> ()
    %x = "moe.contract"(%s, %w) : (!h, !w) -> !x
    %f = "moe.fetch"() {slot = @h} : () -> !h
    %m = "moe.mul"(%s, %f) : (!h, !h) -> !h
    return %m, %x : !h, !x
  }
  // CHECK-LABEL: func.func @write_before_read(
  // CHECK-NOT:     moe.fused
  // CHECK:         return
  func.func @write_before_read(%a: !h) -> !h {
    %s = "moe.silu"(%a) : (!h) -> !h
    "moe.stash"(%s) {slot = @h} : (!h) -> ()
    %f = "moe.fetch"() {slot = @h} : () -> !h
    %m = "moe.mul"(%s, %f) : (!h, !h) -> !h
    return %m : !h
  }
  // A product can add to what %s is added to: that sum needs no loop, so it joins none.
  // CHECK-LABEL: func.func @sum(
  // CHECK-NOT:     moe.fused
  // CHECK:         return
  func.func @sum(%a: !h, %x: !x, %w: !w) -> !h {
    %s = "moe.silu"(%a) : (!h) -> !h
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %m = "moe.add"(%s, %b) : (!h, !h) -> !h
    return %m : !h
  }
  // Another iteration space, a scalar, a neighbour that shares nothing: all stay alone.
  // CHECK-LABEL: func.func @spaces(
  // CHECK-NOT:     moe.fused
  // CHECK:         return
  func.func @spaces(%a: !h, %g: !g, %s: !s, %b: !h) -> (!h, !s, !h) {
    %q = "moe.exp"(%g) : (!g) -> !g
    %m = "moe.mul"(%a, %q) : (!h, !g) -> !h
    %t = "moe.exp"(%s) : (!s) -> !s
    %u = "moe.mul"(%t, %s) : (!s, !s) -> !s
    %v = "moe.exp"(%b) : (!h) -> !h
    return %m, %u, %v : !h, !s, !h
  }
  // Across the edge of a loop nothing moves: %s is made once, %m in every layer.
  // CHECK-LABEL: func.func @loop(
  // CHECK-NOT:     moe.fused
  // CHECK:         return
  func.func @loop(%a: !h, %b: !h) -> !h {
    %s = "moe.silu"(%a) : (!h) -> !h
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %b) -> (!h) {
      %m = "moe.mul"(%x, %s) : (!h, !h) -> !h
      scf.yield %m : !h
    }
    return %r : !h
  }
  // A product that reads the first %u stands before the last, which waits for another product: the
  // accumulate goes along, the product does not.
  // CHECK-LABEL: func.func @order(
  // CHECK:         %[[B:.*]] = "moe.contract"
  // CHECK-NEXT:    %[[F:.*]]:2 = "moe.fused"
  // CHECK:         "moe.accumulate"(%{{.*}}) {param = @g}
  // CHECK:         return
  func.func @order(%x: !x, %w: !w, %a: !h) -> (!h, !g) {
    %t = "moe.tanh"(%a) : (!h) -> !h
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %u = "moe.mul"(%t, %b) : (!h, !h) -> !h
    %d = "moe.sum"(%t) : (!h) -> !g
    "moe.accumulate"(%d) {param = @g} : (!g) -> ()
    return %u, %d : !h, !g
  }
  // No loop over more than 16 arrays.
  // CHECK-LABEL: func.func @many(
  // CHECK-COUNT-2: "moe.fused"
  // CHECK-NOT:     "moe.fused"
  // CHECK:         return
  func.func @many(%a0: !h, %a1: !h, %a2: !h, %a3: !h, %a4: !h, %a5: !h, %a6: !h, %a7: !h, %a8: !h, %a9: !h, %b0: !h, %b1: !h, %b2: !h, %b3: !h, %b4: !h, %b5: !h, %b6: !h, %b7: !h) -> !h {
    %0 = "moe.add"(%a0, %a1) : (!h, !h) -> !h
    %1 = "moe.add"(%0, %a2) : (!h, !h) -> !h
    %2 = "moe.add"(%1, %a3) : (!h, !h) -> !h
    %3 = "moe.add"(%2, %a4) : (!h, !h) -> !h
    %4 = "moe.add"(%3, %a5) : (!h, !h) -> !h
    %5 = "moe.add"(%4, %a6) : (!h, !h) -> !h
    %6 = "moe.add"(%5, %a7) : (!h, !h) -> !h
    %7 = "moe.add"(%6, %a8) : (!h, !h) -> !h
    %8 = "moe.add"(%7, %a9) : (!h, !h) -> !h
    %9 = "moe.add"(%8, %b0) : (!h, !h) -> !h
    %10 = "moe.add"(%9, %b1) : (!h, !h) -> !h
    %11 = "moe.add"(%10, %b2) : (!h, !h) -> !h
    %12 = "moe.add"(%11, %b3) : (!h, !h) -> !h
    %13 = "moe.add"(%12, %b4) : (!h, !h) -> !h
    %14 = "moe.add"(%13, %b5) : (!h, !h) -> !h
    %15 = "moe.add"(%14, %b6) : (!h, !h) -> !h
    %16 = "moe.add"(%15, %b7) : (!h, !h) -> !h
    return %16 : !h
  }
}
