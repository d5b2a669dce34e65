// hecate-upcycle: from a model without experts to one with them.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "runtime/store/checkpoint_part.h"
#include "runtime/store/hf_like.h"
#include "runtime/store/new_folder.h"
#include "tools/upcycle/upcycle.h"

static const char help[] =
    "usage: hecate-upcycle DENSE --to=FOLDER --experts=E --topk=K [flags]\n"
    "\n"
    "Makes a Hugging Face folder of a model with experts from one of a model without: mixtral of "
    "llama and\n"
    "mistral, qwen3_moe of qwen3. Experts are copies of the MLP and routers are drawn, so both "
    "models have\n"
    "the same logits, but for --noise and --reinit.\n"
    "      --to=FOLDER       made; nothing has that name yet\n"
    "      --experts=E       of each layer\n"
    "      --topk=K          of them for a token\n"
    "      --split=1         experts have this part of the MLP's hidden units: a power of two that "
    "divides\n"
    "                        them, E and K\n"
    "      --noise=0         added to experts, normal, in standard deviations of their tensor\n"
    "      --reinit=0        share of the hidden units of each expert that are drawn anew\n"
    "      --seed=1          of routers, noise and units\n"
    "      --shard-bytes=5e9 of tensors in a file, at most\n"
    "  -h, --help            this text\n"
    "\n"
    "exit codes: 0 done, 1 a file cannot be read or written, or is wrong, 2 command line\n";

enum flag { TO = 256, EXPERTS, TOPK, SPLIT, NOISE, REINIT, SEED, SHARD };

static const struct option flags[] = {
    {"to", required_argument, NULL, TO},       {"experts", required_argument, NULL, EXPERTS},
    {"topk", required_argument, NULL, TOPK},   {"split", required_argument, NULL, SPLIT},
    {"noise", required_argument, NULL, NOISE}, {"reinit", required_argument, NULL, REINIT},
    {"seed", required_argument, NULL, SEED},   {"shard-bytes", required_argument, NULL, SHARD},
    {"help", no_argument, NULL, 'h'},          {0},
};

static bool read_number(const char *name, int64_t least, int64_t most, int64_t *number,
                        struct hrt_error *error) {
    char *end = NULL;
    errno = 0;
    *number = strtoll(optarg, &end, 10);
    if (end != optarg && !*end && !errno && *number >= least && *number <= most) return true;
    return hrt_fail_usage(error,
                          "--%s=%s: a whole number from %" PRId64 " to %" PRId64 " is wanted", name,
                          optarg, least, most);
}

static bool read_share(const char *name, int most, double *share, struct hrt_error *error) {
    char *end = NULL;
    *share = strtod(optarg, &end);
    if (end != optarg && !*end && *share >= 0 && *share <= most) return true;
    return hrt_fail_usage(error, "--%s=%s: a number from 0 to %d is wanted", name, optarg, most);
}

static bool read_flag(int flag, struct options *o, struct hrt_error *error) {
    switch (flag) {
    case TO:
        o->to = optarg;
        return true;
    case EXPERTS:
        return read_number("experts", 1, 4096, &o->experts, error);
    case TOPK:
        return read_number("topk", 1, 4096, &o->topk, error);
    case SPLIT:
        return read_number("split", 1, 4096, &o->split, error);
    case NOISE:
        return read_share("noise", 100, &o->noise, error);
    case REINIT:
        return read_share("reinit", 1, &o->reinit, error);
    case SEED:
        return read_number("seed", 0, INT64_MAX, &o->seed, error);
    case SHARD:
        return read_number("shard-bytes", 1, INT64_MAX, &o->shard_bytes, error);
    default:
        return hrt_fail_usage(error, "see --help");
    }
}

static bool check(const struct options *o, struct hrt_error *error) {
    if (!o->from || !o->to || !o->experts || !o->topk)
        return hrt_fail_usage(error, "a folder, --to, --experts and --topk are wanted; see --help");
    if (o->topk > o->experts)
        return hrt_fail_usage(error, "--topk=%" PRId64 " is more than --experts=%" PRId64, o->topk,
                              o->experts);
    // Weights times another number would not be exact.
    if (o->split & (o->split - 1))
        return hrt_fail_usage(error, "--split=%" PRId64 ": a power of two is wanted", o->split);
    if (o->experts % o->split == 0 && o->topk % o->split == 0) return true;
    return hrt_fail_usage(
        error, "--split=%" PRId64 " must divide --experts=%" PRId64 " and --topk=%" PRId64,
        o->split, o->experts, o->topk);
}

static bool write_folder(const struct options *o, const struct hrt_hf_like *dense,
                         const struct hrt_hf_folder *folder, struct hrt_error *error) {
    struct hrt_new_folder made;
    struct model model;
    char path[PATH_MAX];
    bool written = hrt_store_part_path(path, o->from, "config.json", error) &&
                   hrt_store_new_folder_name(&made, o->to, error);
    if (!written) return false;
    written = upcycle_config(&model, o, dense->config, path, error) &&
              hrt_store_new_folder_begin(&made) &&
              hrt_store_new_folder_end(
                  &made, upcycle_weights(&model, o, folder, made.path, error) &&
                             hrt_store_hf_write_config(model.config, made.path, error) &&
                             hrt_store_hf_like_copy_others(dense, made.path, error));
    json_decref(model.config);
    return written;
}

static bool upcycle(const struct options *o, struct hrt_error *error) {
    struct hrt_hf_like dense = {0};
    struct hrt_error unread = {0}; // Told when tensors are read.
    bool written = hrt_store_hf_like_open(&dense, o->from, error);
    if (written && !dense.folder.where) written = hrt_fail(error, "'%s' has no weights", o->from);
    if (written) {
        dense.folder.error = &unread;
        for (int i = 0; i < dense.folder.files; i++) dense.folder.file[i].error = &unread;
        written = write_folder(o, &dense, &dense.folder, error);
    }
    hrt_store_hf_like_close(&dense);
    return written;
}

static int run(int argc, char **argv, struct hrt_error *error) {
    struct options o = {.split = 1, .seed = 1, .shard_bytes = 5000000000};
    for (int flag; (flag = getopt_long(argc, argv, "h", flags, NULL)) != -1;) {
        if (flag == 'h') {
            fputs(help, stdout);
            return HRT_EXIT_DONE;
        }
        if (!read_flag(flag, &o, error)) return (int)error->code;
    }
    if (argc - optind == 1) o.from = argv[optind];
    return check(&o, error) && upcycle(&o, error) ? HRT_EXIT_DONE : (int)error->code;
}

int main(int argc, char **argv) {
    struct hrt_error error = {0};
    hf_hold_standard();
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is told.
    int code = run(argc, argv, &error);
    if (code == HRT_EXIT_DONE && (fflush(stdout) != 0 || ferror(stdout))) {
        hrt_fail(&error, "cannot write to standard output: %s", strerror(errno));
        code = HRT_EXIT_FAILED;
    }
    if (code != HRT_EXIT_DONE) fprintf(stderr, "hecate-upcycle: %s\n", error.text);
    return code;
}
