// RUN: hecate-opt --passes=cache-keys %s | FileCheck %s
// RUN: sed 's/causal = true/causal = false/' %s | hecate-opt --passes=cache-keys | FileCheck %s --check-prefix=NOT
// RUN: grep -v 'slot = @v' %s | hecate-opt --passes=cache-keys | FileCheck %s --check-prefix=NOT
// RUN: sed 's/^module attributes {/&hecate.world = 2 : i64, /' %s | hecate-opt --passes=cache-keys | FileCheck %s --check-prefix=NOT
// RUN: sed 's/^module attributes {/&hecate.target = "cuda", /' %s | hecate-opt --passes=cache-keys | FileCheck %s --check-prefix=NOT
//
// Positions that are not apart: a sum over them that comes back, a table that is not read row by row.
// RUN: sed 's|^ *// SUM ||' %s | hecate-opt --passes=cache-keys | FileCheck %s --check-prefix=NOT
// RUN: sed 's|^ *// TABLE ||' %s | hecate-opt --passes=cache-keys | FileCheck %s --check-prefix=NOT
//
// Losses may be sums over positions.
// RUN: sed 's|^ *// LOSS ||' %s | hecate-opt --passes=cache-keys | FileCheck %s

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!h = tensor<2x4x2x3xf32, ["batch", "T", "H", "A"]>
!ids = tensor<2x4xi32, ["batch", "T"]>
!w = tensor<6x2x3xf32, ["D", "H", "A"]>
!e = tensor<5x6xf32, ["V", "D"]>
!t = tensor<4x6xf32, ["T", "D"]>

// CHECK: hecate.continues = true
// CHECK: "moe.slot"(){{.*}}kept = true{{.*}}sym_name = "k"
// CHECK: "moe.slot"(){{.*}}kept = true{{.*}}sym_name = "v"
// CHECK: "moe.slot"
// CHECK-NOT: kept
// CHECK-SAME: sym_name = "q"
// NOT-NOT: continues
// NOT-NOT: kept
module attributes {hecate.batch = 2 : i64, hecate.positions = 4 : i64} {
  "moe.param"() {decay = true, init = "zeros", layers = 0 : i64, path = "e", sym_name = "e", trainable = true, type = !e} : () -> ()
  "moe.param"() {decay = true, init = "zeros", layers = 0 : i64, path = "t", sym_name = "t", trainable = true, type = !t} : () -> ()
  "moe.param"() {decay = true, init = "zeros", layers = 0 : i64, path = "w", sym_name = "w", trainable = true, type = !w} : () -> ()
  "moe.slot"() {sym_name = "k", type = !h, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "v", type = !h, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "q", type = !h, layers = 0 : i64} : () -> ()
  func.func @forward(%ids: !ids, %targets: !ids, %scale: tensor<f32>, %auxiliary_scale: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    %e = "moe.get"() {param = @e} : () -> !e
    %t = "moe.get"() {param = @t} : () -> !t
    %w = "moe.get"() {param = @w} : () -> !w
    %r = "moe.gather"(%e, %ids) : (!e, !ids) -> !x
    // TABLE %r2 = "moe.gather"(%t, %ids) : (!t, !ids) -> !x
    %x = "moe.add"(%r, %t) : (!x, !t) -> !x
    %q = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %k = "moe.exp"(%q) : (!h) -> !h
    %v = "moe.silu"(%q) : (!h) -> !h
    "moe.stash"(%q) {slot = @q} : (!h) -> ()
    "moe.stash"(%k) {slot = @k} : (!h) -> ()
    "moe.stash"(%v) {slot = @v} : (!h) -> ()
    %o:2 = "moe.sdpa"(%q, %k, %v) {causal = true, scale = 1.0 : f64, window = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!h, !h, !h) -> (!h, tensor<2x2x4xf32, ["batch", "H", "T"]>)
    // SUM %s = "moe.sum"(%o#0) : (!h) -> tensor<2x2x3xf32, ["batch", "H", "A"]>
    %m = "moe.fill"() {value = 0.0 : f64} : () -> tensor<2x6xf32, ["batch", "D"]>
    // LOSS %n = "moe.exp"(%m) : (tensor<2x6xf32, ["batch", "D"]>) -> tensor<2x6xf32, ["batch", "D"]>
    return %scale, %scale, %scale : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
