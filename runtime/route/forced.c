// Forced routing: reads or draws the experts, and records the routing.
#include "runtime/route/forced.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOAD_MAX = UINT16_MAX };
static const double exponent_max = 20;

// ---- what the command line says

static bool fail_word(const char *text, struct hrt_error *error) {
    return hrt_fail_usage(
        error, "--route cannot be '%s'; it may be: model, balanced, zipf:S, trace:FILE, ids:FILE",
        text);
}

static bool read_exponent(const char *text, double *exponent, struct hrt_error *error) {
    char *end;
    errno = 0;
    *exponent = strtod(text, &end);
    if (end != text && !*end && !errno && *exponent >= 0 && *exponent <= exponent_max) return true;
    return hrt_fail_usage(error, "--route zipf needs an exponent from 0 to %g, as in zipf:1.2",
                          exponent_max);
}

// Splits "zipf:1.2" into its kind and what follows the colon.
static bool read_kind(struct hrt_route *route, const char *text, const char **rest,
                      struct hrt_error *error) {
    static const struct {
        const char *word;
        enum hrt_route_kind kind;
        bool more;
    } kinds[] = {{"model", HRT_ROUTE_MODEL, false},
                 {"balanced", HRT_ROUTE_BALANCED, false},
                 {"zipf", HRT_ROUTE_ZIPF, true},
                 {"trace", HRT_ROUTE_TRACE, true},
                 {"ids", HRT_ROUTE_IDS, true}};
    const size_t length = strcspn(text, ":");
    *rest = text[length] ? text + length + 1 : "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].word) != length || strncmp(kinds[i].word, text, length) != 0) continue;
        if (kinds[i].more ? !**rest : text[length] != '\0') break;
        route->kind = kinds[i].kind;
        return true;
    }
    return fail_word(text, error);
}

// ---- layers

static bool is_apart(const struct hrt_route *route) {
    return route->device && hrt_device_is_apart(route->device);
}

static size_t ids_bytes(const struct hrt_route *route, int64_t topk) {
    return (size_t)(route->batch * route->program->positions * topk) * sizeof(int32_t);
}

// Zeroed; the device's, too.
static int32_t *take_ids(struct hrt_route *route, const struct hrt_set *set) {
    const size_t bytes = ids_bytes(route, set->topk);
    return is_apart(route) ? route->device->backend->take(route->device, HRT_OF_BOTH, bytes, false)
                           : calloc(1, bytes + 1);
}

static void give_ids(struct hrt_route *route, const struct hrt_route_layer *layer) {
    if (is_apart(route))
        route->device->backend->give(route->device, HRT_OF_BOTH, layer->ids,
                                     ids_bytes(route, layer->spread.topk));
    else
        free(layer->ids);
}

static bool create_layer(struct hrt_route *route, const struct hrt_loads *load, int64_t index,
                         void *model, void *arena, uint64_t seed) {
    const struct hrt_set *set = &route->program->set[load->set];
    struct hrt_routing *routing = (void *)((char *)model + load->routing_offset);
    const size_t loads_at = load->arena_offset + (size_t)index * load->arena_stride;
    const int number = route->layers++;
    int64_t counted = index * set->experts;
    for (int i = 0; i < load->set; i++)
        counted += route->program->set[i].layers * route->program->set[i].experts;
    struct hrt_route_layer *layer = &route->layer[number];
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    *layer = (struct hrt_route_layer){
        .spread = {set->experts, set->topk, route->program->positions},
        .routing = routing + index,
        .loads = (const int32_t *)((const char *)arena + loads_at),
        .stream = hrt_stream_make(seed, "route", name),
        .mass = calloc((size_t)set->experts, sizeof *layer->mass),
        .ids = take_ids(route, set),
        .count = calloc((size_t)set->experts, sizeof *layer->count),
        .counted = counted,
    };
    route->shape[number] = (struct hrt_ids_layer){set->experts, set->topk};
    return layer->mass && layer->ids && layer->count;
}

