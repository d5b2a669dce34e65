// Numbers of routers by counts alone: the same on every rank and for every placement.
#include "runtime/train/routers.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/base/error.h"

static const double nearly_all = 0.95;

struct hrt_router hrt_train_router_of(const int64_t *count, int64_t experts) {
    struct hrt_router router = {.load = 1, .entropy = 1};
    int64_t sum = 0, empty = 0;
    double weighted = 0;
    for (int64_t e = 0; e < experts; e++) {
        const double n = (double)count[e];
        sum += count[e];
        if (count[e] > count[router.fullest]) router.fullest = e;
        if (count[e] > 0)
            weighted += n * log(n);
        else
            empty++;
    }
    if (sum == 0) return router;
    const double all = (double)sum;
    router.load = (double)count[router.fullest] * (double)experts / all;
    // Where one expert has all, the two differ by rounding alone.
    if (experts > 1) router.entropy = fmax(0, (log(all) - weighted / all) / log((double)experts));
    router.dead = empty;
    return router;
}

static void add_layer(struct hrt_routers *all, const struct hrt_set *set, int load_index,
                      int64_t layer, const int64_t *count) {
    const struct hrt_router router = hrt_train_router_of(count, set->experts);
    if (router.load > all->load) all->load = router.load;
    if (router.entropy < all->entropy) all->entropy = router.entropy;
    all->dead += router.dead;
    const double share = router.load * (double)set->topk / (double)set->experts;
    if (2 * set->topk > set->experts || share <= all->share) return;
    all->share = share;
    all->load_index = load_index;
    all->layer = layer;
}

struct hrt_routers hrt_train_routers_of(const struct hrt_load_counts *loads) {
    const struct hrt_program *program = loads->program;
    struct hrt_routers all = {.entropy = program->loads > 0, .load_index = -1};
    const int64_t *count = loads->count;
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_set *set = &program->set[program->load[i].set];
        for (int64_t layer = 0; layer < set->layers; layer++, count += set->experts)
            add_layer(&all, set, i, layer, count);
    }
    return all;
}

bool hrt_train_collapse_step(struct hrt_collapse *collapse, const struct hrt_routers *routers) {
    collapse->steps = routers->share >= nearly_all ? collapse->steps + 1 : 0;
    if (collapse->told || collapse->steps < HRT_COLLAPSED) return false;
    collapse->told = true;
    return true;
}

void hrt_train_collapse_warn(const struct hrt_load_counts *loads,
                             const struct hrt_routers *routers) {
    const struct hrt_program *program = loads->program;
    const struct hrt_set *set = &program->set[program->load[routers->load_index].set];
    const int64_t experts = set->experts,
                  *count = hrt_train_load_counts_of(loads, routers->load_index) +
                           routers->layer * experts;
    const struct hrt_router router = hrt_train_router_of(count, experts);
    hrt_warn(
        program->name,
        "a router has collapsed: for %d steps nearly all tokens of a layer went to one expert; "
        "in layer %" PRId64 " of %s, expert %" PRId64 " gets %.0f %% of them (load %.2f of %.4g) "
        "and %" PRId64 " of %" PRId64 " experts get none; raise aux or bias of its balance, or "
        "lower the learning rate",
        HRT_COLLAPSED, routers->layer, set->name, router.fullest, 100 * routers->share, router.load,
        (double)experts / (double)set->topk, router.dead, experts);
}
