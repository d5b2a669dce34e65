// Plan files, by jansson.
#include "passes/plan_file.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/base/arena.h"
#include "passes/base/json_file.h"
#include "passes/cost/set_cost.h"
#include "passes/plan_origin.h"
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
    const int64_t layers = hec_set_layers(set);
    return layers > 0 ? layers : 1;
}

static json_t *sets_json(MlirOperation module) {
    json_t *sets = json_object();
    HEC_EACH_OF (set, hec_ops_in(hec_module_body(module)), HEC_OP_set) {
        const int64_t layers = layers_of(set), experts = hec_set_experts(set);
        json_t *one =
            json_pack("{s:I, s:I}", "layers", (json_int_t)layers, "experts", (json_int_t)experts);
        put_array(one, set, "owner", (int64_t[]){layers, experts}, 2);
        put_array(one, set, "forecast", (int64_t[]){layers, hec_module_world(module), experts}, 3);
        const MlirStringRef name = hec_set_sym_name(set);
        char key[256];
        snprintf(key, sizeof key, "%.*s", (int)name.length, name.data);
        json_object_set_new(sets, key, one);
    }
    return sets;
}

static json_t *settings_json(const struct hec_plan_settings *settings) {
    json_t *all = json_object();
    for (int i = 0; i < settings->count; i++) {
        const char *equals = strchr(settings->set[i], '=');
        char key[256];
        snprintf(key, sizeof key, "%.*s", (int)(equals - settings->set[i]), settings->set[i]);
        json_object_set_new(all, key, json_string(equals + 1));
    }
    return all;
}

static void put_tuned(json_t *root, const struct hec_plan_tuned *tuned) {
    json_t *others = json_array();
    json_object_set_new(root, "settings", settings_json(&tuned->of[0]));
    for (int i = 1; i < tuned->count; i++)
        json_array_append_new(others, json_pack("{s:f, s:o}", "step_us", tuned->of[i].us,
                                                "settings", settings_json(&tuned->of[i])));
    json_object_set_new(root, "predicted",
                        json_pack("{s:f, s:f, s:o}", "step_us", tuned->of[0].us, "error",
                                  tuned->error, "runners_up", others));
}

// Text of the system's: JSON has UTF-8 only.
static json_t *text_json(const char *text) {
    json_t *string = json_string(text);
    return string ? string : json_string("not UTF-8");
}

static void put_measured(json_t *root, const struct hec_plan_measured *m) {
    json_t *others = json_array();
    for (int i = 0; i < m->count; i++) {
        const struct hec_plan_run *run = &m->of[i];
        if (i == m->chosen) continue;
        json_t *one = run->failed ? json_pack("{s:o}", "failed", text_json(run->failed))
                                  : json_pack("{s:f}", "step_us", run->settings.us);
        json_object_set_new(one, "settings", settings_json(&run->settings));
        json_array_append_new(others, one);
    }
    json_t *all = json_pack("{s:f, s:o, s:o, s:o}", "step_us", m->of[m->chosen].settings.us,
                            "machine", text_json(m->machine), "launch", text_json(m->launch),
                            "route", text_json(m->route));
    json_object_set_new(all, "rounds", json_integer(m->rounds));
    json_object_set_new(all, "steps", json_integer(m->steps));
    json_object_set_new(all, "left_out", json_integer(m->left_out));
    json_object_set_new(all, "others", others);
    json_object_set_new(root, "measured", all);
}

