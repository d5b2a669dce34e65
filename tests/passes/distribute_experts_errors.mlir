// RUN: split-file %s %t
// RUN: not hecate-opt --passes=distribute-experts %t/routes.mlir 2>&1 | FileCheck %t/routes.mlir
// RUN: not hecate-opt --passes=distribute-experts %t/told.mlir 2>&1 | FileCheck %t/told.mlir
// RUN: not hecate-opt --passes=distribute-experts %t/forward.mlir 2>&1 | FileCheck %t/forward.mlir
// RUN: not hecate-opt --passes=distribute-experts %t/backward.mlir 2>&1 | FileCheck %t/backward.mlir
//
// Faults of several sets are reported at once; nothing is written.

//--- routes.mlir
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!first = tensor<5xi32, ["first"]>
!pair = tensor<32xi32, ["rows"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.experts = "ep"}} {
  // CHECK: routes.mlir:[[@LINE+4]]:21: error: 'moe.route': not yet: two routes to the experts of a set
  // CHECK: routes.mlir:[[@LINE+7]]:3: error: 'moe.set': not yet: on several ranks, a mixture whose result nothing uses
  func.func @forward(%ids: !i) {
    %f0, %p0, %s0 = "moe.route"(%ids) {experts = 4 : i64, rows_of = @s} : (!i) -> (!first, !pair, !i)
    %f1, %p1, %s1 = "moe.route"(%ids) {experts = 4 : i64, rows_of = @s} : (!i) -> (!first, !pair, !i)
    return
  }
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "unused", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func @other(%ids: !i) {
    // CHECK: routes.mlir:[[@LINE+1]]:21: error: 'moe.route': belongs to no set
    %f2, %p2, %s2 = "moe.route"(%ids) {experts = 4 : i64} : (!i) -> (!first, !pair, !i)
    return
  }
}
// CHECK-NOT: error
// CHECK-NOT: {{^}}module

//--- told.mlir
!x = tensor<2x8x6xf32, ["batch", "T", "D"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!first = tensor<5xi32, ["first"]>
!pair = tensor<32xi32, ["rows"]>
!r = tensor<32x6xf32, ["rows", "D"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.experts = "ep"}} {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func @forward(%x: !x, %ids: !i) -> (!x) {
    %f, %p, %s = "moe.route"(%ids) {experts = 4 : i64, rows_of = @s} : (!i) -> (!first, !pair, !i)
    // CHECK: told.mlir:[[@LINE+1]]:10: error: 'moe.permute': works on rows of experts, but has no rows_of: of which set?
    %r = "moe.permute"(%x, %p, %s) : (!x, !pair, !i) -> !r
    // A constant is of any.
    %c = "moe.fill"() {value = 1.0} : () -> !r
    // CHECK-NEXT: told.mlir:[[@LINE+1]]:10: error: 'moe.sum': works on rows
    %t = "moe.sum"(%c) : (!r) -> tensor<6xf32, ["D"]>
    %m = "moe.permute"(%x, %p, %s) {rows_of = @s} : (!x, !pair, !i) -> !r
    %a = "moe.add"(%m, %c) {rows_of = @s} : (!r, !r) -> !r
    return %x : !x
  }
}
// CHECK-NOT: error
// CHECK-NOT: {{^}}module

