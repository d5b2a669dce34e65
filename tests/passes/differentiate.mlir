// RUN: hecate-opt --passes=differentiate %s | FileCheck %s
//
// A loop; a value from outside that it reads (%bias, whose gradient is carried); a parameter read
// inside and outside, twice (its gradients need not meet); one that is not trained; integer results
// without a gradient.

!x = tensor<2x4xf32, ["batch", "D"]>
!w = tensor<4xf32, ["D"]>
!ids = tensor<2xi32, ["batch"]>

// CHECK-DAG: moe.slot{{.*}}layers = 3{{.*}}sym_name = "h"
// CHECK-DAG: moe.slot{{.*}}layers = 3{{.*}}sym_name = "x"
// CHECK-DAG: moe.slot{{.*}}layers = 0{{.*}}sym_name = "bias"
module {
  "moe.param"() {sym_name = "w", type = !w, layers = 3 : i64, path = "{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "fixed", type = !w, layers = 0 : i64, path = "fixed", init = "ones", decay = true, trainable = false} : () -> ()
  "moe.param"() {sym_name = "table", type = tensor<7x4xf32, ["V", "D"]>, layers = 0 : i64, path = "table", init = "ones", decay = true, trainable = true} : () -> ()

  // CHECK-LABEL: func.func @forward(
  // CHECK:         %[[B:bias.*]] = "moe.silu"
  // CHECK-NEXT:    "moe.stash"(%[[B]]) {slot = @bias}
  // CHECK:         scf.for %[[I:.*]] = {{.*}} iter_args(%[[X:.*]] = %
  // CHECK-NEXT:      "moe.stash"(%[[X]], %[[I]]) {slot = @x}
  // CHECK:           %[[H:.*]] = "moe.mul"(%[[X]],
  // CHECK-NEXT:      "moe.stash"(%[[H]], %[[I]]) {slot = @h}
  // CHECK:         "moe.sum"

  // CHECK-LABEL: func.func @backward(
  // CHECK-SAME:    %[[IDS:[^:]*]]: tensor<2xi32, ["batch"]>)
  // CHECK-NEXT:    %[[ONE:dloss.*]] = "moe.fill"() {value = 1.0
  // CHECK:         %[[DX:dx.*]] = "moe.add"(
  // CHECK:         %[[DB:dbias.*]] = "moe.fill"() {value = 0.0
  // CHECK:         %[[R:.*]]:2 = scf.for %[[STEP:.*]] = {{.*}} iter_args(%[[DY:.*]] = %[[DX]], %[[DC:.*]] = %[[DB]])
  // CHECK-NEXT:      %[[C2:.*]] = arith.constant 2
  // CHECK-NEXT:      %[[L:i.*]] = arith.subi %[[C2]], %[[STEP]]
  // CHECK:           %[[BIAS:.*]] = "moe.fetch"() {slot = @bias}
  // CHECK-NEXT:      %[[DH:dh.*]] = "moe.mul"(%[[DY]], %[[BIAS]])
  // CHECK-NEXT:      %[[HF:.*]] = "moe.fetch"(%[[L]]) {slot = @h}
  // CHECK-NEXT:      %[[P:.*]] = "moe.mul"(%[[DY]], %[[HF]])
  // CHECK-NEXT:      %[[DC2:dbias.*]] = "moe.add"(%[[DC]], %[[P]])
  // CHECK:           %[[W:.*]] = "moe.get"(%[[L]]) {param = @w}
  // CHECK-NEXT:      %[[DXN:dx.*]] = "moe.mul"(%[[DH]], %[[W]])
  // CHECK:           %[[DW:.*]] = "moe.sum"
  // CHECK-NEXT:      "moe.accumulate"(%[[DW]], %[[L]]) {param = @w}
  // CHECK-NEXT:      scf.yield %[[DXN]], %[[DC2]]
  // CHECK:         %[[T:.*]] = "moe.gather_grad"
  // CHECK-NEXT:    "moe.accumulate"(%[[T]]) {param = @table}
  // CHECK-NOT:     accumulate{{.*}}@fixed
  // CHECK:         return
  func.func @forward(%ids: !ids) -> tensor<f32> {
    %table = "moe.get"() {param = @table} : () -> tensor<7x4xf32, ["V", "D"]>
    %x0 = "moe.gather"(%table, %ids) : (tensor<7x4xf32, ["V", "D"]>, !ids) -> !x loc("x"("m":1:1))
    %fixed = "moe.get"() {param = @fixed} : () -> !w
    %f = "moe.mul"(%x0, %fixed) : (!x, !w) -> !x loc("f"("m":1:1))
    %bias = "moe.silu"(%f) : (!x) -> !x loc("bias"("m":1:1))
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %x0) -> (!x) {
      %w = "moe.get"(%i) {param = @w} : (index) -> !w
      %h = "moe.mul"(%x, %w) : (!x, !w) -> !x loc("h"("m":1:1))
      %y = "moe.mul"(%h, %bias) : (!x, !x) -> !x loc("y"("m":1:1))
      scf.yield %y : !x
    }
    %out = "moe.add"(%r, %r) : (!x, !x) -> !x loc("out"("m":1:1))
    %loss = "moe.sum"(%out) : (!x) -> tensor<f32> loc("loss"("m":1:1))
    return %loss : tensor<f32>
  }
}
