// RUN: hecate-opt --passes=simplify %s | FileCheck %s

!x = tensor<2x4xf32, ["batch", "D"]>
!g = tensor<4xf32, ["D"]>
module {
  // CHECK-NOT: "unread"
  // CHECK: sym_name = "kept"
  // CHECK: sym_name = "loads"
  // CHECK: sym_name = "other"
  // CHECK-NOT: "unread"
  "moe.slot"() {sym_name = "kept", type = !x, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "unread", type = !x, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "loads", type = !x, layers = 0 : i64, observed = true} : () -> ()

  "moe.slot"() {sym_name = "other", type = !x, layers = 0 : i64} : () -> ()

  // Equal operations merge, unused ones go, whatever they read goes with them.
  // CHECK-LABEL: func.func @forward(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor
  // CHECK-NEXT:    %[[A:.*]] = "moe.silu"(%[[X]])
  // CHECK-NEXT:    "moe.stash"(%[[A]]) {slot = @kept}
  // CHECK-NEXT:    "moe.stash"(%[[A]]) {slot = @loads}
  // CHECK-NEXT:    %[[Y:.*]] = "moe.add"(%[[A]], %[[A]])
  // CHECK-NEXT:    return %[[Y]]
  func.func @forward(%x: !x) -> !x {
    %a = "moe.silu"(%x) : (!x) -> !x
    %b = "moe.silu"(%x) : (!x) -> !x
    %c = "moe.exp"(%x) : (!x) -> !x
    %d = "moe.exp"(%c) : (!x) -> !x
    "moe.stash"(%a) {slot = @kept} : (!x) -> ()
    "moe.stash"(%d) {slot = @unread} : (!x) -> ()
    "moe.stash"(%b) {slot = @loads} : (!x) -> ()
    %y = "moe.add"(%a, %b) : (!x, !x) -> !x
    return %y : !x
  }
  // A fetch merges where nothing stashes.
  // CHECK-LABEL: func.func @backward(
  // CHECK-NEXT:    %[[F:.*]] = "moe.fetch"
  // CHECK-NEXT:    %[[Y:.*]] = "moe.mul"(%[[F]], %[[F]])
  // CHECK-NEXT:    return %[[Y]]
  func.func @backward() -> !x {
    %f = "moe.fetch"() {slot = @kept} : () -> !x
    %g = "moe.fetch"() {slot = @kept} : () -> !x
    %unused = "moe.fetch"() {slot = @other} : () -> !x
    %y = "moe.mul"(%f, %g) : (!x, !x) -> !x
    return %y : !x
  }
  // The negative: other operands, other attributes, another order of operands, a write in between.
  // CHECK-LABEL: func.func @different(
  // CHECK-COUNT-2: moe.sub
  // CHECK-COUNT-2: moe.fill
  // CHECK-COUNT-2: moe.fetch
  // CHECK:         return
  func.func @different(%x: !x, %z: !x) -> (!x, !x, !x, !x, !x, !x) {
    %a = "moe.sub"(%x, %z) : (!x, !x) -> !x
    %b = "moe.sub"(%z, %x) : (!x, !x) -> !x
    %c = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %d = "moe.fill"() {value = 3.0 : f64} : () -> !x
    %e = "moe.fetch"() {slot = @other} : () -> !x
    "moe.stash"(%x) {slot = @other} : (!x) -> ()
    %f = "moe.fetch"() {slot = @other} : () -> !x
    return %a, %b, %c, %d, %e, %f : !x, !x, !x, !x, !x, !x
  }
  // Neutral elements; not where the other operand would have to be broadcast.
  // CHECK-LABEL: func.func @neutral(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4xf32, ["batch", "D"]>, %[[G:[^:]*]]: tensor<4xf32, ["D"]>)
  // CHECK-NEXT:    %[[ONE:.*]] = "moe.fill"
  // CHECK-NEXT:    %[[M:.*]] = "moe.mul"(%[[G]], %[[ONE]])
  // CHECK-NEXT:    return %[[X]], %[[X]], %[[X]], %[[M]]
  func.func @neutral(%x: !x, %g: !g) -> (!x, !x, !x, !x) {
    %one = "moe.fill"() {value = 1.0 : f64} : () -> !x
    %zero = "moe.fill"() {value = 0.0 : f64} : () -> !g
    %a = "moe.mul"(%one, %x) : (!x, !x) -> !x
    %b = "moe.add"(%x, %zero) : (!x, !g) -> !x
    %c = "moe.sub"(%x, %zero) : (!x, !g) -> !x
    %d = "moe.mul"(%g, %one) : (!g, !x) -> !x
    return %a, %b, %c, %d : !x, !x, !x, !x
  }
  // Gradients of two slices that make up the whole; not of those with a gap.
  // CHECK-LABEL: func.func @slices(
  // CHECK-SAME:    %[[A:[^:]*]]: tensor<2x3xf32, ["batch", "A"]>, %[[B:[^:]*]]: tensor<2x1xf32, ["batch", "B"]>)
  // CHECK-NEXT:    %[[Q:.*]] = "moe.slice_grad"(%[[B]]) {begin = 3
  // CHECK-NEXT:    %[[W:.*]] = "moe.concat"(%[[A]], %[[B]])
  // CHECK-NEXT:    %[[P:.*]] = "moe.slice_grad"(%[[A]]) {begin = 1
  // CHECK-NEXT:    %[[S:.*]] = "moe.add"(%[[P]], %[[Q]])
  // CHECK-NEXT:    return %[[W]], %[[S]]
  func.func @slices(%a: tensor<2x3xf32, ["batch", "A"]>, %b: tensor<2x1xf32, ["batch", "B"]>) -> (!x, !x) {
    %0 = "moe.slice_grad"(%b) {begin = 3} : (tensor<2x1xf32, ["batch", "B"]>) -> !x
    %1 = "moe.slice_grad"(%a) {begin = 0} : (tensor<2x3xf32, ["batch", "A"]>) -> !x
    %2 = "moe.add"(%0, %1) : (!x, !x) -> !x
    %3 = "moe.slice_grad"(%a) {begin = 1} : (tensor<2x3xf32, ["batch", "A"]>) -> !x
    %4 = "moe.slice_grad"(%b) {begin = 3} : (tensor<2x1xf32, ["batch", "B"]>) -> !x
    %5 = "moe.add"(%3, %4) : (!x, !x) -> !x
    return %2, %5 : !x, !x
  }
  // Carried values: %same is its own successor, %dead is never read; %x stays. An operation of the
  // body merges with one around it.
  // CHECK-LABEL: func.func @loop(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor{{.*}}, %[[S:[^:]*]]: tensor
  // CHECK:         %[[E:.*]] = "moe.exp"(%[[S]])
  // CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]]) -> (tensor<2x4xf32, ["batch", "D"]>)
  // CHECK-NEXT:      %[[N:.*]] = "moe.add"(%[[A]], %[[E]])
  // CHECK-NEXT:      scf.yield %[[N]]
  // CHECK:         return %[[R]], %[[S]], %[[E]]
  func.func @loop(%x: !x, %s: !x) -> (!x, !x, !x) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %e = "moe.exp"(%s) : (!x) -> !x
    %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %dead = %x, %same = %s) -> (!x, !x, !x) {
      %f = "moe.exp"(%same) : (!x) -> !x
      %n = "moe.add"(%a, %f) : (!x, !x) -> !x
      %silu = "moe.silu"(%n) : (!x) -> !x
      scf.yield %n, %silu, %same : !x, !x, !x
    }
    return %r#0, %r#2, %e : !x, !x, !x
  }
}
