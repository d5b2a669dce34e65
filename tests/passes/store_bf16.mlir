// RUN: split-file %s %t
// RUN: hecate-opt --passes=store-bf16 %t/values.mlir | FileCheck %t/values.mlir
// RUN: hecate-opt --passes=store-bf16,select-kernels,place-buffers %t/values.mlir | FileCheck %t/values.mlir --check-prefix=PLACE
// RUN: sed 's/"cuda"/"cpu"/' %t/values.mlir | hecate-opt --passes=store-bf16 | FileCheck %t/values.mlir --check-prefix=CPU
// RUN: hecate-opt --passes=store-bf16 %t/rows.mlir | FileCheck %t/rows.mlir
// RUN: sed 's/rounds = true/rounds = false/; s/xbf16/xf32/' %t/values.mlir | hecate-opt --passes=store-bf16 | FileCheck %t/values.mlir --check-prefix=CPU

//--- values.mlir

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!w = tensor<6x50xbf16, ["D", "F"]>
!h = tensor<2x4x50xf32, ["batch", "T", "F"]>
!l = tensor<2x4x3xf32, ["batch", "T", "E"]>
!ids = tensor<2x4xi32, ["batch", "T"]>

// What the target cannot keep, and what nothing rounds for, stays as it is.
// CPU-NOT: bf16, ["batch"
module attributes {hecate.target = "cuda", hecate.batch = 2 : i64, hecate.positions = 4 : i64} {
  "moe.param"() {sym_name = "w", type = tensor<6x50xf32, ["D", "F"]>, layers = 3 : i64, path = "{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "embed", type = tensor<7x6xf32, ["V", "D"]>, layers = 0 : i64, path = "embed", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "router", type = tensor<6x3xf32, ["D", "E"]>, layers = 0 : i64, path = "router", init = "ones", decay = true, trainable = true} : () -> ()
  // A slot is as what is kept in it.
  // CHECK:       "moe.slot"() {{.*}}sym_name = "h"{{.*}} tensor<2x4x50xbf16
  // CHECK:       "moe.slot"() {{.*}}sym_name = "z"{{.*}} tensor<2x4x3xf32
  // PLACE:       "moe.slot"() {{.*}}stride = 1024 : i64, sym_name = "h"
  "moe.slot"() {sym_name = "h", type = !h, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "z", type = !l, layers = 0 : i64} : () -> ()

  // CHECK-LABEL: func.func @forward(
  func.func @forward(%ids: !ids, %targets: !ids, %scale: tensor<f32>, %auxiliary_scale: tensor<f32>) -> tensor<f32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %e = "moe.get"() {param = @embed} : () -> tensor<7x6xf32, ["V", "D"]>
    %x = "moe.gather"(%e, %ids) : (tensor<7x6xf32, ["V", "D"]>, !ids) -> !x
    // A loop carries bf16, as what it yields is.
    // CHECK:       %[[X:.*]] = scf.for {{.*}} -> (tensor<2x4x6xbf16
    %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> (!x) {
      // CHECK:       %[[W:.*]] = "moe.get"(%{{.*}}) {param = @w}
      // CHECK:       %[[H:.*]] = "moe.contract"(%{{.*}}, %[[W]]) {rounds = true} : (tensor<2x4x6xbf16{{.*}}, tensor<6x50xbf16{{.*}}) -> tensor<2x4x50xbf16
      // CHECK:       "moe.stash"(%[[H]], %{{.*}}) {slot = @h} : (tensor<2x4x50xbf16
      %w = "moe.get"(%i) {param = @w} : (index) -> !w
      %h = "moe.contract"(%v, %w) {rounds = true} : (!x, !w) -> !h
      "moe.stash"(%h, %i) {slot = @h} : (!h, index) -> ()
      // The body of a loop over elements computes in f32.
      // CHECK:       "moe.fused"(%[[H]]) ({
      // CHECK:       ^bb0(%[[B:.*]]: tensor<2x4x50xbf16
      // CHECK:         %[[S:.*]] = "moe.silu"(%[[B]]) : (tensor<2x4x50xbf16{{.*}}) -> tensor<2x4x50xf32
      // CHECK:         vector.yield %{{.*}} : tensor<2x4x50xf32
      // CHECK:       }) {{.*}} : (tensor<2x4x50xbf16{{.*}}) -> tensor<2x4x50xbf16
      %s = "moe.fused"(%h) ({
      ^bb0(%b: !h):
        %p = "moe.silu"(%b) : (!h) -> !h
        %q = "moe.neg"(%p) : (!h) -> !h
        vector.yield %q : !h
      }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h) -> !h
      // CHECK:       "moe.contract"(%{{.*}}, %[[W]]) {rounds = true} : (tensor<2x4x50xbf16{{.*}}) -> tensor<2x4x6xbf16
      %r = "moe.contract"(%s, %w) {rounds = true} : (!h, !w) -> !x
      scf.yield %r : !x
    }
    // The product of a router does not round: it reads a copy, and everything behind it is f32.
    // CHECK:       %[[C:.*]] = "moe.copy"(%[[X]]) : (tensor<2x4x6xbf16{{.*}}) -> tensor<2x4x6xf32
    // CHECK:       %[[L:.*]] = "moe.contract"(%[[C]], %{{.*}}) : (tensor<2x4x6xf32{{.*}}) -> tensor<2x4x3xf32
    // CHECK:       %[[N:.*]] = "moe.neg"(%[[L]]) : (tensor<2x4x3xf32{{.*}}) -> tensor<2x4x3xf32
    // CHECK:       "moe.stash"(%[[N]]) {slot = @z} : (tensor<2x4x3xf32
    // PLACE:       kernel = "matmul_nn"{{.*}}rounds = true} : (tensor<2x4x6xbf16
    %router = "moe.get"() {param = @router} : () -> tensor<6x3xf32, ["D", "E"]>
    %l = "moe.contract"(%y, %router) : (!x, tensor<6x3xf32, ["D", "E"]>) -> !l
    %n = "moe.neg"(%l) : (!l) -> !l
    "moe.stash"(%n) {slot = @z} : (!l) -> ()
    // A loop reads either; one copy serves all that want f32.
    // CHECK-NOT:   moe.copy
    // CHECK:       "moe.contract"(%[[C]],
    // CHECK:       "moe.mul"(%[[X]], %[[X]]) : (tensor<2x4x6xbf16{{.*}}) -> tensor<2x4x6xbf16
    %again = "moe.contract"(%y, %router) : (!x, tensor<6x3xf32, ["D", "E"]>) -> !l
    %m = "moe.mul"(%y, %y) : (!x, !x) -> !x
    // What a loop makes of f32 alone stays so.
    // CHECK:       scf.for {{.*}} -> (tensor<2x4x3xf32
    %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %again) -> (!l) {
      %more = "moe.add"(%t, %again) : (!l, !l) -> !l
      scf.yield %more : !l
    }
    %zl = "moe.z_loss"(%sum) {coef = 1.0 : f64} : (!l) -> tensor<f32>
    %all = "moe.sum"(%m) : (!x) -> tensor<f32>
    %loss = "moe.add"(%zl, %all) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

//--- rows.mlir

!x = tensor<2x4x6xf32, ["batch", "T", "D"]>
!p = tensor<2x4x2xf32, ["batch", "T", "picks"]>
!r = tensor<20x6xf32, ["rows", "D"]>
!g = tensor<20xf32, ["rows"]>
!f = tensor<4xi32, ["first"]>

// What ranks send of rows is as they are, back, too; gate weights are f32. Of @cold nothing is bf16.
module attributes {hecate.target = "cuda", hecate.batch = 2 : i64, hecate.positions = 4 : i64, hecate.world = 2 : i64, hecate.settings = {parallel.experts = "ep", parallel.dense = "replicate", parallel.bucket = 1048576 : i64}} {
  "moe.set"() {sym_name = "warm", experts = 3 : i64, topk = 2 : i64, layers = 0 : i64, owned = true, wave_rows = 20 : i64} : () -> ()
  "moe.set"() {sym_name = "cold", experts = 3 : i64, topk = 2 : i64, layers = 0 : i64, owned = true, wave_rows = 20 : i64} : () -> ()
  "moe.param"() {sym_name = "embed", type = tensor<7x6xf32, ["V", "D"]>, layers = 0 : i64, path = "embed", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "w", type = tensor<3x6x6xf32, ["E", "D", "F"]>, layers = 0 : i64, path = "w.{e}", init = "ones", decay = true, trainable = true, set = @warm} : () -> ()
  // CHECK-LABEL: func.func private @moved(
  func.func private @moved(%ids: tensor<2x4xi32, ["batch", "T"]>, %weights: !p, %wave: index, %drows: tensor<20x6xf32, ["rows", "F"]>, %dgate: !g, %cold: !x) -> (!x, !x, !p, !x) {
    %e = "moe.get"() {param = @embed} : () -> tensor<7x6xf32, ["V", "D"]>
    %x = "moe.gather"(%e, %ids) : (tensor<7x6xf32, ["V", "D"]>, tensor<2x4xi32, ["batch", "T"]>) -> !x
    %w = "moe.get"() {param = @w} : () -> tensor<3x6x6xbf16, ["E", "D", "F"]>
    // CHECK-NOT:   moe.copy
    // CHECK:       "fssdp.dispatch"(%{{.*}}) {set = @warm} : (tensor<2x4x6xbf16{{.*}}, tensor<2x4x2xf32{{.*}}, index) -> (tensor<20x6xbf16{{.*}}, tensor<20xf32{{.*}}, tensor<4xi32
    %rows, %gate, %first = "fssdp.dispatch"(%x, %weights, %wave) {set = @warm} : (!x, !p, index) -> (!r, !g, !f)
    %h = "moe.grouped_contract"(%rows, %w, %first) {rounds = true} : (!r, tensor<3x6x6xbf16, ["E", "D", "F"]>, !f) -> tensor<20x6xf32, ["rows", "F"]>
    // CHECK:       "fssdp.give_back"(%{{.*}}) {set = @warm} : (tensor<20x6xbf16
    "fssdp.give_back"(%h, %wave) {set = @warm} : (tensor<20x6xf32, ["rows", "F"]>, index) -> ()
    // CHECK:       "fssdp.collect"() {set = @warm} : () -> tensor<2x4x6xbf16
    %y = "fssdp.collect"() {set = @warm} : () -> !x
    // CHECK:       "fssdp.dispatch_grad"(%{{.*}}) {set = @warm} : (tensor<2x4x6xbf16{{.*}}) -> tensor<20x6xbf16
    %dh = "fssdp.dispatch_grad"(%y, %first, %wave) {set = @warm} : (!x, !f, index) -> !r
    // CHECK:       %[[D:.*]] = "moe.copy"(%{{.*}}) : (tensor<20x6xf32{{.*}}) -> tensor<20x6xbf16
    // CHECK:       "fssdp.give_back_grad"(%[[D]], {{.*}}) {set = @warm} : (tensor<20x6xbf16{{.*}}, tensor<20xf32
    "fssdp.give_back_grad"(%drows, %dgate, %wave) {set = @warm} : (tensor<20x6xf32, ["rows", "F"]>, !g, index) -> ()
    // CHECK:       "fssdp.collect_grad"() {set = @warm} : () -> (tensor<2x4x6xbf16{{.*}}, tensor<2x4x2xf32
    %dx, %dw = "fssdp.collect_grad"() {set = @warm} : () -> (!x, !p)
    // CHECK:       "fssdp.dispatch"(%{{.*}}) {set = @cold} : (tensor<2x4x6xf32{{.*}}) -> (tensor<20x6xf32
    // CHECK:       "fssdp.collect"() {set = @cold} : () -> tensor<2x4x6xf32
    %r, %g, %f = "fssdp.dispatch"(%cold, %weights, %wave) {set = @cold} : (!x, !p, index) -> (!r, !g, !f)
    %z = "fssdp.collect"() {set = @cold} : () -> !x
    return %y, %dx, %dw, %z : !x, !x, !p, !x
  }
}
