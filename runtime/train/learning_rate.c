// Warmup, then cosine, linear or constant.
#include "runtime/train/learning_rate.h"

#include <math.h>

double hrt_learning_rate(const struct hrt_config *config, int64_t step) {
    if (step < config->warmup) return config->lr * (double)(step + 1) / (double)config->warmup;
    if (config->lr_schedule == HRT_LR_CONSTANT) return config->lr;

    const int64_t falling = config->steps - config->warmup;
    const double done = falling > 0 ? (double)(step - config->warmup) / (double)falling : 1;
    const double high =
        config->lr_schedule == HRT_LR_COSINE ? 0.5 * (1 + cos(M_PI * done)) : 1 - done;
    return config->lr * (config->final + (1 - config->final) * high);
}
