// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!w = tensor<6x4xf32, ["D", "F"]>
!e = tensor<3x6xf32, ["E", "D"]>

module {
  "moe.set"() {sym_name = "sparse", experts = 3, topk = 2, layers = 5} : () -> ()
  "moe.slot"() {sym_name = "slot", type = !w, layers = 0} : () -> ()
  "moe.param"() {sym_name = "w", type = !w, layers = 5, path = "layers.{}.w", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  "moe.param"() {sym_name = "c", type = !w, layers = 0, path = "c", init = "rope", theta = 10000.0, decay = false, trainable = false} : () -> ()
  "moe.param"() {sym_name = "d", type = tensor<6x4xf64, ["D", "F"]>, layers = 0, path = "d", init = "zeros", decay = true, trainable = true} : () -> ()

  // CHECK: symbol_errors.mlir:[[@LINE+1]]:3: error: 'moe.param': its path has 256 bytes, at most 255
  "moe.param"() {sym_name = "long", type = !w, layers = 5, path = "layers.{}.nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  // CHECK: symbol_errors.mlir:[[@LINE+1]]:3: error: 'moe.param': the number of its last layer does not fit in 64 bits
  "moe.param"() {sym_name = "far", type = !w, layers = 5, path = "layers.{}.f", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 4611686018427387904} : () -> ()
  // CHECK: symbol_errors.mlir:[[@LINE+1]]:3: error: 'moe.set': topk is 4 of 3 experts
  "moe.set"() {sym_name = "s0", experts = 3, topk = 4, layers = 5} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': loss, ahead (at least 1) and coef belong to what holds the logits of a loss, or its losses
  "moe.slot"() {sym_name = "l0", type = tensor<2x4x6xf32, ["batch", "T", "V"]>, layers = 0, observed = true, holds = "loss", loss = "mtp", ahead = 2} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': loss, ahead (at least 1) and coef belong to what holds the logits of a loss, or its losses
  "moe.slot"() {sym_name = "l1", type = tensor<2x4x6xf32, ["batch", "T", "V"]>, layers = 0, observed = true, holds = "loss", loss = "mtp", ahead = 0, coef = 0.3} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': loss, ahead (at least 1) and coef belong to what holds the logits of a loss, or its losses
  "moe.slot"() {sym_name = "l2", type = !w, layers = 0, coef = 0.3} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': type is tensor<6x4xf32, ["D", "F"]>, expected logits of all tokens, or of a block, without layers
  "moe.slot"() {sym_name = "l3", type = !w, layers = 0, observed = true, holds = "loss", loss = "mtp", ahead = 2, coef = 0.3} : () -> ()
  "moe.slot"() {sym_name = "l4", type = tensor<2x4x6xf32, ["batch", "T", "V"]>, layers = 0, observed = true, holds = "loss", loss = "again", ahead = 2, coef = 0.3} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': another slot holds the same loss
  "moe.slot"() {sym_name = "l5", type = tensor<2x4x6xf32, ["batch", "T", "V"]>, layers = 0, observed = true, holds = "loss", loss = "again", ahead = 3, coef = 0.3} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': holds is "lots", expected loads, logits, loss or losses
  "moe.slot"() {sym_name = "l6", type = !w, layers = 0, observed = true, holds = "lots"} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': type is tensor<2x4x6xf32, ["batch", "T", "V"]>, expected a loss of each token, without layers
  "moe.slot"() {sym_name = "l7", type = tensor<2x4x6xf32, ["batch", "T", "V"]>, layers = 0, observed = true, holds = "losses", loss = "soft", ahead = 1, coef = 0.3} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': loss, ahead (at least 1) and coef belong to what holds the logits of a loss, or its losses
  "moe.slot"() {sym_name = "l8", type = tensor<2x4xf32, ["batch", "T"]>, layers = 0, observed = true, holds = "losses"} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.set': experts is 0, expected at least 1
  "moe.set"() {sym_name = "s1", experts = 0, topk = 4, layers = 5} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is "uniform", expected zeros, ones, normal or rope
  "moe.param"() {sym_name = "p0", type = !w, layers = 0, path = "p", init = "uniform", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is normal, which needs deviation
  "moe.param"() {sym_name = "p1", type = !w, layers = 0, path = "p", init = "normal", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is normal, which has no theta
  "moe.param"() {sym_name = "p1a", type = !w, layers = 0, path = "p", init = "normal", deviation = 1.0, theta = 1.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is zeros, which has no deviation
  "moe.param"() {sym_name = "p1b", type = !w, layers = 0, path = "p", init = "zeros", deviation = 1.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is rope, which needs low
  "moe.param"() {sym_name = "p1c", type = !w, layers = 0, path = "p", init = "rope", theta = 1.0, factor = 1.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is rope, which has no high
  "moe.param"() {sym_name = "p1d", type = !w, layers = 0, path = "p", init = "rope", theta = 1.0, high = 1.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': factor must be positive, low less than high
  "moe.param"() {sym_name = "p1e", type = !w, layers = 0, path = "p", init = "rope", theta = 1.0, factor = 1.0, low = 1.0, high = 1.0, amplitude = 1.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': factor must be positive, low less than high
  "moe.param"() {sym_name = "p1f", type = !w, layers = 0, path = "p", init = "rope", theta = 1.0, factor = 1.0, low = 1.5, high = 1.0, amplitude = 1.0, original = 8.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': original is 0, expected a positive number
  "moe.param"() {sym_name = "p1g", type = !w, layers = 0, path = "p", init = "rope", theta = 1.0, factor = 1.0, low = 1.0, high = 1.0, amplitude = 1.0, original = 0.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': init is rope, which has no original
  "moe.param"() {sym_name = "p1h", type = !w, layers = 0, path = "p", init = "rope", theta = 1.0, original = 8.0, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': deviation is no finite number
  "moe.param"() {sym_name = "p2", type = !w, layers = 0, path = "p", init = "normal", deviation = 0x7FF0000000000000 : f64, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': is frozen and trainable
  "moe.param"() {sym_name = "p2a", type = !w, layers = 0, path = "p", init = "zeros", decay = true, trainable = true, frozen = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': lr_scale is 0, expected a positive number
  "moe.param"() {sym_name = "p2b", type = !w, layers = 0, path = "p", init = "zeros", decay = true, trainable = true, lr_scale = 0.0} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': path is "p"; {} stands for the layer, {e} for the expert
  "moe.param"() {sym_name = "p3", type = !w, layers = 2, path = "p", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': path is "p.{e}";
  "moe.param"() {sym_name = "p4", type = !w, layers = 0, path = "p.{e}", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': a parameter with layers needs index_first and index_stride
  "moe.param"() {sym_name = "p5", type = !w, layers = 2, path = "p.{}", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': iterations go from 0 in steps of 0
  "moe.param"() {sym_name = "p5b", type = !w, layers = 2, path = "p.{}", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 0} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': layers is -1, expected at least 0
  "moe.param"() {sym_name = "p6", type = !w, layers = -1, path = "p", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': type is i32, expected a tensor of at most 8 dimensions with sizes
  "moe.param"() {sym_name = "p7", type = i32, layers = 0, path = "p", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': type has no names
  "moe.param"() {sym_name = "p8", type = tensor<6xf32>, layers = 0, path = "p", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': the dimension D is twice in type
  "moe.param"() {sym_name = "p9", type = tensor<6x6xf32, ["D", "D"]>, layers = 0, path = "p", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': type is tensor<6xi32, ["D"]>, expected a tensor of f32 or f64
  "moe.param"() {sym_name = "p10", type = tensor<6xi32, ["D"]>, layers = 0, path = "p", init = "zeros", decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': there is no moe.set @w
  "moe.param"() {sym_name = "p11", type = !e, layers = 5, path = "p.{}.{e}", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 1, set = @w} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': type does not start with the 3 experts of @sparse
  "moe.param"() {sym_name = "p12", type = !w, layers = 5, path = "p.{}.{e}", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 1, set = @sparse} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': 4 layers, but @sparse has 5
  "moe.param"() {sym_name = "p13", type = !e, layers = 4, path = "p.{}.{e}", init = "zeros", decay = true, trainable = true, index_first = 0, index_stride = 1, set = @sparse} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': layers is -2, expected at least 0
  "moe.slot"() {sym_name = "t0", type = !w, layers = -2} : () -> ()

  func.func @access(%w: !w, %e: !e, %b: tensor<6x4xbf16, ["D", "F"]>, %i: index) {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.get': there is no moe.param @v
    %0 = "moe.get"(%i) {param = @v} : (index) -> !w
    // CHECK: :[[@LINE+1]]:10: error: 'moe.get': there is no moe.param @slot
    %1 = "moe.get"() {param = @slot} : () -> !w
    // CHECK: :[[@LINE+1]]:10: error: 'moe.get': the value is tensor<3x6xf32, ["E", "D"]>, but @w is tensor<6x4xf32, ["D", "F"]>
    %2 = "moe.get"(%i) {param = @w} : (index) -> !e
    // CHECK: :[[@LINE+1]]:10: error: 'moe.get': @w has layers: which one?
    %3 = "moe.get"() {param = @w} : () -> !w
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %five = arith.constant 5 : index
    %six = arith.constant 6 : index
    scf.for %l = %zero to %five step %one {
      %5 = "moe.get"(%l) {param = @w} : (index) -> !w
    }
    scf.for %l = %zero to %six step %one {
      // CHECK: :[[@LINE+1]]:12: error: 'moe.get': the loop runs over 6 layers, @w has 5
      %5 = "moe.get"(%l) {param = @w} : (index) -> !w
    }
    // CHECK: :[[@LINE+1]]:10: error: 'moe.get': @c has no layers
    %4 = "moe.get"(%i) {param = @c} : (index) -> !w
    // CHECK: :[[@LINE+1]]:10: error: 'moe.get': the value is tensor<6x4xf32, ["D", "F"]>, but @d is tensor<6x4xf64, ["D", "F"]>
    %6 = "moe.get"() {param = @d} : () -> tensor<6x4xbf16, ["D", "F"]>
    // CHECK: :[[@LINE+1]]:5: error: 'moe.accumulate': the value is tensor<6x4xbf16, ["D", "F"]>, but @w is
    "moe.accumulate"(%b, %i) {param = @w} : (tensor<6x4xbf16, ["D", "F"]>, index) -> ()
    // CHECK: :[[@LINE+1]]:5: error: 'moe.accumulate': @c is not trainable
    "moe.accumulate"(%w) {param = @c} : (!w) -> ()
    // CHECK: :[[@LINE+1]]:5: error: 'moe.accumulate': the value is tensor<3x6xf32, ["E", "D"]>, but @w is
    "moe.accumulate"(%e, %i) {param = @w} : (!e, index) -> ()
    // CHECK: :[[@LINE+1]]:5: error: 'moe.stash': there is no moe.slot @w
    "moe.stash"(%w, %i) {slot = @w} : (!w, index) -> ()
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fetch': @slot has no layers
    %5 = "moe.fetch"(%i) {slot = @slot} : (index) -> !w
    // CHECK: :[[@LINE+1]]:5: error: 'fssdp.await': there is no moe.set @w
    "fssdp.await"(%i) {set = @w} : (index) -> ()
    // CHECK: :[[@LINE+1]]:5: error: 'moe.slot': a symbol belongs at the top level of the module
    "moe.slot"() {sym_name = "t1", type = !w, layers = 0} : () -> ()
    return
  }
}
// CHECK-NOT: error:
