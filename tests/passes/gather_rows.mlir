// RUN: hecate-opt --passes=gather-rows %s | FileCheck %s
// RUN: sed 's/"cuda"/"cpu"/' %s | hecate-opt --passes=gather-rows | FileCheck %s --check-prefix=CPU

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<3x6x5xf32, ["E", "D", "F"]>
!w16 = tensor<3x6x5xbf16, ["E", "D", "F"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!h = tensor<16x5xf32, ["rows", "F"]>
!f = tensor<4xi32, ["first"]>
!p = tensor<16xi32, ["rows"]>
!i = tensor<2x4x2xi32, ["batch", "T", "picks"]>

// CPU-NOT: gathered_contract
module attributes {hecate.target = "cuda", hecate.batch = 2 : i64, hecate.positions = 4 : i64} {
  // All products that read the rows do so by the route, on either side.
  // CHECK-LABEL: func.func @products(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x6{{.*}} %[[W:[^:]*]]: tensor<3x6x5xf32{{.*}} %[[W16:[^:]*]]: tensor<3x6x5xbf16{{.*}} %[[DH:[^:]*]]: tensor<16x5{{.*}} %[[F:[^:]*]]: tensor<4xi32{{.*}} %[[P:[^:]*]]: tensor<16xi32{{.*}} %[[S:[^:]*]]: tensor<2x4x2xi32
  // CHECK-NOT:     moe.permute
  // CHECK:         "moe.gathered_contract"(%[[X]], %[[W]], %[[F]], %[[P]], %[[S]]) : ({{.*}}) -> tensor<16x5xf32, ["rows", "F"]>
  // CHECK:         "moe.gathered_contract"(%[[X]], %[[W16]], %[[F]], %[[P]], %[[S]]) {rounds = true} : ({{.*}}) -> tensor<16x5xf32
  // CHECK:         "moe.gathered_contract"(%[[X]], %[[DH]], %[[F]], %[[P]], %[[S]]) : ({{.*}}) -> tensor<3x6x5xf32, ["E", "D", "F"]>
  // CHECK:         "moe.gathered_contract"(%[[DH]], %[[X]], %[[F]], %[[P]], %[[S]]) : ({{.*}}) -> tensor<3x5x6xf32, ["E", "F", "D"]>
  func.func @products(%x: !x, %w: !w, %w16: !w16, %dh: !h, %first: !f, %pair: !p, %slot: !i) -> (!h, !h, !w, tensor<3x5x6xf32, ["E", "F", "D"]>) {
    %rows = "moe.permute"(%x, %pair, %slot) : (!x, !p, !i) -> !r
    %h = "moe.grouped_contract"(%rows, %w, %first) : (!r, !w, !f) -> !h
    %g = "moe.grouped_contract"(%rows, %w16, %first) {rounds = true} : (!r, !w16, !f) -> !h
    %dw = "moe.grouped_contract"(%rows, %dh, %first) : (!r, !h, !f) -> !w
    %dt = "moe.grouped_contract"(%dh, %rows, %first) : (!h, !r, !f) -> tensor<3x5x6xf32, ["E", "F", "D"]>
    return %h, %g, %dw, %dt : !h, !h, !w, tensor<3x5x6xf32, ["E", "F", "D"]>
  }

  // Something else reads them: then they are there for products, too.
  // CHECK-LABEL: func.func @others(
  // CHECK:         %[[R:.*]] = "moe.permute"
  // CHECK:         "moe.grouped_contract"(%[[R]],
  func.func @others(%x: !x, %w: !w, %first: !f, %pair: !p, %slot: !i) -> (!h, !r) {
    %rows = "moe.permute"(%x, %pair, %slot) : (!x, !p, !i) -> !r
    %h = "moe.grouped_contract"(%rows, %w, %first) : (!r, !w, !f) -> !h
    %s = "moe.silu"(%rows) : (!r) -> !r
    return %h, %s : !h, !r
  }

  // One operand of a product.
  // CHECK-LABEL: func.func @both(
  // CHECK:         %[[R:.*]] = "moe.permute"
  // CHECK-NOT:     moe.permute
  // CHECK:         "moe.gathered_contract"(%{{.*}}, %[[R]],
  func.func @both(%x: !x, %y: tensor<2x4x5xf32, ["batch", "T", "F"]>, %first: !f, %pair: !p, %slot: !i) -> !w {
    %rows = "moe.permute"(%x, %pair, %slot) : (!x, !p, !i) -> !r
    %dh = "moe.permute"(%y, %pair, %slot) : (tensor<2x4x5xf32, ["batch", "T", "F"]>, !p, !i) -> !h
    %dw = "moe.grouped_contract"(%rows, %dh, %first) : (!r, !h, !f) -> !w
    return %dw : !w
  }
}
