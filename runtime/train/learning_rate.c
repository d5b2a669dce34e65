// Warmup, then cosine, linear or constant; or constant, and linear at the end (warmup, stable, decay: wsd).
#include "runtime/train/learning_rate.h"

#include <math.h>

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
    const double done = falling > 1 ? fmin(((double)step - from) / (falling - 1), 1) : 1;
    const double high =
        config->train_schedule == HRT_SCHEDULE_cosine ? 0.5 * (1 + cos(M_PI * done)) : 1 - done;
    return config->train_optimizer_lr *
           (config->train_schedule_final + (1 - config->train_schedule_final) * high);
}
