// --explain=comm: what travels between devices for each layer, and what of it computation hides.
#include <string.h>

#include "passes/cost/recorded.h"
#include "passes/explain.h"
#include "passes/pipeline.h"
#include "runtime/plan/slots.h"

struct report {
    FILE *out;
    const struct hec_search *search;
    const struct hec_set_cost *cost;
    const struct hec_phases *phases;
};

// What a device and a node get of one kind of transfer, and when.
static void print_row(const struct report *r, const char *what, double messages, double device,
                      double node, double us, double window) {
    char hidden[32] = "-";
    if (window >= 0) snprintf(hidden, sizeof hidden, "%s", hec_text_us(window).text);
    const double exposed = window < 0 ? us : us > window ? us - window : 0;
    fprintf(r->out, "  %-34s %8.0f %12s %12s %10s %10s %10s\n", what, messages,
            hec_text_bytes(device).text, hec_text_bytes(node).text, hec_text_us(us).text, hidden,
            hec_text_us(exposed).text);
}

static void print_set(const struct report *r, bool rematerialize) {
    const struct hec_set_cost *c = r->cost;
    const struct hec_phases *p = r->phases;
    const struct hec_machine *m = &r->search->costs.machine;
    const double devices = (double)(m->nodes * m->devices);
    const struct hpl_slots_request request = {.policy = r->search->policy,
                                              .experts = c->experts,
                                              .devices = (int32_t)devices,
                                              .layers = c->layers,
                                              .param_bytes = c->chunk_bytes,
                                              .grad_bytes = c->grad_bytes};
    const double segments = hpl_slots_of(&request).segments;
    const struct hpl_policy *policy = r->search->policy;
    const double chunks = hpl_from_shards(policy) ? devices - 1 : p->received * segments;
    fprintf(r->out, "\n@%s, %" PRId64 " layer%s of %d experts: each layer and iteration\n", c->name,
            c->layers, c->layers == 1 ? "" : "s", c->experts);
    if (policy->collective != HPL_COLLECTIVE_SPARSE)
        fprintf(r->out, "Chunks travel by %s, as %s's authors have it.\n",
                hpl_collective_names[policy->collective], policy->name);
    fprintf(r->out, "  %-34s %8s %12s %12s %10s %10s %10s\n", "", "messages", "a device", "a node",
            "takes", "window", "waited for");
    print_row(r, "counts of rows, hash of the plan", devices - 1, 4 * c->experts * (devices - 1),
              4.0 * c->experts * (double)m->devices * (devices - 1), 0, 0);
    const double row = (double)c->row_bytes;
    print_row(r, "rows, 2 forward and 2 backward", 4 * (devices - 1), 4 * row * p->device_rows,
              4 * row * p->node_rows, p->rows_us, -1);
    const bool exact = policy->when == HPL_WHEN_EXACT;
    if (policy->collective != HPL_COLLECTIVE_EXCHANGE)
        print_row(r, "parameters, forward", chunks, p->received * (double)c->chunk_bytes,
                  p->entries * (double)c->chunk_bytes, p->gather_us,
                  exact           ? c->exact_window_us
                  : rematerialize ? c->window_us
                                  : hec_early_window_us(c));
    print_row(r, "gradients, backward", chunks, p->received * (double)c->grad_bytes,
              p->entries * (double)c->grad_bytes, p->reduce_us,
              rematerialize ? c->reduce_window_us : hec_late_window_us(c));
    if (rematerialize) // Behind the gradients, in what they leave of the window.
        print_row(r, "parameters again, backward", chunks, p->received * (double)c->chunk_bytes,
                  p->entries * (double)c->chunk_bytes, p->gather_us,
                  c->rematerialize_window_us > p->reduce_us
                      ? c->rematerialize_window_us - p->reduce_us
                      : 0);
    if (p->calibrate_us > 0)
        print_row(r, "parameters, behind the router", 0, 0, 0, p->calibrate_us, -1);
}

// Gradients of what every device has: summed once a step.
static void print_dense(const struct report *r) {
    const struct hec_machine *m = &r->search->costs.machine;
    const double devices = (double)(m->nodes * m->devices), nodes = (double)m->nodes;
    const double bytes = (double)r->search->costs.dense_bytes / 4;
    const double device = 2 * bytes * (devices - 1) / devices;
    const double node = nodes > 1 ? 2 * bytes * (nodes - 1) / nodes * (double)m->devices : 0;
    fprintf(r->out,
            "\nEach step: gradients outside of experts, %s, are summed over all devices:\n"
            "at least %s into a device%s%s.\n",
            hec_text_bytes(bytes).text, hec_text_bytes(device).text,
            nodes > 1 ? ", across nodes at most " : "", nodes > 1 ? hec_text_bytes(node).text : "");
}

bool hec_explain_comm(MlirOperation module, FILE *out) {
    struct hec_arena arena = {0};
    struct hec_search *s = HEC_NEW(&arena, struct hec_search);
    struct hpl_movement movement;
    if (!hec_moves_experts(module) || !hec_movement_read(module, &movement)) {
        fputs("No experts move in this program; --explain=comm is about those that do.\n", out);
        hec_arena_free(&arena);
        return true;
    }
    const bool sound = hec_search(module, &arena, s);
    for (int i = 0; i < s->costs.count && sound; i++) {
        struct hec_phases phases;
        if (!hec_search_phases(s, i, &movement, &phases)) break;
        const struct report r = {out, s, &s->costs.set[i], &phases};
        if (i == 0)
            fprintf(out,
                    "Between %" PRId64 " devices of %" PRId64 " node%s, for %s: bytes that the "
                    "busiest device and node get or send.\n",
                    s->costs.machine.nodes * s->costs.machine.devices, s->costs.machine.nodes,
                    s->costs.machine.nodes == 1 ? "" : "s",
                    s->recorded ? s->recorded : "assumed loads (see --explain=plan)");
        print_set(&r, movement.rematerialize);
        if (i + 1 == s->costs.count) print_dense(&r);
    }
    hec_recorded_free(s);
    hec_arena_free(&arena);
    return sound;
}
