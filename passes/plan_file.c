// Plan files, by jansson.
#include "passes/plan_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lang/base/arena.h"
#include "runtime/plan/policy.h"

enum { VERSION = 1 };

// ---- writing

// Numbers from `from` on as nested arrays of the given lengths.
static json_t *nested(MlirAttribute all, intptr_t *from, const int64_t *length, int depth) {
    if (depth == 0) return json_integer(mlirDenseI32ArrayGetElement(all, (*from)++));
    json_t *array = json_array();
    for (int64_t i = 0; i < length[0]; i++) {
        json_array_append_new(array, nested(all, from, length + 1, depth - 1));
    }
    return array;
}

static void put_array(json_t *to, MlirOperation set, const char *key, const int64_t *length,
                      int depth) {
    const MlirAttribute all = mlirOperationGetAttributeByName(set, HEC_STR(key));
    if (mlirAttributeIsNull(all) || !mlirAttributeIsADenseI32Array(all)) return;
    intptr_t from = 0;
    json_object_set_new(to, key, nested(all, &from, length, depth));
}

static int64_t layers_of(MlirOperation set) {
    const int64_t layers = hec_get_int(set, "layers");
    return layers > 0 ? layers : 1;
}

static json_t *sets_json(MlirOperation module) {
    json_t *sets = json_object();
    const struct hec_ops ops = hec_ops_in(hec_module_body(module));
    for (int i = 0; i < ops.count; i++) {
        const MlirOperation set = ops.op[i];
        if (!hec_op_is(set, HEC_OP_set)) continue;
        const int64_t layers = layers_of(set), experts = hec_get_int(set, "experts");
        json_t *one =
            json_pack("{s:I, s:I}", "layers", (json_int_t)layers, "experts", (json_int_t)experts);
        put_array(one, set, "owner", (int64_t[]){layers, experts}, 2);
        put_array(one, set, "forecast",
                  (int64_t[]){layers, hec_get_int(module, "hecate.world"), experts}, 3);
        const MlirStringRef name = hec_get_string(set, "sym_name");
        char key[256];
        snprintf(key, sizeof key, "%.*s", (int)name.length, name.data);
        json_object_set_new(sets, key, one);
    }
    free(ops.op);
    return sets;
}

bool hec_plan_write(MlirOperation module, FILE *out) {
    struct hec_movement m;
    if (!hec_movement_read(module, &m)) return false;
    json_t *movement =
        json_pack("{s:s, s:b, s:s, s:b}", "policy", m.policy, "even", m.even, "calibrate",
                  hec_calibrate_name(m.calibrate), "rematerialize", m.rematerialize);
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        json_object_set_new(movement, hec_movement_numbers[i].key,
                            json_integer((json_int_t)*hec_movement_at(&m, i)));
    }
    json_t *root = json_pack("{s:i, s:I, s:o, s:o}", "hecate_plan", VERSION, "world",
                             (json_int_t)hec_get_int(module, "hecate.world"), "movement", movement,
                             "sets", sets_json(module));
    const bool written = root && json_dumpf(root, out, JSON_INDENT(1)) == 0;
    fputc('\n', out);
    json_decref(root);
    return written;
}

// ---- reading

struct reader {
    MlirOperation module;
    const char *path;
    bool sound;
};

static void fail(struct reader *r, const char *what, const char *key) {
    if (r->sound) hec_ir_error(r->module, "plan '%s': %s '%s'", r->path, what, key);
    r->sound = false;
}

static int64_t read_count(struct reader *r, json_t *from, const char *key, int64_t most) {
    json_t *value = json_object_get(from, key);
    if (!json_is_integer(value)) {
        fail(r, "lacks the number", key);
        return 0;
    }
    const json_int_t count = json_integer_value(value);
    if (count < 0 || count > most) fail(r, "is out of range:", key);
    return count;
}

static bool read_flag(struct reader *r, json_t *from, const char *key) {
    json_t *value = json_object_get(from, key);
    if (!json_is_boolean(value)) fail(r, "lacks true or false at", key);
    return json_is_true(value);
}

