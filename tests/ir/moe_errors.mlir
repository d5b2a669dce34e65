// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!l = tensor<2x4x3xf32, ["batch", "T", "E"]>
!w = tensor<2x4x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>
!k = tensor<2x4x3xi32, ["batch", "T", "picks"]>
!j = tensor<2x5x2xi32, ["batch", "T", "picks"]>
!e = tensor<3xf32, ["E"]>
!n = tensor<3xi32, ["E"]>
!f = tensor<4xi32, ["first"]>
!p = tensor<16xi32, ["rows"]>
!q = tensor<20xi32, ["rows"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!g = tensor<16xf32, ["rows"]>
!h = tensor<20xf32, ["rows"]>
!m = tensor<2x3xf32, ["batch", "E"]>
!s = tensor<f32>

module {
  "moe.set"() {sym_name = "sparse", experts = 3, topk = 2, layers = 0} : () -> ()
  func.func private @expert(%x: !r, %first: !f) -> !r {
    return %x : !r
  }

  func.func @wide_router(%l: tensor<2x4x4097xf32, ["batch", "T", "E"]>) {
    // CHECK: moe_errors.mlir:[[@LINE+1]]:22: error: 'moe.router': 4097 experts are more than 4096
    %s, %w, %i, %n = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (tensor<2x4x4097xf32, ["batch", "T", "E"]>) -> (tensor<2x4x4097xf32, ["batch", "T", "E"]>, !w, !i, tensor<4097xi32, ["E"]>)
    return
  }

  func.func @router(%l: !l, %e: !e, %n: !n, %w: !w, %i: !i, %k: !k, %s: !s, %m: !m, %x: index) {
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': score is "relu"
    %s0, %w0, %i0, %n0 = "moe.router"(%l) {score = "relu", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': weight is "topk"
    %s1, %w1, %i1, %n1 = "moe.router"(%l) {score = "softmax", weight = "topk", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': topk is 4, but only 3 experts can be chosen from
    %s2, %w2, %i2, %n2 = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 4, groups = 1, topk_groups = 1, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': has only one of groups and topk_groups
    %s8, %w8, %i8, %n8 = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 3, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': 3 experts do not divide into 2 groups
    %s3, %w3, %i3, %n3 = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 2, topk_groups = 1, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': topk_groups is 4 of 3 groups
    %s4, %w4, %i4, %n4 = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 3, topk_groups = 4, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': topk is 0, expected at least 1
    %s5, %w5, %i5, %n5 = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 0, groups = 1, topk_groups = 1, scale = 1.0} : (!l) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': bias is tensor<f32>, expected tensor<3xf32, ["E"]>
    %s6, %w6, %i6, %n6 = "moe.router"(%l, %s) {score = "softmax", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (!l, !s) -> (!l, !w, !i, !n)
    // CHECK: :[[@LINE+1]]:26: error: 'moe.router': the type of result 2 is not what its operands give
    %s7, %w7, %i7, %n7 = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (!l) -> (!l, !w, !k, !n)
    // CHECK: :[[@LINE+1]]:10: error: 'moe.router_grad': ids is tensor<2x4x3xi32, ["batch", "T", "picks"]>, expected tensor<2x4x2xi32, ["batch", "T", "picks"]>
    %8 = "moe.router_grad"(%w, %l, %w, %k) {score = "softmax", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (!w, !l, !w, !k) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.router_grad': dscores is tensor<2x4x2xf32, ["batch", "T", "picks"]>
    %9 = "moe.router_grad"(%w, %l, %w, %i, %w) {score = "softmax", weight = "scores", topk = 2, groups = 1, topk_groups = 1, scale = 1.0} : (!w, !l, !w, !i, !w) -> !l
    // CHECK: :[[@LINE+1]]:11: error: 'moe.mean_scores': score is "none"
    %10 = "moe.mean_scores"(%l) {score = "none"} : (!l) -> !m
    // CHECK: :[[@LINE+1]]:12: error: 'moe.mean_scores_grad': dmeans is tensor<3xf32, ["E"]>, expected tensor<2x3xf32, ["batch", "E"]>
    %a10 = "moe.mean_scores_grad"(%e, %l) {score = "softmax"} : (!e, !l) -> !l
    // CHECK: :[[@LINE+1]]:11: error: 'moe.aux_loss': fractions is tensor<3xf32, ["E"]>, expected tensor<2x3xf32, ["batch", "E"]>
    %11 = "moe.aux_loss"(%m, %e) {coef = 0.02} : (!m, !e) -> !s
    // CHECK: :[[@LINE+1]]:11: error: 'moe.aux_loss_grad': dloss is tensor<3xf32, ["E"]>, expected tensor<f32>
    %12 = "moe.aux_loss_grad"(%e, %m) {coef = 0.02} : (!e, !m) -> !m
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fractions': there is no moe.set @dense
    %f0 = "moe.fractions"(%i) {set = @dense} : (!i) -> !m
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fractions': the set has no layers
    %f1 = "moe.fractions"(%i, %x) {set = @sparse} : (!i, index) -> !m
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fractions': ids is tensor<2x4x3xi32, ["batch", "T", "picks"]>, expected the set's top-k choices
    %f2 = "moe.fractions"(%k) {set = @sparse} : (!k) -> !m
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fractions': fractions is tensor<3xf32, ["E"]>, expected one of each expert for each sequence
    %f3 = "moe.fractions"(%i) {set = @sparse} : (!i) -> !e
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fractions': group is 0
    %f4 = "moe.fractions"(%i) {set = @sparse, group = 0} : (!i) -> !m
    // CHECK: :[[@LINE+1]]:11: error: 'moe.z_loss': logits is tensor<3xf32, ["E"]>, expected at least 2 dimensions
    %13 = "moe.z_loss"(%e) {coef = 0.001} : (!e) -> !s
    // CHECK: :[[@LINE+1]]:11: error: 'moe.z_loss_grad': dloss is
    %14 = "moe.z_loss_grad"(%e, %l) {coef = 0.001} : (!e, !l) -> !l
    return
  }

  func.func @rows(%x: !x, %w: !w, %i: !i, %j: !j, %k: !k, %l: !l, %p: !p, %q: !q, %r: !r, %g: !g, %h: !h, %s: !s, %f: !f) {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.experts': there is no moe.set @dense
    %0 = "moe.experts"(%x, %w, %i) {set = @dense, expert = @expert} : (!x, !w, !i) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.experts': there is no function @sparse
    %1 = "moe.experts"(%x, %w, %i) {set = @sparse, expert = @sparse} : (!x, !w, !i) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.experts': weights is tensor<2x4x3xf32, ["batch", "T", "E"]>, expected the tokens' dimensions and top-k choices
    %2 = "moe.experts"(%x, %l, %i) {set = @sparse, expert = @expert} : (!x, !l, !i) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.experts': x is tensor<16x6xf32, ["rows", "D"]>, but the weights are for other tokens
    %3 = "moe.experts"(%r, %w, %i) {set = @sparse, expert = @expert} : (!r, !w, !i) -> !r
    // CHECK: :[[@LINE+1]]:10: error: 'moe.experts': ids is
    %4 = "moe.experts"(%x, %w, %j) {set = @sparse, expert = @expert} : (!x, !w, !j) -> !x
    // CHECK: :[[@LINE+1]]:31: error: 'moe.route': ids is tensor<2x4x2xf32, ["batch", "T", "picks"]>, expected tensor<2x4x2xi32, ["batch", "T", "picks"]>
    %first5, %pair5, %slot5 = "moe.route"(%w) {experts = 3} : (!w) -> (!f, !p, !i)
    // CHECK: :[[@LINE+1]]:31: error: 'moe.route': experts is 0, expected at least 1
    %first6, %pair6, %slot6 = "moe.route"(%i) {experts = 0} : (!i) -> (!f, !p, !i)
    // CHECK: :[[@LINE+1]]:31: error: 'moe.route': the type of result 0 is not what its operands give
    %first7, %pair7, %slot7 = "moe.route"(%i) {experts = 4} : (!i) -> (!f, !p, !i)
    // CHECK: :[[@LINE+1]]:10: error: 'moe.permute': pair is tensor<20xi32, ["rows"]>, expected tensor<16xi32, ["rows"]>
    %8 = "moe.permute"(%x, %q, %i) : (!x, !q, !i) -> !r
    // CHECK: :[[@LINE+1]]:10: error: 'moe.permute': x is tensor<2x4x6xf32, ["batch", "T", "D"]>, but the route is of other tokens
    %9 = "moe.permute"(%x, %q, %j) : (!x, !q, !j) -> !r
    // CHECK: :[[@LINE+1]]:11: error: 'moe.noise': amount is 0, number 0
    %n0 = "moe.noise"() {amount = 0.0, number = 0} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.dropout': rate is 1, number 0
    %n1 = "moe.dropout"() {rate = 1.0, number = 0} : () -> !x
    // CHECK: :[[@LINE+1]]:31: error: 'moe.limit': capacity is 0
    %first8, %pair8, %slot8 = "moe.limit"(%w, %f, %p, %i) {capacity = 0.0, drop = "lowest"} : (!w, !f, !p, !i) -> (!f, !p, !i)
    // CHECK: :[[@LINE+1]]:31: error: 'moe.limit': drop is "best"
    %first9, %pair9, %slot9 = "moe.limit"(%w, %f, %p, %i) {capacity = 1.0, drop = "best"} : (!w, !f, !p, !i) -> (!f, !p, !i)
    // CHECK: :[[@LINE+1]]:34: error: 'moe.limit': pair is tensor<20xi32, ["rows"]>, expected tensor<16xi32, ["rows"]>
    %first10, %pair10, %slot10 = "moe.limit"(%w, %f, %q, %i) {capacity = 1.0, drop = "lowest"} : (!w, !f, !q, !i) -> (!f, !q, !i)
    // CHECK: :[[@LINE+1]]:11: error: 'moe.combine': rows is tensor<20xf32, ["rows"]>, but the route has 16 rows
    %10 = "moe.combine"(%h, %p, %i) : (!h, !p, !i) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.combine': rows is tensor<f32>, expected at least 1 dimensions
    %11 = "moe.combine"(%s, %p, %i) : (!s, !p, !i) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.gate_rows': weights is
    %12 = "moe.gate_rows"(%x, %p, %i) : (!x, !p, !i) -> !g
    // CHECK: :[[@LINE+1]]:11: error: 'moe.gate_rows_grad': dg is tensor<20xf32, ["rows"]>, expected tensor<16xf32, ["rows"]>
    %13 = "moe.gate_rows_grad"(%h, %p, %i) : (!h, !p, !i) -> !w
    // CHECK: :[[@LINE+1]]:11: error: 'moe.gate_rows_grad': slot is
    %14 = "moe.gate_rows_grad"(%g, %p, %w) : (!g, !p, !w) -> !w
    return
  }

  func.func @picks(%x: !x, %w: tensor<2x4x3xf32, ["batch", "T", "picks"]>, %k: !k, %v: !w, %i: !i) {
    // CHECK: :[[@LINE+1]]:11: error: 'moe.experts': drop is "some"
    %d0 = "moe.experts"(%x, %v, %i) {set = @sparse, expert = @expert, capacity = 1.0, drop = "some"} : (!x, !w, !i) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.experts': 3 choices, but the set's topk is 2
    %0 = "moe.experts"(%x, %w, %k) {set = @sparse, expert = @expert} : (!x, tensor<2x4x3xf32, ["batch", "T", "picks"]>, !k) -> !x
    return
  }
}
// CHECK-NOT: error:
