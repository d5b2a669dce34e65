// A step of Muon on the host, for one precision: muon.c includes it for each, with `real`, MUON(name), the name with
// its suffix, and CALL(kernel, arguments). Nobody else includes this.

// The shorter side's Gram matrix, its polynomial, and that times the matrix: five times, for muon->matrix [m, n].
static void MUON(orthogonalize)(const struct hrt_muon *muon, int64_t m, int64_t n, double eps) {
    const int64_t side = m < n ? m : n;
    const struct hk_matmul_dims squared = {.m = side, .n = side, .k = side},
                                all = {.m = m, .n = n, .k = side};
    real *x = muon->matrix, *y = muon->product, *gram = muon->gram, *square = muon->square;
    *muon->squares = CALL(sum_squares, x, m * n);
    CALL(muon_normalize, x, muon->squares, eps, m * n, 1);
    for (int step = 0; step < STEPS; step++) {
        if (m <= n)
            CALL(matmul_nt, gram, x, x, HK_ROWS, all, HK_STORE, NULL);
        else
            CALL(matmul_tn, gram, x, x, HK_ROWS, all, HK_STORE);
        CALL(matmul_nn, square, gram, gram, HK_ROWS, squared, HK_STORE, NULL);
        CALL(muon_blend, square, coefficient[2], gram, coefficient[1], side * side);
        if (m <= n)
            CALL(matmul_nn, y, square, x, HK_ROWS, all, HK_STORE, NULL);
        else
            CALL(matmul_nn, y, x, square, HK_ROWS, all, HK_STORE, NULL);
        CALL(muon_blend, x, coefficient[0], y, 1, m * n);
    }
}

static void MUON(move)(const struct hrt_muon *muon, const struct hrt_param *param, real *value,
                       const real *ahead, int64_t first, int64_t count,
                       const struct hk_muon_rule *rule) {
    const int64_t m = param->rows, n = param->columns;
    const bool panels = param->layout == HRT_PANELS;
    real *x = muon->matrix, *y = muon->product;
    if (panels)
        CALL(panels_unpack, x, ahead, m, n);
    else
        memcpy(x, ahead, (size_t)(m * n) * sizeof *x);
    MUON(orthogonalize)(muon, m, n, rule->norm_eps);
    if (panels) CALL(panels_pack, y, x, m, n);
    const int64_t all = panels ? param->elements : m * n; // Behind them is what aligns tensors.
    if (first + count > all) count = all - first;
    if (count > 0)
        CALL(muon_move, &value, (panels ? y : x) + first, size_of(param), count, 0, 1, rule);
}
