// RUN: not hecate-opt %s 2>&1 | FileCheck %s
//
// Text that MLIR accepts and this IR does not: every fault is reported, with or without passes.

!x = tensor<4xf32, ["D"]>
!y = tensor<2x3x4xf32, ["batch", "T", "D"]>
!t = tensor<2x3x2xi32, ["batch", "T", "picks"]>
!e = tensor<2x4xf32, ["batch", "E"]>
module {
  "moe.set"() {sym_name = "s", experts = 4, topk = 2, layers = 5} : () -> ()
  // CHECK: _errors.mlir:[[@LINE+1]]:3: error: 'func.func': needs a body of one block
  func.func private @declared(!x) -> !x
  func.func @forward(%n: index, %x: !x, %t: !t) -> !x {
    // CHECK: _errors.mlir:[[@LINE+1]]:13: error: 'arith.constant': only an index may be computed so
    %true = arith.constant 1 : i1
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'scf.for': counts from a constant 0 to a constant number of layers, step 1
    %a = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (!x) {
      scf.yield %y : !x
    }
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'scf.for': counts from
    %b = scf.for %i = %c1 to %c5 step %c1 iter_args(%y = %x) -> (!x) {
      scf.yield %y : !x
    }
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'scf.for': counts from
    %c = scf.for %i = %c0 to %c0 step %c1 iter_args(%y = %x) -> (!x) {
      scf.yield %y : !x
    }
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'scf.for': carries something that is no tensor
    %d = scf.for %i = %c0 to %c5 step %c1 iter_args(%j = %n) -> (index) {
      scf.yield %j : index
    }
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'scf.if': is not an operation of this IR
    %e = scf.if %true -> (!x) {
      scf.yield %x : !x
    } else {
      scf.yield %x : !x
    }
    scf.for %i = %c0 to %c5 step %c1 {
      %j = arith.addi %i, %c1 : index
      %k = "moe.noise"(%i) {amount = 0.5, number = 0} : (index) -> !y
      %l = "moe.noise"(%c1) {amount = 0.5, number = 0} : (index) -> !y
      %m = "moe.noise"(%n) {amount = 0.5, number = 0} : (index) -> !y
      // CHECK: _errors.mlir:[[@LINE+1]]:12: error: 'moe.noise': the layer is neither a constant nor that of the loop around
      %o = "moe.noise"(%j) {amount = 0.5, number = 0} : (index) -> !y
      %q = "moe.fractions"(%t, %c1) {set = @s} : (!t, index) -> !e
      // CHECK: _errors.mlir:[[@LINE+1]]:12: error: 'moe.fractions': is of layer 5, but its set has 5
      %r = "moe.fractions"(%t, %c5) {set = @s} : (!t, index) -> !e
      // CHECK: _errors.mlir:[[@LINE+1]]:12: error: 'hk.call': the layer is neither a constant nor that of the loop around
      %p = "hk.call"(%j) ({}) {kernel = "noise", amount = 0.5, number = 0, sequences = ["batch"], tokens = ["T"], columns = ["D"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (index) -> !y
    }
    return %x : !x
  }
  // CHECK: _errors.mlir:[[@LINE+1]]:3: error: a module inside a module is not used
  module @inner {
  }
}
// CHECK-NOT: error