static bool create_layers(struct hrt_route *route, void *model, void *arena, uint64_t seed,
                          struct hrt_error *error) {
    const struct hrt_program *program = route->program;
    int64_t layers = 0, experts = 0;
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_set *set = &program->set[program->load[i].set];
        if (!program->load[i].routing_offset) continue;
        layers += set->layers;
        if (set->experts > experts) experts = set->experts;
    }
    if (layers == 0)
        return hrt_fail_usage(error, "--route and --record: the model has no experts to choose");
    route->layer = calloc((size_t)layers, sizeof *route->layer);
    route->shape = calloc((size_t)layers, sizeof *route->shape);
    route->sequence = calloc((size_t)layers, sizeof *route->sequence);
    route->popularity = calloc((size_t)experts, sizeof *route->popularity);
    route->order = calloc((size_t)program->positions, sizeof *route->order);
    bool taken =
        route->layer && route->shape && route->sequence && route->popularity && route->order;
    for (int i = 0; taken && i < program->loads; i++) {
        const struct hrt_loads *load = &program->load[i];
        const int64_t of_set = load->routing_offset ? program->set[load->set].layers : 0;
        for (int64_t k = 0; taken && k < of_set; k++)
            taken = create_layer(route, load, k, model, arena, seed);
    }
    return taken || hrt_fail(error, "out of memory");
}

// ---- popularity

// r^-S for the experts of a layer, in an order of its own.
static void set_zipf(struct hrt_route *route, uint64_t seed, double exponent) {
    for (int i = 0; i < route->layers; i++) {
        struct hrt_route_layer *layer = &route->layer[i];
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        const struct hrt_stream stream = hrt_stream_make(seed, "route order", name);
        for (int64_t e = 0; e < layer->spread.experts; e++) {
            const int64_t other = (int64_t)hrt_draw_below(stream, (uint64_t)e, (uint64_t)e + 1);
            route->popularity[e] = route->popularity[other];
            route->popularity[other] = pow((double)(e + 1), -exponent);
        }
        hrt_route_spread_masses(layer->mass, route->popularity, layer->spread);
    }
}

// The popularity of the experts in a step of the trace, summed over devices and microbatches.
static bool read_trace(struct hrt_route *route, int64_t step, struct hrt_error *error) {
    const struct hrt_loads_shape shape = route->trace.shape;
    if (!hrt_route_loads_file_read(&route->trace, step, error)) return false;
    const size_t groups = (size_t)shape.devices * shape.microbatches;
    for (int i = 0; i < route->layers; i++) {
        struct hrt_route_layer *layer = &route->layer[i];
        const size_t at = (size_t)i % shape.layers * groups * shape.experts;
        const uint16_t *row = route->trace.row + at;
        for (uint32_t e = 0; e < shape.experts; e++) {
            route->popularity[e] = 0;
            for (size_t g = 0; g < groups; g++) route->popularity[e] += row[g * shape.experts + e];
        }
        hrt_route_spread_masses(layer->mass, route->popularity, layer->spread);
    }
    return true;
}

// Whether all layers have as many experts as the first: one file of loads describes them.
static bool check_equal_layers(const struct hrt_route *route, const char *option,
                               struct hrt_error *error) {
    for (int i = 1; i < route->layers; i++) {
        if (route->shape[i].experts == route->shape[0].experts) continue;
        return hrt_fail_usage(error,
                              "%s needs layers of equally many experts; layer 0 has %" PRId64
                              ", layer %d %" PRId64,
                              option, route->shape[0].experts, i, route->shape[i].experts);
    }
    return true;
}

// ---- opening

// Sequences that are drawn in all when so many steps are taken.
static int64_t sequences_of(const struct hrt_route *route, int64_t steps) {
    return route->drawn +
           (steps - route->from) * route->iterations * route->batch * route->comm->size;
}

static bool open_ids(struct hrt_route *route, const char *path, int64_t steps,
                     struct hrt_error *error) {
    const int64_t needed = sequences_of(route, steps);
    if (!hrt_route_ids_file_shape(&route->ids, path, route->program->positions, route->layers,
                                  route->shape, error) ||
        !hrt_route_ids_file_open(&route->ids, error))
        return false;
    if (route->ids.sequences >= needed) return true;
    return hrt_fail(error, "'%s' has %" PRId64 " sequences, this run takes %" PRId64, path,
                    route->ids.sequences, needed);
}