bool hec_plan_write(MlirOperation module, const struct hec_plan_tuned *tuned, FILE *out) {
    struct hpl_movement m;
    if (!hec_movement_read(module, &m)) return false;
    json_t *movement = json_pack("{s:s, s:b, s:s, s:b, s:s}", "policy", m.policy, "even", m.even,
                                 "calibrate", hec_calibrate_name(m.calibrate), "rematerialize",
                                 m.rematerialize, "lifetime", hec_lifetime_name(m.lifetime));
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        json_object_set_new(movement, hec_movement_numbers[i].key,
                            json_integer((json_int_t)*hec_movement_at(&m, i)));
    }
    json_t *root = json_pack("{s:i, s:I, s:o, s:o}", "hecate_plan", VERSION, "world",
                             (json_int_t)hec_module_world(module), "movement", movement, "sets",
                             sets_json(module));
    json_object_set_new(root, "made_for", hec_plan_origin(module));
    if (tuned) put_tuned(root, tuned);
    if (tuned && tuned->measured) put_measured(root, tuned->measured);
    const bool written = root && json_dumpf(root, out, JSON_INDENT(1)) == 0;
    fputc('\n', out);
    json_decref(root);
    return written;
}

// ---- reading

enum { PATH_MAX_KEYS = 4 };

static bool is_parallel(const char *key) {
    return strncmp(key, "parallel.", strlen("parallel.")) == 0;
}

struct hec_plan_settings hec_plan_settings(const char *path, struct hec_arena *arena) {
    const MlirOperation none = {0};
    struct hec_json_file file = hec_json_open(none, "plan", path);
    json_t *settings = json_object_get(file.root, "settings"), *value;
    const char **set = hec_arena_alloc(arena, json_object_size(settings) + 1, sizeof *set), *key;
    struct hec_plan_settings all = {.set = set};
    json_object_foreach(settings, key, value) {
        if (is_parallel(key) && json_is_string(value))
            set[all.count++] = hec_arena_format(arena, "%s=%s", key, json_string_value(value));
    }
    hec_json_close(&file);
    return all;
}

struct reader {
    struct hec_json_file *file;
    MlirOperation module;
    const char *key[PATH_MAX_KEYS + 1]; // The path to the object being read; NULL ends them.
    int keys;
};

// Reports the first fault only, at the value of `key` of the object that is read.
static void __attribute__((format(printf, 3, 4)))
fail(struct reader *r, const char *key, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->key[r->keys] = key;
    hec_json_fail(r->file, r->key, text);
    r->key[r->keys] = NULL;
}

// The object `key` of `from`; faults are reported inside it until `leave`.
static json_t *enter(struct reader *r, json_t *from, const char *key) {
    json_t *object = json_object_get(from, key);
    if (!json_is_object(object)) fail(r, key, "expected an object `%s`", key);
    r->key[r->keys++] = key;
    return object;
}

static void leave(struct reader *r) {
    r->key[--r->keys] = NULL;
}

static int64_t read_number(struct reader *r, json_t *from, const char *key, int64_t least,
                           int64_t most) {
    json_t *value = json_object_get(from, key);
    if (!json_is_integer(value)) {
        fail(r, key, "expected a whole number `%s`", key);
        return least;
    }
    const json_int_t number = json_integer_value(value);
    if (number < least || number > most)
        fail(r, key, "`%s` must be from %" PRId64 " to %" PRId64 ", not %" PRId64, key, least, most,
             (int64_t)number);
    return number;
}

// A number that must be the program's.
static void read_size(struct reader *r, json_t *from, const char *key, int64_t own,
                      const char *whose) {
    const int64_t size = read_number(r, from, key, 0, INT64_MAX);
    if (size != own) fail(r, key, "`%s` is %" PRId64 ", %s has %" PRId64, key, size, whose, own);
}

static bool read_flag(struct reader *r, json_t *from, const char *key) {
    json_t *value = json_object_get(from, key);
    if (!json_is_boolean(value)) fail(r, key, "expected true or false at `%s`", key);
    return json_is_true(value);
}

// Checks that the object has no keys but those of `known`, which NULL ends: a misspelt one would go unnoticed.
static void check_keys(struct reader *r, json_t *object, const char *const *known) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i]) fail(r, key, "a plan has no `%.60s` here", key);
    }
}

static void check_movement_keys(struct reader *r, json_t *movement) {
    const char *known[6 + HEC_MOVEMENT_NUMBERS] = {"policy", "even", "calibrate", "rematerialize",
                                                   "lifetime"};
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) known[5 + i] = hec_movement_numbers[i].key;
    check_keys(r, movement, known);
}

