// Experts on many ranks: rows go to the ranks that hold their experts, and results come back.
//
// A layer of a set, forward and backward, as emitted code runs it (e: the experts, s, i: the set and
// the layer; w: a wave):
//
//   hrt_experts_route(e, s, i, ids, tokens)
//   operations that need no rows
//   hrt_experts_await_counts(e, s, i)
//   n = hrt_experts_waves(e, s, i)
//   for w = 0 .. n-1
//       hrt_experts_dispatch(e, s, i, w, rows, gate, first, x, weights)
//       y = the experts' function of rows, gate, first
//       hrt_experts_give_back(e, s, i, w, y)
//   hrt_experts_combine(e, s, i, out)
//
//   for w = n-1 .. 0
//       unless w = n-1: hrt_experts_dispatch again, and the experts' function again: its saved values are gone
//       hrt_experts_dispatch_grad(e, s, i, w, dy, dout)
//       drows, dgate = the function's backward of dy
//       hrt_experts_give_back_grad(e, s, i, w, drows, dgate)
//       gradients of the experts' parameters
//   hrt_experts_combine_grad(e, s, i, dx, dweights)
//
// All of it is collective: every rank makes the same calls in the same order, one without tokens too.
// A route stays until the next hrt_experts_route of its layer.
//
// Rows. A pair is (token t, pick j), numbered t * picks + j. The rows that a rank computes are ordered
// by expert, then by the rank they come from, then by pair; wave w is wave_rows of them from
// w * wave_rows on. Every rank has the same number of waves, derived from the exact counts; one that
// has fewer rows has empty waves. So memory is bounded for any routing, and results do not
// depend on when rows arrive: same inputs, same bits.
//
// Division of the work. A plan (runtime/plan/types.h) lists the ranks that hold an expert, a quota how many
// rows of each source go to each holder: quota[r][k] for holder k of the plan. Rows of a source go to
// an expert's holders in the plan's order, pairs ascending. By default every expert has one
// holder, its owner (expert parallelism). Quotas are derived at the first hrt_experts_waves after the counts, so
// that the plan may still change once the counts are known.
//
// Ranks make equal decisions, each for itself, and check them: a word, a hash of them all, travels with all
// counts and is compared before these are used. Decisions that need these counts are compared before rows move.
//
// Elements are floats or doubles, as the shape says; those of rows may be bf16, as their set says. Nothing is allocated
// after creation. On one rank (back end self) nothing but local copies happens.
//
// On a device with separate memory all arrays of these calls are the device's: rows, weights, ids, fractions. Rows are
// sorted, listed and moved there, behind the work queued before. The host divides the rows, so it waits once for each
// microbatch of a layer: hrt_experts_await_counts for the rows of each expert, not for work that was queued since the
// route. Where groups lie on several ranks, hrt_experts_drop or else hrt_experts_fractions waits in its place, for all
// work: ids, and weights, come to the host, and it counts rows itself.
#ifndef HECATE_RUNTIME_EXPERTS_EXPERTS_H
#define HECATE_RUNTIME_EXPERTS_EXPERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/limit/limit.h"

struct hpl_loads;
struct hpl_part;
struct hpl_plan;
struct hrt_comm;
struct hrt_device;
struct hrt_error;
struct hrt_experts;

// A set, as known when the program is compiled.
struct hrt_experts_set {
    const char *name; // For messages.
    int64_t experts, picks, layers;
    int64_t width;   // Elements of a row, and of an expert's result for it.
    int64_t slots;   // Chunks of one layer that a rank holds, at most: `first` has one entry more.
    int64_t holders; // Most holders in a plan of a layer; 0: slots of every rank.
    int64_t wave_rows; // Rows of a wave on one rank.
    bool limited;      // Its experts have a capacity: hrt_experts_drop will be called.
    bool bf16;         // Rows are of bf16, there and back. Only on a device with separate memory.
};

// Sets this rank's part of the quotas, those of an expert's holders summing to each rank's rows for it. Every
// rank calls it with the same numbers and must find parts of the same quotas.
typedef void hrt_quota_fn(void *context, int set, int64_t layer, const struct hpl_plan *plan,
                          const struct hpl_loads *loads, const struct hpl_part *part);

