// Checks that ranks decide alike. Each hashes its decisions: plans ahead of the iteration that needs them,
// the results of calibration and quotas from exact counts, new owners. The hash travels with the next counts, so
// plans made of forecasts are compared before any chunk of them moves, without a message of their own.
// Owners are compared by an exchange of their own, before states move; so are plans where no counts were
// exchanged since: the first ones, those behind new owners, and all of them where one layer is all that
// moves. Decisions from exact counts are sent as soon as they are made, and compared by the next transfer:
// replicas that calibration adds, or rows. So nobody waits for an answer between the counts and the rows.
#define _GNU_SOURCE // The program's name.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"

uint64_t hrt_experts_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;
    hash ^= 0xcbf29ce484222325;
    for (; bytes >= 4; bytes -= 4, at += 4) { // Four at a time.
        uint32_t word;
        __builtin_memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x100000001b3;
        hash ^= hash >> 32;
    }
    for (; bytes > 0; bytes--) hash = (hash ^ *at++) * 0x100000001b3;
    return hash;
}

// ---- where they are not alike

// The ranks whose words count most, and the first that has another one.
struct parties {
    int most, other; // Ranks; other -1: all are alike.
};

static struct parties parties_of(const uint64_t *word, int ranks) {
    int best = 0;
    struct parties parties = {0, -1};
    for (int r = 0; r < ranks; r++) {
        int same = 0;
        for (int k = 0; k < ranks; k++) same += word[k] == word[r];
        if (same > best) best = same, parties.most = r;
    }
    for (int r = ranks - 1; r >= 0; r--) {
        if (word[r] != word[parties.most]) parties.other = r;
    }
    return parties;
}

static void say(const struct hrt_fssdp *fssdp, struct parties parties,
                const struct hrt_decision *decision) {
    static const char *const done[] = {[HRT_DECIDED_PLAN] = "planned differently",
                                       [HRT_DECIDED_ROWS] = "divided rows differently",
                                       [HRT_DECIDED_OWNERS] = "chosen other owners"};
    const int low = parties.most < parties.other ? parties.most : parties.other;
    const int high = parties.most < parties.other ? parties.other : parties.most;
    fprintf(stderr,
            "%s: error: ranks %d and %d have %s for layer %" PRId64
            " of set '%s', iteration %" PRId64 "\n",
            program_invocation_short_name, low, high, done[decision->what], decision->layer,
            fssdp->program->set[decision->set].name, decision->iteration);
}

// All ranks come here at the same exchange, with lists of the same decisions: the first one in which they
// differ is the cause. Rank 0 says it, and ends the job; the others wait for that.
static void differ(void *context) {
    struct hrt_fssdp *fssdp = context;
    const struct hrt_agreement *agreement = &fssdp->agreement;
    const int ranks = fssdp->comm->size;
    struct parties parties = {0, -1};
    uint64_t *word = calloc((size_t)ranks, sizeof *word);
    if (!word) hrt_net_comm_abort(fssdp->comm, HRT_EXIT_FAILED);
    for (int i = 0; i < agreement->count && parties.other < 0; i++) {
        hrt_experts_gather(fssdp->state->experts, agreement->open[i].word, word);
        parties = parties_of(word, ranks);
        if (parties.other >= 0 && fssdp->comm->rank == 0) say(fssdp, parties, &agreement->open[i]);
    }
    if (fssdp->comm->rank > 0) hrt_net_comm_barrier(fssdp->comm);
    if (parties.other < 0)
        fprintf(stderr, "%s: error: ranks have planned differently\n",
                program_invocation_short_name);
    hrt_net_comm_abort(fssdp->comm, HRT_EXIT_FAILED);
}

// ---- deciding

// Most of what may be open: all plans, as at the beginning, and a layer's rest.
bool hrt_experts_agreement_create(struct hrt_fssdp *fssdp) {
    struct hrt_agreement *agreement = &fssdp->agreement;
    agreement->room = 4;
    for (int i = 0; i < fssdp->program->sets; i++)
        agreement->room += 3 * (int)fssdp->program->set[i].layers;
    agreement->open = malloc((size_t)agreement->room * sizeof *agreement->open);
    hrt_experts_watch(fssdp->state->experts, differ, fssdp);
    return agreement->open;
}

void hrt_experts_agreement_destroy(struct hrt_fssdp *fssdp) {
    hrt_experts_agree(fssdp->state->experts);
    hrt_experts_watch(fssdp->state->experts, NULL, NULL);
    free(fssdp->agreement.open);
}

void hrt_experts_decide(struct hrt_fssdp *fssdp, struct hrt_decision decision) {
    struct hrt_agreement *agreement = &fssdp->agreement;
    struct hrt_experts *experts = fssdp->state->experts;
    hrt_experts_agree(experts); // The counts in flight do not have this decision.
    const int64_t compared = hrt_experts_compared(experts);
    if (agreement->compared != compared) agreement->count = 0; // They were alike.
    agreement->compared = compared;
    if (agreement->count == agreement->room) agreement->count--; // Unheard of.
    agreement->open[agreement->count++] = decision;
    agreement->word = hrt_experts_hash(agreement->word, &decision.word, sizeof decision.word);
    hrt_experts_vouch(experts, agreement->word);
}

void hrt_experts_decide_plan(struct hrt_fssdp *fssdp, int set, int64_t layer,
                             const struct hpl_plan *plan) {
    const size_t experts = (size_t)plan->experts, holders = (size_t)plan->first[experts];
    const uint64_t word = hrt_experts_hash(0, plan->first, (experts + 1) * sizeof *plan->first);
    hrt_experts_decide(fssdp,
                       (struct hrt_decision){
                           HRT_DECIDED_PLAN, set, layer, fssdp->set[set].layer[layer].seen + 1,
                           hrt_experts_hash(word, plan->holder, holders * sizeof *plan->holder)});
}

void hrt_experts_agree_now(struct hrt_fssdp *fssdp) {
    hrt_experts_compare(fssdp->state->experts);
    hrt_experts_agree(fssdp->state->experts);
}
