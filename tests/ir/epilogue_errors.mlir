// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s --implicit-check-not=error:
//
// What is no epilogue though it says so. The last one is.

!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!h = tensor<2x8x6xf32, ["batch", "T", "F"]>
!w = tensor<4x6xf32, ["D", "F"]>
!t = tensor<8x6xf32, ["T", "F"]>
module {
  func.func @faults(%x: !x, %h: !h, %w: !w, %t: !t) {
    // CHECK: epilogue_errors.mlir:[[@LINE+1]]:10: error: 'moe.fused': an epilogue must stand right behind a GEMM whose result it reads
    %0 = "moe.fused"(%h) ({
    ^bb0(%p: !h):
      %s = "moe.silu"(%p) : (!h) -> !h
      vector.yield %s : !h
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h) -> !h
    %b = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %c = "moe.contract"(%x, %w) : (!x, !w) -> !h
    // CHECK: epilogue_errors.mlir:[[@LINE+1]]:10: error: 'moe.fused': an epilogue must stand right behind a GEMM whose result it reads
    %1 = "moe.fused"(%b) ({
    ^bb0(%p: !h):
      %s = "moe.silu"(%p) : (!h) -> !h
      vector.yield %s : !h
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h) -> !h
    %dw = "moe.contract"(%x, %h) : (!x, !h) -> !w
    // CHECK: epilogue_errors.mlir:[[@LINE+1]]:10: error: 'moe.fused': an epilogue must work on blocks of its GEMM's rows and columns: inputs with all dimensions of either, or none
    %2 = "moe.fused"(%dw) ({
    ^bb0(%p: !w):
      %s = "moe.silu"(%p) : (!w) -> !w
      vector.yield %s : !w
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!w) -> !w
    %d = "moe.contract"(%x, %w) : (!x, !w) -> !h
    // CHECK: epilogue_errors.mlir:[[@LINE+1]]:10: error: 'moe.fused': an epilogue must work on blocks of its GEMM's rows and columns: inputs with all dimensions of either, or none
    %3 = "moe.fused"(%d, %t) ({
    ^bb0(%p: !h, %q: !t):
      %s = "moe.mul"(%p, %q) : (!h, !t) -> !h
      vector.yield %s : !h
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !t) -> !h
    %e = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %4 = "moe.fused"(%e) ({
    ^bb0(%p: !h):
      %s = "moe.silu"(%p) : (!h) -> !h
      vector.yield %s : !h
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h) -> !h
    return
  }
}
