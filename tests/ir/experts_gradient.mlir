// RUN: not hec-ir-tool --gradient %s 2>&1 | FileCheck %s
//
// moe.experts is taken apart before differentiation; a gradient that is not there is said so.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<2x4x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>

module {
  "moe.set"() {sym_name = "sparse", experts = 3, topk = 2, layers = 0} : () -> ()
  func.func private @expert()
  func.func @f(%x: !x, %w: !w, %i: !i) -> !x {
    // CHECK: experts_gradient.mlir:[[@LINE+1]]:10: error: 'moe.experts': has no gradient; group-experts must run before differentiate
    %y = "moe.experts"(%x, %w, %i) {set = @sparse, expert = @expert} : (!x, !w, !i) -> !x
    return %y : !x
  }
}
