// RUN: split-file %s %t
// RUN: not hecate-opt --passes=prove-homes %t/overwritten.mlir 2>&1 | FileCheck %t/overwritten.mlir
// RUN: not hecate-opt --passes=prove-homes %t/in_place.mlir 2>&1 | FileCheck %t/in_place.mlir
// RUN: not hecate-opt --passes=prove-homes %t/partly.mlir 2>&1 | FileCheck %t/partly.mlir
// RUN: not hecate-opt --passes=prove-homes %t/results.mlir 2>&1 | FileCheck %t/results.mlir
// RUN: not hecate-opt --passes=prove-homes %t/stash.mlir 2>&1 | FileCheck %t/stash.mlir
// RUN: not hecate-opt --passes=prove-homes %t/saved.mlir 2>&1 | FileCheck %t/saved.mlir
// RUN: not hecate-opt --passes=prove-homes %t/unsaved.mlir 2>&1 | FileCheck %t/unsaved.mlir
// RUN: not hecate-opt --passes=prove-homes %t/carried.mlir 2>&1 | FileCheck %t/carried.mlir
// RUN: not hecate-opt --passes=prove-homes %t/second.mlir 2>&1 | FileCheck %t/second.mlir
// RUN: not hecate-opt --passes=prove-homes %t/row.mlir 2>&1 | FileCheck %t/row.mlir
// RUN: not hecate-opt --passes=prove-homes %t/home.mlir 2>&1 | FileCheck %t/home.mlir
// RUN: not hecate-opt --passes=prove-homes %t/observed.mlir 2>&1 | FileCheck %t/observed.mlir
// RUN: not hecate-opt --passes=prove-homes %t/kept.mlir 2>&1 | FileCheck %t/kept.mlir
// RUN: not hecate-opt --passes=prove-homes %t/sum_arena.mlir 2>&1 | FileCheck %t/sum_arena.mlir
// RUN: not hecate-opt --passes=prove-homes %t/sum_elsewhere.mlir 2>&1 | FileCheck %t/sum_elsewhere.mlir
// RUN: not hecate-opt --passes=prove-homes %t/sum_read.mlir 2>&1 | FileCheck %t/sum_read.mlir
// RUN: not hecate-opt --passes=prove-homes %t/waves.mlir 2>&1 | FileCheck %t/waves.mlir
// RUN: not hecate-opt --passes=prove-homes %t/epilogue.mlir 2>&1 | FileCheck %t/epilogue.mlir
// RUN: not hecate-opt --passes=prove-homes %t/arena.mlir 2>&1 | FileCheck %t/arena.mlir
// RUN: not hecate-opt --passes=prove-homes %t/aligned.mlir 2>&1 | FileCheck %t/aligned.mlir
// RUN: not hecate-opt --passes=prove-homes %t/slot_outside.mlir 2>&1 | FileCheck %t/slot_outside.mlir
// RUN: not hecate-opt --passes=prove-homes %t/slot_overlaps.mlir 2>&1 | FileCheck %t/slot_overlaps.mlir
// RUN: not hecate-opt --passes=prove-homes %t/slot_wraps.mlir 2>&1 | FileCheck %t/slot_wraps.mlir
// RUN: not hecate-opt --passes=prove-homes %t/no_loop.mlir 2>&1 | FileCheck %t/no_loop.mlir
// RUN: not hecate-opt --passes=prove-homes %t/other_layer.mlir 2>&1 | FileCheck %t/other_layer.mlir
// RUN: not hecate-opt --passes=prove-homes %t/few_layers.mlir 2>&1 | FileCheck %t/few_layers.mlir
// RUN: not hecate-opt --passes=prove-homes %t/get_elsewhere.mlir 2>&1 | FileCheck %t/get_elsewhere.mlir
// RUN: not hecate-opt --passes=prove-homes %t/write_param.mlir 2>&1 | FileCheck %t/write_param.mlir
// RUN: not hecate-opt --passes=prove-homes %t/read_grad.mlir 2>&1 | FileCheck %t/read_grad.mlir
// RUN: not hecate-opt --passes=prove-homes %t/store_grad.mlir 2>&1 | FileCheck %t/store_grad.mlir
// RUN: not hecate-opt --passes=prove-homes %t/other_grad.mlir 2>&1 | FileCheck %t/other_grad.mlir
// RUN: not hecate-opt --passes=prove-homes %t/carries_param.mlir 2>&1 | FileCheck %t/carries_param.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_outside.mlir 2>&1 | FileCheck %t/param_outside.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_aligned.mlir 2>&1 | FileCheck %t/param_aligned.mlir
// RUN: not hecate-opt --passes=prove-homes %t/copy_aligned.mlir 2>&1 | FileCheck %t/copy_aligned.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_over.mlir 2>&1 | FileCheck %t/param_over.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_matrix.mlir 2>&1 | FileCheck %t/param_matrix.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_panels.mlir 2>&1 | FileCheck %t/param_panels.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_layout.mlir 2>&1 | FileCheck %t/param_layout.mlir
// RUN: not hecate-opt --passes=prove-homes %t/param_none.mlir 2>&1 | FileCheck %t/param_none.mlir
// RUN: not hecate-opt --passes=prove-homes %t/set_over.mlir 2>&1 | FileCheck %t/set_over.mlir
// RUN: not hecate-opt --passes=prove-homes %t/set_outside.mlir 2>&1 | FileCheck %t/set_outside.mlir
// RUN: not hecate-opt --passes=prove-homes %t/chunk_outside.mlir 2>&1 | FileCheck %t/chunk_outside.mlir
// RUN: sed 's/home = \["arena+2048", "arena+0"\]/home = ["arena+2048", "arena+2048"]/' %t/epilogue.mlir | hecate-opt --passes=prove-homes
// RUN: hecate-opt --passes=prove-homes %t/home.mlir 2>/dev/null; test $? = 70
//
// One planted fault each; all are the compiler's own, exit code 70.

//--- overwritten.mlir
!x = tensor<16xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  %b = "moe.fill"() {value = 3.0 : f64, home = ["arena+0"]} : () -> !x
  // CHECK: overwritten.mlir:[[@LINE+1]]:8: error: 'moe.add': homes: an operand's bytes were overwritten
  %c = "moe.add"(%a, %b) {home = ["arena+64"]} : (!x, !x) -> !x
  return
}

//--- in_place.mlir
!x = tensor<4x16xf32, ["T", "D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  // CHECK: in_place.mlir:[[@LINE+1]]:15: error: 'moe.rmsnorm': homes: a result overlaps an operand
  %n, %rstd = "moe.rmsnorm"(%a) {eps = 1.0e-5 : f64, over = 1 : i64, home = ["arena+0", "arena+256"]} : (!x) -> (!x, tensor<4xf32, ["T"]>)
  return
}

//--- partly.mlir
!x = tensor<32xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  // CHECK: partly.mlir:[[@LINE+1]]:8: error: 'moe.exp': homes: a result overlaps an operand
  %b = "moe.exp"(%a) {home = ["arena+64"]} : (!x) -> !x
  return
}

//--- results.mlir
!x = tensor<4x16xf32, ["T", "D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  // CHECK: results.mlir:[[@LINE+1]]:15: error: 'moe.rmsnorm': homes: two results overlap
  %n, %rstd = "moe.rmsnorm"(%a) {eps = 1.0e-5 : f64, over = 1 : i64, home = ["arena+256", "arena+320"]} : (!x) -> (!x, tensor<4xf32, ["T"]>)
  return
}

//--- stash.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 0 : i64, offset = 0 : i64, stride = 64 : i64, rows = 1 : i64} : () -> ()
  func.func @forward() {
    %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+64"]} : () -> !x
    // CHECK: stash.mlir:[[@LINE+1]]:5: error: 'moe.stash': homes: the stashed value is not in its slot
    "moe.stash"(%a) {slot = @x} : (!x) -> ()
    return
  }
}

