// csv.c: every layer-step as a line, for one's own questions.
#include "files/files.h"
#include "tools/replay/replay.h"

bool csv_report(const char *path, const struct series *series, int32_t count) {
    const char *why;
    FILE *out = hf_output(path, &why);
    if (!out) {
        fprintf(stderr, "hecate-replay: %s: %s\n", path, why);
        return false;
    }
    fprintf(out, "policy,iteration,layer,microbatch,max_over_mean,bound,rows,cross,cross_bound,"
                 "intra,entries,replicas,exposed,states,bytes,grad_bytes,plan_ns\n");
    for (int32_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < series[i].count; k++) {
            const struct sample *s = &series[i].samples[k];
            fprintf(
                out,
                "%s,%u,%u,%u,%.6f,%.6f,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld\n",
                series[i].policy->name, s->iteration, s->layer, s->microbatch, s->imbalance,
                s->bound, (long long)s->rows, (long long)s->cross, (long long)s->cross_bound,
                (long long)s->intra, (long long)s->entries, (long long)s->replicas,
                (long long)s->exposed, (long long)s->states, (long long)s->bytes,
                (long long)s->grad_bytes, (long long)s->plan_ns);
        }
    }
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return true;
    fprintf(stderr, "hecate-replay: %s: write error\n", path);
    return false;
}
