// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Every fault is reported, each at its operation.

!x = tensor<2x4x3xf32, ["batch", "T", "D"]>
!b = tensor<3xf32, ["D"]>

module {
  func.func @faults(%x: !x, %b: !b, %f: tensor<4xf32, ["F"]>, %w: tensor<5xf32, ["D"]>,
                    %d: tensor<3xf64, ["D"]>, %i: tensor<3xi32, ["D"]>,
                    %t: tensor<3x4xf32, ["D", "T"]>, %n: tensor<3xf32>,
                    %y: tensor<3x3xf32, ["D", "D"]>) {
    // CHECK: elementwise_errors.mlir:[[@LINE+1]]:10: error: 'moe.add': no operand has all dimensions: tensor<2x4x3xf32, ["batch", "T", "D"]> lacks F
    %0 = "moe.add"(%x, %f) : (!x, tensor<4xf32, ["F"]>) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.add': dimension D has the sizes 3 and 5
    %1 = "moe.add"(%x, %w) : (!x, tensor<5xf32, ["D"]>) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.mul': operands of f32 and f64
    %2 = "moe.mul"(%x, %d) : (!x, tensor<3xf64, ["D"]>) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.mul': an operand is tensor<3xi32, ["D"]>, expected a tensor of f32 or f64
    %3 = "moe.mul"(%x, %i) : (!x, tensor<3xi32, ["D"]>) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.sub': not yet: the operands have their dimensions in another order
    %4 = "moe.sub"(%x, %t) : (!x, tensor<3x4xf32, ["D", "T"]>) -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.silu': the type of result 0 is not what its operands give
    %5 = "moe.silu"(%x) : (!x) -> !b
    // CHECK: :[[@LINE+1]]:10: error: 'moe.exp': operand 0 has no dimension names
    %6 = "moe.exp"(%n) : (tensor<3xf32>) -> tensor<3xf32>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.sqrt': operand 0 has the dimension D twice
    %7 = "moe.sqrt"(%y) : (tensor<3x3xf32, ["D", "D"]>) -> tensor<3x3xf32, ["D", "D"]>
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': the result is tensor<3xi32, ["D"]>, expected a tensor of f32 or f64
    %9 = "moe.fill"() {value = 0.0} : () -> tensor<3xi32, ["D"]>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.sum': the result's dimension F is not in its place in the operand
    %10 = "moe.sum"(%x) : (!x) -> tensor<4xf32, ["F"]>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.sum': the result's dimension T is not in its place in the operand
    %11 = "moe.sum"(%x) : (!x) -> tensor<3x4xf32, ["D", "T"]>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.sum': operand and result differ in their element type
    %12 = "moe.sum"(%x) : (!x) -> tensor<3xf64, ["D"]>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.sum': the operand is tensor<3xi32, ["D"]>, expected a tensor of f32 or f64
    %13 = "moe.sum"(%i) : (tensor<3xi32, ["D"]>) -> tensor<i32>
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fused': 'moe.sum' is not elementwise
    %14 = "moe.fused"(%x) ({
    ^bb0(%u: !x):
      %s = "moe.sum"(%u) : (!x) -> !b
      vector.yield %s : !b
    }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !b
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fused': the region has 1 arguments for 2 inputs
    %15 = "moe.fused"(%x, %x) ({
    ^bb0(%u: !x):
      vector.yield %u : !x
    }) {operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!x, !x) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fused': argument 0 of the region is tensor<3xf32, ["D"]>, not the type of its input
    %16 = "moe.fused"(%x) ({
    ^bb0(%u: !b):
      vector.yield %u : !b
    }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !b
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fused': the region yields 2 values for 1 outputs
    %18 = "moe.fused"(%x) ({
    ^bb0(%u: !x):
      vector.yield %u, %u : !x, !x
    }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fused': output 0 is tensor<3xf32, ["D"]>, not the type of what is yielded
    %19 = "moe.fused"(%x) ({
    ^bb0(%u: !x):
      vector.yield %u : !x
    }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !b
    return
  }
}
// CHECK-NOT: error:
