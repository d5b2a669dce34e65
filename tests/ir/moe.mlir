// RUN: hec-ir-tool --gradient %s | FileCheck %s
//
// Router, balance losses, and the way of the rows to the experts and back.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!l = tensor<2x4x3xf32, ["batch", "T", "E"]>
!w = tensor<2x4x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>
!e = tensor<3xf32, ["E"]>
!n = tensor<3xi32, ["E"]>
!f = tensor<4xi32, ["first"]>
!p = tensor<16xi32, ["rows"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!g = tensor<16xf32, ["rows"]>
!s = tensor<f32>

module {
  // Only weights flow back: no gradient of the scores. The bias takes part in the choice only.
  // CHECK-LABEL: func.func @router(
  // CHECK-SAME:    %[[L:[^:]*]]: tensor<2x4x3xf32
  // CHECK:         %[[R:.*]]:4 = "moe.router"(%[[L]], %{{.*}})
  // CHECK-NEXT:    %[[DW:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[D:.*]] = "moe.router_grad"(%[[DW]], %[[R]]#0, %[[R]]#1, %[[R]]#2)
  // CHECK-SAME:      {groups = 1 : i64, scale = 2.5{{.*}}, score = "sigmoid", topk = 2 : i64, topk_groups = 1 : i64, weight = "renormalized"}
  // CHECK-NEXT:    return %[[R]]#1, %[[D]] :
  func.func @router(%l: !l, %bias: !e) -> !w {
    %s, %w, %i, %n = "moe.router"(%l, %bias) {score = "sigmoid", weight = "renormalized", topk = 2, groups = 1, topk_groups = 1, scale = 2.5}
      : (!l, !e) -> (!l, !w, !i, !n)
    return %w : !w
  }

  // Each sequence is balanced alone: the ids take the place of the loads.
  // CHECK-LABEL: func.func @each_sequence(
  // CHECK:         %[[R:.*]]:4 = "moe.router"
  // CHECK:         "moe.aux_loss"(%[[R]]#0, %[[R]]#2)
  // CHECK:         "moe.aux_loss_grad"(%{{.*}}, %[[R]]#0, %[[R]]#2) {coef = 2.0{{.*}}, score = "softmax", topk = 2 : i64}
  func.func @each_sequence(%l: !l) -> !s {
    %s, %w, %i, %n = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0}
      : (!l) -> (!l, !w, !i, !n)
    %a = "moe.aux_loss"(%s, %i) {coef = 0.02, topk = 2, score = "softmax"} : (!l, !i) -> !s
    return %a : !s
  }

  // The losses flow back through scores and logits; nothing reached the weights, so theirs is zero.
  // CHECK-LABEL: func.func @losses(
  // CHECK-SAME:    %[[L:[^:]*]]: tensor<2x4x3xf32
  // CHECK:         %[[R:.*]]:4 = "moe.router"(%[[L]])
  // CHECK:         %[[D1:.*]] = "moe.fill"() {value = 1
  // CHECK:         %[[DZ:.*]] = "moe.z_loss_grad"(%[[D1]], %[[L]]) {coef = 1.0
  // CHECK-NEXT:    %[[DS:.*]] = "moe.aux_loss_grad"(%[[D1]], %[[R]]#0, %[[R]]#3) {coef = 2.0{{.*}}, score = "softmax", topk = 2 : i64}
  // CHECK-NEXT:    %[[DW:.*]] = "moe.fill"() {value = 0
  // CHECK-NEXT:    %[[DR:.*]] = "moe.router_grad"(%[[DW]], %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[DS]])
  // CHECK-NEXT:    %[[D:.*]] = "moe.add"(%[[DZ]], %[[DR]])
  // CHECK-NEXT:    return %{{.*}}, %[[D]] :
  func.func @losses(%l: !l) -> !s {
    %s, %w, %i, %n = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 3, topk_groups = 2, scale = 1.0}
      : (!l) -> (!l, !w, !i, !n)
    %a = "moe.aux_loss"(%s, %n) {coef = 0.02, topk = 2, score = "softmax"} : (!l, !n) -> !s
    %z = "moe.z_loss"(%l) {coef = 0.001} : (!l) -> !s
    %r = "moe.add"(%a, %z) : (!s, !s) -> !s
    return %r : !s
  }

  // Permute and combine are each other's gradients; gate weights travel with the rows.
  // CHECK-LABEL: func.func @rows(
  // CHECK:         %[[RT:.*]]:3 = "moe.route"
  // CHECK-NEXT:    %[[X:.*]] = "moe.permute"(%{{.*}}, %[[RT]]#1, %[[RT]]#2)
  // CHECK-NEXT:    %[[G:.*]] = "moe.gate_rows"(%{{.*}}, %[[RT]]#1, %[[RT]]#2)
  // CHECK-NEXT:    %[[M:.*]] = "moe.mul"(%[[X]], %[[G]])
  // CHECK-NEXT:    %[[Y:.*]] = "moe.combine"(%[[M]], %[[RT]]#1, %[[RT]]#2)
  // CHECK-NEXT:    %[[DY:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DM:.*]] = "moe.permute"(%[[DY]], %[[RT]]#1, %[[RT]]#2)
  // CHECK-NEXT:    %[[DR:.*]] = "moe.mul"(%[[DM]], %[[G]])
  // CHECK-NEXT:    %[[PG:.*]] = "moe.mul"(%[[DM]], %[[X]])
  // CHECK-NEXT:    %[[DG:.*]] = "moe.sum"(%[[PG]])
  // CHECK-NEXT:    %[[DW:.*]] = "moe.gate_rows_grad"(%[[DG]], %[[RT]]#1, %[[RT]]#2)
  // CHECK-NEXT:    %[[DX:.*]] = "moe.combine"(%[[DR]], %[[RT]]#1, %[[RT]]#2)
  // CHECK-NEXT:    return %[[Y]], %[[DX]], %[[DW]] :
  func.func @rows(%x: !x, %w: !w, %i: !i) -> !x {
    %first, %pair, %slot = "moe.route"(%i) {experts = 3} : (!i) -> (!f, !p, !i)
    %r = "moe.permute"(%x, %pair, %slot) : (!x, !p, !i) -> !r
    %g = "moe.gate_rows"(%w, %pair, %slot) : (!w, !p, !i) -> !g
    %m = "moe.mul"(%r, %g) : (!r, !g) -> !r
    %y = "moe.combine"(%m, %pair, %slot) : (!r, !p, !i) -> !x
    return %y : !x
  }
}