static bool open_route(struct hrt_route *route, const struct hrt_route_request *request,
                       const char *rest, struct hrt_error *error) {
    double exponent = 0;
    switch (route->kind) {
    case HRT_ROUTE_MODEL:
        return true;
    case HRT_ROUTE_ZIPF:
        if (!read_exponent(rest, &exponent, error)) return false;
        set_zipf(route, request->seed, exponent);
        return true;
    case HRT_ROUTE_BALANCED:
        set_zipf(route, request->seed, 0);
        return true;
    case HRT_ROUTE_TRACE:
        return check_equal_layers(route, "--route trace", error) &&
               hrt_route_loads_file_open(&route->trace, rest, route->shape[0].experts, error);
    case HRT_ROUTE_IDS:
        return open_ids(route, rest, request->steps, error);
    }
    return false;
}

static bool open_record_loads(struct hrt_route *route, const char *path, struct hrt_error *error) {
    const int64_t tokens = route->batch * route->program->positions;
    if (!check_equal_layers(route, "--record-loads", error)) return false;
    if (tokens > LOAD_MAX)
        return hrt_fail_usage(error,
                              "--record-loads holds loads of at most %d, and a microbatch has "
                              "%" PRId64 " tokens",
                              LOAD_MAX, tokens);
    const bool goes_on = route->from > 0 && route->loads_begun >= 0;
    const int64_t rows = goes_on ? route->from - route->loads_begun : 0;
    const struct hrt_loads_shape shape = {(uint32_t)rows, (uint32_t)route->layers,
                                          (uint32_t)route->comm->size, (uint32_t)route->iterations,
                                          (uint32_t)route->shape[0].experts};
    route->counts = route->layers * route->comm->size * route->iterations * route->shape[0].experts;
    route->count = calloc((size_t)route->counts, sizeof *route->count);
    if (!route->count) return hrt_fail(error, "out of memory");
    route->records_loads = true;
    if (!goes_on) route->loads_begun = route->from;
    if (route->comm->rank != 0) return true;
    return goes_on ? hrt_route_loads_file_go_on(&route->loads, path, shape, error)
                   : hrt_route_loads_file_create(&route->loads, path, shape, error);
}

// The first rank makes the file, then the others open it.
static bool open_record_ids(struct hrt_route *route, const char *path, int64_t steps,
                            struct hrt_error *error) {
    const bool first = route->comm->rank == 0;
    const bool goes_on = route->from > 0 && route->ids_begun >= 0;
    if (sequences_of(route, steps) > UINT32_MAX)
        return hrt_fail_usage(error, "--record-ids counts at most %" PRIu32 " sequences",
                              UINT32_MAX);
    route->records_ids = true;
    if (!goes_on) route->ids_begun = route->from;
    if (!hrt_route_ids_file_shape(&route->record, path, route->program->positions, route->layers,
                                  route->shape, error) ||
        (first && !(goes_on ? hrt_route_ids_file_go_on(&route->record, route->drawn, error)
                            : hrt_route_ids_file_create(&route->record, true, error))))
        return false;
    hrt_net_comm_barrier(route->comm);
    return first || hrt_route_ids_file_create(&route->record, false, error);
}

bool hrt_route_open(struct hrt_route *route, const struct hrt_route_request *request,
                    const struct hrt_program *program, struct hrt_comm *comm, void *model,
                    void *arena, struct hrt_error *error) {
    *route = (struct hrt_route){.program = program,
                                .comm = comm,
                                .device = request->device,
                                .batch = request->batch,
                                .iterations = request->iterations,
                                .steps = request->from,
                                .from = request->from,
                                .drawn = request->drawn,
                                .filled_step = -1,
                                .ids_begun = request->ids_begun,
                                .loads_begun = request->loads_begun};
    const char *rest = "";
    if (request->route && !read_kind(route, request->route, &rest, error)) return false;
    if (route->kind == HRT_ROUTE_MODEL && !request->record_ids && !request->record_loads)
        return true;
    return create_layers(route, model, arena, request->seed, error) &&
           open_route(route, request, rest, error) &&
           (!request->record_ids ||
            open_record_ids(route, request->record_ids, request->steps, error)) &&
           (!request->record_loads || open_record_loads(route, request->record_loads, error));
}

// ---- a step

// Points sequence[layer] at the top-k choices of sequence `index` of the batch.
static int32_t *const *ids_of(struct hrt_route *route, int64_t index) {
    for (int i = 0; i < route->layers; i++) {
        const struct hrt_spread spread = route->layer[i].spread;
        route->sequence[i] = route->layer[i].ids + index * spread.positions * spread.topk;
    }
    return route->sequence;
}

// Ids of sequences first .. first + batch - 1, unless those are there, as they are once counted.
static bool fill_ids(struct hrt_route *route, int64_t step, int64_t first,
                     struct hrt_error *error) {
    if (route->filled_step == step && route->filled_first == first) return true;
    route->filled_step = -1; // Until all are there.
    if (route->kind == HRT_ROUTE_TRACE && !read_trace(route, step, error)) return false;
    for (int64_t n = 0; n < route->batch; n++) {
        int32_t *const *ids = ids_of(route, n);
        if (route->kind == HRT_ROUTE_IDS) {
            if (!hrt_route_ids_file_read(&route->ids, first + n, ids, error)) return false;
            continue;
        }
        for (int i = 0; i < route->layers; i++) {
            const struct hrt_route_layer *layer = &route->layer[i];
            hrt_route_spread_sequence(ids[i], layer->mass, layer->spread, layer->stream,
                                      (uint64_t)(first + n), route->order);
        }
    }
    route->filled_step = step;
    route->filled_first = first;
    return true;
}

// Until ids may be read and written.
static void await(const struct hrt_route *route) {
    if (is_apart(route)) hrt_device_join(route->device, HRT_WHY_ROUTES);
}

bool hrt_route_is_free(const struct hrt_route *route) {
    return route->kind == HRT_ROUTE_MODEL && !route->records_ids;
}

bool hrt_route_force(struct hrt_route *route, int64_t step, int64_t first,
                     struct hrt_error *error) {
    const bool forced = route->kind != HRT_ROUTE_MODEL;
    if (forced || route->records_ids) await(route); // Until the last step has used its ids.
    if (forced && !fill_ids(route, step, first, error)) return false;
    for (int i = 0; i < route->layers; i++) {
        const struct hrt_route_layer *layer = &route->layer[i];
        *layer->routing = (struct hrt_routing){.forced = forced ? layer->ids : NULL,
                                               .record = route->records_ids ? layer->ids : NULL};
    }
    return true;
}

bool hrt_route_check_known(const struct hrt_route *route, struct hrt_error *error) {
    const struct hrt_program *program = route->program;
    int64_t layers = 0;
    for (int i = 0; i < program->sets; i++) layers += program->set[i].layers;
    if (route->kind == HRT_ROUTE_MODEL)
        return hrt_fail_usage(error, "parallel.placement.forecast = routes: --route says where "
                                     "tokens go, as in --route=ids:FILE");
    return route->layers == layers ||
           hrt_fail_usage(error, "parallel.placement.forecast = routes: the model has routers "
                                 "that --route does not reach");
}

// Adds the counts of one call, in layer->ids.
static void count_call(const struct hrt_route *route, uint32_t *count) {
    for (int i = 0; i < route->layers; i++) {
        const struct hrt_route_layer *layer = &route->layer[i];
        const int64_t picks = route->batch * layer->spread.positions * layer->spread.topk;
        for (int64_t k = 0; k < picks; k++) count[layer->counted + layer->ids[k]]++;
    }
}

bool hrt_route_count(struct hrt_route *route, int64_t step, int64_t first, int64_t stride,
                     int64_t calls, uint32_t *count, struct hrt_error *error) {
    const uint32_t some = (uint32_t)calls;
    for (int i = 0; i < route->layers; i++)
        memset(count + route->layer[i].counted, 0,
               (size_t)route->layer[i].spread.experts * sizeof *count);
    await(route);                              // Until the last call has used its ids.
    for (int64_t k = calls - 1; k >= 0; k--) { // The first last: its ids are used next.
        if (!fill_ids(route, step, first + k * stride, error)) return false;
        count_call(route, count);
    }
    for (int i = 0; i < route->layers; i++) {
        uint32_t *of = count + route->layer[i].counted;
        for (int64_t e = 0; e < route->layer[i].spread.experts; e++)
            of[e] = (of[e] + some / 2) / some;
    }
    return true;
}

