// RUN: hec-ir-tool --gradient %s | FileCheck %s
//
// Reading a parameter, and its gradient; keeping values; movement of experts.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<6x6xf32, ["D", "D2"]>
!y = tensor<2x4x6xf32, ["batch", "T", "D2"]>
!e = tensor<3x6xf32, ["E", "D"]>

module {
  "moe.set"() {sym_name = "sparse", experts = 3, topk = 2, layers = 5} : () -> ()
  "moe.param"() {sym_name = "w", type = !w, layers = 5, path = "layers.{}.w", init = "normal", deviation = 0.02, decay = true, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  "moe.param"() {sym_name = "head", type = !w, layers = 0, path = "head", init = "zeros", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "table", type = !w, layers = 0, path = "table", init = "rope", theta = 10000.0, decay = false, trainable = false} : () -> ()
  "moe.param"() {sym_name = "sparse.w", type = !e, layers = 5, path = "layers.{}.sparse.experts.{e}.w", init = "ones", decay = true, trainable = true, index_first = 3, index_stride = 2, set = @sparse} : () -> ()
  "moe.slot"() {sym_name = "kept", type = !x, layers = 5} : () -> ()

  // The gradient is accumulated directly behind its operand; a table that is not trained has none.
  // CHECK-LABEL: func.func @get(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x6xf32{{[^%]*}}%[[I:[^:]*]]: index
  // CHECK:         %[[S:.*]] = "moe.silu"(%[[X]])
  // CHECK:         "moe.fill"() {value = 1
  // CHECK-NOT:     "moe.accumulate"
  // CHECK:         %[[DH:.*]] = "moe.contract"(%{{.*}}, %{{.*}}) : ({{.*}}) -> tensor<6x6xf32, ["D2", "D"]>
  // CHECK-NEXT:    "moe.accumulate"(%[[DH]]) {param = @back} : (tensor<6x6xf32, ["D2", "D"]>) -> ()
  // CHECK:         %[[DW:.*]] = "moe.contract"(%[[S]], %{{.*}}) : ({{.*}}) -> tensor<6x6xf32, ["D", "D2"]>
  // CHECK-NEXT:    "moe.accumulate"(%[[DW]], %[[I]]) {param = @w}
  // CHECK:         "moe.silu_grad"
  // CHECK-NOT:     "moe.accumulate"
  "moe.param"() {sym_name = "back", type = tensor<6x6xf32, ["D2", "D"]>, layers = 0, path = "back", init = "ones", decay = true, trainable = true} : () -> ()
  func.func @get(%x: !x, %i: index) -> !x {
    %w = "moe.get"(%i) {param = @w} : (index) -> !w
    %t = "moe.get"() {param = @table} : () -> !w
    %p = "moe.mul"(%w, %t) : (!w, !w) -> !w
    %s = "moe.silu"(%x) : (!x) -> !x
    %h = "moe.contract"(%s, %w) : (!x, !w) -> !y
    %b = "moe.get"() {param = @back} : () -> tensor<6x6xf32, ["D2", "D"]>
    %y = "moe.contract"(%h, %b) : (!y, tensor<6x6xf32, ["D2", "D"]>) -> !x
    return %y : !x
  }

  // CHECK-LABEL: func.func @keep(
  func.func @keep(%x: !x, %i: index) -> !x {
    // CHECK: "moe.stash"(%{{.*}}, %{{.*}}) {slot = @kept}
    // CHECK: "moe.fetch"(%{{.*}}) {slot = @kept}
    "moe.stash"(%x, %i) {slot = @kept} : (!x, index) -> ()
    %y = "moe.fetch"(%i) {slot = @kept} : (index) -> !x
    return %y : !x
  }

  // CHECK-LABEL: func.func @move(
  func.func @move(%i: index) {
    "fssdp.plan"(%i) {set = @sparse} : (index) -> ()
    "fssdp.materialize"(%i) {set = @sparse, rematerialize = false} : (index) -> ()
    "fssdp.await"(%i) {set = @sparse} : (index) -> ()
    "fssdp.release"(%i) {set = @sparse, what = "parameters"} : (index) -> ()
    "fssdp.reduce"(%i) {set = @sparse} : (index) -> ()
    return
  }
}
