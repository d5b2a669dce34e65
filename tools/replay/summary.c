// summary.c: means and percentiles of a series.
#include <stdlib.h>

#include "tools/replay/replay.h"

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The 95th percentile by nearest rank; sorts `values`.
static double p95(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count ? values[(95 * count + 99) / 100 - 1] : 0;
}

struct summary summarize(const struct series *series, uint32_t from, uint32_t to, int32_t nodes) {
    struct summary sum = {0};
    double *imbalance = malloc((size_t)(series->count + 1) * sizeof *imbalance);
    double *time = malloc((size_t)(series->count + 1) * sizeof *time);
    double rows = 0;
    for (int64_t i = 0; imbalance && time && i < series->count; i++) {
        const struct sample *s = &series->samples[i];
        if (s->iteration < from || s->iteration >= to) continue;
        imbalance[sum.count] = s->imbalance;
        time[sum.count++] = (double)s->plan_ns / 1000;
        sum.mean += s->imbalance;
        sum.plan_us += (double)s->plan_ns / 1000;
        sum.cross += (double)s->cross;
        sum.intra += (double)s->intra;
        sum.cross_bound += (double)s->cross_bound;
        sum.bound += s->bound;
        sum.distance += s->imbalance / s->bound - 1;
        sum.entries += (double)s->entries / nodes;
        sum.replicas += (double)s->replicas;
        sum.states += (double)s->states;
        sum.exposed += (double)s->exposed;
        sum.megabytes += (double)s->bytes / 1e6;
        sum.grad_megabytes += (double)s->grad_bytes / 1e6;
        rows += (double)s->rows;
    }
    if (sum.count > 0) {
        const double n = (double)sum.count;
        sum.mean /= n, sum.plan_us /= n, sum.entries /= n, sum.replicas /= n, sum.states /= n,
            sum.exposed /= n, sum.megabytes /= n, sum.grad_megabytes /= n;
        sum.bound /= n, sum.distance /= n;
        if (rows > 0) sum.cross /= rows, sum.intra /= rows, sum.cross_bound /= rows;
        sum.p95 = p95(imbalance, sum.count);
        sum.worst = imbalance[sum.count - 1];
        sum.plan_us_p95 = p95(time, sum.count);
    }
    free(imbalance);
    free(time);
    return sum;
}
