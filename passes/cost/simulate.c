// The phases of a layer, from the planner's plans on recorded or drawn loads.
#include "passes/cost/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "passes/cost/chunks.h"
#include "passes/cost/rows.h"

// Everything of one simulation.
struct counting {
    struct hec_stage stage;
    struct hec_rows rows;
    struct hec_chunks chunks;
};

static void begin(struct counting *s, const struct hec_scene *scene,
                  const struct hpl_movement *movement) {
    hec_stage_begin(&s->stage, scene, movement);
    s->rows = hec_rows_take(&s->stage);
    s->chunks = hec_chunks_take(&s->stage);
}

// ---- counting

static int64_t largest(const int64_t *of, int32_t count) {
    int64_t most = 0;
    for (int32_t i = 0; i < count; i++) most = of[i] > most ? of[i] : most;
    return most;
}

double hec_transfer_us(const struct hec_machine *machine, double entries, double received,
                       int64_t bytes) {
    const double inter = entries * (double)bytes / hec_inter_rate(machine);
    const double intra = received * (double)bytes / hec_intra_rate(machine);
    double seconds = inter > intra ? inter : intra;
    if (entries > 0) seconds += machine->inter_latency;
    if (received > 0) seconds += machine->intra_latency;
    return 1e6 * seconds;
}

// Rows there and back, forward and backward: four times.
static double rows_us(const struct hec_scene *scene, double device, double node) {
    const struct hec_machine *m = scene->machine;
    return 4 * hec_transfer_us(m, m->nodes > 1 ? node : 0, device, scene->cost->row_bytes);
}

static double above(double us, double window) {
    return us > window ? us - window : 0;
}

// Sets entries and received to those of `plan`; returns the time its chunks take.
static double chunks_us(struct counting *s, const struct hpl_plan *plan, int64_t bytes,
                        struct hec_phases *step) {
    hec_chunks_count(&s->stage, plan, &s->chunks);
    step->replicas = s->chunks.copies;
    step->entries = hec_chunks_of_node(&s->stage, &s->chunks);
    step->received = hec_chunks_of_device(&s->stage, &s->chunks);
    return hec_transfer_us(s->stage.scene->machine, step->entries, step->received, bytes);
}

// What transfers of chunks cost, and what of it no computation hides. The first layer's parameters come
// behind what is before its experts alone, and its gradients go behind what is left of backward. What
// calibration adds comes by itself, and has been waited for.
static void add_movement(struct counting *s, int64_t layer, struct hec_phases *step) {
    const struct hec_set_cost *cost = s->stage.scene->cost;
    const bool exact = s->stage.episode.policy->when == HPL_WHEN_EXACT, first = layer == 0;
    const double window = exact ? cost->exact_window_us : cost->window_us;
    const double early = exact || first ? window : hec_early_window_us(cost);
    const double late = first ? cost->reduce_window_us : hec_late_window_us(cost);
    step->gather_us = chunks_us(s, s->stage.calibrated ? &s->stage.before : &s->stage.plan,
                                cost->chunk_bytes, step);
    double regather_us = chunks_us(s, &s->stage.plan, cost->chunk_bytes, step);
    step->reduce_us = chunks_us(s, &s->stage.plan, cost->grad_bytes, step);
    if (s->stage.episode.policy->collective == HPL_COLLECTIVE_EXCHANGE)
        step->gather_us = regather_us = 0; // Copies stay.
    step->exposed_us = above(step->gather_us, early) + above(step->reduce_us, late);
    step->exposed_rematerialized_us = above(step->gather_us, window);
    if (!first) {
        step->exposed_rematerialized_us +=
            above(step->reduce_us + regather_us, cost->rematerialize_window_us);
        return;
    }
    // The last layer's parameters come again at the start of backward, behind hardly anything.
    step->exposed_rematerialized_us += regather_us + above(step->reduce_us, cost->reduce_window_us);
}

