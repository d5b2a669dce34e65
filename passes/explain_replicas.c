// Part of --explain=memory: parameters, gradients and optimizer states of a device when experts move,
// beside those under expert parallelism.
#include "passes/base/movement.h"
#include "passes/cost/explain.h"
#include "passes/cost/memory.h"
#include "passes/cost/setup.h"
#include "passes/pipeline.h"
#include "runtime/plan/slots.h"

enum { EP, KEPT, REMATERIALIZED, COLUMNS };

// Bytes of one device, all sets together.
struct column {
    double dense, owned, params, grads, staging;
};

// The parts that the rank owns: `all` are its items.
static struct column own_of(const struct hec_memory *memory, const int64_t all[HEC_MEMORY_HELD]) {
    struct column c = {0};
    for (int i = 0; i < HEC_MEMORY_HELD; i++) {
        c.dense += (double)memory->outside[i];
        c.owned += (double)(all[i] - memory->outside[i]);
    }
    return c;
}

static struct column column_of(const struct hec_memory *memory, const struct hec_costs *costs,
                               const struct hpl_policy *policy,
                               const struct hpl_movement *movement) {
    struct column c = own_of(memory, memory->item);
    for (int i = 0; i < costs->count; i++) {
        const struct hpl_slots taken = hec_slots_of(costs, &costs->set[i], policy, movement);
        c.params += (double)taken.params;
        c.grads += (double)taken.grads;
        c.staging += (double)taken.staging;
    }
    return c;
}

static double sum_of(const struct column *c) {
    return c->dense + c->owned + c->params + c->grads + c->staging;
}

static void print_row(FILE *out, const char *what, const double value[COLUMNS]) {
    fprintf(out, "  %-46s", what);
    for (int i = 0; i < COLUMNS; i++) fprintf(out, " %15s", hec_text_bytes(value[i]).text);
    fputc('\n', out);
}

// Reads the module's movement; false where experts stay.
static bool read(MlirOperation module, struct hpl_movement *m, struct hec_costs *costs,
                 const struct hpl_policy **policy) {
    if (!hec_moves_experts(module) || !hec_movement_read(module, m)) return false;
    *policy = hpl_policy_find(m->policy);
    return *policy && hec_costs_of(module, costs);
}

void hec_explain_replicas(MlirOperation module, const struct hec_memory *memory, FILE *out) {
    struct hpl_movement m;
    struct hec_costs costs;
    const struct hpl_policy *policy;
    if (!read(module, &m, &costs, &policy)) return;
    struct hpl_movement kept = m, again = m;
    kept.rematerialize = false, again.rematerialize = true;
    const struct column c[COLUMNS] = {own_of(memory, memory->ep),
                                      column_of(memory, &costs, policy, &kept),
                                      column_of(memory, &costs, policy, &again)};
    fprintf(out, "\nparameters, gradients and states of a device, %s with m = %" PRId64 ":\n",
            m.policy, m.slots);
    fprintf(out, "  %-46s %15s %15s %15s\n", "", "ep", "kept", "re-materialized");
    double row[COLUMNS];
    const struct {
        const char *what;
        size_t at;
    } rows[] = {
        {"outside of experts", offsetof(struct column, dense)},
        {"of its own experts", offsetof(struct column, owned)},
        {"replicas: parameters", offsetof(struct column, params)},
        {"replicas: gradients", offsetof(struct column, grads)},
        {"gradients on their way", offsetof(struct column, staging)},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        for (int i = 0; i < COLUMNS; i++)
            row[i] = *(const double *)((const char *)&c[i] + rows[k].at);
        print_row(out, rows[k].what, row);
    }
    for (int i = 0; i < COLUMNS; i++) row[i] = sum_of(&c[i]);
    print_row(out, "together", row);
    fprintf(out, "  %-46s", "of ep's");
    for (int i = 0; i < COLUMNS; i++) fprintf(out, " %15.3f", row[i] / row[EP]);
    fprintf(out, "\n  This program: %s.\n", hec_replicas_kept(&m));
}
