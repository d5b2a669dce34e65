// RUN: hecate-opt --locations '--passes=select-kernels(sums=apart)' %s > %t.calls.mlir
// RUN: sed -e '/kernel = "\(matmul\|grouped\)_/{/\["D", "H", "A"\]\|\["E", "D", "F"\]/s/kernel = /layout = "panels", &/;/layout/!s/kernel = /layout = "rows", &/}' %t.calls.mlir > %t.mlir
// RUN: hecatec --compile-from=place-buffers -S -o - %t.mlir | FileCheck %s
//
// Which matrix product a contraction is, from the order of dimension names; layouts; chunks.

!x = tensor<2x8x4xf64, ["batch", "T", "D"]>
!q = tensor<2x8x3x5xf64, ["batch", "T", "H", "A"]>
!bt = tensor<2x8xf64, ["batch", "T"]>
!wq = tensor<4x3x5xf64, ["D", "H", "A"]>
!emb = tensor<9x4xf64, ["V", "D"]>
!logits = tensor<2x8x9xf64, ["batch", "T", "V"]>
!g = tensor<4xf64, ["D"]>
!rows = tensor<32x4xf64, ["rows", "D"]>
!rowsf = tensor<32x6xf64, ["rows", "F"]>
!w1 = tensor<7x4x6xf64, ["E", "D", "F"]>
!b1 = tensor<7x6xf64, ["E", "F"]>
!first = tensor<8xi32, ["first"]>
!picks = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!el = tensor<2x8x7xf64, ["batch", "T", "E"]>
!weights = tensor<2x8x2xf64, ["batch", "T", "picks"]>
!loads = tensor<7xi32, ["E"]>
!rowi = tensor<32xi32, ["rows"]>
!ids = tensor<2x8xi32, ["batch", "T"]>
!s = tensor<f64>

