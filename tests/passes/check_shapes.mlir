// RUN: hecate-opt --passes=check-shapes %s | FileCheck %s
//
// A sound module passes and is left as it is, but for the name of its stage.

// CHECK: module attributes {hecate.stage = "check-shapes"}
// CHECK-NEXT: func.func @forward(
// CHECK-NEXT: return
!ids = tensor<2x8xi32, ["batch", "T"]>
module {
  func.func @forward(%ids: !ids, %targets: !ids, %scale: tensor<f32>, %auxiliary_scale: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    return %scale, %scale, %auxiliary_scale : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
