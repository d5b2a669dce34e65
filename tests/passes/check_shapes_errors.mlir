// RUN: split-file %s %t
// RUN: not hecate-opt --passes=check-shapes %t/arguments.mlir 2>&1 | FileCheck %t/arguments.mlir
// RUN: not hecate-opt --passes=check-shapes %t/types.mlir 2>&1 | FileCheck %t/types.mlir
// RUN: not hecate-opt --passes=check-shapes %t/results.mlir 2>&1 | FileCheck %t/results.mlir
// RUN: not hecate-opt --passes=check-shapes %t/named.mlir 2>&1 | FileCheck %t/named.mlir
// RUN: not hecate-opt --passes=check-shapes %t/many.mlir 2>&1 | FileCheck %t/many.mlir
// RUN: not hecate-opt --passes=check-shapes %t/none.mlir 2>&1 | FileCheck %t/none.mlir
// RUN: not hecate-opt --passes=check-shapes %t/transpose.mlir 2>&1 | FileCheck %t/transpose.mlir

//--- arguments.mlir
// CHECK: arguments.mlir:[[@LINE+2]]:3: error: 'func.func': @forward takes ids, targets, scale and auxiliary_scale
module {
  func.func @forward(%ids: tensor<2x8xi32, ["batch", "T"]>, %scale: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    return %scale, %scale, %scale : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
// CHECK-NOT: error
// CHECK-NOT: module

//--- types.mlir
!ids = tensor<2x8xi32, ["batch", "T"]>
!s = tensor<f32>
module {
  // CHECK: types.mlir:[[@LINE+1]]:3: error: 'func.func': @forward takes ids, targets, scale and auxiliary_scale
  func.func @forward(%ids: !ids, %targets: !s, %scale: !s, %auxiliary_scale: !s) -> (!s, !s, !s) {
    return %scale, %scale, %scale : !s, !s, !s
  }
}

//--- results.mlir
!ids = tensor<2x8xi32, ["batch", "T"]>
module {
  func.func @forward(%ids: !ids, %targets: !ids, %scale: tensor<f32>, %auxiliary_scale: tensor<f32>) -> tensor<f32> {
    // CHECK: results.mlir:[[@LINE+1]]:5: error: 'func.return': @forward returns loss, cross entropy and auxiliary loss
    return %scale : tensor<f32>
  }
}

//--- named.mlir
!ids = tensor<2x8xi32, ["batch", "T"]>
!l = tensor<2x8x5xf32, ["batch", "T", "V"]>
module {
  "moe.slot"() {sym_name = "mtp.logits", type = !l, layers = 0, observed = true, holds = "loss", loss = "mtp", ahead = 2, coef = 0.3} : () -> ()
  func.func @forward(%ids: !ids, %targets: !ids, %scale: tensor<f32>, %auxiliary_scale: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    // CHECK: named.mlir:[[@LINE+1]]:5: error: 'func.return': @forward returns loss, cross entropy and auxiliary loss, then one for each slot that holds a loss
    return %scale, %scale, %scale : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

//--- many.mlir
!ids = tensor<2x8xi32, ["batch", "T"]>
!l = tensor<2x8x5xf32, ["batch", "T", "V"]>
!s = tensor<f32>
// CHECK: error: {{.*}}more than 8 slots hold the logits of a loss
module {
  "moe.slot"() {sym_name = "s0", type = !l, layers = 0, observed = true, holds = "loss", loss = "l0", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s1", type = !l, layers = 0, observed = true, holds = "loss", loss = "l1", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s2", type = !l, layers = 0, observed = true, holds = "loss", loss = "l2", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s3", type = !l, layers = 0, observed = true, holds = "loss", loss = "l3", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s4", type = !l, layers = 0, observed = true, holds = "loss", loss = "l4", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s5", type = !l, layers = 0, observed = true, holds = "loss", loss = "l5", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s6", type = !l, layers = 0, observed = true, holds = "loss", loss = "l6", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s7", type = !l, layers = 0, observed = true, holds = "loss", loss = "l7", ahead = 1, coef = 1.0} : () -> ()
  "moe.slot"() {sym_name = "s8", type = !l, layers = 0, observed = true, holds = "loss", loss = "l8", ahead = 1, coef = 1.0} : () -> ()
  func.func @forward(%ids: !ids, %targets: !ids, %s: !s, %a: !s) -> (!s, !s, !s, !s, !s, !s, !s, !s, !s, !s, !s, !s) {
    return %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s : !s, !s, !s, !s, !s, !s, !s, !s, !s, !s, !s, !s
  }
}

//--- none.mlir
// CHECK: error: there is no function @forward
module {
  func.func @backward() {
    return
  }
}

//--- transpose.mlir
!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!y = tensor<2x8x5x6xf32, ["batch", "T", "F", "G"]>
!w = tensor<5x4x6xf32, ["F", "D", "G"]>
func.func @forward(%x: !x, %w: !w) -> !y {
  // CHECK: transpose.mlir:[[@LINE+1]]:8: error: 'moe.contract': not yet: {{.*}} needs a transpose
  %y = "moe.contract"(%x, %w) : (!x, !w) -> !y
  return %y : !y
}
