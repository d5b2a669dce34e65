// RUN: split-file %s %t
// RUN: hecate-opt --passes=use-bf16,simplify %t/bf16.mlir | FileCheck %t/bf16.mlir
// RUN: sed 's/router" = "fp32"/router" = "bf16"/' %t/bf16.mlir > %t/router.mlir
// RUN: hecate-opt --passes=use-bf16,simplify %t/router.mlir | FileCheck %t/bf16.mlir --check-prefix=ROUTER
// RUN: sed 's/precision" = "bf16"/precision" = "fp32"/' %t/bf16.mlir > %t/fp32.mlir
// RUN: hecate-opt --passes=use-bf16,simplify %t/fp32.mlir | FileCheck %t/bf16.mlir --check-prefix=FP32
// RUN: hecate-opt --passes=use-bf16,differentiate,simplify %t/gradient.mlir | FileCheck %t/gradient.mlir
// RUN: hecate-opt --passes=use-bf16,differentiate,simplify,select-kernels,place-buffers %t/gradient.mlir | FileCheck %t/gradient.mlir --check-prefix=PLACE
// RUN: hecate-opt --passes=use-bf16,differentiate,simplify,select-kernels,place-buffers --explain=memory %t/gradient.mlir | FileCheck %t/gradient.mlir --check-prefix=MEMORY
// RUN: hecate-opt --passes=use-bf16 %t/fp64.mlir | FileCheck %t/fp64.mlir