//--- forward.mlir
!x = tensor<2x8x6xf32, ["batch", "T", "D"]>
!l = tensor<2x8x4xf32, ["batch", "T", "E"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!n = tensor<4xi32, ["E"]>
!first = tensor<5xi32, ["first"]>
!pair = tensor<32xi32, ["rows"]>
!r = tensor<32x6xf32, ["rows", "D"]>
!g = tensor<32xf32, ["rows"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.experts = "ep"}} {
  "moe.set"() {sym_name = "s0", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s1", experts = 4 : i64, topk = 2 : i64, layers = 3 : i64} : () -> ()
  "moe.set"() {sym_name = "s2", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s3", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s4", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s5", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s6", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s7", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s9", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s8", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func @forward(%x: !x, %w: !w, %ids: !i, %l: !l) -> (!x, !x) {
    // CHECK: forward.mlir:[[@LINE+1]]:21: error: 'moe.route': the ids come from no moe.router
    %f0, %p0, %o0 = "moe.route"(%ids) {experts = 4 : i64, rows_of = @s0} : (!i) -> (!first, !pair, !i)
    %scores, %weights, %picked, %loads = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2 : i64, groups = 1 : i64, topk_groups = 1 : i64, scale = 1.0 : f64} : (!l) -> (!l, !w, !i, !n)
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:21: error: 'moe.route': is not in a loop over the layers of its set
    %f1, %p1, %o1 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s1} : (!i) -> (!first, !pair, !i)
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:21: error: 'moe.route': its rows are not permuted, weighted and combined
    %f2, %p2, %o2 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s2} : (!i) -> (!first, !pair, !i)
    %f3, %p3, %o3 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s3} : (!i) -> (!first, !pair, !i)
    %r3 = "moe.permute"(%x, %p3, %o3) {rows_of = @s3} : (!x, !pair, !i) -> !r
    %g3 = "moe.gate_rows"(%weights, %p3, %o3) {rows_of = @s3} : (!w, !pair, !i) -> !g
    %y3 = "moe.mul"(%r3, %g3) {rows_of = @s3} : (!r, !g) -> !r
    // CHECK-NEXT: forward.mlir:[[@LINE+2]]:11: error: 'moe.add': reads a sum over rows, of which a wave has a part
    %t3 = "moe.sum"(%y3) {rows_of = @s3} : (!r) -> tensor<6xf32, ["D"]>
    %z3 = "moe.add"(%y3, %t3) {rows_of = @s3} : (!r, tensor<6xf32, ["D"]>) -> !r
    %c3 = "moe.combine"(%z3, %p3, %o3) {rows_of = @s3} : (!r, !pair, !i) -> !x
    %f9, %p9, %o9 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s9} : (!i) -> (!first, !pair, !i)
    %r9 = "moe.permute"(%x, %p9, %o9) {rows_of = @s9} : (!x, !pair, !i) -> !r
    %g9 = "moe.gate_rows"(%weights, %p9, %o9) {rows_of = @s9} : (!w, !pair, !i) -> !g
    %y9 = "moe.mul"(%r9, %g9) {rows_of = @s9} : (!r, !g) -> !r
    %c9 = "moe.combine"(%y9, %p9, %o9) {rows_of = @s9} : (!r, !pair, !i) -> !x
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:13: error: 'moe.neg': reads rows of experts behind their combine
    %late = "moe.neg"(%y9) {rows_of = @s9} : (!r) -> !r
    %f4, %p4, %o4 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s4} : (!i) -> (!first, !pair, !i)
    %r4 = "moe.permute"(%x, %p4, %o4) {rows_of = @s4} : (!x, !pair, !i) -> !r
    %g4 = "moe.gate_rows"(%weights, %p4, %o4) {rows_of = @s4} : (!w, !pair, !i) -> !g
    %y4 = "moe.mul"(%r4, %g4) {rows_of = @s4} : (!r, !g) -> !r
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:11: error: 'moe.combine': moves rows by two routes at once
    %c4 = "moe.combine"(%y4, %p4, %o3) {rows_of = @s4} : (!r, !pair, !i) -> !x
    %f5, %p5, %o5 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s5} : (!i) -> (!first, !pair, !i)
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:24: error: 'moe.limit': limits some of the route's rows
    %kf5, %kp5, %ko5 = "moe.limit"(%weights, %f5, %p5, %o5) {capacity = 1.0 : f64, drop = "lowest", rows_of = @s5} : (!w, !first, !pair, !i) -> (!first, !pair, !i)
    %r5 = "moe.permute"(%x, %p5, %ko5) {rows_of = @s5} : (!x, !pair, !i) -> !r
    %g5 = "moe.gate_rows"(%weights, %kp5, %ko5) {rows_of = @s5} : (!w, !pair, !i) -> !g
    %y5 = "moe.mul"(%r5, %g5) {rows_of = @s5} : (!r, !g) -> !r
    %c5 = "moe.combine"(%y5, %kp5, %ko5) {rows_of = @s5} : (!r, !pair, !i) -> !x
    %f6, %p6, %o6 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s6} : (!i) -> (!first, !pair, !i)
    %r6 = "moe.permute"(%x, %p6, %o6) {rows_of = @s6} : (!x, !pair, !i) -> !r
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:14: error: 'moe.permute': not yet: rows are moved twice by one route
    %again = "moe.permute"(%x, %p6, %o6) {rows_of = @s6} : (!x, !pair, !i) -> !r
    %f7, %p7, %o7 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s7} : (!i) -> (!first, !pair, !i)
    %r7 = "moe.permute"(%x, %p7, %o7) {rows_of = @s7} : (!x, !pair, !i) -> !r
    %g7 = "moe.gate_rows"(%weights, %p7, %o7) {rows_of = @s7} : (!w, !pair, !i) -> !g
    %y7 = "moe.mul"(%r7, %g7) {rows_of = @s7} : (!r, !g) -> !r
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c7 = "moe.combine"(%y7, %p7, %o7) {rows_of = @s7} : (!r, !pair, !i) -> !x
    scf.for %i = %zero to %one step %one {
      // CHECK-NEXT: forward.mlir:[[@LINE+1]]:15: error: 'moe.neg': reads rows of experts outside of their waves
      %deep = "moe.neg"(%y7) {rows_of = @s7} : (!r) -> !r
    }
    %f8, %p8, %o8 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s8} : (!i) -> (!first, !pair, !i)
    return %x, %c3 : !x, !x
  }
  func.func @elsewhere(%x: !x, %p: !pair, %o: !i) {
    // CHECK-NEXT: forward.mlir:[[@LINE+1]]:10: error: 'moe.permute': works on rows that another function routes
    %r = "moe.permute"(%x, %p, %o) {rows_of = @s8} : (!x, !pair, !i) -> !r
    return
  }
}
// CHECK-NOT: error
// CHECK-NOT: {{^}}module

