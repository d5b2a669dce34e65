// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Whose rows: what reads rows of a set's experts says so, nothing else does, and slots say what they keep.

!x = tensor<2x8x6xf32, ["batch", "T", "D"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!first = tensor<5xi32, ["first"]>
!pair = tensor<32xi32, ["rows"]>
!r = tensor<32x6xf32, ["rows", "D"]>
!e = tensor<4x6xf32, ["E", "D"]>
module {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.set"() {sym_name = "t", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "rows", type = !r, layers = 0 : i64, rows_of = @s} : () -> ()
  "moe.slot"() {sym_name = "first", type = !first, layers = 0 : i64, rows_of = @s} : () -> ()
  "moe.slot"() {sym_name = "plain", type = !r, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "pair", type = !pair, layers = 0 : i64} : () -> ()
  // CHECK: rows_errors.mlir:[[@LINE+1]]:3: error: 'moe.slot': there is no moe.set @none
  "moe.slot"() {sym_name = "none", type = !r, layers = 0 : i64, rows_of = @none} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'moe.slot': there is no moe.set @rows
  "moe.slot"() {sym_name = "other", type = !r, layers = 0 : i64, rows_of = @rows} : () -> ()
  func.func @f(%x: !x, %w: !w, %ids: !i, %e: !e) -> (!x, !r) {
    %f, %p, %o = "moe.route"(%ids) {experts = 4 : i64, rows_of = @s} : (!i) -> (!first, !pair, !i)
    %r = "moe.permute"(%x, %p, %o) {rows_of = @s} : (!x, !pair, !i) -> !r
    %u = "moe.permute"(%x, %p, %o) {rows_of = @t} : (!x, !pair, !i) -> !r
    "moe.stash"(%r) {slot = @rows, rows_of = @s} : (!r) -> ()
    "moe.stash"(%f) {slot = @first, rows_of = @s} : (!first) -> ()
    // Where rows come from and go to is known of the tokens.
    "moe.stash"(%p) {slot = @pair} : (!pair) -> ()
    %y = "moe.combine"(%r, %p, %o) {rows_of = @s} : (!r, !pair, !i) -> !x
    %back = "moe.neg"(%y) : (!x) -> !x
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.neg': operand 0 is rows of the experts of @s: rows_of has to say so
    %1 = "moe.neg"(%r) : (!r) -> !r
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.neg': operand 0 is rows of the experts of @s: rows_of has to say so
    %2 = "moe.neg"(%r) {rows_of = @t} : (!r) -> !r
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.add': operand 1 is rows of the experts of @t: rows_of has to say so
    %3 = "moe.add"(%r, %u) {rows_of = @s} : (!r, !r) -> !r
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.spread': operand 1 is rows of the experts of @s: rows_of has to say so
    %4 = "moe.spread"(%e, %f) : (!e, !first) -> !r
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.combine': operand 0 is rows of the experts of @s: rows_of has to say so
    %5 = "moe.combine"(%r, %p, %o) : (!r, !pair, !i) -> !x
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.neg': has rows_of, but reads no rows of experts
    %6 = "moe.neg"(%y) {rows_of = @s} : (!x) -> !x
    // CHECK-NEXT: :[[@LINE+1]]:5: error: 'moe.stash': has rows_of, but reads no rows of experts
    "moe.stash"(%p) {slot = @rows, rows_of = @s} : (!pair) -> ()
    // CHECK-NEXT: :[[@LINE+1]]:5: error: 'moe.stash': rows_of is not that of its slot
    "moe.stash"(%r) {slot = @plain, rows_of = @s} : (!r) -> ()
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.fetch': rows_of is not that of its slot
    %7 = "moe.fetch"() {slot = @rows} : () -> !r
    // CHECK-NEXT: :[[@LINE+1]]:10: error: 'moe.fetch': rows_of is not that of its slot
    %8 = "moe.fetch"() {slot = @plain, rows_of = @s} : () -> !r
    %9 = "moe.fetch"() {slot = @rows, rows_of = @s} : () -> !r
    // CHECK-NEXT: :[[@LINE+1]]:11: error: 'moe.neg': operand 0 is rows of the experts of @s: rows_of has to say so
    %10 = "moe.neg"(%9) : (!r) -> !r
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    // What a loop carries is its own; what only its body reads must not leave it.
    %11 = scf.for %i = %zero to %one step %one iter_args(%c = %r) -> (!r) {
      // CHECK-NEXT: :[[@LINE+1]]:12: error: 'moe.neg': operand 0 is rows of the experts of @s: rows_of has to say so
      %n = "moe.neg"(%c) : (!r) -> !r
      scf.yield %c : !r
    } {rows_of = @s}
    %12 = scf.for %i = %zero to %one step %one iter_args(%c = %4) -> (!r) {
      // CHECK-NEXT: :[[@LINE+1]]:7: error: 'scf.yield': operand 0 is rows of the experts of @s: they leave here
      scf.yield %r : !r
    }
    // CHECK-NEXT: :[[@LINE+1]]:5: error: 'func.return': operand 1 is rows of the experts of @s: they leave here
    return %y, %r : !x, !r
  }
}
// CHECK-NOT: error:
