// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Calls of kernels: each is the one kernel for its operation, with that operation's operands and sizes.
!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!h = tensor<2x4x5xf32, ["batch", "T", "F"]>
!w = tensor<6x5xf32, ["D", "F"]>
!rows = tensor<8x6xf32, ["rows", "D"]>
!by_expert = tensor<2x6x5xf32, ["E", "D", "F"]>
!first = tensor<3xi32, ["first"]>
func.func @f(%x: !x, %w: !w, %g: !h, %rows: !rows, %by_expert: !by_expert, %first: !first) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': matmul_nt is not the kernel for these operands
  %r1 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nt", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the size 'n' is not that of its operands
  %r2 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["D"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the size 'k' is not that of its operands
  %r3 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has not the operands and results of moe.contract
  %r4 = "hk.call"(%x) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the summand has another type than the result
  %r5 = "hk.call"(%x, %w, %x) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w, !x) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': this kernel cannot add to an operand
  %r6:2 = "hk.call"(%x, %x) ({}) {kernel = "rmsnorm", over = 1, eps = 1.0, rows = ["batch", "T"], columns = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0>} : (!x, !x) -> (!x, tensor<2x4xf32, ["batch", "T"]>)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has no attribute 'eps'
  %r7:2 = "hk.call"(%x) ({}) {kernel = "rmsnorm", over = 1, rows = ["batch", "T"], columns = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0>} : (!x) -> (!x, tensor<2x4xf32, ["batch", "T"]>)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has inputs and outputs of an epilogue, but no region
  %r8 = "hk.call"(%x, %w, %x) ({}) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w, !x) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': this kernel takes no epilogue
  %r9:2 = "hk.call"(%x, %g) ({
  ^bb0(%p: !w):
    vector.yield %p : !w
  }) {kernel = "matmul_tn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 1>} : (!x, !h) -> (!w, !w)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': an epilogue must work on blocks
  %r10:2 = "hk.call"(%x, %w, %x) ({
  ^bb0(%p: !h, %q: !x):
    vector.yield %p : !h
  }) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 1>} : (!x, !w, !x) -> (!h, !h)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': the region has 1 arguments for 2 inputs
  %r11:2 = "hk.call"(%x, %w, %g) ({
  ^bb0(%p: !h):
    vector.yield %p : !h
  }) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 1>} : (!x, !w, !h) -> (!h, !h)
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': layout is "columns"
  %r12 = "hk.call"(%x, %w) ({}) {kernel = "matmul_nn", layout = "columns", m = ["batch", "T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !w) -> !h
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has weights in rows, but its kernel takes panels
  %r13 = "hk.call"(%rows, %by_expert, %first) ({}) {kernel = "grouped_nn", layout = "rows", experts = ["E"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!rows, !by_expert, !first) -> tensor<8x5xf32, ["rows", "F"]>
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: 'hk.call': has a layout, but its kernel has no weights
  %r14 = "hk.call"(%rows, %first) ({}) {kernel = "spread_grad", layout = "rows", experts = ["E"], columns = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!rows, !first) -> tensor<2x6xf32, ["E", "D"]>
  return
}
