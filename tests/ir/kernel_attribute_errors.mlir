// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Calls of kernels have no attributes but those of their operation and their sizes.
!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!h = tensor<2x4x5xf32, ["batch", "T", "F"]>
!w = tensor<6x5xf32, ["D", "F"]>
func.func @f(%x: !x, %w: !w, %g: !h) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': there is no such kernel
  %r9 = "hk.call"(%x, %w) ({}) {kernel = "matmul", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': unknown attribute 'eps'
  %r0 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], eps = 1.0, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !h
  return
}
