// RUN: not hecate-opt --passes=group-experts %s 2>&1 | FileCheck %s
//
// Both faults are reported in one run, and no IR is printed.

!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!r = tensor<32x4xf32, ["rows", "D"]>
!first = tensor<5xi32, ["first"]>
module {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func private @e(%r: !r, %first: !first) -> !r {
    return %r : !r
  }
  func.func private @f(%r: !r) -> !r {
    return %r : !r
  }
  func.func @forward(%x: !x, %w: !w, %i: !i) -> !x {
    %y = "moe.experts"(%x, %w, %i) {set = @s, expert = @e} : (!x, !w, !i) -> !x
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'moe.experts': its experts' function belongs to another moe.experts
    %z = "moe.experts"(%y, %w, %i) {set = @s, expert = @e} : (!x, !w, !i) -> !x
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'moe.experts': the experts' function takes rows, first, and returns rows
    %u = "moe.experts"(%z, %w, %i) {set = @s, expert = @f} : (!x, !w, !i) -> !x
    return %u : !x
  }
}
// CHECK-NOT: error:
// CHECK-NOT: {{^}}module
