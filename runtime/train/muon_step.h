// A step of Muon in one precision: muon.c includes it for each, with `real` and MUON(name), the name with its suffix. Nobody
// else includes this.

// Adds the gradient to the momentum and leaves, in its place, Nesterov's look ahead.
static void MUON(look_ahead)(real *gradient, real *momentum, int64_t count,
                             const struct hrt_muon_rule *rule) {
    const real kept = (real)rule->momentum, scale = (real)rule->grad_scale;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        const real g = gradient[i] * scale;
        momentum[i] = kept * momentum[i] + g;
        gradient[i] = g + kept * momentum[i];
    }
}

// x = factor x + more y
static void MUON(blend)(real *x, double factor, const real *y, double more, int64_t count) {
    const real a = (real)factor, b = (real)more;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) x[i] = a * x[i] + b * y[i];
}

// The shorter side's Gram matrix, its polynomial, and that times the matrix: five times. `x` [m, n].
static void MUON(orthogonalize)(real *x, real *y, real *gram, real *square, int64_t m, int64_t n) {
    const int64_t side = m < n ? m : n;
    const struct hk_matmul_dims squared = {side, side, side}, all = {m, n, side};
    const double norm = sqrt(MUON(hk_sum_squares)(x, m * n)) + tiny;
    MUON(blend)(x, 1 / norm, x, 0, m * n);
    for (int step = 0; step < STEPS; step++) {
        if (m <= n)
            MUON(hk_matmul_nt)(gram, x, x, HK_ROWS, all, HK_STORE, NULL);
        else
            MUON(hk_matmul_tn)(gram, x, x, HK_ROWS, all, HK_STORE);
        MUON(hk_matmul_nn)(square, gram, gram, HK_ROWS, squared, HK_STORE, NULL);
        MUON(blend)(square, coefficient[2], gram, coefficient[1], side * side);
        if (m <= n)
            MUON(hk_matmul_nn)(y, square, x, HK_ROWS, all, HK_STORE, NULL);
        else
            MUON(hk_matmul_nn)(y, x, square, HK_ROWS, all, HK_STORE, NULL);
        MUON(blend)(x, coefficient[0], y, 1, m * n);
    }
}

static void MUON(step)(const struct hrt_muon *muon, const struct hrt_param *param, real *value,
                       real *gradient, real *momentum, const struct hrt_muon_rule *rule) {
    const int64_t m = param->rows, n = param->columns;
    const bool panels = param->layout == HRT_PANELS;
    real *x = muon->matrix, *y = muon->product;
    MUON(look_ahead)(gradient, momentum, param->elements, rule);
    if (panels)
        MUON(hk_panels_unpack)(x, gradient, m, n);
    else
        memcpy(x, gradient, (size_t)(m * n) * sizeof *x);
    memset(gradient, 0, (size_t)param->elements * sizeof *gradient);
    MUON(orthogonalize)(x, y, muon->gram, muon->square, m, n);
    if (panels) {
        MUON(hk_panels_pack)(y, x, m, n);
        x = y;
    }
    // Singular values near 1: the root mean square is 1 / sqrt(longer side).
    const double size = rule->lr * 0.2 * sqrt((double)(m > n ? m : n));
    MUON(blend)(value, 1 - rule->lr * rule->decay, x, -size, panels ? param->elements : m * n);
}
