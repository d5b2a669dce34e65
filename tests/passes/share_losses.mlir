// RUN: hecate-opt --passes=distribute-experts %s | FileCheck %s
//
// Of four ranks, each has a quarter of what is a mean over tokens or sequences, and a sixteenth of the
// loss whose loads are those of all ranks.

!l = tensor<2x4x3xf32, ["batch", "T", "E"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>
!n = tensor<3xi32, ["E"]>
module attributes {hecate.world = 4 : i64, hecate.experts = "ep"} {
  // CHECK-LABEL: func.func @f(
  // CHECK:         "moe.aux_loss"(%{{.*}}, %{{.*}}) {coef = 1.000000e+00
  // CHECK-SAME:      tensor<3xi32, ["E"]>) -> tensor<f32>
  // CHECK:         "moe.aux_loss"(%{{.*}}, %{{.*}}) {coef = 4.000000e+00
  // CHECK-SAME:      tensor<2x4x2xi32
  // CHECK:         "moe.z_loss"(%{{.*}}) {coef = 4.000000e+00
  // CHECK:         "moe.aux_loss_grad"({{.*}}) {coef = 1.000000e+00
  // CHECK:         "moe.aux_loss_grad"({{.*}}) {coef = 4.000000e+00
  // CHECK:         "moe.z_loss_grad"({{.*}}) {coef = 4.000000e+00
  func.func @f(%s: !l, %l: !l, %i: !i, %n: !n) -> (tensor<f32>, tensor<f32>, tensor<f32>, !l, !l, !l) {
    %a = "moe.aux_loss"(%s, %n) {coef = 16.0, topk = 2, score = "softmax"} : (!l, !n) -> tensor<f32>
    %b = "moe.aux_loss"(%s, %i) {coef = 16.0, topk = 2, score = "softmax"} : (!l, !i) -> tensor<f32>
    %z = "moe.z_loss"(%l) {coef = 16.0} : (!l) -> tensor<f32>
    %da = "moe.aux_loss_grad"(%a, %s, %n) {coef = 16.0, topk = 2, score = "softmax"} : (tensor<f32>, !l, !n) -> !l
    %db = "moe.aux_loss_grad"(%b, %s, %i) {coef = 16.0, topk = 2, score = "softmax"} : (tensor<f32>, !l, !i) -> !l
    %dz = "moe.z_loss_grad"(%z, %l) {coef = 16.0} : (tensor<f32>, !l) -> !l
    return %a, %b, %z, %da, %db, %dz : tensor<f32>, tensor<f32>, tensor<f32>, !l, !l, !l
  }
}
