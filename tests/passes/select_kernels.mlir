// RUN: hecate-opt --passes=select-kernels %s | FileCheck %s
// RUN: hecate-opt '--passes=select-kernels(sums=apart)' %s | FileCheck %s --check-prefix=APART
//
// Every operation of kernels.def becomes a call; a product adds to %a, which nothing reads any more, and not to %x, which is
// read; an epilogue becomes the region of its product, whose block is the first argument; a sum over dimensions in
// between stays a loop.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!h = tensor<2x4x5xf32, ["batch", "T", "F"]>
!w = tensor<6x5xf32, ["D", "F"]>
// CHECK-LABEL: func.func @f(
// CHECK:         %[[A:.*]] = "moe.exp"
// CHECK-NEXT:    %[[SUM:.*]] = "hk.call"(%arg0, %arg1, %[[A]]) ({
// CHECK-NEXT:    }) {k = ["D"], kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1, 0
// CHECK-NEXT:    %[[U:[0-9]+]]:2 = "hk.call"(%arg0, %arg1, %[[SUM]]) ({
// CHECK-NEXT:    ^bb0(%[[BLOCK:.*]]: tensor<2x4x5xf32, {{.*}}>, %[[G:.*]]: tensor
// CHECK-NEXT:      "moe.mul"(%[[G]], %[[BLOCK]])
// CHECK-NEXT:      vector.yield
// CHECK-NEXT:    }) {k = ["D"], kernel = "matmul_nn",
// CHECK-NEXT:    "hk.call"(%arg0, %[[U]]#1) ({
// CHECK-NEXT:    }) {k = ["D"], kernel = "matmul_tn", m = ["batch", "T"], n = ["F"]
// CHECK-NEXT:    "hk.call"(%[[U]]#1, %arg1)
// CHECK-NEXT:    kernel = "matmul_nt"
// CHECK-NEXT:    "moe.add"(%{{.*}}, %arg0)
// CHECK-NEXT:    "moe.sum"
// CHECK-NEXT:    "hk.call"
// CHECK-NEXT:    }) {columns = ["D"], eps = {{.*}}, kernel = "rmsnorm", {{.*}} over = 1 : i64, {{.*}} rows = ["batch", "T"]}
// APART:         "hk.call"(%arg0, %arg1) ({
// APART:         "moe.add"
// APART:         "hk.call"
func.func @f(%x: !x, %w: !w, %a0: !h) -> (!x, !w, !x, tensor<2x6xf32, ["batch", "D"]>) {
  %a = "moe.exp"(%a0) : (!h) -> !h
  %p = "moe.contract"(%x, %w) : (!x, !w) -> !h
  %s = "moe.add"(%a, %p) : (!h, !h) -> !h
  %u = "moe.contract"(%x, %w) : (!x, !w) -> !h
  %e = "moe.fused"(%s, %u) ({
  ^bb0(%g: !h, %b: !h):
    %m = "moe.mul"(%g, %b) : (!h, !h) -> !h
    vector.yield %m : !h
  }) {epilogue = true, operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !h) -> !h
  %dw = "moe.contract"(%x, %e) : (!x, !h) -> !w
  %dx = "moe.contract"(%e, %w) : (!h, !w) -> !x
  %y = "moe.add"(%dx, %x) : (!x, !x) -> !x
  %t = "moe.sum"(%y) : (!x) -> tensor<2x6xf32, ["batch", "D"]>
  %n, %rstd = "moe.rmsnorm"(%x) {eps = 1.0e-5, over = 1} : (!x) -> (!x, tensor<2x4xf32, ["batch", "T"]>)
  return %n, %dw, %y, %t : !x, !w, !x, tensor<2x6xf32, ["batch", "D"]>
}
