// Warmup, then cosine, linear or constant; or constant, and linear at the end (warmup, stable, decay: wsd).
#include "runtime/train/learning_rate.h"

#include <math.h>

double hrt_learning_rate(const struct hrt_config *config, int64_t step) {
    if (step < config->warmup) return config->lr * (double)(step + 1) / (double)config->warmup;
    if (config->lr_schedule == HRT_LR_CONSTANT) return config->lr;

    // Of the steps that fall the first still has lr, the last has the last learning rate.
    const int64_t left = config->steps - config->warmup;
    double falling = (double)left;
    if (config->lr_schedule == HRT_LR_WSD)
        falling =
            config->falls > 0 ? fmin(fmax(config->falls * (double)config->steps, 1), falling) : 0;
    const double from = (double)config->steps - falling;
    if ((double)step < from) return config->lr;
    const double done = falling > 1 ? fmin(((double)step - from) / (falling - 1), 1) : 1;
    const double high =
        config->lr_schedule == HRT_LR_COSINE ? 0.5 * (1 + cos(M_PI * done)) : 1 - done;
    return config->lr * (config->final + (1 - config->final) * high);
}
