// Time that passes on a device, and its use.
#include <assert.h>

#include "passes/timeline/run.h"

void hec_run_note(struct run *r, int32_t device, const struct hec_action *a, enum hec_spent spent,
                  double begin, double end) {
    const struct device *d = &r->device[device];
    const int64_t step = hec_step_of(r, d);
    const struct hec_watcher *w = r->request->watcher;
    r->spent[((size_t)step * (size_t)r->devices + (size_t)device) * HEC_SPENT + spent] +=
        end - begin;
    if (spent != HEC_SPENT_COMPUTE && a->layer >= 0 && step > 0)
        r->layer_us[a->layer] += end - begin;
    if (!w || !w->stretch || end <= begin) return;
    const struct hec_stretch stretch = {
        .device = device,
        .layer = a->layer,
        .back = a->back,
        .spent = spent,
        .label = a->act == HEC_ACT_COMPUTE ? a->label : NULL,
        .begin = begin,
        .end = end,
    };
    w->stretch(w->context, &stretch);
}

void hec_run_pass(struct run *r, int32_t device, const struct hec_action *a, enum hec_spent spent,
                  double us) {
    struct device *d = &r->device[device];
    static const enum hec_path_own own[HEC_PATH_OWN] = {
        [HEC_SPENT_COMPUTE] = HEC_PATH_COMPUTE,
        [HEC_SPENT_EXPERTS] = HEC_PATH_EXPERTS,
        [HEC_SPENT_PLAN] = HEC_PATH_PLAN,
    };
    assert(spent < HEC_SPENT_COUNTS);
    hec_run_note(r, device, a, spent, d->now, d->now + us);
    d->now += us;
    d->path.own[own[spent]] += us;
}

void hec_run_wait(struct run *r, int32_t device, int32_t transfer, enum hec_spent why) {
    struct device *d = &r->device[device];
    if (hec_transfer_done(r->lanes, transfer, device)) return;
    d->waits = transfer;
    d->why = why;
    d->since = d->now;
}

void hec_run_start(struct run *r, int32_t device, int32_t transfer) {
    if (transfer >= 0 && !hec_transfer_begun(r->lanes, transfer, device))
        hec_transfer_start(r->lanes, transfer, device, r->device[device].now,
                           &r->device[device].path);
}