//--- saved.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 0 : i64, offset = 0 : i64, stride = 64 : i64, rows = 1 : i64} : () -> ()
  func.func @forward() {
    %a = "moe.fill"() {value = 2.0 : f64, home = ["slot @x"]} : () -> !x
    "moe.stash"(%a) {slot = @x} : (!x) -> ()
    %b = "moe.exp"(%a) {home = ["arena+0"]} : (!x) -> !x
    return
  }
  func.func @backward() {
    // CHECK: saved.mlir:[[@LINE+1]]:10: error: 'moe.fetch': homes: a saved value was overwritten
    %a = "moe.fetch"() {slot = @x, home = ["slot @x"]} : () -> !x
    return
  }
}

//--- unsaved.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 0 : i64, offset = 0 : i64, stride = 64 : i64, rows = 1 : i64} : () -> ()
  func.func @forward() {
    // CHECK: unsaved.mlir:[[@LINE+1]]:10: error: 'moe.fetch': homes: nothing was saved in what is fetched
    %a = "moe.fetch"() {slot = @x, home = ["slot @x"]} : () -> !x
    "moe.stash"(%a) {slot = @x} : (!x) -> ()
    return
  }
}

//--- carried.mlir
!x = tensor<16xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK: carried.mlir:[[@LINE+1]]:8: error: 'scf.for': homes: a carried value is not where it is read next
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %a) -> (!x) {
    %s = "moe.exp"(%x) {home = ["arena+64"]} : (!x) -> !x
    scf.yield %s : !x
  } {argument_home = ["arena+0"], home = ["arena+64"]}
  return
}

// Right in the first layer; in the second %b has been overwritten by the first.
//--- second.mlir
!x = tensor<16xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  %b = "moe.fill"() {value = 3.0 : f64, home = ["arena+64"]} : () -> !x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %a) -> (!x) {
    // CHECK: second.mlir:[[@LINE+1]]:10: error: 'moe.mul': homes: an operand's bytes were overwritten
    %s = "moe.mul"(%x, %b) {home = ["arena+0"]} : (!x, !x) -> !x
    %t = "moe.exp"(%s) {home = ["arena+64"]} : (!x) -> !x
    scf.yield %s : !x
  } {argument_home = ["arena+0"], home = ["arena+0"]}
  return
}

//--- row.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 2 : i64, offset = 0 : i64, stride = 64 : i64, rows = 2 : i64} : () -> ()
  func.func @forward() {
    // CHECK: row.mlir:[[@LINE+1]]:10: error: 'moe.fill': homes: a row lies outside its slot
    %a = "moe.fill"() {value = 2.0 : f64, home = ["slot @x[2]"]} : () -> !x
    return
  }
}

//--- home.mlir
!x = tensor<16xf32, ["D"]>
func.func @forward() {
  // CHECK: home.mlir:[[@LINE+1]]:8: error: 'moe.fill': homes: a value has no home
  %a = "moe.fill"() {value = 2.0 : f64} : () -> !x
  return
}

//--- observed.mlir
!x = tensor<16xf32, ["D"]>
module {
  // CHECK: observed.mlir:[[@LINE+1]]:3: error: 'moe.slot': homes: an observed slot was overwritten
  "moe.slot"() {sym_name = "x", type = !x, layers = 0 : i64, observed = true, offset = 0 : i64, stride = 64 : i64, rows = 1 : i64} : () -> ()
  func.func @forward() {
    %a = "moe.fill"() {value = 2.0 : f64, home = ["slot @x"]} : () -> !x
    "moe.stash"(%a) {slot = @x} : (!x) -> ()
    %b = "moe.exp"(%a) {home = ["slot @x"]} : (!x) -> !x
    return
  }
}

// Only gradients are added to without an operand, ...
//--- kept.mlir
!x = tensor<16xf32, ["D"]>
module {
"moe.slot"() {sym_name = "k", type = !x, layers = 0 : i64, offset = 0 : i64, rows = 1 : i64, stride = 64 : i64, kept = true} : () -> ()
func.func @forward() {
  // CHECK: kept.mlir:[[@LINE+1]]:8: error: 'moe.fill': homes: a value that the next @forward reads is overwritten
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  %k = "moe.fill"() {value = 3.0 : f64, home = ["slot @k"]} : () -> !x
  "moe.stash"(%k) {slot = @k} : (!x) -> ()
  return
}
}

