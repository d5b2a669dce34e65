// RUN: hec-ir-tool --gradient %s | FileCheck %s
//
// Products and their gradients: the operands of each gradient stand so that no transpose is needed.

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<6x2x5xf32, ["D", "H", "A"]>
!q = tensor<2x4x2x5xf32, ["batch", "T", "H", "A"]>
!e = tensor<9x6xf32, ["V", "D"]>
!l = tensor<2x4x9xf32, ["batch", "T", "V"]>
!r = tensor<16x6xf32, ["rows", "D"]>
!f = tensor<4xi32, ["first"]>

module {
  // CHECK-LABEL: func.func @nn(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x6xf32{{[^%]*}}%[[W:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.contract"(%[[DR]], %[[W]])
  // CHECK-NEXT:    %[[DW:.*]] = "moe.contract"(%[[X]], %[[DR]])
  // CHECK-NEXT:    return %{{.*}}, %[[DX]], %[[DW]]
  func.func @nn(%x: !x, %w: !w) -> !q {
    %r = "moe.contract"(%x, %w) : (!x, !w) -> !q
    return %r : !q
  }

  // Two dimensions are summed.
  // CHECK-LABEL: func.func @nn_two(
  // CHECK:         "moe.contract"
  func.func @nn_two(%q: !q, %w: tensor<2x5x6xf32, ["H", "A", "D"]>) -> !x {
    %r = "moe.contract"(%q, %w) : (!q, tensor<2x5x6xf32, ["H", "A", "D"]>) -> !x
    return %r : !x
  }

  // Tied weights: the table of embeddings from the other side. Its gradient starts with V.
  // CHECK-LABEL: func.func @nt(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x6xf32{{[^%]*}}%[[W:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.contract"(%[[DR]], %[[W]])
  // CHECK-NEXT:    %[[DW:.*]] = "moe.contract"(%[[DR]], %[[X]])
  // CHECK-NEXT:    return %{{.*}}, %[[DX]], %[[DW]]
  func.func @nt(%x: !x, %w: !e) -> !l {
    %r = "moe.contract"(%x, %w) : (!x, !e) -> !l
    return %r : !l
  }

  // CHECK-LABEL: func.func @tn(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x6xf32{{[^%]*}}%[[Y:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.contract"(%[[Y]], %[[DR]])
  // CHECK-NEXT:    "moe.contract"(%[[X]], %[[DR]])
  func.func @tn(%x: !x, %y: !l) -> tensor<6x9xf32, ["D", "V"]> {
    %r = "moe.contract"(%x, %y) : (!x, !l) -> tensor<6x9xf32, ["D", "V"]>
    return %r : tensor<6x9xf32, ["D", "V"]>
  }

  // A vector: one number per token. Nothing is summed in the gradient of x.
  // CHECK-LABEL: func.func @vector(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<2x4x6xf32{{[^%]*}}%[[G:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.contract"(%[[DR]], %[[G]])
  // CHECK-NEXT:    "moe.contract"(%[[X]], %[[DR]])
  func.func @vector(%x: !x, %g: tensor<6xf32, ["D"]>) -> tensor<2x4xf32, ["batch", "T"]> {
    %r = "moe.contract"(%x, %g) : (!x, tensor<6xf32, ["D"]>) -> tensor<2x4xf32, ["batch", "T"]>
    return %r : tensor<2x4xf32, ["batch", "T"]>
  }

  // CHECK-LABEL: func.func @grouped(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<16x6xf32{{[^%]*}}%[[W:[^:]*]]: tensor<3x6x5xf32{{[^%]*}}%[[F:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    %[[DX:.*]] = "moe.grouped_contract"(%[[DR]], %[[W]], %[[F]])
  // CHECK-NEXT:    %[[DW:.*]] = "moe.grouped_contract"(%[[X]], %[[DR]], %[[F]])
  // CHECK-NEXT:    return %{{.*}}, %[[DX]], %[[DW]]
  func.func @grouped(%x: !r, %w: tensor<3x6x5xf32, ["E", "D", "F"]>, %first: !f)
      -> tensor<16x5xf32, ["rows", "F"]> {
    %r = "moe.grouped_contract"(%x, %w, %first)
      : (!r, tensor<3x6x5xf32, ["E", "D", "F"]>, !f) -> tensor<16x5xf32, ["rows", "F"]>
    return %r : tensor<16x5xf32, ["rows", "F"]>
  }

  // CHECK-LABEL: func.func @grouped_nt(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<16x6xf32{{[^%]*}}%[[W:[^:]*]]: tensor<3x5x6xf32{{[^%]*}}%[[F:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.grouped_contract"(%[[DR]], %[[W]], %[[F]])
  // CHECK-NEXT:    "moe.grouped_contract"(%[[DR]], %[[X]], %[[F]])
  func.func @grouped_nt(%x: !r, %w: tensor<3x5x6xf32, ["E", "F", "D"]>, %first: !f)
      -> tensor<16x5xf32, ["rows", "F"]> {
    %r = "moe.grouped_contract"(%x, %w, %first)
      : (!r, tensor<3x5x6xf32, ["E", "F", "D"]>, !f) -> tensor<16x5xf32, ["rows", "F"]>
    return %r : tensor<16x5xf32, ["rows", "F"]>
  }

  // CHECK-LABEL: func.func @grouped_tn(
  // CHECK-SAME:    %[[X:[^:]*]]: tensor<16x6xf32{{[^%]*}}%[[Y:[^:]*]]: tensor<16x5xf32{{[^%]*}}%[[F:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.grouped_contract"(%[[Y]], %[[DR]], %[[F]])
  // CHECK-NEXT:    "moe.grouped_contract"(%[[X]], %[[DR]], %[[F]])
  func.func @grouped_tn(%x: !r, %y: tensor<16x5xf32, ["rows", "F"]>, %first: !f)
      -> tensor<3x6x5xf32, ["E", "D", "F"]> {
    %r = "moe.grouped_contract"(%x, %y, %first)
      : (!r, tensor<16x5xf32, ["rows", "F"]>, !f) -> tensor<3x6x5xf32, ["E", "D", "F"]>
    return %r : tensor<3x6x5xf32, ["E", "D", "F"]>
  }

  // CHECK-LABEL: func.func @spread(
  // CHECK-SAME:    %{{[^:]*}}: tensor<3x6xf32{{[^%]*}}%[[F:[^:]*]]: tensor
  // CHECK:         %[[DR:.*]] = "moe.fill"() {value = 1
  // CHECK-NEXT:    "moe.spread_grad"(%[[DR]], %[[F]]) : ({{.*}}) -> tensor<3x6xf32, ["E", "D"]>
  func.func @spread(%b: tensor<3x6xf32, ["E", "D"]>, %first: !f) -> !r {
    %r = "moe.spread"(%b, %first) : (tensor<3x6xf32, ["E", "D"]>, !f) -> !r
    return %r : !r
  }
}
