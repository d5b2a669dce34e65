// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Rows on their way to other ranks; what is right is in docs/ir.md.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!z = tensor<2x4x7xf32, ["batch", "T", "D"]>
!w = tensor<2x4x2xf32, ["batch", "T", "picks"]>
!v = tensor<2x4x3xf32, ["batch", "T", "picks"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>
!r = tensor<64x6xf32, ["rows", "D"]>
!g = tensor<64xf32, ["rows"]>
!h = tensor<32xf32, ["rows"]>
!f = tensor<4xi32, ["first"]>
!e = tensor<5xi32, ["first"]>
module {
  "moe.set"() {sym_name = "s", experts = 3, topk = 2, layers = 5} : () -> ()
  "moe.set"() {sym_name = "one", experts = 3, topk = 2, layers = 0} : () -> ()
  func.func @f(%x: !x, %z: !z, %w: !w, %v: !v, %i: !i, %r: !r, %g: !g, %h: !h, %first: !f, %e: !e, %n: index) {
    // CHECK: fssdp_errors.mlir:[[@LINE+1]]:11: error: 'fssdp.waves': there is no moe.set @t
    %n0 = "fssdp.waves"(%n) {set = @t} : (index) -> index
    // CHECK: :[[@LINE+1]]:11: error: 'fssdp.waves': the set has several layers: which one?
    %n1 = "fssdp.waves"() {set = @s} : () -> index
    // CHECK: :[[@LINE+1]]:11: error: 'fssdp.waves': the set has no layers
    %n2 = "fssdp.waves"(%n) {set = @one} : (index) -> index
    // CHECK: :[[@LINE+1]]:11: error: 'fssdp.overwritten': the set has several layers: which one?
    %n3 = "fssdp.overwritten"(%n) {set = @s} : (index) -> index
    // CHECK: :[[@LINE+1]]:5: error: 'fssdp.exchange': ids is tensor<2x4x3xf32, ["batch", "T", "picks"]>, expected the tokens' dimensions and the set's top-k choices
    "fssdp.exchange"(%v, %n) {set = @s} : (!v, index) -> ()
    // CHECK: :[[@LINE+1]]:5: error: 'fssdp.await_counts': the set has several layers: which one?
    "fssdp.await_counts"() {set = @s} : () -> ()
    // CHECK: :[[@LINE+1]]:11: error: 'fssdp.drop': kept is tensor<2x4x3xf32, ["batch", "T", "picks"]>, expected tensor<2x4x2xi32, ["batch", "T", "picks"]>
    %k0 = "fssdp.drop"(%i, %w, %n) {set = @s, capacity = 1.0, drop = "lowest"} : (!i, !w, index) -> !v
    // CHECK: :[[@LINE+1]]:11: error: 'fssdp.drop': capacity is 0
    %k2 = "fssdp.drop"(%i, %w, %n) {set = @s, capacity = 0.0, drop = "lowest"} : (!i, !w, index) -> !i
    // CHECK: :[[@LINE+1]]:21: error: 'fssdp.dispatch': weights is
    %a0, %a1, %a2 = "fssdp.dispatch"(%x, %v, %n, %n) {set = @s} : (!x, !v, index, index) -> (!r, !g, !f)
    // CHECK: :[[@LINE+1]]:21: error: 'fssdp.dispatch': rows is tensor<2x4x6xf32, ["batch", "T", "D"]>, expected rows first
    %b0, %b1, %b2 = "fssdp.dispatch"(%x, %w, %n, %n) {set = @s} : (!x, !w, index, index) -> (!x, !g, !f)
    // CHECK: :[[@LINE+1]]:21: error: 'fssdp.dispatch': gate is tensor<32xf32, ["rows"]>, expected tensor<64xf32, ["rows"]>
    %c0, %c1, %c2 = "fssdp.dispatch"(%x, %w, %n, %n) {set = @s} : (!x, !w, index, index) -> (!r, !h, !f)
    // CHECK: :[[@LINE+1]]:21: error: 'fssdp.dispatch': first is tensor<5xi32, ["first"]>, expected tensor<4xi32, ["first"]>
    %d0, %d1, %d2 = "fssdp.dispatch"(%x, %w, %n, %n) {set = @s} : (!x, !w, index, index) -> (!r, !g, !e)
    // CHECK: :[[@LINE+1]]:21: error: 'fssdp.dispatch': x is tensor<2x4x7xf32, ["batch", "T", "D"]>: its rows are not those that are sent
    %e0, %e1, %e2 = "fssdp.dispatch"(%z, %w, %n, %n) {set = @s} : (!z, !w, index, index) -> (!r, !g, !f)
    // CHECK: :[[@LINE+1]]:5: error: 'fssdp.give_back': rows is tensor<2x4x6xf32, ["batch", "T", "D"]>, expected rows first
    "fssdp.give_back"(%x, %n, %n) {set = @s} : (!x, index, index) -> ()
    // CHECK: :[[@LINE+1]]:5: error: 'fssdp.reduce': `scope` is "epoch", expected iteration or step
    "fssdp.reduce"(%n) {set = @s, scope = "epoch"} : (index) -> ()
    // CHECK: :[[@LINE+1]]:10: error: 'fssdp.collect': y
    %y = "fssdp.collect"(%n) {set = @s} : (index) -> !i
    // CHECK: :[[@LINE+1]]:11: error: 'fssdp.dispatch_grad': first is tensor<5xi32, ["first"]>
    %dr = "fssdp.dispatch_grad"(%x, %e, %n, %n) {set = @s} : (!x, !e, index, index) -> !r
    // CHECK: :[[@LINE+1]]:5: error: 'fssdp.give_back_grad': dgate is tensor<32xf32, ["rows"]>, expected tensor<64xf32, ["rows"]>
    "fssdp.give_back_grad"(%r, %h, %n, %n) {set = @s} : (!r, !h, index, index) -> ()
    // CHECK: :[[@LINE+1]]:16: error: 'fssdp.collect_grad': dweights is
    %dx, %dw = "fssdp.collect_grad"(%n) {set = @s} : (index) -> (!x, !v)
    return
  }
}
// CHECK-NOT: error