//--- sum_arena.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!y = tensor<16xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !y
  %x = "moe.fill"() {value = 2.0 : f64, home = ["arena+64"]} : () -> !x
  // CHECK: sum_arena.mlir:[[@LINE+1]]:8: error: 'moe.sum': homes: adds to what is no gradient
  %b = "moe.sum"(%x) {home = ["arena+0"], adds = [true]} : (!x) -> !y
  return
}

// ... a sum lies where what it is added to lies, ...
//--- sum_elsewhere.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!y = tensor<16xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !y
  %x = "moe.fill"() {value = 2.0 : f64, home = ["arena+64"]} : () -> !x
  // CHECK: sum_elsewhere.mlir:[[@LINE+1]]:8: error: 'hk.call': homes: a sum is not where it is added to
  %b = "hk.call"(%x, %a) ({}) {kernel = "sum_rows", rows = ["T"], columns = ["D"], home = ["arena+320"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !y) -> !y
  return
}

// ... and nobody reads that from there on.
//--- sum_read.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!y = tensor<16xf32, ["D"]>
func.func @forward() {
  %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !y
  %x = "moe.fill"() {value = 2.0 : f64, home = ["arena+64"]} : () -> !x
  %b = "hk.call"(%x, %a) ({}) {kernel = "sum_rows", rows = ["T"], columns = ["D"], home = ["arena+0"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0>} : (!x, !y) -> !y
  // CHECK: sum_read.mlir:[[@LINE+1]]:8: error: 'moe.exp': homes: an operand's bytes were overwritten
  %e = "moe.exp"(%a) {home = ["arena+320"]} : (!y) -> !y
  return
}

//--- waves.mlir
// Sound with one wave: the second one finds what the first has left.
!x = tensor<16xf32, ["D"]>
module attributes {hecate.world = 2 : i64} {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func @forward() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
    %n = "fssdp.waves"() {set = @s} : () -> index
    scf.for %w = %c0 to %n step %c1 {
      // CHECK: waves.mlir:[[@LINE+1]]:12: error: 'moe.neg': homes: an operand's bytes were overwritten
      %b = "moe.neg"(%a) {home = ["arena+64"]} : (!x) -> !x
      %c = "moe.neg"(%b) {home = ["arena+0"]} : (!x) -> !x
    }
    return
  }
}

//--- epilogue.mlir
// Behind the product all would be well: it reads %x no more. While it runs, it still does. (Where only the
// epilogue reads the product, both lie together.)
!x = tensor<4x16xf32, ["T", "D"]>
!w = tensor<16x16xf32, ["D", "F"]>
!y = tensor<4x16xf32, ["T", "F"]>
func.func @forward() {
  %x = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !x
  %w = "moe.fill"() {value = 2.0 : f64, home = ["arena+256"]} : () -> !w
  // CHECK: epilogue.mlir:[[@LINE+1]]:12: error: 'hk.call': homes: a result overlaps an operand
  %u, %h = "hk.call"(%x, %w) ({
  ^bb0(%p: !y):
    %s = "moe.silu"(%p) : (!y) -> !y
    vector.yield %s : !y
  }) {kernel = "matmul_nn", m = ["T"], n = ["F"], k = ["D"], home = ["arena+2048", "arena+0"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 1>} : (!x, !w) -> (!y, !y)
  return
}

//--- arena.mlir
!x = tensor<16xf32, ["D"]>
module attributes {hecate.arena_bytes = 100 : i64} {
  func.func @forward() {
    // CHECK: arena.mlir:[[@LINE+1]]:10: error: 'moe.fill': homes: a value lies outside the arena, or is not aligned
    %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+64"]} : () -> !x
    return
  }
}

//--- aligned.mlir
!x = tensor<16xf32, ["D"]>
module attributes {hecate.arena_bytes = 1000 : i64} {
  func.func @forward() {
    // CHECK: aligned.mlir:[[@LINE+1]]:10: error: 'moe.fill': homes: a value lies outside the arena, or is not aligned
    %a = "moe.fill"() {value = 2.0 : f64, home = ["arena+36"]} : () -> !x
    return
  }
}

//--- slot_outside.mlir
!x = tensor<16xf32, ["D"]>
module attributes {hecate.arena_bytes = 128 : i64} {
  // CHECK: slot_outside.mlir:[[@LINE+1]]:3: error: 'moe.slot': homes: a slot's rows overlap, or lie outside the arena
  "moe.slot"() {sym_name = "x", type = !x, layers = 2 : i64, offset = 0 : i64, stride = 64 : i64, rows = 3 : i64} : () -> ()
  func.func @forward() { return }
}

//--- slot_overlaps.mlir
!x = tensor<32xf32, ["D"]>
module {
  // CHECK: slot_overlaps.mlir:[[@LINE+1]]:3: error: 'moe.slot': homes: a slot's rows overlap, or lie outside the arena
  "moe.slot"() {sym_name = "x", type = !x, layers = 2 : i64, offset = 0 : i64, stride = 64 : i64, rows = 2 : i64} : () -> ()
  func.func @forward() { return }
}

//--- slot_wraps.mlir
!x = tensor<16xf32, ["D"]>
module {
  // CHECK: slot_wraps.mlir:[[@LINE+1]]:3: error: 'moe.slot': homes: a slot's rows overlap, or lie outside the arena
  "moe.slot"() {sym_name = "x", type = !x, layers = 4 : i64, offset = 0 : i64, stride = 4611686018427387904 : i64, rows = 4 : i64} : () -> ()
  func.func @forward() { return }
}

//--- no_loop.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 2 : i64, offset = 0 : i64, stride = 64 : i64, rows = 2 : i64} : () -> ()
  func.func @forward() {
    // CHECK: no_loop.mlir:[[@LINE+1]]:10: error: 'moe.fill': homes: a row lies outside its slot
    %a = "moe.fill"() {value = 2.0 : f64, home = ["slot @x[i+1]"]} : () -> !x
    return
  }
}

