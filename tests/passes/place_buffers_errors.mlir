// RUN: split-file %s %t
// RUN: not hecate-opt --passes=select-kernels,place-buffers %t/none.mlir 2>&1 | FileCheck %t/none.mlir
// RUN: not hecate-opt --passes=select-kernels,place-buffers %t/call.mlir 2>&1 | FileCheck %t/call.mlir
// RUN: not hecate-opt --passes=select-kernels,place-buffers %t/layer.mlir 2>&1 | FileCheck %t/layer.mlir
// RUN: not hecate-opt --passes=select-kernels,place-buffers %t/arguments.mlir 2>&1 | FileCheck %t/arguments.mlir
// RUN: not hecate-opt --passes=select-kernels,place-buffers %t/vector.mlir 2>&1 | FileCheck %t/vector.mlir
// RUN: sed 's/module {/module attributes {hecate.target = "null"} {/' %t/vector.mlir | hecate-opt --passes=select-kernels,place-buffers > /dev/null
// RUN: not hecate-opt --passes=select-kernels,place-buffers %t/computed.mlir 2>&1 | FileCheck %t/computed.mlir
// RUN: sed 's/module {/module attributes {hecate.target = "null"} {/' %t/computed.mlir | not hecate-opt --passes=select-kernels,place-buffers 2>&1 | FileCheck %t/computed.mlir --check-prefix=NULL

//--- none.mlir
// CHECK: error: no function @forward to place
module {
}

//--- call.mlir
module {
  func.func private @f() {
    return
  }
  func.func @forward() {
    // CHECK: call.mlir:[[@LINE+1]]:5: error: 'func.call': calls have to be inlined before buffers are placed
    func.call @f() : () -> ()
    return
  }
}

//--- layer.mlir
module {
  "moe.param"() {sym_name = "w", type = tensor<4xf32, ["D"]>, layers = 3 : i64, path = "{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  func.func @forward() {
    %c1 = arith.constant 1 : index
    %c2 = arith.addi %c1, %c1 : index
    // CHECK: layer.mlir:[[@LINE+1]]:10: error: 'moe.get': the layer is neither a constant nor that of the loop around
    %w = "moe.get"(%c2) {param = @w} : (index) -> tensor<4xf32, ["D"]>
    return
  }
}

//--- arguments.mlir
module {
  // CHECK: arguments.mlir:[[@LINE+1]]:3: error: 'func.func': has more than the arguments ids, targets, scale and auxiliary_scale
  func.func @forward(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>, %e: tensor<f32>) {
    return
  }
}

// Where there are panels, products of experts read panels, and what else reads the same parameter reads rows.
//--- vector.mlir
!g = tensor<2x10xf32, ["E", "F"]>
!first = tensor<3xi32, ["first"]>
!rows = tensor<4x10xf32, ["rows", "F"]>
module {
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 0 : i64} : () -> ()
  "moe.param"() {sym_name = "g", type = !g, layers = 0 : i64, path = "{e}.g", init = "ones", decay = true, trainable = true, set = @s} : () -> ()
  func.func @forward(%picks: tensor<4x1xi32, ["T", "picks"]>) {
    %first, %pair, %slot = "moe.route"(%picks) {experts = 2 : i64} : (tensor<4x1xi32, ["T", "picks"]>) -> (!first, tensor<4xi32, ["rows"]>, tensor<4x1xi32, ["T", "picks"]>)
    %g = "moe.get"() {param = @g} : () -> !g
    %o = "moe.spread"(%g, %first) : (!g, !first) -> !rows
    // CHECK: vector.mlir:[[@LINE+1]]:10: error: 'hk.call': not yet: experts multiply by a parameter only, which only GEMMs of one shape read
    %q = "moe.grouped_contract"(%o, %g, %first) : (!rows, !g, !first) -> tensor<4xf32, ["rows"]>
    return
  }
}

// Weights of experts are found by chunk on every target.
//--- computed.mlir
!g = tensor<2x10xf32, ["E", "F"]>
!first = tensor<3xi32, ["first"]>
!rows = tensor<4x10xf32, ["rows", "F"]>
module {
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 0 : i64} : () -> ()
  "moe.param"() {sym_name = "g", type = !g, layers = 0 : i64, path = "{e}.g", init = "ones", decay = true, trainable = true, set = @s} : () -> ()
  func.func @forward(%picks: tensor<4x1xi32, ["T", "picks"]>) {
    %first, %pair, %slot = "moe.route"(%picks) {experts = 2 : i64} : (tensor<4x1xi32, ["T", "picks"]>) -> (!first, tensor<4xi32, ["rows"]>, tensor<4x1xi32, ["T", "picks"]>)
    %g = "moe.get"() {param = @g} : () -> !g
    %o = "moe.spread"(%g, %first) : (!g, !first) -> !rows
    %h = "moe.neg"(%g) : (!g) -> !g
    // NULL: error: 'hk.call': not yet: experts multiply by a parameter only
    // CHECK: computed.mlir:[[@LINE+1]]:10: error: 'hk.call': not yet: experts multiply by a parameter only, which only GEMMs of one shape read
    %q = "moe.grouped_contract"(%o, %h, %first) : (!rows, !g, !first) -> tensor<4xf32, ["rows"]>
    return
  }
}
