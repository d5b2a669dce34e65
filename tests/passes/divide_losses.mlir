// RUN: hecate-opt --passes=distribute-experts %s | FileCheck %s
//
// Of four ranks, each has a quarter of what is a mean over tokens or sequences.

!l = tensor<2x4x3xf32, ["batch", "T", "E"]>
!m = tensor<2x3xf32, ["batch", "E"]>
module attributes {hecate.world = 4 : i64, hecate.settings = {parallel.experts = "ep"}} {
  // CHECK-LABEL: func.func @f(
  // CHECK:         "moe.aux_loss"(%{{.*}}, %{{.*}}) {coef = 4.000000e+00
  // CHECK:         "moe.z_loss"(%{{.*}}) {coef = 4.000000e+00
  // CHECK:         "moe.aux_loss_grad"({{.*}}) {coef = 4.000000e+00
  // CHECK:         "moe.z_loss_grad"({{.*}}) {coef = 4.000000e+00
  func.func @f(%m: !m, %l: !l) -> (tensor<f32>, tensor<f32>, !m, !l) {
    %a = "moe.aux_loss"(%m, %m) {coef = 16.0} : (!m, !m) -> tensor<f32>
    %z = "moe.z_loss"(%l) {coef = 16.0} : (!l) -> tensor<f32>
    %da = "moe.aux_loss_grad"(%a, %m) {coef = 16.0} : (tensor<f32>, !m) -> !m
    %dz = "moe.z_loss_grad"(%z, %l) {coef = 16.0} : (tensor<f32>, !l) -> !l
    return %a, %z, %da, %dz : tensor<f32>, tensor<f32>, !m, !l
  }
}
