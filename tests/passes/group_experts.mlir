// RUN: hecate-opt --passes=group-experts %s | FileCheck %s --implicit-check-not=moe.experts

!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!r = tensor<32x4xf32, ["rows", "D"]>
!h = tensor<32x6xf32, ["rows", "F"]>
!first = tensor<5xi32, ["first"]>
module {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 3 : i64} : () -> ()
  "moe.set"() {sym_name = "b", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()

  // The function's result is a product: the weights are multiplied in before it.
  // CHECK-LABEL: func.func private @s.expert(
  // CHECK-SAME:    %[[R:[^:]*]]: tensor<32x4xf32, ["rows", "D"]>, %[[FIRST:[^:]*]]: tensor<5xi32, ["first"]>, %{{[^:]*}}: index, %[[G:[^:]*]]: tensor<32xf32, ["rows"]>)
  // CHECK:         %[[H:.*]] = "moe.silu"
  // CHECK-NEXT:    %[[GATED:.*]] = "moe.mul"(%[[H]], %[[G]])
  // CHECK-NEXT:    %[[Y:.*]] = "moe.grouped_contract"(%[[GATED]], %{{.*}}, %[[FIRST]])
  // CHECK-NEXT:    return %[[Y]]
  func.func private @s.expert(%r: !r, %first: !first, %i: index) -> !r {
    %w1 = "moe.get"(%i) {param = @w1} : (index) -> tensor<4x4x6xf32, ["E", "D", "F"]>
    %w2 = "moe.get"(%i) {param = @w2} : (index) -> tensor<4x6x4xf32, ["E", "F", "D"]>
    %a = "moe.grouped_contract"(%r, %w1, %first) : (!r, tensor<4x4x6xf32, ["E", "D", "F"]>, !first) -> !h
    %h = "moe.silu"(%a) : (!h) -> !h
    %y = "moe.grouped_contract"(%h, %w2, %first) : (!h, tensor<4x6x4xf32, ["E", "F", "D"]>, !first) -> !r
    return %y : !r
  }
  // Here a bias follows: the weights are multiplied with the result, after the call.
  // CHECK-LABEL: func.func private @b.expert(
  // CHECK-SAME:    %{{[^:]*}}: tensor<32x4xf32, ["rows", "D"]>, %{{[^:]*}}: tensor<5xi32, ["first"]>) -> tensor
  // CHECK-NOT:     moe.mul
  // CHECK:         return
  func.func private @b.expert(%r: !r, %first: !first) -> !r {
    %b = "moe.get"() {param = @b1} : () -> tensor<4x4xf32, ["E", "D"]>
    %s = "moe.spread"(%b, %first) : (tensor<4x4xf32, ["E", "D"]>, !first) -> !r
    %y = "moe.add"(%r, %s) : (!r, !r) -> !r
    return %y : !r
  }
  "moe.param"() {sym_name = "w1", type = tensor<4x4x6xf32, ["E", "D", "F"]>, layers = 3 : i64, path = "{}.{e}.w1", init = "zeros", decay = true, trainable = true, set = @s, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "w2", type = tensor<4x6x4xf32, ["E", "F", "D"]>, layers = 3 : i64, path = "{}.{e}.w2", init = "zeros", decay = true, trainable = true, set = @s, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "b1", type = tensor<4x4xf32, ["E", "D"]>, layers = 0 : i64, path = "{e}.b1", init = "zeros", decay = true, trainable = true, set = @b} : () -> ()

  // CHECK-LABEL: func.func @layered(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor{{.*}} %[[W:[^:]*]]: tensor{{.*}} %[[IDS:[^:]*]]: tensor{{.*}}, %[[I:[^:]*]]: index)
  // CHECK-NEXT:    %[[ROUTE:.*]]:3 = "moe.route"(%[[IDS]]) {experts = 4 : i64}
  // CHECK-NEXT:    %[[ROWS:.*]] = "moe.permute"(%[[X]], %[[ROUTE]]#1, %[[ROUTE]]#2)
  // CHECK-NEXT:    %[[GATE:.*]] = "moe.gate_rows"(%[[W]], %[[ROUTE]]#1, %[[ROUTE]]#2)
  // CHECK-NEXT:    %[[OUT:.*]] = call @s.expert(%[[ROWS]], %[[ROUTE]]#0, %[[I]], %[[GATE]])
  // CHECK-NEXT:    %[[Y:.*]] = "moe.combine"(%[[OUT]], %[[ROUTE]]#1, %[[ROUTE]]#2)
  // CHECK-NEXT:    return %[[Y]]
  func.func @layered(%x: !x, %w: !w, %ids: !i, %i: index) -> !x {
    %y = "moe.experts"(%x, %w, %ids, %i) {set = @s, expert = @s.expert} : (!x, !w, !i, index) -> !x
    return %y : !x
  }
  // A capacity: the rows are those that it keeps.
  // CHECK-LABEL: func.func @limited(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor{{.*}} %[[W:[^:]*]]: tensor{{.*}} %[[IDS:[^:]*]]: tensor
  // CHECK-NEXT:    %[[ROUTE:.*]]:3 = "moe.route"(%[[IDS]])
  // CHECK-NEXT:    %[[KEPT:.*]]:3 = "moe.limit"(%[[W]], %[[ROUTE]]#0, %[[ROUTE]]#1, %[[ROUTE]]#2) {capacity = 1.25{{.*}}, drop = "position"}
  // CHECK-NEXT:    %[[ROWS:.*]] = "moe.permute"(%[[X]], %[[KEPT]]#1, %[[KEPT]]#2)
  // CHECK-NEXT:    %[[GATE:.*]] = "moe.gate_rows"(%[[W]], %[[KEPT]]#1, %[[KEPT]]#2)
  // CHECK-NEXT:    %[[OUT:.*]] = call @l.expert(%[[ROWS]], %[[KEPT]]#0)
  // CHECK-NEXT:    %[[GATED:.*]] = "moe.mul"(%[[OUT]], %[[GATE]])
  // CHECK-NEXT:    %[[Y:.*]] = "moe.combine"(%[[GATED]], %[[KEPT]]#1, %[[KEPT]]#2)
  func.func private @l.expert(%r: !r, %first: !first) -> !r {
    return %r : !r
  }
  func.func @limited(%x: !x, %w: !w, %ids: !i) -> !x {
    %y = "moe.experts"(%x, %w, %ids) {set = @b, expert = @l.expert, capacity = 1.25, drop = "position"} : (!x, !w, !i) -> !x
    return %y : !x
  }
  // Weights on the input: rows are multiplied before the call, and what the function returns is not.
  // CHECK-LABEL: func.func private @i.expert(
  // CHECK-NOT:     moe.mul
  // CHECK:         return
  func.func private @i.expert(%r: !r, %first: !first, %i: index) -> !r {
    %w1 = "moe.get"(%i) {param = @w1} : (index) -> tensor<4x4x6xf32, ["E", "D", "F"]>
    %w2 = "moe.get"(%i) {param = @w2} : (index) -> tensor<4x6x4xf32, ["E", "F", "D"]>
    %a = "moe.grouped_contract"(%r, %w1, %first) : (!r, tensor<4x4x6xf32, ["E", "D", "F"]>, !first) -> !h
    %y = "moe.grouped_contract"(%a, %w2, %first) : (!h, tensor<4x6x4xf32, ["E", "F", "D"]>, !first) -> !r
    return %y : !r
  }
  // CHECK-LABEL: func.func @on_input(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor{{.*}} %[[W:[^:]*]]: tensor{{.*}} %[[IDS:[^:]*]]: tensor{{.*}}, %[[I:[^:]*]]: index)
  // CHECK-NEXT:    %[[ROUTE:.*]]:3 = "moe.route"(%[[IDS]])
  // CHECK-NEXT:    %[[ROWS:.*]] = "moe.permute"(%[[X]], %[[ROUTE]]#1, %[[ROUTE]]#2)
  // CHECK-NEXT:    %[[GATE:.*]] = "moe.gate_rows"(%[[W]], %[[ROUTE]]#1, %[[ROUTE]]#2)
  // CHECK-NEXT:    %[[GATED:.*]] = "moe.mul"(%[[ROWS]], %[[GATE]])
  // CHECK-NEXT:    %[[OUT:.*]] = call @i.expert(%[[GATED]], %[[ROUTE]]#0, %[[I]])
  // CHECK-NEXT:    %[[Y:.*]] = "moe.combine"(%[[OUT]], %[[ROUTE]]#1, %[[ROUTE]]#2)
  // CHECK-NEXT:    return %[[Y]]
  func.func @on_input(%x: !x, %w: !w, %ids: !i, %i: index) -> !x {
    %y = "moe.experts"(%x, %w, %ids, %i) {set = @s, expert = @i.expert, on_input = true} : (!x, !w, !i, index) -> !x
    return %y : !x
  }
  // CHECK-LABEL: func.func @plain(
  // CHECK:         %[[GATE:.*]] = "moe.gate_rows"
  // CHECK-NEXT:    %[[OUT:.*]] = call @b.expert(%{{.*}}, %{{.*}})
  // CHECK-NEXT:    %[[GATED:.*]] = "moe.mul"(%[[OUT]], %[[GATE]])
  // CHECK-NEXT:    "moe.combine"(%[[GATED]],
  func.func @plain(%x: !x, %w: !w, %ids: !i) -> !x {
    %y = "moe.experts"(%x, %w, %ids) {set = @b, expert = @b.expert} : (!x, !w, !i) -> !x
    return %y : !x
  }
}
