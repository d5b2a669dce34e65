// RUN: hecate-opt --passes=fuse-swiglu %s | FileCheck %s
// RUN: sed 's/"cuda"/"cpu"/; s/{rounds = true}//; s/xbf16/xf32/g' %s | hecate-opt --passes=fuse-swiglu | FileCheck %s --check-prefix=CPU

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<3x6x5xf32, ["E", "D", "F"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!h = tensor<16x5xf32, ["rows", "F"]>
!g = tensor<16xf32, ["rows"]>
!f = tensor<4xi32, ["first"]>
!p = tensor<16xi32, ["rows"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>

// CPU-NOT: swiglu"(
module attributes {hecate.target = "cuda", hecate.batch = 2 : i64, hecate.positions = 4 : i64} {
  "moe.slot"() {sym_name = "b", type = !h, layers = 0 : i64} : () -> ()

  // What is stashed before the loop is stashed behind it. Factors stand on either side.
  // CHECK-LABEL: func.func @rows(
  // CHECK-SAME:    %[[R:[^:]*]]: tensor<16x6{{.*}} %[[W1:[^:]*]]: tensor<3x6x5{{.*}} %[[W3:[^:]*]]: tensor<3x6x5{{.*}} %[[G:[^:]*]]: tensor<16xf32{{.*}} %[[F:[^:]*]]: tensor<4xi32
  // CHECK-NEXT:    %[[ALL:.*]]:3 = "moe.swiglu"(%[[R]], %[[W1]], %[[W3]], %[[F]], %[[G]])
  // CHECK-NEXT:    "moe.stash"(%[[ALL]]#0) {slot = @b}
  // CHECK-NEXT:    return %[[ALL]]#2, %[[ALL]]#1
  func.func @rows(%rows: !r, %w1: !w, %w3: !w, %gate: !g, %first: !f) -> (!h, !h) {
    %c = "moe.grouped_contract"(%rows, %w3, %first) : (!r, !w, !f) -> !h
    %b = "moe.grouped_contract"(%rows, %w1, %first) : (!r, !w, !f) -> !h
    "moe.stash"(%b) {slot = @b} : (!h) -> ()
    %h = "moe.fused"(%c, %gate, %b) ({
    ^bb0(%u: !h, %s: !g, %v: !h):
      %0 = "moe.silu"(%v) : (!h) -> !h
      %1 = "moe.mul"(%u, %0) : (!h, !h) -> !h
      %2 = "moe.mul"(%1, %s) : (!h, !g) -> !h
      vector.yield %2 : !h
    }) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !g, !h) -> !h
    return %h, %c : !h, !h
  }

  // CHECK-LABEL: func.func @tokens(
  // CHECK:         "moe.gathered_swiglu"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {rounds = true} :
  // CHECK-NOT:     moe.fused
  func.func @tokens(%x: tensor<2x4x6xbf16, ["batch", "T", "D"]>, %w: tensor<3x6x5xbf16, ["E", "D", "F"]>, %gate: !g, %first: !f, %pair: !p, %slot: !i) -> tensor<16x5xbf16, ["rows", "F"]> {
    %b = "moe.gathered_contract"(%x, %w, %first, %pair, %slot) {rounds = true} : (tensor<2x4x6xbf16, ["batch", "T", "D"]>, tensor<3x6x5xbf16, ["E", "D", "F"]>, !f, !p, !i) -> tensor<16x5xbf16, ["rows", "F"]>
    %c = "moe.gathered_contract"(%x, %w, %first, %pair, %slot) {rounds = true} : (tensor<2x4x6xbf16, ["batch", "T", "D"]>, tensor<3x6x5xbf16, ["E", "D", "F"]>, !f, !p, !i) -> tensor<16x5xbf16, ["rows", "F"]>
    %h = "moe.fused"(%b, %c, %gate) ({
    ^bb0(%v: tensor<16x5xbf16, ["rows", "F"]>, %u: tensor<16x5xbf16, ["rows", "F"]>, %s: !g):
      %0 = "moe.silu"(%v) : (tensor<16x5xbf16, ["rows", "F"]>) -> !h
      %1 = "moe.mul"(%0, %u) : (!h, tensor<16x5xbf16, ["rows", "F"]>) -> !h
      %2 = "moe.mul"(%1, %s) : (!h, !g) -> !h
      vector.yield %2 : !h
    }) {operandSegmentSizes = array<i32: 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<16x5xbf16, ["rows", "F"]>, tensor<16x5xbf16, ["rows", "F"]>, !g) -> tensor<16x5xbf16, ["rows", "F"]>
    return %h : tensor<16x5xbf16, ["rows", "F"]>
  }

  // Of other rows, with another function, read before the loop: these stay.
  // CHECK-LABEL: func.func @others(
  // CHECK-COUNT-3: moe.fused
  // CHECK-NOT:     swiglu
  func.func @others(%rows: !r, %more: !r, %w1: !w, %w3: !w, %gate: !g, %first: !f) -> (!h, !h, !h, !h) {
    %b = "moe.grouped_contract"(%rows, %w1, %first) : (!r, !w, !f) -> !h
    %c = "moe.grouped_contract"(%more, %w3, %first) : (!r, !w, !f) -> !h
    %h = "moe.fused"(%b, %c, %gate) ({
    ^bb0(%v: !h, %u: !h, %s: !g):
      %0 = "moe.silu"(%v) : (!h) -> !h
      %1 = "moe.mul"(%0, %u) : (!h, !h) -> !h
      %2 = "moe.mul"(%1, %s) : (!h, !g) -> !h
      vector.yield %2 : !h
    }) {operandSegmentSizes = array<i32: 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !h, !g) -> !h
    %d = "moe.grouped_contract"(%rows, %w3, %first) : (!r, !w, !f) -> !h
    %k = "moe.fused"(%b, %d, %gate) ({
    ^bb0(%v: !h, %u: !h, %s: !g):
      %0 = "moe.gelu"(%v) : (!h) -> !h
      %1 = "moe.mul"(%0, %u) : (!h, !h) -> !h
      %2 = "moe.mul"(%1, %s) : (!h, !g) -> !h
      vector.yield %2 : !h
    }) {operandSegmentSizes = array<i32: 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !h, !g) -> !h
    %e = "moe.neg"(%d) : (!h) -> !h
    %l = "moe.fused"(%b, %d, %gate) ({
    ^bb0(%v: !h, %u: !h, %s: !g):
      %0 = "moe.silu"(%v) : (!h) -> !h
      %1 = "moe.mul"(%0, %u) : (!h, !h) -> !h
      %2 = "moe.mul"(%1, %s) : (!h, !g) -> !h
      vector.yield %2 : !h
    }) {operandSegmentSizes = array<i32: 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h, !h, !g) -> !h
    return %h, %k, %l, %e : !h, !h, !h, !h
  }
}
