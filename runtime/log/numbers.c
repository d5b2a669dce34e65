// One list for all of them.
#include "runtime/log/numbers.h"

#include <stdio.h>

#include "runtime/log/objective.h"

// "train/loss_mtp", "val/loss_mtp". Returns how many there are now.
static int add_named(const struct hrt_step_report *step, struct hrt_number_of *out, int count) {
    const struct hrt_named_losses *named = &step->named;
    for (int i = 0; i < named->count; i++) {
        out[count] = (struct hrt_number_of){.help = "nats a token", .value = named->value[i]};
        snprintf(out[count].tag, sizeof out->tag, "train/loss_%s", named->loss[i].name);
        count++;
        if (!step->evaluated) continue;
        out[count] =
            (struct hrt_number_of){.help = "nats a token", .value = step->validation.named[i]};
        snprintf(out[count].tag, sizeof out->tag, "val/loss_%s", named->loss[i].name);
        count++;
    }
    return count;
}

// "preferences/margin". Returns how many there are now.
static int add_objective(const struct hrt_step_report *step, struct hrt_number_of *out, int count) {
    struct hrt_objective_number number[HRT_OBJECTIVE_NUMBERS];
    const char *section;
    const int means = hrt_log_objective_of(step, number, &section);
    for (int i = 0; i < means; i++, count++) {
        out[count] = (struct hrt_number_of){.help = number[i].help, .value = number[i].value};
        snprintf(out[count].tag, sizeof out->tag, "%s/%s", section, number[i].name);
    }
    return count;
}

int hrt_log_numbers_of(const struct hrt_step_report *step, double peak,
                       struct hrt_number_of out[HRT_NUMBERS_OF]) {
    const struct hrt_watch_sums *watched = &step->watched;
    const bool owned = watched->before > 0, ranks = watched->slowest >= 0,
               routers = step->routers.load > 0;
    const struct {
        bool there;
        struct hrt_number_of number;
    } all[] = {
        {true, {"train/loss", "the minimized loss", step->loss}},
        {true, {"train/cross_entropy", "nats a token", step->cross_entropy}},
        {true, {"train/aux", "auxiliary losses", step->auxiliary}},
        {true, {"train/grad_norm", "before clipping", step->grad_norm}},
        {true, {"train/lr", "learning rate", step->lr}},
        {step->evaluated, {"val/loss", "validation loss", step->validation.loss}},
        {true, {"speed/step_seconds", "of the last step", step->seconds}},
        {true, {"speed/tokens_per_second", "of all ranks", step->tokens_per_s}},
        {peak > 0, {"speed/mfu", "share of the peak", peak > 0 ? step->flops / peak : 0}},
        {true, {"speed/seconds_left", "at the pace of the last steps", step->left}},
        {ranks, {"ranks/waited", "share of the ranks' time waited for others", watched->waited}},
        {ranks, {"ranks/slowest", "the rank that waited least", watched->slowest}},
        {watched->memory > 0, {"ranks/memory_bytes", "at most, of the fullest", watched->memory}},
        {routers, {"router/load", "fullest expert over mean, worst layer", step->routers.load}},
        {routers,
         {"router/entropy", "of experts' loads, 1 is even, worst layer", step->routers.entropy}},
        {routers,
         {"router/dead", "experts without a token, all layers", (double)step->routers.dead}},
        {owned, {"balance/before", "fullest rank over mean, by owners", watched->before}},
        {owned, {"balance/after", "fullest rank over mean, as placed", watched->after}},
        {owned, {"balance/replicas", "of all layers", (double)watched->replicas}},
        {owned, {"balance/resharded", "experts with a new owner", (double)step->resharded}},
        {step->moved.bytes > 0,
         {"moved/bytes", "of experts, received by a rank", step->moved.bytes}},
        {step->moved.bytes > 0, {"moved/exposed_seconds", "waited for them", step->moved.exposed}},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].there) out[count++] = all[i].number;
    }
    return add_objective(step, out, add_named(step, out, count));
}