//--- bf16.mlir

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<6x5xf32, ["D", "F"]>
!h = tensor<2x4x5xf32, ["batch", "T", "F"]>
!l = tensor<2x4x3xf32, ["batch", "T", "E"]>
!k = tensor<2x4x2xf32, ["batch", "T", "picks"]>
!q = tensor<2x4x3x2xf32, ["batch", "T", "H", "A"]>
module attributes {hecate.settings = {"train.precision" = "bf16", "train.precision.router" = "fp32"}} {
  "moe.param"() {sym_name = "w", type = !w, layers = 3 : i64, path = "{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "router", type = tensor<6x3xf32, ["D", "E"]>, layers = 0 : i64, path = "router", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "bias", type = tensor<3xf32, ["E"]>, layers = 0 : i64, path = "bias", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "embed", type = tensor<7x6xf32, ["V", "D"]>, layers = 0 : i64, path = "embed", init = "ones", decay = true, trainable = true} : () -> ()

  // One parameter is read rounded by both products and as it is by the elementwise operation.
  // CHECK-LABEL: func.func @weights(
  // CHECK-DAG:     %[[R:.*]] = "moe.get"(%{{.*}}) {param = @w} : (index) -> tensor<6x5xbf16, ["D", "F"]>
  // CHECK-DAG:     %[[W:.*]] = "moe.get"(%{{.*}}) {param = @w} : (index) -> tensor<6x5xf32, ["D", "F"]>
  // CHECK:         "moe.contract"(%arg0, %[[R]]) {rounds = true}
  // CHECK:         "moe.contract"(%{{.*}}, %[[R]]) {rounds = true} : (tensor<2x4x5xf32{{.*}}) -> tensor<2x4x6xf32
  // CHECK:         "moe.add"(%[[W]], %[[W]])
  // A computed matrix has no rounded copy, and the product of two activations reads no parameter.
  // CHECK:         "moe.contract"(%{{[^)]*}}) : (
  // CHECK:         "moe.contract"(%{{[^)]*}}) : (
  // FP32-LABEL: func.func @weights(
  // FP32-NOT:      {{bf16,|rounds}}
  func.func @weights(%x: !x, %i: index) -> (!h, !x, !h, !w) {
    %w = "moe.get"(%i) {param = @w} : (index) -> !w
    %h = "moe.contract"(%x, %w) : (!x, !w) -> !h
    %y = "moe.contract"(%h, %w) : (!h, !w) -> !x
    %two = "moe.add"(%w, %w) : (!w, !w) -> !w
    %z = "moe.contract"(%x, %two) : (!x, !w) -> !h
    %t = "moe.contract"(%x, %h) : (!x, !h) -> !w
    return %h, %y, %z, %t : !h, !x, !h, !w
  }

  // The tied table is gathered from as it is.
  // CHECK-LABEL: func.func @tied(
  // CHECK-DAG:     %[[E:.*]] = "moe.get"() {param = @embed} : () -> tensor<7x6xf32
  // CHECK-DAG:     %[[B:.*]] = "moe.get"() {param = @embed} : () -> tensor<7x6xbf16
  // CHECK:         "moe.gather"(%[[E]],
  // CHECK:         "moe.contract"(%{{.*}}, %[[B]]) {rounds = true}
  func.func @tied(%ids: tensor<2x4xi32, ["batch", "T"]>) -> tensor<2x4x7xf32, ["batch", "T", "V"]> {
    %e = "moe.get"() {param = @embed} : () -> tensor<7x6xf32, ["V", "D"]>
    %x = "moe.gather"(%e, %ids) : (tensor<7x6xf32, ["V", "D"]>, tensor<2x4xi32, ["batch", "T"]>) -> !x
    %r = "moe.contract"(%x, %e) : (!x, tensor<7x6xf32, ["V", "D"]>) -> tensor<2x4x7xf32, ["batch", "T", "V"]>
    return %r : tensor<2x4x7xf32, ["batch", "T", "V"]>
  }

  // The logits, from behind their bias.
  // CHECK-LABEL: func.func @choice(
  // CHECK-NOT:     bf16,
  // CHECK:         "moe.router"
  // ROUTER-LABEL: func.func @choice(
  // ROUTER:        "moe.contract"(%{{.*}}, %{{.*}}) {rounds = true} : ({{.*}}tensor<6x3xbf16
  func.func @choice(%x: !x) -> !k {
    %w = "moe.get"() {param = @router} : () -> tensor<6x3xf32, ["D", "E"]>
    %b = "moe.get"() {param = @bias} : () -> tensor<3xf32, ["E"]>
    %z = "moe.contract"(%x, %w) : (!x, tensor<6x3xf32, ["D", "E"]>) -> !l
    %l = "moe.add"(%z, %b) : (!l, tensor<3xf32, ["E"]>) -> !l
    %scores, %weights, %ids, %loads = "moe.router"(%l)
      {score = "softmax", weight = "renormalized", topk = 2 : i64, groups = 1 : i64, topk_groups = 1 : i64, scale = 1.0 : f64}
      : (!l) -> (!l, !k, tensor<2x4x2xi32, ["batch", "T", "picks"]>, tensor<3xi32, ["E"]>)
    return %weights : !k
  }

  // CHECK-LABEL: func.func @attention(
  // CHECK:         "moe.sdpa"(%{{.*}}) {causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, rounds = true, scale
  // FP32-LABEL: func.func @attention(
  // FP32-NOT:      rounds
  func.func @attention(%q: !q) -> !q {
    %out, %lse = "moe.sdpa"(%q, %q, %q) {causal = true, window = 0 : i64, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!q, !q, !q) -> (!q, tensor<2x3x4xf32, ["batch", "H", "T"]>)
    return %out : !q
  }
}

//--- gradient.mlir

!x = tensor<2x4x7xf32, ["batch", "T", "D"]>
!h = tensor<2x4x5xf32, ["batch", "T", "F"]>
!r = tensor<8x7xf32, ["rows", "D"]>
!g = tensor<8x5xf32, ["rows", "F"]>
!f = tensor<3xi32, ["first"]>
module attributes {hecate.settings = {"train.precision" = "bf16"}} {
  // The offset is one at which both layouts are aligned; 7 rows are stored as 8.
  // PLACE: hecate.param_elements = 1568
  // PLACE: "moe.param"() {decay = true, elements = 512 : i64, {{.*}}layout = "panels", matrix = [7, 5], offset = 0 : i64, {{.*}}rounded = true, sym_name = "w"
  // PLACE: "moe.param"() {decay = true, elements = 32 : i64, {{.*}}layout = "rows", matrix = [1, 5], offset = 512 : i64, path = "b", sym_name = "b"
  // PLACE: "moe.param"() {decay = true, elements = 512 : i64, {{.*}}rounded = true, set = @s, sym_name = "e"
  // PLACE: "moe.set"() {chunk_elements = 512 : i64, {{.*}}offset = 544
  // MEMORY:      6.1 KiB  parameters
  // MEMORY-NEXT: 3.0 KiB  rounded copies     in bf16, that GEMMs read
  // MEMORY-NEXT: 6.1 KiB  gradients
  "moe.param"() {sym_name = "w", type = tensor<7x5xf32, ["D", "F"]>, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "b", type = tensor<5xf32, ["F"]>, layers = 0 : i64, path = "b", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "e", type = tensor<2x7x5xf32, ["E", "D", "F"]>, layers = 0 : i64, path = "{e}", init = "ones", decay = true, trainable = true, set = @s} : () -> ()
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 0 : i64} : () -> ()

