// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s

!e = tensor<9x6xf32, ["V", "D"]>
!i = tensor<2x4xi32, ["batch", "T"]>
!j = tensor<2x5xi32, ["batch", "T"]>
!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!l = tensor<2x4x9xf32, ["batch", "T", "V"]>
!n = tensor<2x4xf32, ["batch", "T"]>
!s = tensor<f32>
!k = tensor<9xi32, ["V"]>
!f = tensor<9xf32, ["V"]>
!w = tensor<1x1x1x1x1x1x1xi32, ["a", "b", "c", "d", "e", "f", "g"]>
!z = tensor<1x1x1xf32, ["V", "D", "h"]>

module {
  func.func @faults(%e: !e, %i: !i, %j: !j, %x: !x, %l: !l, %n: !n, %s: !s, %w: !w, %z: !z, %d: tensor<f64>, %k: !k) {
    // CHECK: loss_errors.mlir:[[@LINE+1]]:10: error: 'moe.gather': ids is tensor<2x4xf32, ["batch", "T"]>, expected tensor<2x4xi32, ["batch", "T"]>
    %0 = "moe.gather"(%e, %n) : (!e, !n) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gather': table is tensor<f32>, expected at least 1 dimensions
    %1 = "moe.gather"(%s, %i) : (!s, !i) -> !n
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gather': the type of result 0
    %2 = "moe.gather"(%e, %i) : (!e, !i) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gather': the result has more than 8 dimensions
    %3 = "moe.gather"(%z, %w) : (!z, !w) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.gather_grad': dr is tensor<2x4x9xf32, ["batch", "T", "V"]>, expected tensor<2x4x6xf32, ["batch", "T", "D"]>
    %4 = "moe.gather_grad"(%l, %i) : (!l, !i) -> !e
    // CHECK: :[[@LINE+1]]:21: error: 'moe.cross_entropy': targets is tensor<2x5xi32, ["batch", "T"]>, expected tensor<2x4xi32, ["batch", "T"]>
    %loss5, %lse5 = "moe.cross_entropy"(%l, %j, %s) : (!l, !j, !s) -> (!s, !n)
    // CHECK: :[[@LINE+1]]:21: error: 'moe.cross_entropy': scale is tensor<f64>, expected tensor<f32>
    %loss6, %lse6 = "moe.cross_entropy"(%l, %i, %d) : (!l, !i, tensor<f64>) -> (!s, !n)
    // CHECK: :[[@LINE+1]]:21: error: 'moe.cross_entropy': logits is tensor<f32>, expected at least 2 dimensions
    %loss7, %lse7 = "moe.cross_entropy"(%s, %i, %s) : (!s, !i, !s) -> (!s, !n)
    // CHECK: :[[@LINE+1]]:10: error: 'moe.cross_entropy_grad': lse is tensor<f32>, expected tensor<2x4xf32, ["batch", "T"]>
    %8 = "moe.cross_entropy_grad"(%s, %l, %s, %i, %s) : (!s, !l, !s, !i, !s) -> !l
    // CHECK: :[[@LINE+1]]:10: error: 'moe.cross_entropy_grad': dloss is tensor<2x4xf32, ["batch", "T"]>, expected tensor<f32>
    %9 = "moe.cross_entropy_grad"(%n, %l, %n, %i, %s) : (!n, !l, !n, !i, !s) -> !l
    // CHECK: :[[@LINE+1]]:11: error: 'moe.ahead': targets is tensor<2x4xf32, ["batch", "T"]>, expected tensor<2x4xi32, ["batch", "T"]>
    %10 = "moe.ahead"(%n) {by = 1} : (!n) -> !i
    // CHECK: :[[@LINE+1]]:11: error: 'moe.ahead': moves tokens [batch, T] by a number of positions, at least 0
    %11 = "moe.ahead"(%i) {by = -1} : (!i) -> !i
    // CHECK: :[[@LINE+1]]:11: error: 'moe.ahead': moves tokens [batch, T] by a number of positions, at least 0
    %12 = "moe.ahead"(%w) {by = 1} : (!w) -> !w
    // CHECK: :[[@LINE+1]]:34: error: 'moe.distill': temperature is 0, expected a positive number
    %loss13, %losses13, %lse13 = "moe.distill"(%l, %s) {temperature = 0.0} : (!l, !s) -> (!s, !n, !n)
    // CHECK: :[[@LINE+1]]:34: error: 'moe.distill': logits is tensor<f32>, expected at least 2 dimensions
    %loss14, %losses14, %lse14 = "moe.distill"(%s, %s) {temperature = 1.0} : (!s, !s) -> (!s, !n, !n)
    // CHECK: :[[@LINE+1]]:34: error: 'moe.distill': scale is tensor<2x4xf32, ["batch", "T"]>, expected tensor<f32>
    %loss15, %losses15, %lse15 = "moe.distill"(%l, %n) {temperature = 1.0} : (!l, !n) -> (!s, !n, !n)
    // CHECK: :[[@LINE+1]]:34: error: 'moe.dpo': beta is 0, expected a positive number
    %loss18, %slopes18, %lse18 = "moe.dpo"(%l, %i, %s) {beta = 0.0} : (!l, !i, !s) -> (!s, !n, !n)
    // CHECK: :[[@LINE+1]]:34: error: 'moe.dpo': logits have 2 dimensions, expected sequences, positions, words
    %loss19, %slopes19, %lse19 = "moe.dpo"(%e, %k, %s) {beta = 1.0} : (!e, !k, !s) -> (!s, !f, !f)
    // CHECK: :[[@LINE+1]]:34: error: 'moe.policy': clip is -1 and kl 0, expected numbers of at least 0
    %loss20, %slopes20, %lse20 = "moe.policy"(%l, %i, %s) {clip = -1.0, kl = 0.0} : (!l, !i, !s) -> (!s, !n, !n)
    // CHECK: :[[@LINE+1]]:11: error: 'moe.distill_grad': lse is tensor<f32>, expected tensor<2x4xf32, ["batch", "T"]>
    %16 = "moe.distill_grad"(%s, %l, %s, %s) {temperature = 1.0} : (!s, !l, !s, !s) -> !l
    // CHECK: :[[@LINE+1]]:11: error: 'moe.distill_grad': dloss is tensor<2x4xf32, ["batch", "T"]>, expected tensor<f32>
    %17 = "moe.distill_grad"(%n, %l, %n, %s) {temperature = 1.0} : (!n, !l, !n, !s) -> !l
    return
  }
}
// CHECK-NOT: error:
