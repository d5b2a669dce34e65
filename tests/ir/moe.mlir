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
!m = tensor<2x3xf32, ["batch", "E"]>
!s = tensor<f32>

module {
  "moe.set"() {sym_name = "sparse", experts = 3, topk = 2, layers = 0} : () -> ()
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

  // The losses flow back through scores and logits; nothing reached the weights, so theirs is zero. Fractions
  // are constants.
  // CHECK-LABEL: func.func @losses(
  // CHECK-SAME:    %[[L:[^:]*]]: tensor<2x4x3xf32
  // CHECK:         %[[R:.*]]:4 = "moe.router"(%[[L]])
  // CHECK:         %[[F:.*]] = "moe.fractions"(%[[R]]#2) {group = 2 : i64, per_step = true, set = @sparse}
  // CHECK:         %[[D1:.*]] = "moe.fill"() {value = 1
  // CHECK:         %[[DZ:.*]] = "moe.z_loss_grad"(%[[D1]], %[[L]]) {coef = 1.0
  // CHECK-NEXT:    %[[DM:.*]] = "moe.aux_loss_grad"(%[[D1]], %[[F]]) {coef = 2.0
  // CHECK-NEXT:    %[[DS:.*]] = "moe.mean_scores_grad"(%[[DM]], %[[R]]#0) {score = "softmax"}
  // CHECK-NEXT:    %[[DW:.*]] = "moe.fill"() {value = 0
  // CHECK-NEXT:    %[[DR:.*]] = "moe.router_grad"(%[[DW]], %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[DS]])
  // CHECK-NEXT:    %[[D:.*]] = "moe.add"(%[[DZ]], %[[DR]])
  // CHECK-NEXT:    return %{{.*}}, %[[D]] :
  func.func @losses(%l: !l) -> !s {
    %s, %w, %i, %n = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 3, topk_groups = 2, scale = 1.0}
      : (!l) -> (!l, !w, !i, !n)
    %m = "moe.mean_scores"(%s) {score = "softmax"} : (!l) -> !m
    %f = "moe.fractions"(%i) {set = @sparse, group = 2, per_step = true} : (!i) -> !m
    %a = "moe.aux_loss"(%m, %f) {coef = 0.02} : (!m, !m) -> !s
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