//--- backward.mlir
!x = tensor<2x8x6xf32, ["batch", "T", "D"]>
!l = tensor<2x8x4xf32, ["batch", "T", "E"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!n = tensor<4xi32, ["E"]>
!first = tensor<5xi32, ["first"]>
!pair = tensor<32xi32, ["rows"]>
!r = tensor<32x6xf32, ["rows", "D"]>
!g = tensor<32xf32, ["rows"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.experts = "ep"}} {
  "moe.set"() {sym_name = "s0", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "s1", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.param"() {sym_name = "b", type = tensor<f32>, layers = 0 : i64, path = "b", init = "zeros", decay = true, trainable = true} : () -> ()
  "moe.slot"() {sym_name = "pair1", type = !pair, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "slot0", type = !i, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "slot1", type = !i, layers = 0 : i64} : () -> ()
  func.func @forward(%x: !x, %w: !w, %l: !l) -> (!x, !x) {
    %scores, %weights, %picked, %loads = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2 : i64, groups = 1 : i64, topk_groups = 1 : i64, scale = 1.0 : f64} : (!l) -> (!l, !w, !i, !n)
    // CHECK: backward.mlir:[[@LINE+1]]:21: error: 'moe.route': its rows have gradients, but its result has none
    %f0, %p0, %o0 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s0} : (!i) -> (!first, !pair, !i)
    "moe.stash"(%o0) {slot = @slot0} : (!i) -> ()
    %r0 = "moe.permute"(%x, %p0, %o0) {rows_of = @s0} : (!x, !pair, !i) -> !r
    %g0 = "moe.gate_rows"(%weights, %p0, %o0) {rows_of = @s0} : (!w, !pair, !i) -> !g
    %y0 = "moe.mul"(%r0, %g0) {rows_of = @s0} : (!r, !g) -> !r
    %c0 = "moe.combine"(%y0, %p0, %o0) {rows_of = @s0} : (!r, !pair, !i) -> !x
    %f1, %p1, %o1 = "moe.route"(%picked) {experts = 4 : i64, rows_of = @s1} : (!i) -> (!first, !pair, !i)
    "moe.stash"(%p1) {slot = @pair1} : (!pair) -> ()
    "moe.stash"(%o1) {slot = @slot1} : (!i) -> ()
    %r1 = "moe.permute"(%x, %p1, %o1) {rows_of = @s1} : (!x, !pair, !i) -> !r
    %g1 = "moe.gate_rows"(%weights, %p1, %o1) {rows_of = @s1} : (!w, !pair, !i) -> !g
    %y1 = "moe.mul"(%r1, %g1) {rows_of = @s1} : (!r, !g) -> !r
    %c1 = "moe.combine"(%y1, %p1, %o1) {rows_of = @s1} : (!r, !pair, !i) -> !x
    return %c0, %c1 : !x, !x
  }
  func.func @backward(%dx: !x, %dg: !g, %scale: tensor<f32>) {
    %pair = "moe.fetch"() {slot = @pair1} : () -> !pair
    %slot = "moe.fetch"() {slot = @slot1} : () -> !i
    %other = "moe.fetch"() {slot = @slot0} : () -> !i
    %r = "moe.permute"(%dx, %pair, %slot) {rows_of = @s1} : (!x, !pair, !i) -> !r
    %n = "moe.neg"(%r) {rows_of = @s1} : (!r) -> !r
    // CHECK-NEXT: backward.mlir:[[@LINE+1]]:12: error: 'moe.combine': moves rows by two routes at once
    %dx1 = "moe.combine"(%n, %pair, %other) {rows_of = @s1} : (!r, !pair, !i) -> !x
    %dw1 = "moe.gate_rows_grad"(%dg, %pair, %slot) {rows_of = @s1} : (!g, !pair, !i) -> !w
    %dw0 = "moe.gate_rows_grad"(%dg, %pair, %other) {rows_of = @s0} : (!g, !pair, !i) -> !w
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    // A gradient may be summed further, but nothing comes to it.
    %sum = "moe.sum"(%n) {rows_of = @s1} : (!r) -> tensor<6xf32, ["D"]>
    %sums = "moe.sum"(%sum) {rows_of = @s1} : (tensor<6xf32, ["D"]>) -> tensor<f32>
    "moe.accumulate"(%sums) {param = @b, rows_of = @s1} : (tensor<f32>) -> ()
    %more = "moe.add"(%sums, %scale) {rows_of = @s1} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "moe.accumulate"(%more) {param = @b, rows_of = @s1} : (tensor<f32>) -> ()
    scf.for %i = %zero to %one step %one {
      // CHECK-NEXT: backward.mlir:[[@LINE+1]]:15: error: 'moe.neg': reads rows of experts outside of their waves
      %deep = "moe.neg"(%n) {rows_of = @s1} : (!r) -> !r
    }
    // CHECK-NEXT: backward.mlir:[[@LINE-6]]:13: error: 'moe.add': reads a sum over rows, of which a wave has a part
    return
  }
}
// CHECK-NOT: error
// CHECK-NOT: {{^}}module