//--- other_layer.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward(%j: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.for %i = %c0 to %c2 step %c1 {
      // CHECK: other_layer.mlir:[[@LINE+1]]:12: error: 'moe.get': homes: the layer is neither a constant nor that of the loop around
      %w = "moe.get"(%j) {param = @w, home = ["param @w[i]"]} : (index) -> !x
    }
    return
  }
}

//--- few_layers.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    %c2 = arith.constant 2 : index
    // CHECK: few_layers.mlir:[[@LINE+1]]:10: error: 'moe.get': homes: a row lies outside its parameter
    %w = "moe.get"(%c2) {param = @w, home = ["param @w[2]"]} : (index) -> !x
    return
  }
}

//--- get_elsewhere.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    %c1 = arith.constant 1 : index
    // CHECK: get_elsewhere.mlir:[[@LINE+1]]:10: error: 'moe.get': homes: a parameter or gradient is not at its home
    %w = "moe.get"(%c1) {param = @w, home = ["param @w[0]"]} : (index) -> !x
    return
  }
}

//--- write_param.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    // CHECK: write_param.mlir:[[@LINE+1]]:10: error: 'moe.fill': homes: a result lies where it cannot
    %a = "moe.fill"() {value = 2.0 : f64, home = ["param @w[0]"]} : () -> !x
    return
  }
}

//--- read_grad.mlir
!x = tensor<16xf32, ["D"]>
!y = tensor<4x16xf32, ["T", "D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    %c0 = arith.constant 0 : index
    %y = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !y
    // CHECK: read_grad.mlir:[[@LINE+1]]:10: error: 'moe.sum': homes: a value in a gradient is more than what is added to it
    %g = "moe.sum"(%y) {home = ["grad @w[0]"], adds = [true]} : (!y) -> !x
    %e = "moe.exp"(%g) {home = ["arena+0"]} : (!x) -> !x
    "moe.accumulate"(%g, %c0) {param = @w} : (!x, index) -> ()
    return
  }
}

//--- store_grad.mlir
!x = tensor<16xf32, ["D"]>
!y = tensor<4x16xf32, ["T", "D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    %c0 = arith.constant 0 : index
    %y = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !y
    // CHECK: store_grad.mlir:[[@LINE+1]]:10: error: 'moe.sum': homes: a value in a gradient is more than what is added to it
    %g = "moe.sum"(%y) {home = ["grad @w[0]"]} : (!y) -> !x
    "moe.accumulate"(%g, %c0) {param = @w} : (!x, index) -> ()
    return
  }
}

