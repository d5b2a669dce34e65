// RUN: hecate-opt --passes=check-shapes,group-experts,inline,simplify,differentiate,simplify,recompute,fuse-elementwise,fuse-epilogue,select-kernels,place-buffers %s | FileCheck %s
// CHECK: hecate.arena_bytes
// CHECK: func.func @backward
module @dense attributes {hecate.source = "dense.moe", hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 11 : i64, hecate.stage = "graph"} {
  "moe.param"() {sym_name = "embed", type = tensor<11x6xf32, ["V", "D"]>, layers = 0 : i64, path = "embed", init = "normal", deviation = 0.02, decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "gain", type = tensor<6xf32, ["D"]>, layers = 3 : i64, path = "layers.{}.gain", init = "ones", decay = false, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "mlp.w1", type = tensor<6x10xf32, ["D", "F"]>, layers = 3 : i64, path = "layers.{}.mlp.w1", init = "normal", deviation = 0.02, decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "mlp.w3", type = tensor<6x10xf32, ["D", "F"]>, layers = 3 : i64, path = "layers.{}.mlp.w3", init = "normal", deviation = 0.02, decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "mlp.w2", type = tensor<10x6xf32, ["F", "D"]>, layers = 3 : i64, path = "layers.{}.mlp.w2", init = "normal", deviation = 0.02, decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "head", type = tensor<6x11xf32, ["D", "V"]>, layers = 0 : i64, path = "head", init = "normal", deviation = 0.02, decay = true, trainable = true} : () -> ()
  "moe.slot"() {sym_name = "logits", type = tensor<2x8x11xf32, ["batch", "T", "V"]>, layers = 0 : i64, holds = "logits", observed = true} : () -> ()
  func.func private @mlp(%x: tensor<2x8x6xf32, ["batch", "T", "D"]>, %i: index) -> tensor<2x8x6xf32, ["batch", "T", "D"]> {
    %w1 = "moe.get"(%i) {param = @mlp.w1} : (index) -> tensor<6x10xf32, ["D", "F"]>
    %w3 = "moe.get"(%i) {param = @mlp.w3} : (index) -> tensor<6x10xf32, ["D", "F"]>
    %w2 = "moe.get"(%i) {param = @mlp.w2} : (index) -> tensor<10x6xf32, ["F", "D"]>
    %a = "moe.contract"(%x, %w1) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<6x10xf32, ["D", "F"]>) -> tensor<2x8x10xf32, ["batch", "T", "F"]> loc("a"("dense.moe":3:9))
    %s = "moe.silu"(%a) : (tensor<2x8x10xf32, ["batch", "T", "F"]>) -> tensor<2x8x10xf32, ["batch", "T", "F"]> loc("s"("dense.moe":3:4))
    %b = "moe.contract"(%x, %w3) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<6x10xf32, ["D", "F"]>) -> tensor<2x8x10xf32, ["batch", "T", "F"]> loc("b"("dense.moe":3:19))
    %h = "moe.mul"(%s, %b) : (tensor<2x8x10xf32, ["batch", "T", "F"]>, tensor<2x8x10xf32, ["batch", "T", "F"]>) -> tensor<2x8x10xf32, ["batch", "T", "F"]> loc("h"("dense.moe":3:14))
    %y = "moe.contract"(%h, %w2) : (tensor<2x8x10xf32, ["batch", "T", "F"]>, tensor<10x6xf32, ["F", "D"]>) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("y"("dense.moe":4:4))
    return %y : tensor<2x8x6xf32, ["batch", "T", "D"]>
  }
  func.func @forward(%ids: tensor<2x8xi32, ["batch", "T"]> loc("ids"("dense.moe":6:1)), %targets: tensor<2x8xi32, ["batch", "T"]> loc("targets"("dense.moe":6:1)), %scale: tensor<f32> loc("scale"("dense.moe":6:1)), %auxiliary_scale: tensor<f32> loc("auxiliary_scale"("dense.moe":6:1))) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    %embed = "moe.get"() {param = @embed} : () -> tensor<11x6xf32, ["V", "D"]>
    %x0 = "moe.gather"(%embed, %ids) : (tensor<11x6xf32, ["V", "D"]>, tensor<2x8xi32, ["batch", "T"]>) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("x"("dense.moe":8:3))
    %none = "moe.fill"() {value = 0.0 : f64} : () -> tensor<f32> loc("auxiliary"("dense.moe":8:3))
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %xl = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %x0) -> (tensor<2x8x6xf32, ["batch", "T", "D"]>) {
      %gain = "moe.get"(%i) {param = @gain} : (index) -> tensor<6xf32, ["D"]>
      %n:2 = "moe.rmsnorm"(%x, %gain) {eps = 1.0e-5 : f64, over = 1 : i64} : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<6xf32, ["D"]>) -> (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<2x8xf32, ["batch", "T"]>) loc("n"("dense.moe":9:5))
      %m = func.call @mlp(%n#0, %i) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, index) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("m"("dense.moe":10:7))
      %next = "moe.add"(%x, %m) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<2x8x6xf32, ["batch", "T", "D"]>) -> tensor<2x8x6xf32, ["batch", "T", "D"]> loc("x"("dense.moe":10:3))
      scf.yield %next : tensor<2x8x6xf32, ["batch", "T", "D"]>
    } loc("dense.moe":9:1)
    %head = "moe.get"() {param = @head} : () -> tensor<6x11xf32, ["D", "V"]>
    %logits = "moe.contract"(%xl, %head) : (tensor<2x8x6xf32, ["batch", "T", "D"]>, tensor<6x11xf32, ["D", "V"]>) -> tensor<2x8x11xf32, ["batch", "T", "V"]> loc("logits"("dense.moe":12:3))
    "moe.stash"(%logits) {slot = @logits} : (tensor<2x8x11xf32, ["batch", "T", "V"]>) -> ()
    %ce:2 = "moe.cross_entropy"(%logits, %targets, %scale) : (tensor<2x8x11xf32, ["batch", "T", "V"]>, tensor<2x8xi32, ["batch", "T"]>, tensor<f32>) -> (tensor<f32>, tensor<2x8xf32, ["batch", "T"]>) loc("cross_entropy"("dense.moe":12:3))
    %part = "moe.mul"(%auxiliary_scale, %none) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %loss = "moe.add"(%ce#0, %part) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss"("dense.moe":12:3))
    return %loss, %ce#0, %none : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
