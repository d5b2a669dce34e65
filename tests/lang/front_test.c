// Unit test of lang/check.h: the program that the builder of the IR gets.
#include "lang/check.h"
#include "lang/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const model_text =
    "dim V = 16, T = 8, D = 4, H = 2, A = D / H, E = 4, F = 6, L = 6\n"
    "block attention(x[T, D]) -> [T, D] {\n"
    "  param w[D, H, A], wo[H, A, D]\n"
    "  q = rope(x @ w)\n"
    "  return sdpa(q, q, q, causal = true) @ wo\n"
    "}\n"
    "block ffn(x[T, D]) -> [T, D] {\n"
    "  param w1[D, F], w2[F, D]\n"
    "  return relu(x @ w1) @ w2\n"
    "}\n"
    "moe sparse(x[T, D]) -> [T, D] { experts = E * ffn }\n"
    "model m(ids[T]) -> [T, V] {\n"
    "  param embed[V, D]\n"
    "  x = embed[ids]\n"
    "  repeat i < L {\n"
    "    x = x + attention(x)\n"
    "    if i % 2 == 0 { x = x + sparse(x) } else { x = x + ffn(x) }\n"
    "  }\n"
    "  return x @ embed\n"
    "}\n";

struct fixture {
    struct hec_arena arena;
    struct hec_diag diag;
    struct hec_program *program;
};

static void set_up(struct fixture *f, const char *const *sets, int sets_count) {
    *f = (struct fixture){.diag = {.out = stderr}};
    char path[] = "/tmp/hec_front_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    const size_t length = strlen(model_text);
    assert_int_equal(write(file, model_text, length), (ssize_t)length);
    close(file);
    const struct hec_front_options options = {.path = path, .sets = sets, .sets_count = sets_count};
    const bool good = hec_front(&options, &f->diag, &f->arena, &f->program);
    unlink(path);
    hec_diag_flush(&f->diag);
    assert_true(good);
}

static void tear_down(struct fixture *f) {
    hec_diag_free(&f->diag);
    hec_arena_free(&f->arena);
}

static const struct hec_param *find_param(const struct hec_program *program, const char *symbol) {
    for (int i = 0; i < program->params; i++) {
        if (!strcmp(program->param[i]->symbol, symbol)) return program->param[i];
    }
    return NULL;
}

// Every operand must stand earlier in the same or an enclosing body, or be an argument.
struct seen {
    const struct hec_node *node[256];
    int count;
};

static void expect_seen(const struct seen *seen, const struct hec_node *node) {
    for (int i = 0; i < seen->count; i++) {
        if (seen->node[i] == node) return;
    }
    fail_msg("an operand is used before it is computed");
}

static void check_body(struct seen *seen, const struct hec_body *body);

static void check_loop(struct seen *seen, const struct hec_loop *loop) {
    const int before = seen->count;
    for (int i = 0; i < loop->carried; i++) {
        expect_seen(seen, loop->init[i]);
        assert_int_equal(loop->argument[i]->kind, HEC_NODE_ARGUMENT);
    }
    for (int i = 0; i < loop->carried; i++) seen->node[seen->count++] = loop->argument[i];
    check_body(seen, &loop->body);
    for (int i = 0; i < loop->carried; i++) expect_seen(seen, loop->yield[i]);
    seen->count = before;
}

static void check_unit(const struct hec_unit *unit) {
    struct seen seen = {.count = 0};
    if (unit->moe) {
        check_unit(unit->moe->expert);
        return;
    }
    for (int i = 0; i < unit->arguments; i++) seen.node[seen.count++] = unit->argument[i];
    check_body(&seen, &unit->body);
    expect_seen(&seen, unit->result);
}

static void check_body(struct seen *seen, const struct hec_body *body) {
    for (int i = 0; i < body->items; i++) {
        const struct hec_node *node = body->item[i].node;
        assert_true(!node != !body->item[i].loop);
        if (!node) {
            check_loop(seen, body->item[i].loop);
            continue;
        }
        assert_int_not_equal(node->kind, HEC_NODE_ARGUMENT);
        assert_non_null(node->at.file);
        for (int j = 0; j < node->operands; j++) expect_seen(seen, node->operand[j]);
        if (node->kind == HEC_NODE_CALL) check_unit(node->callee);
        assert_true(seen->count < 256);
        seen->node[seen->count++] = node;
    }
}

static void operands_come_before_their_use(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, NULL, 0);
    check_unit(f.program->model);
    tear_down(&f);
}

static void alternating_layers_are_one_loop(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, NULL, 0);
    const struct hec_loop *loop = NULL;
    for (int i = 0; i < f.program->model->body.items; i++) {
        const struct hec_item *item = &f.program->model->body.item[i];
        if (item->loop) loop = item->loop;
    }
    assert_non_null(loop);
    assert_int_equal(loop->count, 3);
    assert_int_equal(loop->carried, 1);
    const struct hec_param *first = find_param(f.program, "attention.w");
    const struct hec_param *second = find_param(f.program, "attention.1.w");
    assert_int_equal(first->layers, 3);
    assert_int_equal(first->index_first, 0);
    assert_int_equal(second->index_first, 1);
    assert_int_equal(second->index_stride, 2);
    assert_string_equal(second->path, "layers.{}.attention.w");
    tear_down(&f);
}

