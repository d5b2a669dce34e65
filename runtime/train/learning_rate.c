// Warmup, then cosine, linear or constant; or constant, and linear at the end (warmup, stable, decay: wsd). Cosine and
// linear may fall several times.
#include "runtime/train/learning_rate.h"

#include <math.h>

// How far step `at` is, of `steps` that fall `cycles` times: 0 for the first one of each fall, 1 for the last one.
static double share_of_fall(int64_t at, int64_t steps, int64_t cycles) {
    const int64_t fall = at * cycles / steps; // Its steps are those for which this is the same.
    const int64_t begin = (fall * steps + cycles - 1) / cycles,
                  end = ((fall + 1) * steps + cycles - 1) / cycles;
    return end - begin > 1 ? (double)(at - begin) / (double)(end - begin - 1) : 1;
}

double hrt_train_learning_rate(const struct hrt_config *config, int64_t step) {
    if (step < config->train_schedule_warmup)
        return config->train_optimizer_lr * (double)(step + 1) /
               (double)config->train_schedule_warmup;
    if (config->train_schedule == HRT_SCHEDULE_constant) return config->train_optimizer_lr;

    // The first falling step still has lr, the last one has the last learning rate.
    const int64_t left = config->train_steps - config->train_schedule_warmup;
    double falling = (double)left;
    if (config->train_schedule == HRT_SCHEDULE_wsd)
        falling =
            config->train_schedule_decay > 0
                ? fmin(fmax(config->train_schedule_decay * (double)config->train_steps, 1), falling)
                : 0;
    const double from = (double)config->train_steps - falling;
    if ((double)step < from) return config->train_optimizer_lr;
    double done = falling > 1 ? fmin(((double)step - from) / (falling - 1), 1) : 1;
    if (config->train_schedule_cycles > 1 && config->train_schedule != HRT_SCHEDULE_wsd &&
        step < config->train_steps)
        done = share_of_fall(step - config->train_schedule_warmup, left,
                             config->train_schedule_cycles);
    const double high =
        config->train_schedule == HRT_SCHEDULE_cosine ? 0.5 * (1 + cos(M_PI * done)) : 1 - done;
    return config->train_optimizer_lr *
           (config->train_schedule_final + (1 - config->train_schedule_final) * high);
}