// A budget in bytes was found for chunks of this program.
static void check_chunk(struct reader *r, json_t *movement) {
    struct hec_costs costs;
    struct hpl_movement own = {.slots = 0};
    if (!r->file->sound) return;
    if (hec_costs_of(r->module, &costs)) {
        hec_set_prices(&own, &costs.machine, costs.set, costs.count);
        read_size(r, movement, "chunk_bytes", own.chunk_bytes, "the program's largest chunk");
    } else {
        r->file->sound = false;
    }
}

static void read_movement(struct reader *r, json_t *root, struct hpl_movement *m) {
    json_t *from = enter(r, root, "movement");
    check_movement_keys(r, from);
    const char *policy = json_string_value(json_object_get(from, "policy"));
    const char *calibrate = json_string_value(json_object_get(from, "calibrate"));
    if (!policy || strlen(policy) >= HPL_POLICY_NAME || !hpl_policy_find(policy)) {
        fail(r, "policy", "the planner has no policy '%.40s'", policy ? policy : "");
    } else {
        strcpy(m->policy, policy);
    }
    if (!calibrate || !hec_calibrate_find(HEC_STR(calibrate), &m->calibrate))
        fail(r, "calibrate", "`calibrate` is never, worth or always");
    const char *lifetime = json_string_value(json_object_get(from, "lifetime"));
    if (!lifetime || !hec_lifetime_find(HEC_STR(lifetime), &m->lifetime))
        fail(r, "lifetime", "`lifetime` is iteration or step");
    const struct hpl_policy *of = hpl_policy_find(m->policy);
    if (m->lifetime == HPL_LIFETIME_STEP && of && !hpl_may_last(of))
        fail(r, "lifetime", "replicas of `%s` cannot live for a step", m->policy);
    m->even = read_flag(r, from, "even");
    m->rematerialize = read_flag(r, from, "rematerialize");
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        const struct hec_movement_number *number = &hec_movement_numbers[i];
        *hec_movement_at(m, i) = read_number(r, from, number->key, number->least, number->most);
    }
    check_chunk(r, from);
    leave(r);
}

// The shape of a set's array.
struct cells {
    const char *key;
    int64_t length[3]; // Layers, then what it has for each.
    int depth;
    int64_t most; // The largest number allowed.
};

// Flattens nested arrays into `to`.
static void flatten(struct reader *r, json_t *from, const struct cells *cells, int level,
                    int32_t **to) {
    if (level == cells->depth) {
        const json_int_t number = json_integer_value(from);
        if (!json_is_integer(from) || number < 0 || number > cells->most)
            fail(r, cells->key, "`%s` holds whole numbers from 0 to %" PRId64, cells->key,
                 cells->most);
        *(*to)++ = (int32_t)number;
        return;
    }
    const int64_t count = json_is_array(from) ? (int64_t)json_array_size(from) : -1;
    if (count != cells->length[level]) {
        fail(r, cells->key,
             "`%s` has another number of layers, ranks or experts than the program: a list of "
             "%" PRId64 " is expected",
             cells->key, cells->length[level]);
        return;
    }
    for (int64_t i = 0; i < count && r->file->sound; i++)
        flatten(r, json_array_get(from, (size_t)i), cells, level + 1, to);
}

// The planner counts the rows of a layer with 32 bits.
static void check_rows(struct reader *r, const struct cells *cells, const int32_t *number) {
    const int64_t of_layer = cells->length[1] * cells->length[2];
    for (int64_t l = 0; l < cells->length[0] && r->file->sound; l++) {
        int64_t rows = 0;
        for (int64_t i = 0; i < of_layer; i++) rows += number[l * of_layer + i];
        if (rows > cells->most)
            fail(r, cells->key,
                 "`%s` of layer %" PRId64 " sums up to %" PRId64 ", more than %" PRId64, cells->key,
                 l, rows, cells->most);
    }
}