// CHECK: // target cpu, fp64
// CHECK: sparse_w1 = 0, sparse_b1 = 256
// CHECK: const double *wq[layers];
// CHECK-SAME: // [D, H, A] in panels
// CHECK: const double *sparse[layers][E]; // Chunks of experts.
// CHECK: m->param.sparse[i][n] = p + 2048 + (i * E + n) * 272;
// CHECK: m->grad.sparse[i][n] = g + 2048 + (i * E + n) * 272;
module @products attributes {hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 9 : i64, hecate.arena_bytes = 99999 : i64, hecate.param_elements = 9999 : i64} {
  "moe.set"() {sym_name = "sparse", experts = 7 : i64, topk = 2 : i64, layers = 3 : i64, offset = 2048 : i64, chunk_elements = 272 : i64} : () -> ()
  "moe.param"() {sym_name = "wq", type = !wq, layers = 3 : i64, index_first = 0 : i64, index_stride = 1 : i64, path = "layers.{}.wq", init = "normal", deviation = 0.02, decay = true, trainable = true, offset = 0 : i64, elements = 256 : i64, layout = "panels", matrix = [4, 15]} : () -> ()
  "moe.param"() {sym_name = "embed", type = !emb, layers = 0 : i64, path = "embed", init = "normal", deviation = 0.02, decay = true, trainable = true, offset = 768 : i64, elements = 48 : i64, layout = "rows", matrix = [9, 4]} : () -> ()
  "moe.param"() {sym_name = "gain", type = !g, layers = 0 : i64, path = "gain", init = "ones", decay = false, trainable = true, offset = 816 : i64, elements = 16 : i64, layout = "rows", matrix = [1, 4]} : () -> ()
  "moe.param"() {sym_name = "sparse.w1", type = !w1, set = @sparse, layers = 3 : i64, index_first = 0 : i64, index_stride = 1 : i64, path = "layers.{}.experts.{e}.w1", init = "normal", deviation = 0.02, decay = true, trainable = true, offset = 0 : i64, elements = 256 : i64, layout = "panels", matrix = [4, 6]} : () -> ()
  "moe.param"() {sym_name = "sparse.b1", type = !b1, set = @sparse, layers = 3 : i64, index_first = 0 : i64, index_stride = 1 : i64, path = "layers.{}.experts.{e}.b1", init = "zeros", decay = false, trainable = true, offset = 256 : i64, elements = 16 : i64, layout = "rows", matrix = [1, 6]} : () -> ()
  "moe.slot"() {sym_name = "logits", type = !logits, layers = 0 : i64, holds = "logits", observed = true, offset = 0 : i64, stride = 1152 : i64, rows = 1 : i64} : () -> ()
  "moe.slot"() {sym_name = "choice", type = !picks, layers = 0 : i64, offset = 1536 : i64, stride = 128 : i64, rows = 1 : i64} : () -> ()
  "moe.slot"() {sym_name = "x", type = !x, layers = 3 : i64, offset = 2048 : i64, stride = 512 : i64, rows = 4 : i64} : () -> ()

  // CHECK-LABEL: static struct hrt_losses forward(
  func.func @forward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) -> (!s, !s, !s) attributes {argument_home = ["ids", "targets", "scale", "auxiliary_scale"]} {
    %embed = "moe.get"() {param = @embed, home = ["param @embed"]} : () -> !emb
    %gain = "moe.get"() {param = @gain, home = ["param @gain"]} : () -> !g
    // CHECK: hk_gather_f64(m->saved.x[0], m->param.embed, m->ids, batch * T, D);
    %x0 = "moe.gather"(%embed, %ids) {home = ["slot @x[0]"]} : (!emb, !ids) -> !x
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    // CHECK: for (int64_t i = 0; i < layers; i++) {
    %x3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %x0) -> (!x) {
      "moe.stash"(%x, %i) {slot = @x} : (!x, index) -> ()
      %wq = "moe.get"(%i) {param = @wq, home = ["param @wq[i]"]} : (index) -> !wq
      // CHECK: hk_matmul_nn_f64(q, m->saved.x[i], m->param.wq[i], HK_PANELS,
      // CHECK-NEXT: .m = batch * T, .n = H * A, .k = D}, HK_STORE,
      // CHECK-NEXT: NULL);
      %q = "moe.contract"(%x, %wq) {home = ["arena+16384"]} : (!x, !wq) -> !q loc("q")
      // CHECK: hk_matmul_nt_f64(m->saved.x[i + 1], q, m->param.wq[i], HK_PANELS,
      // CHECK-NEXT: .m = batch * T, .n = H * A, .k = D}, HK_STORE,
      // CHECK-NEXT: NULL);
      %y = "moe.contract"(%q, %wq) {home = ["slot @x[i+1]"]} : (!q, !wq) -> !x loc("y")
      scf.yield %y : !x
    } {argument_home = ["slot @x[i]"], home = ["slot @x[3]"]}
    // Tied weights: the other way round.
    // CHECK: hk_matmul_nt_f64(m->saved.logits, m->saved.x[layers], m->param.embed, HK_ROWS,
    // CHECK-NEXT: .m = batch * T, .n = D, .k = V}, HK_STORE, NULL);
    %logits = "moe.contract"(%x3, %embed) {home = ["slot @logits"]} : (!x, !emb) -> !logits
    // A vector is a matrix of one column.
    // CHECK: hk_matmul_nn_f64(g, m->saved.x[layers], m->param.gain, HK_ROWS,
    // CHECK-NEXT: .m = batch * T, .n = 1, .k = D}, HK_STORE, NULL);
    %g1 = "moe.contract"(%x3, %gain) {home = ["arena+16384"]} : (!x, !g) -> !bt loc("g")
    // No dimension is summed: an outer product.
    // CHECK: hk_matmul_nt_f64(outer, g, m->param.gain, HK_ROWS,
    // CHECK-NEXT: .m = batch * T, .n = 1, .k = D}, HK_STORE, NULL);
    %o = "moe.contract"(%g1, %gain) {home = ["arena+17408"]} : (!bt, !g) -> !x loc("outer")
    %logit:2 = "moe.cross_entropy"(%logits, %targets, %scale) {home = ["arena+18432", "arena+18496"]} : (!logits, !ids, !s) -> (!s, !bt) loc("loss")

    %picked = "moe.fill"() {value = 0.0 : f64, home = ["arena+19008"]} : () -> !s
    // CHECK: hk_router_f64(scores, weights, m->saved.choice, loads_2, el, NULL, NULL, NULL, batch * T,
    // CHECK-NEXT: (struct hk_router_rule){.experts = E, .topk = picks, .groups = 7,
    // CHECK-NEXT: .topk_groups = 3, .score = HK_SIGMOID,
    // CHECK-NEXT: .weight = HK_SCORES, .scale = 2.5});
    %el = "moe.fill"() {value = 0.0 : f64, home = ["arena+70016"]} : () -> !el loc("el")
    %scores, %weights, %choice, %loads = "moe.router"(%el) {score = "sigmoid", weight = "scores", topk = 2 : i64, groups = 7 : i64, topk_groups = 3 : i64, scale = 2.5 : f64, home = ["arena+71040", "arena+72000", "slot @choice", "arena+73024"]} : (!el) -> (!el, !weights, !picks, !loads) loc("scores")
    "moe.stash"(%choice) {slot = @choice} : (!picks) -> ()
    // CHECK-NOT: m->saved.choice[
    // CHECK: hk_route(first_2, pair, slot, m->saved.choice, batch * T, picks, E);
    %first, %pair, %slot = "moe.route"(%choice) {experts = 7 : i64, home = ["arena+20480", "arena+20544", "arena+21568"]} : (!picks) -> (!first, !rowi, !picks) loc("first")
    // CHECK: hk_permute_f64(r_2, outer, pair, batch * T, picks, D);
    %r = "moe.permute"(%o, %pair, %slot) {home = ["arena+32768"]} : (!x, !rowi, !picks) -> !rows loc("r")
    return %logit#0, %logit#0, %picked : !s, !s, !s
  }
  // CHECK-LABEL: static void backward(
  // CHECK: const int64_t rows = batch * T * picks;
  func.func @backward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) attributes {argument_home = ["ids", "targets", "scale", "auxiliary_scale"]} {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    // CHECK: for (int64_t i = layers - 1; i >= 0; i--) {
    scf.for %step = %c0 to %c3 step %c1 {
      %c2 = arith.constant 2 : index
      %i = arith.subi %c2, %step : index
      %x = "moe.fetch"(%i) {slot = @x, home = ["slot @x[i]"]} : (index) -> !x
      %q = "moe.fill"() {value = 1.0 : f64, home = ["arena+16384"]} : () -> !q loc("q")
      // CHECK: hk_matmul_tn_f64(m->grad.wq[i], m->saved.x[i], q, HK_PANELS,
      // CHECK-NEXT: .m = batch * T, .n = H * A, .k = D}, HK_ADD);
      %dwq = "moe.contract"(%x, %q) {home = ["grad @wq[i]"], adds = [true]} : (!x, !q) -> !wq
      "moe.accumulate"(%dwq, %i) {param = @wq} : (!wq, index) -> ()
      %r = "moe.fill"() {value = 1.0 : f64, home = ["arena+32768"]} : () -> !rows loc("r")
      %choice = "moe.fetch"() {slot = @choice, home = ["slot @choice"]} : () -> !picks
      %first, %pair, %slot = "moe.route"(%choice) {experts = 7 : i64, home = ["arena+20480", "arena+20544", "arena+21568"]} : (!picks) -> (!first, !rowi, !picks) loc("first")
      %w1 = "moe.get"(%i) {param = @sparse.w1, home = ["param @sparse.w1[i]"]} : (index) -> !w1
      %b1 = "moe.get"(%i) {param = @sparse.b1, home = ["param @sparse.b1[i]"]} : (index) -> !b1
      // CHECK: hk_grouped_nn_f64(h, r_2, m->param.sparse[i], sparse_w1, first_2,
      // CHECK-NEXT: .experts = E, .n = F, .k = D}, HK_STORE, NULL);
      %h = "moe.grouped_contract"(%r, %w1, %first) {home = ["arena+40960"]} : (!rows, !w1, !first) -> !rowsf loc("h")
      // CHECK: hk_grouped_nt_f64(dr, h, m->param.sparse[i], sparse_w1, first_2,
      // CHECK-NEXT: .experts = E, .n = F, .k = D}, HK_STORE, NULL);
      %dr = "moe.grouped_contract"(%h, %w1, %first) {home = ["arena+49152"]} : (!rowsf, !w1, !first) -> !rows loc("dr")
      // CHECK: hk_grouped_tn_f64(m->grad.sparse[i], sparse_w1, r_2, h, first_2,
      // CHECK-NEXT: .experts = E, .n = F, .k = D}, HK_ADD);
      %dw1 = "moe.grouped_contract"(%r, %h, %first) {home = ["grad @sparse.w1[i]"], adds = [true]} : (!rows, !rowsf, !first) -> !w1
      "moe.accumulate"(%dw1, %i) {param = @sparse.w1} : (!w1, index) -> ()
      // CHECK: hk_spread_f64(s, m->param.sparse[i], sparse_b1, first_2, E, F, HK_STORE);
      %sp = "moe.spread"(%b1, %first) {home = ["arena+57344"]} : (!b1, !first) -> !rowsf loc("s")
      // CHECK: hk_spread_grad_f64(m->grad.sparse[i], sparse_b1, s, first_2, E, F, HK_ADD);
      %db1 = "moe.spread_grad"(%sp, %first) {home = ["grad @sparse.b1[i]"], adds = [true]} : (!rowsf, !first) -> !b1
      "moe.accumulate"(%db1, %i) {param = @sparse.b1} : (!b1, index) -> ()
      // The rows of another top-k would be another variable.
      // CHECK: gate[j] = 2.0;
      %gate = "moe.fill"() {value = 2.0 : f64, home = ["arena+65536"]} : () -> tensor<32xf64, ["rows"]> loc("gate")
    }
    return
  }
}
// CHECK: {.name = "sparse", .experts = 7, .topk = 2, .layers = 3, .offset = 2048, .chunk_elements = 272},
// CHECK: {.symbol = "sparse.w1", .path = "layers.{}.experts.{e}.w1", .rank = 2, .dim = {"D", "F"},
// CHECK-NEXT: .shape = {4, 6}, .layers = 3,
// CHECK: .layout = HRT_PANELS, .rows = 4,
// CHECK-NEXT: .columns = 6,
// CHECK-SAME: .set = 0, .offset = 0},
