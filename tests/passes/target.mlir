// RUN: hecate-opt --passes=select-kernels,place-buffers %s | FileCheck %s --check-prefix=CPU
// RUN: sed 's/module {/module attributes {hecate.target = "null"} {/' %s | hecate-opt --passes=select-kernels,place-buffers | FileCheck %s --check-prefix=NULL
// RUN: hecate-opt --passes=select-kernels,place-buffers %s | sed 's/hecate.arena_bytes/hecate.target = "null", &/' > %t.mlir
// RUN: not hecate-opt --passes=prove-homes %t.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed '/hk.call/,/})/s/layout = "panels"/layout = "rows"/' %t.mlir | not hecate-opt --passes=prove-homes 2>&1 | FileCheck %s --check-prefix=PARAM
// RUN: sed 's/module {/module attributes {hecate.target = "null"} {/' %s | hecate-opt --passes=select-kernels,place-buffers | sed 's/arena+128/arena+64/' > %t.near.mlir
// RUN: not hecate-opt --passes=prove-homes %t.near.mlir 2>&1 | FileCheck %s --check-prefix=NEAR
//
// The same matrix for a target with panels of 64 columns and for one that has rows; values of 64 bytes at
// multiples of 64 and of 128. What was placed for one target is no proof for another.

!x = tensor<4x4xf32, ["T", "D"]>
!w = tensor<4x4xf32, ["D", "F"]>
!y = tensor<4x4xf32, ["T", "F"]>
// CPU:   hecate.arena_bytes = 128 : i64, hecate.param_elements = 256 : i64
// NULL:  hecate.arena_bytes = 256 : i64, hecate.param_elements = 32 : i64
// WRONG: error: 'hk.call': has weights in panels, which its target has not
// PARAM: error: 'moe.param': homes: lies in panels, which its target has not
// NEAR:  homes: a value lies outside the arena, or is not aligned
module {
  // CPU:  layout = "panels"
  // NULL: layout = "rows"
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  func.func @forward() -> !y {
    %x = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %w = "moe.get"() {param = @w} : () -> !w
    %y = "moe.contract"(%x, %w) : (!x, !w) -> !y
    return %y : !y
  }
}