static void an_experts_parameter_has_the_expert_dim_first(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, NULL, 0);
    assert_int_equal(f.program->moes, 1);
    const struct hec_moe *moe = f.program->moe[0];
    const struct hec_param *w1 = find_param(f.program, "sparse.experts.w1");
    assert_ptr_equal(w1->expert_of, moe);
    assert_int_equal(w1->shape.rank, 3);
    assert_ptr_equal(w1->shape.dim[0].name, moe->experts.name);
    assert_string_equal(w1->path, "layers.{}.sparse.experts.{e}.w1");
    const struct hec_node *node = moe->expert->body.item[0].node;
    assert_ptr_equal(node->param, w1);
    assert_int_equal(node->shape.rank, 2);
    assert_int_equal(moe->layers, 3);
    tear_down(&f);
}

static void one_rope_table_serves_all(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, NULL, 0);
    int tables = 0;
    for (int i = 0; i < f.program->params; i++)
        tables += f.program->param[i]->init == HEC_INIT_ROPE;
    assert_int_equal(tables, 1);
    const struct hec_param *table = find_param(f.program, "rope_table");
    assert_false(table->trainable);
    assert_int_equal(table->layers, 0);
    assert_true(table->init_value == 10000);
    tear_down(&f);
}

static void every_setting_has_a_value(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, NULL, 0);
    int of_groups = 0; // They have values for patterns only.
    for (int i = 0; i < HEC_KEYS; i++) {
        const bool of_group = strncmp(hec_setting_rows[i].key, "train.parameters", 16) == 0;
        assert_int_equal(hec_program_text(f.program, (enum hec_key)i) == NULL, of_group);
        of_groups += of_group;
    }
    assert_int_equal(f.program->settings, HEC_KEYS - of_groups);
    assert_string_equal(hec_program_text(f.program, HEC_KEY_train_tokens), "64"); // 8 sequences.
    assert_string_equal(hec_program_text(f.program, HEC_KEY_parallel_microbatch), "8");
    tear_down(&f);
}

static void values_are_in_base_units(void **state) {
    (void)state;
    static const char *const sets[] = {
        "cluster.device.memory=80GB",
        "cluster.link.inter.latency=5us",
        "train.optimizer=adamw(lr = 3e-4, betas = [0.9, 0.99], clip = none)",
        "train.tokens=4Ki",
        "parallel.microbatch=auto(4, 2, 3)",
        "cluster.devices=8",
        "data.train=a b.txt",
        "parallel.placement.memory=8GiB",
    };
    struct fixture f;
    set_up(&f, sets, sizeof sets / sizeof *sets);
    const struct hec_program *p = f.program;
    assert_string_equal(hec_program_text(p, HEC_KEY_cluster_device_memory), "80000000000");
    assert_string_equal(hec_program_text(p, HEC_KEY_cluster_link_inter_latency), "5e-06");
    assert_string_equal(hec_program_text(p, HEC_KEY_train_optimizer_lr), "0.0003");
    assert_string_equal(hec_program_text(p, HEC_KEY_train_optimizer_betas), "0.9,0.99");
    assert_string_equal(hec_program_text(p, HEC_KEY_train_optimizer_clip), "0");
    assert_string_equal(hec_program_text(p, HEC_KEY_train_tokens), "4096");
    assert_string_equal(hec_program_text(p, HEC_KEY_parallel_microbatch), "4");
    assert_string_equal(hec_program_text(p, HEC_KEY_train_group), "1");
    assert_string_equal(hec_program_text(p, HEC_KEY_data_train), "a b.txt");
    assert_string_equal(hec_program_text(p, HEC_KEY_parallel_placement_memory), "8589934592B");
    tear_down(&f);
}

// The id of a row is its key, with _ for each dot.
static void ids_are_keys(void **state) {
    (void)state;
    static const char *const ids[] = {
#define HEC_SETTING(id, ...) #id,
#include "lang/settings.def"
#undef HEC_SETTING
    };
    for (int i = 0; i < HEC_KEYS; i++) {
        const char *id = ids[i], *key = hec_setting_rows[i].key;
        assert_int_equal(strlen(id), strlen(key));
        for (; *key; key++, id++) assert_true(*id == (*key == '.' ? '_' : *key));
    }
}

static void keys_are_sorted_and_choices_are_known(void **state) {
    (void)state;
    for (int i = 1; i < HEC_KEYS; i++)
        assert_true(strcmp(hec_setting_rows[i - 1].key, hec_setting_rows[i].key) < 0);
    for (int i = 0; i < HEC_KEYS; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        if (row->type == HEC_SETTING_CHOICE)
            assert_true(hec_setting_lists(row->values, row->standard));
        assert_non_null(row->text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_come_before_their_use),
        cmocka_unit_test(alternating_layers_are_one_loop),
        cmocka_unit_test(an_experts_parameter_has_the_expert_dim_first),
        cmocka_unit_test(one_rope_table_serves_all),
        cmocka_unit_test(ids_are_keys),
        cmocka_unit_test(every_setting_has_a_value),
        cmocka_unit_test(values_are_in_base_units),
        cmocka_unit_test(keys_are_sorted_and_choices_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
