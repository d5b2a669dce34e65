// Shared by the passes that place and move experts: the choices, kept as attributes of the module,
// and the places in the program where a set's experts are needed.
#ifndef HECATE_PASSES_BASE_MOVEMENT_H
#define HECATE_PASSES_BASE_MOVEMENT_H

#include "ir/core/op.h"
#include "runtime/plan/movement.h"

// Whether the module is for several ranks.
bool hec_has_ranks(MlirOperation module);
// Whether ranks share the states of parameters that all of them have: parallel.dense = states, or shard.
bool hec_shares_states(MlirOperation module);

// Whether ranks share these parameters and their gradients, too: parallel.dense = shard.
bool hec_shards_dense(MlirOperation module);

// Whether a token's row crosses once to each other node: parallel.rows = node.
bool hec_rows_cross_once(MlirOperation module);

// Bytes of gradients on their way, of `bytes` in memory (parallel.gradients).
int64_t hec_gradient_way_bytes(MlirOperation module, int64_t bytes);

// The symbol whose memory ranks share for the parameter `name`: itself, or the set of which every rank has all
// experts. Null: it is an owned expert's, or a table that every rank computes.
MlirOperation hec_dense_symbol(MlirOperation module, MlirStringRef name);

// How many of `elements` a rank keeps in its buffers: its part (hpl_part) where ranks share them, else all.
// They are of one layer of a parameter outside of sets, or of one chunk of a set.
int64_t hec_kept_elements(MlirOperation module, MlirOperation symbol, int64_t elements);

// Whether the optimizer's states lie in memory of the host (parallel.states), beside a device with its own.
bool hec_states_on_host(MlirOperation module);

// Whether experts' parameters lie there, too: GEMMs read copies of them.
bool hec_masters_on_host(MlirOperation module);

// Bytes of one layer of a dense parameter, or of all parameters of a set.
int64_t hec_dense_bytes(MlirOperation symbol);

// Bytes of it that are gathered (parallel.dense = shard): those of copies in bf16 where these come alone.
int64_t hec_gathered_bytes(MlirOperation symbol);

// Whether experts move: the module has some, is for several ranks, and parallel.experts is neither ep
// nor replicate.
bool hec_moves_experts(MlirOperation module);

// ---- choices

// Pass shard decides them; the module has them as the dictionary hecate.movement.

// The numbers among the choices, by their names.
struct hec_movement_number {
    const char *key;
    size_t at;
    int64_t least, most;
};

enum { HEC_MOVEMENT_NUMBERS = 19 };
extern const struct hec_movement_number hec_movement_numbers[HEC_MOVEMENT_NUMBERS];
int64_t *hec_movement_at(struct hpl_movement *movement, int number);

const char *hec_calibrate_name(enum hpl_calibrates calibrate); // "never", "worth", "always"
bool hec_calibrate_find(MlirStringRef name, enum hpl_calibrates *calibrate);

const char *hec_lifetime_name(enum hpl_lifetime lifetime); // "iteration", "step"
bool hec_lifetime_find(MlirStringRef name, enum hpl_lifetime *lifetime);

// How long replicas stay, for people: "kept until backward".
const char *hec_replicas_kept(const struct hpl_movement *movement);

// False when the module has none, or not all of it: then nothing moves.
bool hec_movement_read(MlirOperation module, struct hpl_movement *movement);
// Whether the module's hecate.movement, if it has one, is whole and in range; reports faults.
bool hec_movement_check(MlirOperation module);
void hec_movement_write(MlirOperation module, const struct hpl_movement *movement);

// ---- places

enum { HEC_SITES_MAX = 64 };

// Where one set's experts are needed: in @forward from `waves` to `collect`, in @backward likewise. Counts of rows are
// on their way from `exchange` to `counts`.
// Null operations where there is no @backward, null loops and layers where the set has no layers.
struct hec_site {
    MlirOperation set;
    MlirOperation exchange, counts, waves, collect;
    MlirOperation waves_back, collect_back;
    MlirOperation loop, loop_back;
    MlirValue layer, layer_back;
};

// All sites in the order of @forward; in @backward they come in the order of `back`.
struct hec_sites {
    int count;
    struct hec_site site[HEC_SITES_MAX];
    int backs;
    int back[HEC_SITES_MAX];
};

// Operations of the site's own block behind its experts in @forward that do not need them: a shared
// expert. In its order; nothing of it depends on other operations behind `counts`. Free `op`.
struct hec_ops hec_independent(const struct hec_site *site);

// False after a report: there are too many, or one is not whole.
bool hec_sites_find(MlirOperation module, struct hec_sites *sites);

#endif
