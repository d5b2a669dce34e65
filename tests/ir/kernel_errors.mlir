// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Calls of kernels: each is the one kernel for its operation, with that operation's operands and sizes.
!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!h = tensor<2x4x5xf32, ["batch", "T", "F"]>
!w = tensor<6x5xf32, ["D", "F"]>
func.func @f(%x: !x, %w: !w, %g: !h) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': matmul_nt is not the kernel for these operands
  %r1 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nt", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the size 'n' is not that of its operands
  %r2 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["D"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the size 'k' is not that of its operands
  %r3 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has not the operands and results of moe.contract
  %r4 = "hk.call"(%x) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!x) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': what is added to has another type than the result
  %r5 = "hk.call"(%x, %w, %x) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!x, !w, !x) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': this kernel cannot add to an operand
  %r6:2 = "hk.call"(%x, %x) ({}) {kernel = "rmsnorm", over = 1, eps = 1.0, rows = ["batch", "T"], columns = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!x, !x) -> (!x, tensor<2x4xf32, ["batch", "T"]>)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has no attribute 'eps'
  %r7:2 = "hk.call"(%x) ({}) {kernel = "rmsnorm", over = 1, rows = ["batch", "T"], columns = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!x) -> (!x, tensor<2x4xf32, ["batch", "T"]>)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has inputs and outputs of an epilogue, but no region
  %r8 = "hk.call"(%x, %w, %x) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!x, !w, !x) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': this kernel takes no epilogue
  %r9:2 = "hk.call"(%x, %g) ({
  ^bb0(%p: !w):
    vector.yield %p : !w
  }) {kernel = "matmul_tn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (!x, !h) -> (!w, !w)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': an epilogue must work on blocks
  %r10:2 = "hk.call"(%x, %w, %x) ({
  ^bb0(%p: !h, %q: !x):
    vector.yield %p : !h
  }) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (!x, !w, !x) -> (!h, !h)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the region has 1 arguments for 2 inputs
  %r11:2 = "hk.call"(%x, %w, %g) ({
  ^bb0(%p: !h):
    vector.yield %p : !h
  }) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (!x, !w, !h) -> (!h, !h)
  return
}