static void read_array(struct reader *r, json_t *from, MlirOperation set,
                       const struct cells *cells) {
    json_t *array = json_object_get(from, cells->key);
    if (!array || !r->file->sound) return;
    int64_t count = 1;
    for (int i = 0; i < cells->depth; i++) count *= cells->length[i];
    struct hec_arena arena = {0};
    int32_t *number = hec_arena_alloc(&arena, (size_t)count, sizeof *number), *to = number;
    flatten(r, array, cells, 0, &to);
    if (r->file->sound && cells->depth == 3) check_rows(r, cells, number);
    const MlirContext c = mlirOperationGetContext(set);
    if (r->file->sound)
        hec_set_attr(set, hec_attr(c, cells->key, mlirDenseI32ArrayGet(c, count, number)));
    hec_arena_free(&arena);
}

static void read_set(struct reader *r, json_t *sets, MlirOperation set, int64_t world) {
    const MlirStringRef name = hec_set_sym_name(set);
    struct hec_arena arena = {0};
    const char *key = hec_arena_copy(&arena, name.data, name.length);
    const int64_t layers = layers_of(set), experts = hec_set_experts(set);
    json_t *one = enter(r, sets, key);
    check_keys(r, one, (const char *const[]){"layers", "experts", "owner", "forecast", NULL});
    read_size(r, one, "layers", layers, "the program's set");
    read_size(r, one, "experts", experts, "the program's set");
    const struct cells owner = {"owner", {layers, experts}, 2, world - 1};
    const struct cells forecast = {"forecast", {layers, world, experts}, 3, HPL_ROWS_MAX};
    read_array(r, one, set, &owner);
    read_array(r, one, set, &forecast);
    leave(r);
    hec_arena_free(&arena);
}

static void read_sets(struct reader *r, json_t *root, int64_t world) {
    json_t *sets = enter(r, root, "sets"), *one;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(r->module)), HEC_OP_set) {
        if (!r->file->sound) break;
        read_set(r, sets, op, world);
    }
    const char *key;
    json_object_foreach(sets, key, one) {
        const MlirOperation set = hec_find_symbol(r->module, HEC_STR(key));
        if (!hec_op_is(set, HEC_OP_set)) fail(r, key, "the program has no set `%.60s`", key);
    }
    leave(r);
}

// The driver has taken the settings, with those of the command line; the front end checks their values.
static void check_settings(struct reader *r, json_t *root) {
    const char *key;
    json_t *value;
    if (!json_object_get(root, "settings")) return;
    json_t *settings = enter(r, root, "settings");
    json_object_foreach(settings, key, value) {
        if (!is_parallel(key) || !json_is_string(value))
            fail(r, key, "`settings` holds text for settings of section parallel, not `%.60s`",
                 key);
    }
    leave(r);
}

static void read_root(struct reader *r, json_t *root) {
    const int64_t world = hec_module_world(r->module);
    struct hpl_movement movement = {0};
    if (json_integer_value(json_object_get(root, "hecate_plan")) != VERSION)
        fail(r, "hecate_plan", "'%s' is no plan of this version of hecatec", r->file->path);
    check_keys(r, root,
               (const char *const[]){"hecate_plan", "world", "movement", "sets", "made_for",
                                     "settings", "predicted", "measured", NULL});
    check_settings(r, root);
    read_size(r, root, "world", world, "the program");
    read_movement(r, root, &movement);
    if (r->file->sound) read_sets(r, root, world);
    if (r->file->sound) hec_movement_write(r->module, &movement);
}

bool hec_plan_read(MlirOperation module) {
    const MlirStringRef name = hec_module_plan(module);
    struct hec_arena arena = {0};
    struct hec_json_file file =
        hec_json_open(module, "plan", hec_arena_copy(&arena, name.data, name.length));
    struct reader r = {.file = &file, .module = module};
    if (file.root) read_root(&r, file.root);
    const bool sound = file.sound;
    hec_json_close(&file);
    hec_arena_free(&arena);
    return sound;
}