  // All three products of a weight round; gradients are f32.
  // CHECK-LABEL: func.func @backward(
  // CHECK-DAG:     %[[DE:.*]] = "moe.grouped_contract"(%{{.*}}) {rounds = true} : (tensor<8x7xf32, ["rows", "D"]>, tensor<8x5xf32, {{.*}}) -> tensor<2x7x5xf32, ["E", "D", "F"]>
  // CHECK-DAG:     "moe.accumulate"(%[[DE]]) {param = @e} : (tensor<2x7x5xf32,
  // CHECK-DAG:     %[[DW:.*]] = "moe.contract"(%{{.*}}) {rounds = true} : (tensor<2x4x7xf32, ["batch", "T", "D"]>, tensor<2x4x5xf32, {{.*}}) -> tensor<7x5xf32, ["D", "F"]>
  // CHECK-DAG:     "moe.accumulate"(%[[DW]]) {param = @w} : (tensor<7x5xf32,
  // CHECK-DAG:     "moe.contract"(%{{.*}}) {rounds = true} : (tensor<2x4x5xf32, ["batch", "T", "F"]>, tensor<7x5xbf16, ["D", "F"]>) -> tensor<2x4x7xf32
  func.func @forward(%x: !x, %rows: !r, %first: !f) -> tensor<f32> {
    %w = "moe.get"() {param = @w} : () -> tensor<7x5xf32, ["D", "F"]>
    %e = "moe.get"() {param = @e} : () -> tensor<2x7x5xf32, ["E", "D", "F"]>
    %b = "moe.get"() {param = @b} : () -> tensor<5xf32, ["F"]>
    %y = "moe.contract"(%x, %w) : (!x, tensor<7x5xf32, ["D", "F"]>) -> !h
    %u = "moe.contract"(%y, %w) : (!h, tensor<7x5xf32, ["D", "F"]>) -> !x
    %v = "moe.contract"(%u, %w) : (!x, tensor<7x5xf32, ["D", "F"]>) -> !h
    %h = "moe.add"(%v, %b) : (!h, tensor<5xf32, ["F"]>) -> !h
    %g = "moe.grouped_contract"(%rows, %e, %first) : (!r, tensor<2x7x5xf32, ["E", "D", "F"]>, !f) -> !g
    %s = "moe.sum"(%h) : (!h) -> tensor<f32>
    %t = "moe.sum"(%g) : (!g) -> tensor<f32>
    %loss = "moe.add"(%s, %t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

//--- fp64.mlir

// Only products of f32 round.
!x = tensor<2x4x6xf64, ["batch", "T", "D"]>
module attributes {hecate.settings = {"train.precision" = "bf16"}} {
  "moe.param"() {sym_name = "w", type = tensor<6x5xf64, ["D", "F"]>, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK-NOT: {{bf16, \[|rounds}}
  func.func @f(%x: !x) -> tensor<2x4x5xf64, ["batch", "T", "F"]> {
    %w = "moe.get"() {param = @w} : () -> tensor<6x5xf64, ["D", "F"]>
    %h = "moe.contract"(%x, %w) : (!x, tensor<6x5xf64, ["D", "F"]>) -> tensor<2x4x5xf64, ["batch", "T", "F"]>
    return %h : tensor<2x4x5xf64, ["batch", "T", "F"]>
  }
}
