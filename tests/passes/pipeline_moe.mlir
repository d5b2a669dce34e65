// RUN: hecate-opt --passes=check-shapes,group-experts,inline,simplify,differentiate,simplify,recompute,fuse-elementwise,fuse-epilogue,select-kernels,place-buffers %s | FileCheck %s
// CHECK: hecate.arena_bytes
// CHECK: func.func @backward
module @moe attributes {hecate.source = "moe.moe", hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 11 : i64, hecate.stage = "graph"} {
  "moe.set"() {sym_name = "sparse", experts = 4 : i64, topk = 2 : i64, layers = 3 : i64} : () -> ()
  "moe.param"() {sym_name = "embed", type = tensor<11x6xf32, ["V", "D"]>, layers = 0 : i64, path = "embed", init = "normal", deviation = 0.02, decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "sparse.router", type = tensor<6x4xf32, ["D", "E"]>, layers = 3 : i64, path = "layers.{}.sparse.router", init = "normal", deviation = 0.02, decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "sparse.w1", type = tensor<4x6x10xf32, ["E", "D", "F"]>, layers = 3 : i64, path = "layers.{}.sparse.experts.{e}.w1", init = "normal", deviation = 0.02, decay = true, trainable = true, set = @sparse, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "sparse.w2", type = tensor<4x10x6xf32, ["E", "F", "D"]>, layers = 3 : i64, path = "layers.{}.sparse.experts.{e}.w2", init = "normal", deviation = 0.02, decay = true, trainable = true, set = @sparse, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.slot"() {sym_name = "sparse.loads", type = tensor<4xi32, ["E"]>, layers = 3 : i64, holds = "loads", observed = true, set = @sparse} : () -> ()
  "moe.slot"() {sym_name = "logits", type = tensor<2x8x11xf32, ["batch", "T", "V"]>, layers = 0 : i64, holds = "logits", observed = true} : () -> ()
  func.func private @sparse.expert(%x: tensor<32x6xf32, ["rows", "D"]>, %first: tensor<5xi32, ["first"]>, %i: index) -> tensor<32x6xf32, ["rows", "D"]> {
    %w1 = "moe.get"(%i) {param = @sparse.w1} : (index) -> tensor<4x6x10xf32, ["E", "D", "F"]> loc("w1"("moe.moe":2:9))
    %w2 = "moe.get"(%i) {param = @sparse.w2} : (index) -> tensor<4x10x6xf32, ["E", "F", "D"]> loc("w2"("moe.moe":2:9))
    %a = "moe.grouped_contract"(%x, %w1, %first) : (tensor<32x6xf32, ["rows", "D"]>, tensor<4x6x10xf32, ["E", "D", "F"]>, tensor<5xi32, ["first"]>) -> tensor<32x10xf32, ["rows", "F"]> loc("a"("moe.moe":3:9))
    %h = "moe.gelu"(%a) : (tensor<32x10xf32, ["rows", "F"]>) -> tensor<32x10xf32, ["rows", "F"]> loc("h"("moe.moe":3:4))
    %y = "moe.grouped_contract"(%h, %w2, %first) : (tensor<32x10xf32, ["rows", "F"]>, tensor<4x10x6xf32, ["E", "F", "D"]>, tensor<5xi32, ["first"]>) -> tensor<32x6xf32, ["rows", "D"]> loc("y"("moe.moe":4:4))
    return %y : tensor<32x6xf32, ["rows", "D"]>
  }
  func.func private @sparse.layer(%x: tensor<2x8x6xf32, ["batch", "T", "D"]>, %i: index) -> (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<f32>) {
    %router = "moe.get"(%i) {param = @sparse.router} : (index) -> tensor<6x4xf32, ["D", "E"]> loc("router"("moe.moe":5:1))
    %logits = "moe.contract"(%x, %router) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<6x4xf32, ["D", "E"]>) -> tensor<2x8x4xf32, ["batch", "T", "E"]> loc("logits"("moe.moe":5:1))
    %scores, %weights, %ids, %loads = "moe.router"(%logits) {score = "softmax", weight = "renormalized", topk = 2 : i64, groups = 1 : i64, topk_groups = 1 : i64, scale = 1.0 : f64} : (tensor<2x8x4xf32, ["batch", "T", "E"]>) -> (tensor<2x8x4xf32, ["batch", "T", "E"]>, tensor<2x8x2xf32, ["batch", "T", "picks"]>, tensor<2x8x2xi32, ["batch", "T", "picks"]>, tensor<4xi32, ["E"]>) loc("moe.moe":5:1)
    "moe.stash"(%loads, %i) {slot = @sparse.loads} : (tensor<4xi32, ["E"]>, index) -> ()
    %means = "moe.mean_scores"(%scores) {score = "softmax"} : (tensor<2x8x4xf32, ["batch", "T", "E"]>) -> tensor<2x4xf32, ["batch", "E"]> loc("mean_scores"("moe.moe":5:1))
    %fractions = "moe.fractions"(%ids, %i) {set = @sparse} : (tensor<2x8x2xi32, ["batch", "T", "picks"]>, index) -> tensor<2x4xf32, ["batch", "E"]> loc("fractions"("moe.moe":5:1))
    %aux = "moe.aux_loss"(%means, %fractions) {coef = 0.02 : f64} : (tensor<2x4xf32, ["batch", "E"]>, tensor<2x4xf32, ["batch", "E"]>) -> tensor<f32> loc("auxiliary"("moe.moe":5:1))
    %y = "moe.experts"(%x, %weights, %ids, %i) {set = @sparse, expert = @sparse.expert} : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<2x8x2xf32, ["batch", "T", "picks"]>, tensor<2x8x2xi32, ["batch", "T", "picks"]>, index) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("y"("moe.moe":5:1))
    return %y, %aux : tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<f32>
  }
  func.func @forward(%ids: tensor<2x8xi32, ["batch", "T"]> loc("ids"("moe.moe":6:1)), %targets: tensor<2x8xi32, ["batch", "T"]> loc("targets"("moe.moe":6:1)), %scale: tensor<f32> loc("scale"("moe.moe":6:1)), %auxiliary_scale: tensor<f32> loc("auxiliary_scale"("moe.moe":6:1))) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    %embed = "moe.get"() {param = @embed} : () -> tensor<11x6xf32, ["V", "D"]> loc("embed"("moe.moe":7:3))
    %x0 = "moe.gather"(%embed, %ids) : (tensor<11x6xf32, ["V", "D"]>, tensor<2x8xi32, ["batch", "T"]>) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("x"("moe.moe":8:3))
    %none = "moe.fill"() {value = 0.0 : f64} : () -> tensor<f32> loc("auxiliary"("moe.moe":8:3))
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %xl, %auxiliary = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %x0, %sum = %none) -> (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<f32>) {
      %n:2 = "moe.rmsnorm"(%x) {eps = 1.0e-5 : f64, over = 1 : i64} : (tensor<2x8x6xf32, ["batch", "T", "D"]>) -> (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<2x8xf32, ["batch", "T"]>) loc("n"("moe.moe":9:5))
      %m:2 = func.call @sparse.layer(%n#0, %i) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, index) -> (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<f32>) loc("m"("moe.moe":10:7))
      %next = "moe.add"(%x, %m#0) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<2x8x6xf32, ["batch", "T", "D"]>) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("x"("moe.moe":10:3))
      %more = "moe.add"(%sum, %m#1) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("auxiliary"("moe.moe":10:3))
      scf.yield %next, %more : tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<f32>
    } loc("moe.moe":9:1)
    %logits = "moe.contract"(%xl, %embed) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<11x6xf32, ["V", "D"]>) -> tensor<2x8x11xf32, ["batch", "T", "V"]> loc("logits"("moe.moe":12:3))
    "moe.stash"(%logits) {slot = @logits} : (tensor<2x8x11xf32, ["batch", "T", "V"]>) -> ()
    %ce:2 = "moe.cross_entropy"(%logits, %targets, %scale) : (tensor<2x8x11xf32, ["batch", "T", "V"]>, tensor<2x8xi32, ["batch", "T"]>, tensor<f32>) -> (tensor<f32>, tensor<2x8xf32, ["batch", "T"]>) loc("cross_entropy"("moe.moe":12:3))
    %part = "moe.mul"(%auxiliary_scale, %auxiliary) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %loss = "moe.add"(%ce#0, %part) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss"("moe.moe":12:3))
    return %loss, %ce#0, %auxiliary : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
