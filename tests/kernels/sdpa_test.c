// sdpa and its gradient against the definition; the gradient against central differences, too.
#define SDPA(...) HK(sdpa, __VA_ARGS__)
#define SDPA_GRAD(...) HK(sdpa_grad, __VA_ARGS__)
#define WEIGHT_ROUNDING VALUE_EPSILON // Tensor cores, which multiply values of bf16, read them so.
#define operand(x) ((wide)(x))

#include "tests/kernels/sdpa_case.h"

struct differences {
    struct sdpa_gradient gradient;
    const double *dout, *sinks;
    double *q, *k, *v, *out; // Moved a little.
};

static double loss(const void *context) {
    const struct differences *x = context;
    const struct hk_sdpa_dims *d = &x->gradient.forward.dims;
    double sum = 0;
    hk_sdpa_f64(x->out, x->out + out_size(d), x->q, x->k, x->v, x->sinks, *d);
    for (int64_t i = 0; i < out_size(d); i++) sum += x->dout[i] * x->out[i];
    return sum;
}

// A term is at most |scale| vwidth; heads / groups * positions of them, each off by the error of a
// weight (see above) and of dP, a sum over vwidth.
static double gradient_bound(const struct hk_sdpa_dims *d) {
    const double terms = (double)(d->heads / d->groups * d->positions);
    const double size = fabs(d->scale) * (double)d->vwidth + 1;
    const double error = (double)(d->width + 2) * fabs(d->scale) * (double)d->width + 16 +
                         (double)d->positions + (double)d->vwidth;
    return EPSILON * terms * size * error;
}

static void check_gradients(struct hk_sdpa_dims d, bool sinks) {
    struct differences x = {.gradient = {.forward = {.dims = d}}};
    struct sdpa_case *forward = &x.gradient.forward;
    forward->q = test_reals(q_size(&d), 1);
    forward->k = test_reals(k_size(&d), 2);
    forward->v = test_reals(v_size(&d), 3);
    forward->sinks = sinks ? sinks_of(&d, 1) : NULL;
    real *out = test_nans(out_size(&d) + lse_size(&d));
    run(forward, out);
    x.gradient.out = out;
    x.gradient.lse = out + out_size(&d);
    x.gradient.dout = test_reals(out_size(&d), 4);
    x.dout = test_widened(x.gradient.dout, out_size(&d));
    x.q = test_widened(forward->q, q_size(&d));
    x.k = test_widened(forward->k, k_size(&d));
    x.v = test_widened(forward->v, v_size(&d));
    x.sinks = sinks ? test_widened(forward->sinks, d.heads) : NULL;
    x.out = test_doubles(out_size(&d) + lse_size(&d));

    const int64_t count = q_size(&d) + k_size(&d) + v_size(&d);
    real *grad = test_nans(count);
    run_with_threads(run_gradient, &x.gradient, grad, count);
    const double rounding = gradient_bound(&d);
    check_gradient("dq", grad, x.q, q_size(&d), loss, &x, rounding);
    check_gradient("dk", grad + q_size(&d), x.k, k_size(&d), loss, &x, rounding);
    check_gradient("dv", grad + q_size(&d) + k_size(&d), x.v, v_size(&d), loss, &x, rounding);
    test_free_all();
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    if (VALUE_EPSILON > 0) return; // Differences do not see that out is rounded.
    struct hk_sdpa_dims d = {
        .batch = 2, .positions = 7, .heads = 4, .groups = 2, .width = 6, .vwidth = 5, .scale = 0.5};
    check_gradients(d, false);
    check_gradients(d, true);
    d.causal = true;
    check_gradients(d, false);
    d.window = 3;
    check_gradients(d, true);
    d = (struct hk_sdpa_dims){.batch = 1,
                              .positions = 110,
                              .heads = 2,
                              .groups = 1,
                              .width = 2,
                              .vwidth = 1,
                              .causal = true,
                              .scale = 0.7};
    check_gradients(d, false); // Several blocks of keys and of queries.
    d.window = 50;
    check_gradients(d, true);
    d.chunk = 30, d.cap = 0.4;
    check_gradients(d, false);
}

#ifndef HK_TARGET_CUDA
// The last `count` rows, behind keys and values of all positions.
static void check_continued(struct hk_sdpa_dims d, int64_t mask, int64_t count) {
    const real *q = test_reals(q_size(&d), 1), *k = test_reals(k_size(&d), 2),
               *v = test_reals(v_size(&d), 3);
    const real *sinks = sinks_of(&d, mask);
    d.begins = begins_of(&d, mask);
    real *all = test_nans(out_size(&d) + lse_size(&d));
    SDPA(all, all + out_size(&d), q, k, v, sinks, d);
    struct hk_sdpa_dims last = d;
    last.before = d.positions - count;
    last.positions = count;
    if (d.begins) last.begins = d.begins + last.before;
    real *out = test_nans(out_size(&last) + lse_size(&last));
    SDPA(out, out + out_size(&last), q + last.before * d.heads * d.width,
         k + last.before * d.groups * d.width, v + last.before * d.groups * d.vwidth, sinks, last);
    assert_memory_equal(out, all + out_size(&d) - out_size(&last),
                        (size_t)out_size(&last) * sizeof *out);
    for (int64_t h = 0; h < d.heads; h++)
        assert_memory_equal(out + out_size(&last) + h * count,
                            all + out_size(&d) + h * d.positions + last.before,
                            (size_t)count * sizeof *out);
    test_free_all();
}

static void rows_behind_others_have_the_same_bits(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            const struct hk_sdpa_dims d = masked(shapes[s], (int64_t)m);
            if (d.batch != 1 || !d.causal) continue;
            for (int64_t count = 1; count <= d.positions; count = count * 5 + 2)
                check_continued(d, (int64_t)m, count);
        }
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(extreme_sinks_take_all_or_nothing),
        cmocka_unit_test(large_scores_do_not_overflow),
        cmocka_unit_test(a_nan_in_a_key_shows),
        cmocka_unit_test(a_causal_row_does_not_depend_on_later_positions),
#ifndef HK_TARGET_CUDA
        cmocka_unit_test(rows_behind_others_have_the_same_bits),
#endif
        cmocka_unit_test(gradients_match_central_differences),
        cmocka_unit_test(gradients_are_within_the_bound),
    };
    return RUN_KERNEL_TESTS(tests);
}