static void read_movement(struct reader *r, json_t *from, struct hec_movement *m) {
    const char *policy = json_string_value(json_object_get(from, "policy"));
    const char *calibrate = json_string_value(json_object_get(from, "calibrate"));
    if (!policy || strlen(policy) >= HEC_POLICY_NAME || !hpl_policy_find(policy)) {
        fail(r, "names no policy of the planner:", policy ? policy : "");
        return;
    }
    strcpy(m->policy, policy);
    m->calibrate = HEC_CALIBRATE_NEVER;
    while (calibrate && m->calibrate < HEC_CALIBRATE_ALWAYS &&
           strcmp(calibrate, hec_calibrate_name(m->calibrate)) != 0)
        m->calibrate++;
    if (!calibrate || strcmp(calibrate, hec_calibrate_name(m->calibrate)) != 0)
        fail(r, "expected never, worth or always at", "calibrate");
    m->even = read_flag(r, from, "even");
    m->rematerialize = read_flag(r, from, "rematerialize");
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        const struct hec_movement_number *number = &hec_movement_numbers[i];
        *hec_movement_at(m, i) = read_count(r, from, number->key, number->limit);
    }
}

// Flattens nested arrays of the given lengths into `to`; each number below `limit`.
static void flatten(struct reader *r, json_t *from, const int64_t *length, int depth, int64_t limit,
                    const char *key, int32_t **to) {
    if (depth == 0) {
        if (!json_is_integer(from) || json_integer_value(from) < 0 ||
            json_integer_value(from) >= limit)
            fail(r, "has a number out of range in", key);
        *(*to)++ = (int32_t)json_integer_value(from);
        return;
    }
    if (!json_is_array(from) || (int64_t)json_array_size(from) != length[0]) {
        fail(r, "has another number of layers, ranks or experts than the program in", key);
        return;
    }
    for (size_t i = 0; i < json_array_size(from) && r->sound; i++) {
        flatten(r, json_array_get(from, i), length + 1, depth - 1, limit, key, to);
    }
}

static void read_array(struct reader *r, json_t *from, MlirOperation set, const char *key,
                       const int64_t *length, int depth, int64_t limit) {
    json_t *array = json_object_get(from, key);
    if (!array) return;
    int64_t count = 1;
    for (int i = 0; i < depth; i++) count *= length[i];
    struct hec_arena arena = {0};
    int32_t *number = hec_arena_alloc(&arena, (size_t)count, sizeof *number), *to = number;
    flatten(r, array, length, depth, limit, key, &to);
    const MlirContext c = mlirOperationGetContext(set);
    if (r->sound) hec_set_attr(set, hec_attr(c, key, mlirDenseI32ArrayGet(c, count, number)));
    hec_arena_free(&arena);
}

static void read_sets(struct reader *r, json_t *sets, int64_t world) {
    const struct hec_ops ops = hec_ops_in(hec_module_body(r->module));
    for (int i = 0; i < ops.count && r->sound; i++) {
        const MlirOperation set = ops.op[i];
        if (!hec_op_is(set, HEC_OP_set)) continue;
        const MlirStringRef name = hec_get_string(set, "sym_name");
        char key[256];
        snprintf(key, sizeof key, "%.*s", (int)name.length, name.data);
        json_t *one = json_object_get(sets, key);
        if (!one) {
            fail(r, "has no set", key);
            continue;
        }
        const int64_t layers = layers_of(set), experts = hec_get_int(set, "experts");
        read_array(r, one, set, "owner", (int64_t[]){layers, experts}, 2, world);
        read_array(r, one, set, "forecast", (int64_t[]){layers, world, experts}, 3, INT32_MAX);
    }
    free(ops.op);
}

bool hec_plan_read(MlirOperation module) {
    const MlirStringRef name = hec_get_string(module, "hecate.plan");
    struct hec_arena arena = {0};
    struct reader r = {.module = module, .sound = true};
    r.path = hec_arena_copy(&arena, name.data, name.length);
    json_error_t error;
    json_t *root = json_load_file(r.path, 0, &error);
    const int64_t world = hec_get_int(module, "hecate.world");
    struct hec_movement movement = {0};
    if (!root) {
        hec_ir_error(module, "plan '%s': %s", r.path, error.text);
        r.sound = false;
    } else if (json_integer_value(json_object_get(root, "hecate_plan")) != VERSION) {
        hec_ir_error(module, "'%s' is no plan of this version of hecatec", r.path);
        r.sound = false;
    } else if (json_integer_value(json_object_get(root, "world")) != world) {
        hec_ir_error(module, "plan '%s': of %" PRId64 " devices, the program has %" PRId64, r.path,
                     (int64_t)json_integer_value(json_object_get(root, "world")), world);
        r.sound = false;
    } else {
        read_movement(&r, json_object_get(root, "movement"), &movement);
        if (r.sound) read_sets(&r, json_object_get(root, "sets"), world);
    }
    if (r.sound) hec_movement_write(module, &movement);
    json_decref(root);
    hec_arena_free(&arena);
    return r.sound;
}
