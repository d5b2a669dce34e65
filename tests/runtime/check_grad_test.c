// Unit test of runtime/train/check_grad on a program of one parameter p of two elements:
//   loss = p^3 + p summed over both; of the first, plus 1 where p > edge, and slope * max(0, p - kink)
// with one expert layer whose loads change at `edge`, too, if `seen`.
#include "runtime/train/check_grad.h"
#include "runtime/train/create.h"

#include "tests/runtime/support/case.h"

struct model {
    double *params, *grads;
    int32_t *loads;
};

static struct {
    double edge, wrong; // Factor of the gradient.
    double kink, slope;
    bool seen, restless; // Loads change at the edge; at every forward.
} behaviour;

static void bind(void *model, void *params, void *grads, void *arena) {
    *(struct model *)model = (struct model){params, grads, arena};
}

static struct hrt_losses forward(void *model, int64_t batch, const int32_t *ids,
                                 const int32_t *targets, double scale, double auxiliary_scale) {
    (void)batch, (void)ids, (void)targets, (void)scale, (void)auxiliary_scale;
    const struct model *m = model;
    const double p = m->params[0], q = m->params[1];
    const double bent = p > behaviour.kink ? behaviour.slope * (p - behaviour.kink) : 0;
    const bool over = p > behaviour.edge;
    if (behaviour.restless)
        m->loads[0]++;
    else
        m->loads[0] = behaviour.seen && over;
    return (struct hrt_losses){.loss = p * p * p + p + q * q * q + q + over + bent};
}

static void backward(void *model, int64_t batch, const int32_t *ids, const int32_t *targets,
                     double scale, double auxiliary_scale) {
    (void)batch, (void)ids, (void)targets, (void)scale, (void)auxiliary_scale;
    const struct model *m = model;
    for (int i = 0; i < 2; i++)
        m->grads[i] += behaviour.wrong * (3 * m->params[i] * m->params[i] + 1);
}

static const struct hrt_param param = {.symbol = "p",
                                       .path = "p",
                                       .rank = 1,
                                       .dim = {"P"},
                                       .shape = {2},
                                       .layers = 1,
                                       .index_first = -1,
                                       .trainable = true,
                                       .rows = 1,
                                       .columns = 2,
                                       .elements = 2,
                                       .set = -1};
static const struct hrt_set set = {.name = "s", .experts = 1, .topk = 1, .layers = 1};
static const struct hrt_loads load = {0};
static const struct hrt_program program = {.name = "cube",
                                           .precision = HRT_FP64,
                                           .vocabulary = 2,
                                           .positions = 1,
                                           .batch = 1,
                                           .param_elements = 2,
                                           .arena_bytes = sizeof(int32_t),
                                           .params = 1,
                                           .sets = 1,
                                           .loads = 1,
                                           .param = &param,
                                           .set = &set,
                                           .load = &load,
                                           .model_bytes = sizeof(struct model),
                                           .bind = bind,
                                           .forward = forward,
                                           .backward = backward};

static struct hrt_placement here = {.program = &program};

// Checks at p = 0.5.
static bool check(struct hrt_error *error) {
    struct hrt_state state;
    *error = (struct hrt_error){0};
    assert_true(hrt_train_state_create(&state, &here, NULL, HRT_NO_TRAINING, error));
    for (int i = 0; i < 2; i++) ((double *)state.values[HRT_PARAMETERS])[i] = 0.5;
    FILE *out = fopen("/dev/null", "w");
    const bool right = hrt_train_check_grad(&state, 16, 1, out, error);
    fclose(out);
    hrt_train_state_destroy(&state);
    return right;
}

static void a_right_gradient_passes(void **state) {
    (void)state;
    struct hrt_error error;
    behaviour = (typeof(behaviour)){.edge = 1, .wrong = 1};
    assert_true(check(&error));
}

static void a_wrong_gradient_is_shown_beside_the_difference(void **state) {
    (void)state;
    struct hrt_error error;
    behaviour = (typeof(behaviour)){.edge = 1, .wrong = 1.001};
    test_expect_error(check(&error), &error, HRT_EXIT_FAILED,
                      "a gradient of p is 1.75175, and the difference 1.75: 9.990e-04 off");
}

static void a_step_of_the_loss_is_stepped_around(void **state) {
    (void)state;
    struct hrt_error error;
    behaviour = (typeof(behaviour)){.edge = 0.5 + 1e-4, .wrong = 1}; // Loads do not show it.
    assert_true(check(&error));
    behaviour = (typeof(behaviour)){.edge = 0.5 + 1e-5, .wrong = 1, .seen = true};
    assert_true(check(&error));
    behaviour.wrong = 1.001;
    assert_false(check(&error));
}

// Nearer than the smallest step: the other element is drawn.
static void kinks_and_drops_are_drawn_again(void **state) {
    (void)state;
    struct hrt_error error;
    for (double at = 0.5 + 1e-7; at < 0.5 + 5e-6; at += 7e-7) {
        behaviour = (typeof(behaviour)){.edge = 1, .wrong = 1, .kink = at, .slope = 0.3};
        assert_true(check(&error));
        behaviour =
            (typeof(behaviour)){.edge = at, .wrong = 1}; // Loads do not show a dropped pick.
        assert_true(check(&error));
        behaviour.wrong = 1.001;
        assert_false(check(&error));
    }
}

static void routing_that_never_rests_is_an_error(void **state) {
    (void)state;
    struct hrt_error error;
    behaviour = (typeof(behaviour)){.edge = 1, .wrong = 1, .restless = true};
    test_expect_error(check(&error), &error, HRT_EXIT_FAILED,
                      "p: every small change of an element changes the routing or crosses a kink");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_gradient_passes),
        cmocka_unit_test(a_wrong_gradient_is_shown_beside_the_difference),
        cmocka_unit_test(a_step_of_the_loss_is_stepped_around),
        cmocka_unit_test(kinks_and_drops_are_drawn_again),
        cmocka_unit_test(routing_that_never_rests_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