struct hrt_experts_shape {
    int sets;
    const struct hrt_experts_set *set;
    int64_t tokens;    // Tokens of one call on one rank, at most.
    int64_t sequences; // Likewise; 0: hrt_experts_fractions is not called.
    int64_t
        nodes; // Rows cross once to each of so many nodes of equally many ranks (runtime/experts/relay.h); 0: each
    // row goes to its expert. Not on a device with separate memory.
    size_t
        element; // sizeof(float) or sizeof(double): of weights, and of rows unless these are bf16.
    hrt_quota_fn *quota; // NULL: all rows go to the first holder, in plans of owners only the one.
    void *quota_context;
    struct hrt_device *device; // Borrowed; NULL: the host.
};

// Bytes that hrt_experts_create takes on each of `ranks` ranks, of the host, of the device that the rows are on and of
// both: all that this part ever uses.
struct hrt_experts_bytes {
    size_t here, there, both;
};
struct hrt_experts_bytes hrt_experts_bytes(const struct hrt_experts_shape *shape, int ranks);

// Every layer starts with the plan of owners only. `comm` is borrowed, `shape` copied. False: too
// many rows to number, slots too few for the owners, or no memory. The caller destroys it.
bool hrt_experts_create(struct hrt_experts **experts, const struct hrt_experts_shape *shape,
                        struct hrt_comm *comm, struct hrt_error *error);
void hrt_experts_destroy(struct hrt_experts *experts);

// From now on, and for a route whose hrt_experts_waves was not called yet, `plan` (copied; the same on all
// ranks) names the holders of the layer's experts: at least one for each expert, no rank more than the set's slots.
// Not between hrt_experts_waves and the backward that belongs to it.
void hrt_experts_place(struct hrt_experts *experts, int set, int64_t layer,
                       const struct hpl_plan *plan);

// Sets the tokens of an iteration for the next calls: `all` in number, of which rank 0 has the first `each`,
// rank 1 the next, and so on, the last ones fewer or none. The tokens of a rank that should have none count
// for nobody. 0, 0, as after creation: every rank has those of its call, equally many.
void hrt_experts_tokens(struct hrt_experts *experts, int64_t each, int64_t all);

// The rows of a microbatch that stay when in each group every expert keeps at most ceil(capacity * choices of the
// group / experts) of them: those that hk_limit keeps where one rank has the tokens of all, those of rank 0 first.
// Groups that lie on several ranks exchange counts, by weight some more.
//   kept     [tokens, picks] the expert of each pair, -1 where it is dropped: ids for hrt_experts_route
//   ids      [tokens, picks]
//   weights  [tokens, picks] not negative; NaN counts as 0
//   group    tokens of a group; 0: all of the iteration are one
void hrt_experts_drop(struct hrt_experts *experts, int set, int64_t layer, int32_t *kept,
                      const int32_t *ids, const void *weights, int64_t tokens, int64_t group,
                      double capacity, enum hk_drop rule);

// As hk_fractions where one rank has the tokens of all. Exchanges counts where groups lie on several ranks,
// or `running` counts.
//   fractions  [sequences, experts]
//   running    NULL or [experts], the same on all ranks. Not touched on a device with separate memory, whose host
//              keeps these counts
//   ids        [sequences, positions, picks]
//   group      tokens of a group; 0: all of the iteration are one
void hrt_experts_fractions(struct hrt_experts *experts, int set, int64_t layer, void *fractions,
                           int32_t *running, const int32_t *ids, int64_t sequences,
                           int64_t positions, int64_t group, int64_t iteration);

// Sets the word that the next exchanges of counts compare. Where ranks' words differ, all of them call `differ`
// at the same place, which must not return; without `differ` nothing is compared.
typedef void hrt_differ_fn(void *context);
void hrt_experts_vouch(struct hrt_experts *experts, uint64_t word);
void hrt_experts_watch(struct hrt_experts *experts, hrt_differ_fn *differ, void *context);

// Sends the words alone, and does not wait for those of others: hrt_experts_agree does, and compares, also words that
// travel with counts. It does nothing where nothing was sent. No exchange of counts or rows begins without it.
void hrt_experts_compare(struct hrt_experts *experts);
void hrt_experts_agree(struct hrt_experts *experts);

// The sum of all divisions of a layer since hrt_experts_forget; the same on every rank.
struct hrt_experts_tally {
    const int64_t *computed;     // [ranks] Rows that each rank computes.
    int64_t waves;               // At most.
    const struct hpl_plan *plan; // The last plan.
};
void hrt_experts_forget(struct hrt_experts *experts);
struct hrt_experts_tally hrt_experts_tally(const struct hrt_experts *experts, int set,
                                           int64_t layer);

// How often words have been compared, counts or not.
int64_t hrt_experts_compared(const struct hrt_experts *experts);

// Gathers the `word` of every rank in `all` [ranks]. Collective.
void hrt_experts_gather(struct hrt_experts *experts, uint64_t word, uint64_t *all);

// Tells all ranks `words` of each, on the host: heard [ranks][words]. Where a rank's are says hrt_experts_told; a rank
// writes its own there before. Collective.
void hrt_experts_tell(struct hrt_experts *experts, uint32_t *heard, size_t words);
uint32_t *hrt_experts_told(const struct hrt_experts *experts, uint32_t *heard, size_t words,
                           int rank);

// Rows are divided by `quota` from the next hrt_experts_waves on, as if the shape had said so.
void hrt_experts_divide(struct hrt_experts *experts, hrt_quota_fn *quota, void *context);

// The rows of each expert that every rank had for the layer's last route, once they were awaited, [ranks][experts];
// borrowed.
const uint32_t *hrt_experts_counts(const struct hrt_experts *experts, int set, int64_t layer);

// Routes one microbatch, and starts to exchange counts.
//   ids    [tokens, picks] the expert of each pair; negative: dropped, its row goes nowhere
//   tokens may differ between ranks, and be 0
void hrt_experts_route(struct hrt_experts *experts, int set, int64_t layer, const int32_t *ids,
                       int64_t tokens);

// Waits until the counts of the layer's route are known, and words that travel with them alike.
void hrt_experts_await_counts(struct hrt_experts *experts, int set, int64_t layer);

// Waves of the layer's route, at least 1, the same on every rank.
int64_t hrt_experts_waves(struct hrt_experts *experts, int set, int64_t layer);

// Rows of a wave on this rank: the value that hrt_experts_dispatch stores behind the last expert, for a host that
// cannot read it there.
int64_t hrt_experts_wave_rows(struct hrt_experts *experts, int set, int64_t layer, int64_t wave);

// Fills in the rows of one wave on this rank, and the gate weight of each.
//   rows     [wave_rows, width] those behind first[slots] are left as they are
//   gate     [wave_rows]
//   first    [slots + 1] rows first[n] .. first[n+1]-1 belong to the n-th expert that this rank holds,
//            by number; the entries of slots without an expert equal the last one
//   x        [tokens, width]
//   weights  [tokens, picks]
void hrt_experts_dispatch(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                          void *rows, void *gate, int32_t *first, const void *x,
                          const void *weights);

// Sends a wave's results, rows [wave_rows, width], back to where the rows came from. They travel behind the
// computation: `rows` may be overwritten at once, and hrt_experts_combine, or the next wave, waits for them.
void hrt_experts_give_back(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                           const void *rows);

// y [tokens, width]: the sum over top-k choices, ascending, of the results that were given back; a dropped pair adds
// nothing. After the last wave.
void hrt_experts_combine(struct hrt_experts *experts, int set, int64_t layer, void *y);

// The gradients. dispatch_grad: dy [tokens, width] of hrt_experts_combine to drows [wave_rows, width] of the
// wave's results. give_back_grad: drows of its rows and dgate [wave_rows] of its gate weights go back, as above: the
// gradients of parameters are computed meanwhile.
// combine_grad sums them up to dx [tokens, width], choices ascending, and orders them as dweights
// [tokens, picks], 0 where dropped.
void hrt_experts_dispatch_grad(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                               void *drows, const void *dy);
void hrt_experts_give_back_grad(struct hrt_experts *experts, int set, int64_t layer, int64_t wave,
                                const void *drows, const void *dgate);
void hrt_experts_combine_grad(struct hrt_experts *experts, int set, int64_t layer, void *dx,
                              void *dweights);

#endif
