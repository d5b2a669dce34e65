// RUN: not hecate-opt %s 2>&1 | FileCheck %s
//
// Text that MLIR accepts and this IR does not: every fault is reported, with or without passes.

!x = tensor<4xf32, ["D"]>
module {
  // CHECK: _errors.mlir:[[@LINE+1]]:3: error: 'func.func': needs a body of one block
  func.func private @declared(!x) -> !x
  func.func @forward(%n: index, %x: !x) -> !x {
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
    return %x : !x
  }
  // CHECK: _errors.mlir:[[@LINE+1]]:3: error: a module inside a module is not used
  module @inner {
  }
}
// CHECK-NOT: error
