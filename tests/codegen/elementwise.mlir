// RUN: hecate-opt --locations '--passes=select-kernels(sums=apart)' %s > %t.mlir
// RUN: hecatec --compile-from=place-buffers -S -o - %t.mlir | FileCheck %s
//
// Elementwise operations: one loop where all operands are alike, loops over rows and columns where
// one is broadcast, brackets only where C needs them, no loop for a scalar.

#two = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!bd = tensor<2x8x4xf32, ["batch", "T", "D"]>
!d = tensor<4xf32, ["D"]>
!bt = tensor<2x8xf32, ["batch", "T"]>
!td = tensor<8x4xf32, ["T", "D"]>
!big = tensor<2x8x4096xf32, ["batch", "T", "F"]>
!ids = tensor<2x8xi32, ["batch", "T"]>
!s = tensor<f32>

module @loops attributes {hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 4 : i64, hecate.arena_bytes = 999999 : i64, hecate.param_elements = 16 : i64} {
  "moe.param"() {sym_name = "w", type = !d, layers = 0 : i64, path = "w", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 4 : i64, layout = "rows", matrix = [1, 4]} : () -> ()
  "moe.slot"() {sym_name = "logits", type = !bd, layers = 0 : i64, holds = "logits", observed = true, offset = 0 : i64, stride = 256 : i64, rows = 1 : i64} : () -> ()

// CHECK-LABEL: static struct hrt_losses forward(
  func.func @forward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) -> (!s, !s, !s) attributes {argument_home = ["ids", "targets", "scale", "auxiliary_scale"]} {
    %w = "moe.get"() {param = @w, home = ["param @w"]} : () -> !d
    %x = "moe.fill"() {value = 0.5 : f64, home = ["slot @logits"]} : () -> !bd
    "moe.stash"(%x) {slot = @logits} : (!bd) -> ()

    // CHECK: for (int64_t j = 0; j < batch * T * D; j++) a[j] = m->saved.logits[j] - m->saved.logits[j];
    %a = "moe.sub"(%x, %x) {home = ["arena+1024"]} : (!bd, !bd) -> !bd loc("a")
    // CHECK: for (int64_t j = 0; j < batch * T * D; j++) b[j] = hk_silu_f32(a[j]);
    %b = "moe.silu"(%a) {home = ["arena+2048"]} : (!bd) -> !bd loc("b")
    // CHECK: c[j] = -b[j];
    %c = "moe.neg"(%b) {home = ["arena+2304"]} : (!bd) -> !bd loc("c")
    // CHECK: a_2[j] = b[j] < c[j] ? b[j] : c[j];
    %min = "moe.minimum"(%b, %c) {home = ["arena+1024"]} : (!bd, !bd) -> !bd loc("a.2")

    // CHECK: for (int64_t r = 0; r < batch * T; r++) {
    // CHECK-NEXT: #pragma omp simd
    // CHECK-NEXT: for (int64_t j = 0; j < D; j++) d[r * D + j] = c[r * D + j] * m->param.w[j];
    %d = "moe.mul"(%c, %w) {home = ["arena+1280"]} : (!bd, !d) -> !bd loc("d")
    // In place: the same memory under another name.
    // CHECK: float *rows_of_d = m->forward.rows_of_d; // [batch, T]
    // CHECK: rows_of_d[j] = hk_exp_f32({{.*}})
    %g = "moe.fill"() {home = ["arena+3072"], value = 2.0 : f64} : () -> !bt
    %h = "moe.exp"(%g) {home = ["arena+3072"]} : (!bt) -> !bt loc("rows_of_d")
    // CHECK: for (int64_t r = 0; r < batch * T; r++) {
    // CHECK: e[r * D + j] = d[r * D + j] / rows_of_d[r];
    %e = "moe.div"(%d, %h) {home = ["arena+1024"]} : (!bd, !bt) -> !bd loc("e")
    // CHECK: for (int64_t r = 0; r < batch; r++) {
    // CHECK: for (int64_t j = 0; j < T * D; j++) f[r * (T * D) + j] = e[r * (T * D) + j] + td[j];
    %td = "moe.fill"() {home = ["arena+4096"], value = -0.5 : f64} : () -> !td loc("td")
    %f = "moe.add"(%e, %td) {home = ["arena+2048"]} : (!bd, !td) -> !bd loc("f")
    // A sum over neither the leading nor the trailing dimensions.
    // CHECK: for (int64_t n = 0; n < batch; n++) {
    // CHECK-NEXT: for (int64_t r = 0; r < D; r++) {
    // CHECK-NEXT: float sum = 0;
    // CHECK-NEXT: for (int64_t j = 0; j < T; j++) {
    // CHECK-NEXT: sum += f[(n * T + j) * D + r];
    // CHECK-NEXT: }
    // CHECK-NEXT: s[n * D + r] = sum;
    %sum = "moe.sum"(%f) {home = ["arena+5120"]} : (!bd) -> tensor<2x4xf32, ["batch", "D"]> loc("s")
    // CHECK: hk_sum_rows_f32({{.*}}, f, batch * T, D, HK_STORE);
    %sd = "moe.sum"(%f) {home = ["arena+5120"]} : (!bd) -> !d
    // CHECK: hk_sum_columns_f32({{.*}}, f, batch * T, D, HK_STORE);
    %st = "moe.sum"(%f) {home = ["arena+5120"]} : (!bd) -> !bt
    // CHECK: hk_sum_columns_f32({{.*}}, f, 1, batch * T * D, HK_STORE);
    %sa = "moe.sum"(%f) {home = ["arena+5120"]} : (!bd) -> !s

    // Over the first and the last one: the number of sequences is only known at run time.
    // CHECK: for (int64_t n = 0; n < T; n++) {
    // CHECK: for (int64_t r = 0; r < batch; r++) {
    // CHECK: for (int64_t j = 0; j < D; j++) {
    // CHECK-NEXT: sum += f[(r * T + n) * D + j];
    %sp = "moe.sum"(%f) {home = ["arena+5120"]} : (!bd) -> tensor<8xf32, ["T"]> loc("sp")

    // Two outputs: no expression reads memory after the first store.
    // CHECK: const float t = d[j] + f[j];
    // CHECK-NEXT: const float v_2 = d[j] * t;
    // CHECK-NEXT: u[j] = t - (f[j] - d[j]);
    // CHECK-NEXT: v[j] = v_2;
    %u, %v = "moe.fused"(%d, %f) ({
    ^bb0(%p: !bd, %q: !bd):
      %0 = "moe.add"(%p, %q) : (!bd, !bd) -> !bd
      %1 = "moe.sub"(%q, %p) : (!bd, !bd) -> !bd
      %2 = "moe.sub"(%0, %1) : (!bd, !bd) -> !bd loc("u")
      %3 = "moe.mul"(%p, %0) : (!bd, !bd) -> !bd loc("v")
      vector.yield %2, %3 : !bd, !bd
    }) {operandSegmentSizes = #two, home = ["arena+1024", "arena+2048"]} : (!bd, !bd) -> (!bd, !bd)
    // One output without a name for a part: on the line of its loop.
    // CHECK: for (int64_t j = 0; j < batch * T * D; j++) w[j] = 0.5f * (u[j] + v[j]);
    %k = "moe.fused"(%u, %v) ({
    ^bb0(%p: !bd, %q: !bd):
      %half = "moe.fill"() {value = 0.5 : f64} : () -> !s
      %0 = "moe.add"(%p, %q) : (!bd, !bd) -> !bd
      %1 = "moe.mul"(%half, %0) : (!s, !bd) -> !bd loc("w")
      vector.yield %1 : !bd
    }) {operandSegmentSizes = #two, home = ["arena+4096"]} : (!bd, !bd) -> !bd
    // CHECK: x[j] = w[j] < u[j] ? v[j] : w[j] == u[j] ? 0.5f * v[j] : 0.0f;
    %sel = "moe.select_less"(%k, %u, %v) {home = ["arena+4096"]} : (!bd, !bd, !bd) -> !bd loc("x")

    // Threads where there is enough to do.
    // CHECK: #pragma omp parallel for simd
    // CHECK-NEXT: for (int64_t j = 0; j < batch * T * F; j++) big[j] = 1.5f;
    %big = "moe.fill"() {home = ["arena+8192"], value = 1.5 : f64} : () -> !big loc("big")
    // CHECK: big_2[j] = hk_gelu_erf_grad_f32(big[j], big[j]);
    %bg = "moe.gelu_erf_grad"(%big, %big) {home = ["arena+300032"]} : (!big, !big) -> !big loc("big")
    // CHECK: l[0] = m->scale * m->auxiliary_scale;
    %l = "moe.mul"(%scale, %auxiliary_scale) {home = ["arena+6144"]} : (!s, !s) -> !s loc("l")
    // CHECK: l[0] += m->scale;
    %l2 = "moe.add"(%l, %scale) {home = ["arena+6144"]} : (!s, !s) -> !s loc("l")
    // CHECK: return (struct hrt_losses){.loss = l[0], .cross_entropy = m->scale,
    return %l2, %scale, %auxiliary_scale : !s, !s, !s
  }
// CHECK-LABEL: static void backward(
  func.func @backward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) attributes {argument_home = ["ids", "targets", "scale", "auxiliary_scale"]} {
    %x = "moe.fetch"() {slot = @logits, home = ["slot @logits"]} : () -> !bd
    // Straight into the gradient, and by way of a temporary.
    // CHECK: hk_sum_rows_f32(m->grad.w, m->saved.logits, batch * T, D, HK_ADD);
    %dw = "moe.sum"(%x) {home = ["grad @w"], adds = [true]} : (!bd) -> !d
    "moe.accumulate"(%dw) {param = @w} : (!d) -> ()
    // CHECK: for (int64_t j = 0; j < D; j++) m->grad.w[j] += dw[j];
    %dw2 = "moe.fill"() {home = ["arena+1024"], value = 1.0 : f64} : () -> !d loc("dw")
    "moe.accumulate"(%dw2) {param = @w} : (!d) -> ()
    return
  }
}