//--- other_grad.mlir
!x = tensor<16xf32, ["D"]>
!y = tensor<4x16xf32, ["T", "D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    %c1 = arith.constant 1 : index
    %y = "moe.fill"() {value = 2.0 : f64, home = ["arena+0"]} : () -> !y
    %g = "moe.sum"(%y) {home = ["grad @w[0]"], adds = [true]} : (!y) -> !x
    // CHECK: other_grad.mlir:[[@LINE+1]]:5: error: 'moe.accumulate': homes: a parameter or gradient is not at its home
    "moe.accumulate"(%g, %c1) {param = @w} : (!x, index) -> ()
    return
  }
}

//--- carries_param.mlir
!x = tensor<16xf32, ["D"]>
module {
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  func.func @forward() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = "moe.get"(%c0) {param = @w, home = ["param @w[0]"]} : (index) -> !x
    // CHECK: carries_param.mlir:[[@LINE+1]]:10: error: 'scf.for': homes: a carried value is not in the arena
    %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %w) -> (!x) {
      scf.yield %x : !x
    } {argument_home = ["param @w[0]"], home = ["param @w[0]"]}
    return
  }
}

//--- param_outside.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  // CHECK: param_outside.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: lies outside of the parameters, or is not aligned
  "moe.param"() {sym_name = "b", type = !y, layers = 0 : i64, path = "b", init = "ones", decay = false, trainable = true, offset = 80 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- param_aligned.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: param_aligned.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: lies outside of the parameters, or is not aligned
  "moe.param"() {sym_name = "b", type = !y, layers = 0 : i64, path = "b", init = "ones", decay = false, trainable = true, offset = 8 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- copy_aligned.mlir
!y = tensor<4x16xf32, ["T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: copy_aligned.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: lies outside of the parameters, or is not aligned
  "moe.param"() {sym_name = "b", type = !y, layers = 0 : i64, path = "b", init = "ones", decay = false, trainable = true, offset = 16 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16], rounded = true} : () -> ()
  func.func @forward() { return }
}

//--- param_over.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  // CHECK: param_over.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: lies where another parameter does
  "moe.param"() {sym_name = "b", type = !y, layers = 0 : i64, path = "b", init = "ones", decay = false, trainable = true, offset = 48 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- param_matrix.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: param_matrix.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: its matrix has another size than its type
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 15]} : () -> ()
  func.func @forward() { return }
}

//--- param_panels.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: param_panels.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: its elements do not hold its matrix
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 64 : i64, layout = "panels", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- param_layout.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: param_layout.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: its layout is neither rows nor panels
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 64 : i64, layout = "columns", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- param_none.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: param_none.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: a parameter has no place: run place-buffers first
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- set_over.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 0 : i64, offset = 0 : i64, chunk_elements = 64 : i64} : () -> ()
  // CHECK: set_over.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: lies where another parameter does
  "moe.param"() {sym_name = "a", type = !y, layers = 0 : i64, path = "a", init = "ones", decay = false, trainable = true, offset = 64 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}

//--- set_outside.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  // CHECK: set_outside.mlir:[[@LINE+1]]:3: error: 'moe.set': homes: lies outside of the parameters, or is not aligned
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 0 : i64, offset = 64 : i64, chunk_elements = 64 : i64} : () -> ()
  func.func @forward() { return }
}

//--- chunk_outside.mlir
!y = tensor<4x16xf32, ["T", "D"]>
!e = tensor<2x4x16xf32, ["E", "T", "D"]>
module attributes {hecate.param_elements = 128 : i64} {
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 0 : i64, offset = 0 : i64, chunk_elements = 64 : i64} : () -> ()
  // CHECK: chunk_outside.mlir:[[@LINE+1]]:3: error: 'moe.param': homes: lies outside of the parameters, or is not aligned
  "moe.param"() {sym_name = "a", type = !e, layers = 0 : i64, path = "p.{e}", set = @s, init = "ones", decay = false, trainable = true, offset = 16 : i64, elements = 64 : i64, layout = "rows", matrix = [4, 16]} : () -> ()
  func.func @forward() { return }
}
