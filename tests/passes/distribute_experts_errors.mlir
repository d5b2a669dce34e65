// RUN: not hecate-opt --passes=distribute-experts %s 2>&1 | FileCheck %s

!x = tensor<2x8x6xf32, ["batch", "T", "D"]>
!l = tensor<2x8x4xf32, ["batch", "T", "E"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!n = tensor<4xi32, ["E"]>
!first = tensor<5xi32, ["first"]>
!pair = tensor<32xi32, ["rows"]>
!r = tensor<32x6xf32, ["rows", "D"]>
!g = tensor<32xf32, ["rows"]>
module attributes {hecate.world = 2 : i64, hecate.experts = "ep"} {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  // CHECK: _errors.mlir:[[@LINE+1]]:3: error: 'moe.set': not yet: on several ranks, a mixture whose result nothing uses
  "moe.set"() {sym_name = "unused", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func @forward(%x: !x, %w: !w, %ids: !i, %l: !l) -> (!x, !x, !x) {
    // CHECK: _errors.mlir:[[@LINE+1]]:21: error: 'moe.route': the ids come from no moe.router
    %f0, %p0, %s0 = "moe.route"(%ids) {experts = 4 : i64, set = @s} : (!i) -> (!first, !pair, !i)
    %scores, %weights, %picked, %loads = "moe.router"(%l) {score = "softmax", weight = "scores", topk = 2 : i64, groups = 1 : i64, topk_groups = 1 : i64, scale = 1.0 : f64} : (!l) -> (!l, !w, !i, !n)
    // CHECK: _errors.mlir:[[@LINE+1]]:21: error: 'moe.route': belongs to no set
    %f1, %p1, %s1 = "moe.route"(%picked) {experts = 4 : i64} : (!i) -> (!first, !pair, !i)
    // CHECK: _errors.mlir:[[@LINE+1]]:21: error: 'moe.route': its rows are not permuted, weighted and combined
    %f2, %p2, %s2 = "moe.route"(%picked) {experts = 4 : i64, set = @s} : (!i) -> (!first, !pair, !i)
    %f3, %p3, %s3 = "moe.route"(%picked) {experts = 4 : i64, set = @s} : (!i) -> (!first, !pair, !i)
    %r3 = "moe.permute"(%x, %p3, %s3) : (!x, !pair, !i) -> !r
    %g3 = "moe.gate_rows"(%weights, %p3, %s3) : (!w, !pair, !i) -> !g
    %y3 = "moe.mul"(%r3, %g3) : (!r, !g) -> !r
    %o3 = "moe.combine"(%y3, %p3, %s3) : (!r, !pair, !i) -> !x
    // CHECK: _errors.mlir:[[@LINE+1]]:13: error: 'moe.neg': reads rows of experts behind their combine
    %late = "moe.neg"(%y3) : (!r) -> !r
    %f4, %p4, %s4 = "moe.route"(%picked) {experts = 4 : i64, set = @s} : (!i) -> (!first, !pair, !i)
    %r4 = "moe.permute"(%x, %p4, %s4) : (!x, !pair, !i) -> !r
    %g4 = "moe.gate_rows"(%weights, %p4, %s4) : (!w, !pair, !i) -> !g
    %y4 = "moe.mul"(%r4, %g4) : (!r, !g) -> !r
    // CHECK: _errors.mlir:[[@LINE+1]]:11: error: 'moe.combine': moves rows by two routes at once
    %o4 = "moe.combine"(%y4, %p4, %s3) : (!r, !pair, !i) -> !x
    %f5, %p5, %s5 = "moe.route"(%picked) {experts = 4 : i64, set = @s} : (!i) -> (!first, !pair, !i)
    // CHECK: _errors.mlir:[[@LINE+1]]:24: error: 'moe.limit': limits some of the route's rows
    %kf5, %kp5, %ks5 = "moe.limit"(%weights, %f5, %p5, %s5) {capacity = 1.0 : f64, drop = "lowest"} : (!w, !first, !pair, !i) -> (!first, !pair, !i)
    %r5 = "moe.permute"(%x, %p5, %ks5) : (!x, !pair, !i) -> !r
    %g5 = "moe.gate_rows"(%weights, %kp5, %ks5) : (!w, !pair, !i) -> !g
    %y5 = "moe.mul"(%r5, %g5) : (!r, !g) -> !r
    %o5 = "moe.combine"(%y5, %kp5, %ks5) : (!r, !pair, !i) -> !x
    return %x, %x, %o3 : !x, !x, !x
  }
}
// CHECK-NOT: {{^}}module
