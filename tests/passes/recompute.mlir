// RUN: hecate-opt --passes=recompute %s | FileCheck %s
// RUN: sed 's/^module {/module attributes {hecate.settings = {parallel.recompute = "none"}} {/' %s | hecate-opt --passes=recompute | FileCheck %s --check-prefix=NONE
// RUN: sed 's/^module {/module attributes {hecate.settings = {parallel.recompute = "cheap"}} {/' %s | hecate-opt --passes=recompute | FileCheck %s --check-prefix=CHEAP
// RUN: sed 's/^module {/module attributes {hecate.settings = {parallel.recompute = "all"}} {/' %s | hecate-opt --passes=recompute | FileCheck %s --check-prefix=ALL

!x = tensor<2x4xf32, ["batch", "D"]>
!r = tensor<2xf32, ["batch"]>
!g = tensor<4xf32, ["D"]>
module {
  "moe.param"() {sym_name = "g", type = !g, layers = 3 : i64, path = "{}.g", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "w", type = tensor<4x4xf32, ["D", "F"]>, layers = 3 : i64, path = "{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  // What stays: the product %a, the carried %x, the observed %o, and %lost, whose operand is saved
  // nowhere. What goes: %s, and %h, which needs %s.
  // CHECK-DAG: sym_name = "a"
  // CHECK-DAG: sym_name = "x"
  // CHECK-DAG: sym_name = "n"
  // CHECK-DAG: sym_name = "o"
  // CHECK-DAG: sym_name = "lost"
  // CHECK-NOT: sym_name = "s"
  // CHECK-NOT: sym_name = "h"
  // NONE-DAG: sym_name = "s"
  // NONE-DAG: sym_name = "h"
  // With all, only the carried %x and the observed %o stay.
  // ALL-NOT:   sym_name = "{{[anshl]|lost}}"
  // ALL:       sym_name = "x"
  // ALL-NOT:   sym_name = "{{[anshl]|lost}}"
  // ALL:       sym_name = "o"
  // ALL-NOT:   moe.slot
  // CHEAP-NOT: sym_name = "n"
  // CHEAP:     sym_name = "lost"
  // CHEAP-NOT: sym_name = "n"
  "moe.slot"() {sym_name = "x", type = !x, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "n", type = !x, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "a", type = tensor<2x4xf32, ["batch", "F"]>, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "s", type = tensor<2x4xf32, ["batch", "F"]>, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "h", type = tensor<2x4xf32, ["batch", "F"]>, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "o", type = !x, layers = 3 : i64, observed = true} : () -> ()
  "moe.slot"() {sym_name = "lost", type = tensor<2x4xf32, ["batch", "F"]>, layers = 3 : i64} : () -> ()

  // CHECK-LABEL: func.func @forward(
  // CHECK-NOT:     slot = @s
  // CHECK-NOT:     slot = @h
  // CHECK-LABEL: func.func @backward(
  func.func @forward(%in: !x) -> !x {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %in) -> (!x) {
      "moe.stash"(%x, %i) {slot = @x} : (!x, index) -> ()
      %g = "moe.get"(%i) {param = @g} : (index) -> !g
      %w = "moe.get"(%i) {param = @w} : (index) -> tensor<4x4xf32, ["D", "F"]>
      %n:2 = "moe.rmsnorm"(%x, %g) {eps = 1.0e-5 : f64, over = 1 : i64} : (!x, !g) -> (!x, !r)
      "moe.stash"(%n#0, %i) {slot = @n} : (!x, index) -> ()
      %a = "moe.contract"(%n#0, %w) : (!x, tensor<4x4xf32, ["D", "F"]>) -> tensor<2x4xf32, ["batch", "F"]>
      "moe.stash"(%a, %i) {slot = @a} : (tensor<2x4xf32, ["batch", "F"]>, index) -> ()
      %s = "moe.silu"(%a) : (tensor<2x4xf32, ["batch", "F"]>) -> tensor<2x4xf32, ["batch", "F"]>
      "moe.stash"(%s, %i) {slot = @s} : (tensor<2x4xf32, ["batch", "F"]>, index) -> ()
      %h = "moe.mul"(%s, %a) : (tensor<2x4xf32, ["batch", "F"]>, tensor<2x4xf32, ["batch", "F"]>) -> tensor<2x4xf32, ["batch", "F"]>
      "moe.stash"(%h, %i) {slot = @h} : (tensor<2x4xf32, ["batch", "F"]>, index) -> ()
      %o = "moe.exp"(%x) : (!x) -> !x
      "moe.stash"(%o, %i) {slot = @o} : (!x, index) -> ()
      %b = "moe.contract"(%o, %w) : (!x, tensor<4x4xf32, ["D", "F"]>) -> tensor<2x4xf32, ["batch", "F"]>
      %lost = "moe.exp"(%b) : (tensor<2x4xf32, ["batch", "F"]>) -> tensor<2x4xf32, ["batch", "F"]>
      "moe.stash"(%lost, %i) {slot = @lost} : (tensor<2x4xf32, ["batch", "F"]>, index) -> ()
      scf.yield %o : !x
    }
    return %r : !x
  }
  // CHECK:         scf.for
  // CHECK:           %[[I:.*]] = arith.subi
  // CHECK-DAG:       %[[A:.*]] = "moe.fetch"(%[[I]]) {slot = @a}
  // CHECK-DAG:       %[[S:.*]] = "moe.silu"(%[[A]])
  // CHECK-DAG:       %[[H:.*]] = "moe.mul"(%[[S]], %[[A]])
  // CHECK-DAG:       %[[N:.*]] = "moe.fetch"(%[[I]]) {slot = @n}
  // CHECK-DAG:       %[[D:.*]] = "moe.contract"(%[[N]], %[[H]])
  // CHECK-DAG:       "moe.accumulate"(%[[D]], %[[I]]) {param = @w}
  // CHECK-DAG:       "moe.fetch"(%[[I]]) {slot = @o}
  // CHECK:           return
  // ALL-LABEL: func.func @backward(
  // ALL-DAG:         %[[X:.*]] = "moe.fetch"(%[[I:.*]]) {slot = @x}
  // ALL-DAG:         %[[N:.*]]:2 = "moe.rmsnorm"(%[[X]], %{{.*}})
  // ALL-DAG:         %[[A:.*]] = "moe.contract"(%[[N]]#0, %{{.*}})
  // ALL-DAG:         %[[S:.*]] = "moe.silu"(%[[A]])
  // ALL-DAG:         %[[O:.*]] = "moe.fetch"(%[[I]]) {slot = @o}
  // ALL-DAG:         %[[B:.*]] = "moe.contract"(%[[O]], %{{.*}})
  // ALL-DAG:         "moe.exp"(%[[B]])
  // CHEAP-LABEL: func.func @backward(
  // CHEAP:           %[[I:.*]] = arith.subi
  // CHEAP-DAG:       %[[X:.*]] = "moe.fetch"(%[[I]]) {slot = @x}
  // CHEAP-DAG:       %[[G:.*]] = "moe.get"(%[[I]]) {param = @g}
  // CHEAP-DAG:       %[[N:.*]]:2 = "moe.rmsnorm"(%[[X]], %[[G]])
  // CHEAP-DAG:       "moe.contract"(%[[N]]#0,
  func.func @backward(%in: !x) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    scf.for %step = %c0 to %c3 step %c1 {
      %c2 = arith.constant 2 : index
      %i = arith.subi %c2, %step : index
      %h = "moe.fetch"(%i) {slot = @h} : (index) -> tensor<2x4xf32, ["batch", "F"]>
      %s = "moe.fetch"(%i) {slot = @s} : (index) -> tensor<2x4xf32, ["batch", "F"]>
      %n = "moe.fetch"(%i) {slot = @n} : (index) -> !x
      %d = "moe.contract"(%n, %h) : (!x, tensor<2x4xf32, ["batch", "F"]>) -> tensor<4x4xf32, ["D", "F"]>
      "moe.accumulate"(%d, %i) {param = @w} : (tensor<4x4xf32, ["D", "F"]>, index) -> ()
      %e = "moe.contract"(%n, %s) : (!x, tensor<2x4xf32, ["batch", "F"]>) -> tensor<4x4xf32, ["D", "F"]>
      "moe.accumulate"(%e, %i) {param = @w} : (tensor<4x4xf32, ["D", "F"]>, index) -> ()
      %lost = "moe.fetch"(%i) {slot = @lost} : (index) -> tensor<2x4xf32, ["batch", "F"]>
      %f = "moe.contract"(%n, %lost) : (!x, tensor<2x4xf32, ["batch", "F"]>) -> tensor<4x4xf32, ["D", "F"]>
      "moe.accumulate"(%f, %i) {param = @w} : (tensor<4x4xf32, ["D", "F"]>, index) -> ()
      %o = "moe.fetch"(%i) {slot = @o} : (index) -> !x
      %u = "moe.contract"(%o, %lost) : (!x, tensor<2x4xf32, ["batch", "F"]>) -> tensor<4x4xf32, ["D", "F"]>
      "moe.accumulate"(%u, %i) {param = @w} : (tensor<4x4xf32, ["D", "F"]>, index) -> ()
      %x = "moe.fetch"(%i) {slot = @x} : (index) -> !x
      %a = "moe.fetch"(%i) {slot = @a} : (index) -> tensor<2x4xf32, ["batch", "F"]>
      %v = "moe.contract"(%x, %a) : (!x, tensor<2x4xf32, ["batch", "F"]>) -> tensor<4x4xf32, ["D", "F"]>
      "moe.accumulate"(%v, %i) {param = @w} : (tensor<4x4xf32, ["D", "F"]>, index) -> ()
    }
    return
  }
}