static bool simulate_step(struct counting *s, int64_t layer, int64_t at, struct hec_phases *step) {
    const struct hec_set_cost *cost = s->stage.scene->cost;
    const int32_t devices = s->stage.topology.devices, nodes = s->stage.topology.nodes;
    if (!hec_stage_plan(&s->stage, layer, at) || !hec_rows_count(&s->stage, &s->rows)) return false;
    step->cross = (double)s->rows.cross;
    step->intra = (double)s->rows.intra;
    step->calibrate_us = s->stage.wait_us;
    add_movement(s, layer, step);
    double all = 0;
    for (int32_t d = 0; d < devices; d++) all += (double)s->rows.load[d];
    if (all == 0) all = 1;
    const double mean = all / devices, most = (double)largest(s->rows.load, devices);
    const double scale = (double)cost->rows / mean; // Recorded rows stand for the program's.
    step->waves = scale * most > (double)cost->wave_rows
                      ? scale * most / (double)(cost->wave_rows > 0 ? cost->wave_rows : 1)
                      : 1;
    const double overwritten = (step->waves - 1) / step->waves; // Sent and recomputed in backward.
    const double recomputed = cost->sends_again ? 0 : overwritten;
    const double sent_again = cost->sends_again ? 1 : overwritten;
    step->experts_us =
        scale * most * ((1 + recomputed) * cost->row_forward_us + cost->row_backward_us);
    step->balanced_us = (double)cost->rows * (cost->row_forward_us + cost->row_backward_us);
    const int64_t got = largest(s->rows.got, devices), sent = largest(s->rows.sent, devices);
    const int64_t in = largest(s->rows.node_got, nodes), out = largest(s->rows.node_sent, nodes);
    step->device_rows = scale * (double)(got > sent ? got : sent);
    step->node_rows = scale * (double)(in > out ? in : out);
    step->rows_us =
        (1 + sent_again / 4) * rows_us(s->stage.scene, step->device_rows, step->node_rows);
    step->imbalance = most / mean;
    step->cross /= all;
    step->intra /= all;
    return true;
}

// ---- all of it

void hec_phases_add(struct hec_phases *to, const struct hec_phases *from, double factor) {
    double *sum = (double *)to; // All fields are doubles.
    const double *part = (const double *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++) sum[i] += factor * part[i];
}

bool hec_simulate(const struct hec_scene *scene, const struct hpl_movement *movement,
                  struct hec_phases *phases) {
    struct counting s;
    begin(&s, scene, movement);
    const int64_t times = (int64_t)scene->loads->iterations * scene->loads->microbatches;
    const int64_t usable = times > 1 ? times - 1 : 1; // The first has no forecast but itself.
    const int64_t all = usable * scene->layers;
    const int64_t count = all < scene->steps ? all : scene->steps;
    struct hec_phases sum[2] = {{0}}; // Of other layers, of first ones.
    int64_t counted[2] = {0};
    bool sound = count > 0;
    for (int64_t i = 0; i < count && sound; i++) {
        const int64_t at = i * all / count, layer = at % scene->layers;
        struct hec_phases step = {0};
        sound = simulate_step(&s, layer, times - 1 - (at / scene->layers) % usable, &step);
        hec_phases_add(&sum[layer == 0], &step, 1);
        counted[layer == 0]++;
    }
    hec_stage_free(&s.stage);
    // Each as often as in the program, where a few layers stand for many.
    const double first = counted[1] == count ? 1 : counted[1] ? 1 / (double)scene->cost->layers : 0;
    *phases = (struct hec_phases){0};
    for (int k = 0; k < 2; k++) {
        if (counted[k])
            hec_phases_add(phases, &sum[k], (k ? first : 1 - first) / (double)counted[k]);
    }
    return sound;
}

void hec_simulate_balanced(const struct hec_scene *scene, struct hec_phases *phases) {
    const struct hec_set_cost *cost = scene->cost;
    const struct hec_machine *m = scene->machine;
    const double devices = (double)(m->nodes * m->devices), rows = (double)cost->rows;
    *phases = (struct hec_phases){.imbalance = 1, .waves = 1};
    phases->balanced_us = phases->experts_us =
        rows * (cost->row_forward_us + cost->row_backward_us);
    phases->intra = (double)(m->devices - 1) / devices;
    phases->cross = (devices - (double)m->devices) / devices;
    phases->device_rows = rows * (phases->intra + phases->cross);
    phases->node_rows = rows * (double)m->devices * phases->cross;
    phases->rows_us = rows_us(scene, phases->device_rows, phases->node_rows);
}