// A record that cannot be written: the run goes on without it.
static void lose(const struct hrt_route *route, bool *lost, const struct hrt_error *error) {
    hrt_warn(route->program->name, "%s; the run goes on without it", error->text);
    *lost = true;
}

// How often the last forward has chosen each expert.
static const int32_t *loads_of(const struct hrt_route *route, const struct hrt_route_layer *layer) {
    if (!is_apart(route)) return layer->loads;
    hrt_device_read(route->device, layer->count, layer->loads,
                    (size_t)layer->spread.experts * sizeof *layer->count, HRT_WHY_LOADS);
    return layer->count;
}

void hrt_route_record(struct hrt_route *route, int64_t iteration, int64_t first) {
    struct hrt_error error;
    if (route->records_ids) await(route);
    for (int i = 0; route->records_loads && i < route->layers; i++) {
        const int64_t experts = route->shape[0].experts;
        const int64_t device = i * route->comm->size + route->comm->rank;
        int64_t *count = route->count + (device * route->iterations + iteration) * experts;
        const int32_t *loads = loads_of(route, &route->layer[i]);
        for (int64_t e = 0; e < experts; e++) count[e] = loads[e];
    }
    for (int64_t n = 0; route->records_ids && !route->lost_ids && n < route->batch; n++) {
        const int32_t *const *ids = (const int32_t *const *)ids_of(route, n);
        if (!hrt_route_ids_file_write(&route->record, first + n, ids, &error))
            lose(route, &route->lost_ids, &error);
    }
}

void hrt_route_end_step(struct hrt_route *route) {
    struct hrt_error error;
    for (int i = 0; i < route->layers; i++) *route->layer[i].routing = (struct hrt_routing){0};
    route->steps++;
    if (!route->records_loads) return;
    hrt_net_comm_all_reduce(route->comm, route->count, route->counts, HRT_INT64);
    const bool writes = route->comm->rank == 0 && !route->lost_loads;
    for (int64_t i = 0; i < route->counts; i++) {
        if (writes) route->loads.row[i] = (uint16_t)route->count[i];
        route->count[i] = 0;
    }
    if (writes && !hrt_route_loads_file_append(&route->loads, &error))
        lose(route, &route->lost_loads, &error);
}

void hrt_route_finish(struct hrt_route *route) {
    struct hrt_error error;
    if (!route->records_ids && !route->records_loads) return;
    int64_t lost[] = {route->lost_ids, route->lost_loads};
    hrt_net_comm_all_reduce(route->comm, lost, 2,
                            HRT_INT64); // Every rank has written its sequences.
    if (route->comm->rank != 0) return;
    if (route->records_ids && !lost[0] &&
        (!hrt_route_ids_file_finish(&route->record, sequences_of(route, route->steps), &error) ||
         !hrt_route_ids_file_close(&route->record, &error)))
        lose(route, &route->lost_ids, &error);
    if (route->records_loads && !lost[1] &&
        (!hrt_route_loads_file_finish(&route->loads, &error) ||
         !hrt_route_loads_file_close(&route->loads, &error)))
        lose(route, &route->lost_loads, &error);
}

void hrt_route_close(struct hrt_route *route) {
    struct hrt_error ignored; // The records are finished, or something else has failed before.
    hrt_route_ids_file_close(&route->ids, &ignored);
    hrt_route_ids_file_close(&route->record, &ignored);
    hrt_route_loads_file_close(&route->trace, &ignored);
    hrt_route_loads_file_close(&route->loads, &ignored);
    for (int i = 0; i < route->layers; i++) {
        free(route->layer[i].mass);
        free(route->layer[i].count);
        give_ids(route, &route->layer[i]);
    }
    free(route->layer);
    free(route->shape);
    free(route->count);
    free(route->popularity);
    free(route->order);
    free(route->sequence);
    *route = (struct hrt_route){0};
}
