// links: measures the rates of a job's links, for cluster.link.measured.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "runtime/base/format.h"
#include "runtime/cli/command.h"
#include "runtime/net/link_rates.h"
#include "runtime/train/ranks.h"

// Whether what is measured could be kept.
static bool check_file(const struct hrt_run *run, struct hrt_error *error) {
    const char *path = run->arguments->save, *why;
    if (!path || run->comm->rank > 0 || hf_can_replace(path, &why)) return true;
    return hrt_fail(error, "cannot write '%s': %s", path, why);
}

static bool check(const struct hrt_run *run, struct hrt_error *error) {
    if (run->program->executor)
        return hrt_fail_usage(error, "links: not yet for devices with memory of their own");
    if (run->comm->size < 2)
        return hrt_fail_usage(error, "links: one rank has none; compile for several "
                                     "(cluster.nodes, cluster.devices) and start them with mpirun");
    if (!hrt_net_rates_even(run->comm))
        return hrt_fail(error, "links: machines have different numbers of ranks");
    return check_file(run, error);
}

static void print_links(const char *where, const struct hrt_link_rates *r, bool nodes) {
    char pair[32], all[32], bandwidth[32];
    if (!r->known) return;
    hrt_format_bytes(pair, sizeof pair, r->pair);
    hrt_format_bytes(all, sizeof all, r->all);
    hrt_format_bytes(bandwidth, sizeof bandwidth, r->bandwidth);
    printf("%s: latency %.1f us, one pair %s/s, all pairs %s/s, all both ways %s/s a %s\n", where,
           1e6 * r->latency, pair, all, bandwidth, nodes ? "node" : "rank");
}

static void write_links(FILE *out, const char *key, const struct hrt_link_rates *r) {
    if (r->known)
        fprintf(out,
                ",\n \"%s\": {\"latency\": %.4g, \"bandwidth\": %.4g, \"pair\": %.4g, "
                "\"all\": %.4g}",
                key, r->latency, r->bandwidth, r->pair, r->all);
}

static bool save(const struct hrt_run *run, const struct hrt_rates *rates,
                 struct hrt_error *error) {
    const char *path = run->arguments->save, *why;
    struct hf_replacement file;
    if (!path || run->comm->rank > 0) return true;
    if (!hf_replace_begin(&file, path, &why))
        return hrt_fail(error, "cannot write '%s': %s", path, why);
    fprintf(file.file, "{\"hecate_links\": 1, \"nodes\": %d, \"ranks\": %d", run->comm->nodes,
            run->comm->size);
    write_links(file.file, "intra", &rates->intra);
    write_links(file.file, "inter", &rates->inter);
    fputs("}\n", file.file);
    const bool written = fflush(file.file) == 0 && !ferror(file.file);
    if (hf_replace_end(&file, written, &why)) return true;
    return hrt_fail(error, "cannot write '%s': %s", path, why);
}

static bool measure(const struct hrt_run *run, struct hrt_error *error) {
    struct hrt_rates rates;
    char *send = malloc(HRT_RATES_BYTES), *receive = malloc(HRT_RATES_BYTES);
    bool sound = (send && receive) || hrt_fail(error, "out of memory");
    sound = hrt_train_ranks_agree(run->comm, sound, error);
    if (sound) {
        memset(send, 1, HRT_RATES_BYTES); // Pages are there before the clock runs.
        memset(receive, 0, HRT_RATES_BYTES);
        hrt_net_measure_rates(run->comm, send, receive, &rates);
        print_links("inside a node", &rates.intra, false);
        print_links("between nodes", &rates.inter, true);
        sound = hrt_train_ranks_agree(run->comm, save(run, &rates, error), error);
    }
    free(send);
    free(receive);
    return sound;
}

int hrt_cli_command_links(const struct hrt_run *run, struct hrt_error *error) {
    const bool sound = hrt_train_ranks_agree(run->comm, check(run, error), error);
    return sound && measure(run, error) ? HRT_EXIT_DONE : (int)error->code;
}
