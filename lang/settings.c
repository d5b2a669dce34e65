// The one table of settings. A new row is all that a new setting needs: the checker, its
// suggestions, the printed reference and what is "not yet" follow from it.
#include "lang/settings.h"

#include <string.h>

#include "lang/program.h"

#define COUNT HEC_SETTING_COUNT
#define REAL HEC_SETTING_REAL
#define SWITCH HEC_SETTING_SWITCH
#define TEXT HEC_SETTING_TEXT
#define CHOICE HEC_SETTING_CHOICE
#define PAIR HEC_SETTING_PAIR
#define LABEL HEC_SETTING_LABEL
#define AUTO HEC_SETTING_AUTO
#define NONE HEC_SETTING_NONE

// Experts lie where a policy of the planner says, or one of its own, or everywhere.
static const char placements[] = "fssdp|replicate"
#define HPL_POLICY(name, ...) "|" #name
#include "runtime/plan/policies.def"
    ;

// Behind the first sign.
static const char families[] =
#define HRT_HF_FAMILY(name, ...) "|" #name
#include "runtime/store/hf_families.def"
    ;

// Behind the first two signs.
static const char scores[] =
#define SCORE(id, word) ", " #word
    HEC_SCORES(SCORE)
#undef SCORE
    ;

// clang-format off
const struct hec_setting_row hec_setting_rows[] = {
    {"checkpoint.dir", .type = TEXT, .flags = NONE, .standard = "", .text = "folder of checkpoints"},
    {"checkpoint.every", .type = COUNT, .standard = "0", .largest = 1e12,
     .text = "steps between checkpoints; 0: none but the last"},
    {"checkpoint.every_minutes", .type = REAL, .standard = "0", .largest = 1e6,
     .text = "minutes between checkpoints; 0: none"},
    {"checkpoint.keep", .type = COUNT, .standard = "3", .smallest = 1, .largest = 1e9,
     .text = "checkpoints kept"},
    {"checkpoint.keep_every", .type = COUNT, .standard = "0", .largest = 1e12,
     .text = "checkpoints of steps that are multiples of it are kept for good; 0: none"},
    {"checkpoint.memory", .type = COUNT, .measure = HEC_BYTES, .standard = "268435456", .largest = 1e15,
     .text = "bytes of values that a rank copies while a checkpoint is written; what needs more waits"},

    {"cluster.device", .type = LABEL, .standard = "cpu", .text = "name of the device"},
    {"cluster.device.bandwidth", .type = REAL, .flags = AUTO, .measure = HEC_BYTES_PER_SECOND,
     .standard = "auto", .text = "memory bandwidth of a device"},
    {"cluster.device.flops", .type = REAL, .flags = AUTO, .measure = HEC_FLOPS,
     .standard = "auto", .text = "arithmetic of a device"},
    {"cluster.device.measured", .type = TEXT, .flags = NONE, .standard = "",
     .text = "file of times of kernels, by hecatec --calibrate"},
    {"cluster.device.memory", .type = REAL, .flags = AUTO, .measure = HEC_BYTES,
     .standard = "auto", .text = "memory of a device"},
    {"cluster.devices", .type = COUNT, .standard = "1", .smallest = 1, .largest = 1024,
     .text = "devices per node"},
    {"cluster.link.inter.bandwidth", .type = REAL, .flags = AUTO, .measure = HEC_BYTES_PER_SECOND,
     .standard = "auto", .text = "between nodes, per node and direction"},
    {"cluster.link.inter.latency", .type = REAL, .flags = AUTO, .measure = HEC_SECONDS,
     .standard = "auto", .text = "between nodes"},
    {"cluster.link.intra.bandwidth", .type = REAL, .flags = AUTO, .measure = HEC_BYTES_PER_SECOND,
     .standard = "auto", .text = "inside a node, per device and direction"},
    {"cluster.link.intra.latency", .type = REAL, .flags = AUTO, .measure = HEC_SECONDS,
     .standard = "auto", .text = "inside a node"},
    {"cluster.link.measured", .type = TEXT, .flags = NONE, .standard = "",
     .text = "file of rates of links, by a program's links --save"},
    {"cluster.nodes", .type = COUNT, .standard = "1", .smallest = 1, .largest = 1024,
     .text = "nodes: devices that share a fast interconnect"},

    {"data.format", .type = CHOICE, .values = "bytes|llmc", .standard = "bytes",
     .text = "plain text as bytes, or llm.c token files"},
    {"data.held_out", .type = REAL, .flags = AUTO, .standard = "auto", .smallest = 1e-6, .largest = 0.9,
     .text = "share of each training file, its end, that is not trained on; auto: 0.05, none with data.val"},
    {"data.teacher", .type = TEXT, .standard = "",
     .text = "what a teacher says of the tokens of all files, as a glob pattern"},
    {"data.train", .type = TEXT, .standard = "", .text = "training files, as a glob pattern"},
    {"data.val", .type = TEXT, .standard = "", .text = "evaluation files, as a glob pattern"},

    {"log.every", .type = COUNT, .standard = "10", .smallest = 1, .largest = 1e9,
     .text = "steps between lines"},
    {"log.jsonl", .type = TEXT, .flags = NONE, .standard = "", .text = "file of JSON lines, one per step"},

    {"log.loads", .type = COUNT, .standard = "0", .largest = 1e9,
     .text = "steps between per-expert loads in the file of JSON lines; 0: none"},

    {"names.hf.family", .type = TEXT, .flags = NONE, .values = families + 1, .standard = "", .text = "checkpoint names of Hugging Face"},

    {"parallel.bucket", .type = COUNT, .measure = HEC_BYTES, .standard = "1048576", .smallest = 1,
     .text = "bytes of gradients whose sum over devices starts together, during backward"},
    {"parallel.dense", .type = CHOICE, .values = "replicate|shard", .standard = "replicate",
     .text = "parameters outside experts: on every device, or sharded"},
    {"parallel.experts", .type = CHOICE,
     .values = placements, .standard = "fssdp",
     .text = "who holds the experts, and when they move"},
    {"parallel.logits", .type = COUNT, .values = "whole", .standard = "whole", .smallest = 1, .largest = 1 << 20,
     .text = "tokens whose logits are there at a time, and computed again in backward; whole: all"},
    {"parallel.microbatch", .type = COUNT, .flags = AUTO, .standard = "auto", .smallest = 1, .largest = 1 << 20,
     .text = "sequences per device and iteration"},
    {"parallel.placement.calibrate", .type = SWITCH, .flags = AUTO, .standard = "auto",
     .text = "plan again with the true loads, after the gate"},
    {"parallel.placement.dispatch", .type = CHOICE, .values = "quota|even", .standard = "quota",
     .text = "how tokens are split over the holders of an expert"},
    {"parallel.placement.forecast", .type = CHOICE, .values = "window", .standard = "window",
     .text = "loads expected: the mean of the last iterations"},
    {"parallel.placement.forecast.iterations", .type = COUNT, .standard = "5", .smallest = 1,
     .largest = 4096,
     .position = 1, .of = "window", .text = "length of the window"},
    {"parallel.placement.memory", .type = COUNT, .flags = AUTO | HEC_SETTING_UNIT, .measure = HEC_BYTES,
     .standard = "auto", .text = "m: slots for replicas per device and layer; or bytes"},
    {"parallel.placement.overlap", .type = COUNT, .flags = AUTO, .standard = "auto",
     .text = "t: experts that can be sent in the window"},
    {"parallel.placement.rematerialize", .type = SWITCH, .flags = AUTO, .standard = "auto",
     .text = "release replicas after forward, gather them again for backward"},
    {"parallel.placement.reshard", .type = CHOICE, .values = "every|never", .standard = "every",
     .text = "when experts change their owners"},
    {"parallel.placement.reshard.iterations", .type = COUNT, .standard = "100", .smallest = 1,
     .position = 1, .of = "every", .text = "iterations between re-shardings"},
    {"parallel.recompute", .type = CHOICE, .values = "none|elementwise|cheap|all", .standard = "elementwise",
     .text = "what backward computes again instead of saving it; all: also products and attention"},
    {"parallel.rows_max", .type = COUNT, .flags = AUTO, .standard = "auto", .smallest = 1,
     .text = "rows of a wave on one device; auto: 1.25 times the balanced rows"},

    {"train.eval_every", .type = COUNT, .standard = "0", .largest = 1e9, .text = "steps between evaluations; 0: at the end alone"},
    {"train.eval_steps", .type = COUNT, .standard = "10", .largest = 1e9,
     .text = "steps' worth of tokens per evaluation; 0: none is evaluated"},
    {"train.group", .type = COUNT, .values = "iteration", .standard = "1", .smallest = 1,
     .largest = 1 << 20, .text = "sequences that statistics cover, or one iteration of all devices"},
    {"train.objective", .type = CHOICE, .values = "next_token|masked", .standard = "next_token",
     .text = "the next token, or tokens that are masked"},
    {"train.objective.rate", .type = REAL, .standard = "0.15", .smallest = 1e-6, .largest = 1, .position = 1,
     .of = "masked", .text = "share of tokens masked, the same number in each sequence"},
    {"train.objective.weight", .type = REAL, .standard = "1", .largest = 1e6, .of = "next_token|masked",
     .text = "of this loss, beside those by name; 0: only they are learned from"},
    {"train.optimizer", .type = CHOICE, .values = "adamw|muon", .standard = "adamw",
     .text = "optimizer; muon: of matrices, adamw of the rest"},
    {"train.optimizer.betas", .type = PAIR, .standard = "0.9,0.95", .largest = 0.999999, .of = "adamw|muon",
     .text = "decay of the two moments"},
    {"train.optimizer.clip", .type = REAL, .flags = NONE, .standard = "1", .largest = 1e30, .of = "adamw|muon",
     .text = "norm that gradients are clipped to; 0: none"},
    {"train.optimizer.decay", .type = REAL, .standard = "0.1", .largest = 1e3, .of = "adamw|muon",
     .text = "weight decay, on parameters of two dims or more"},
    {"train.optimizer.eps", .type = REAL, .standard = "1e-08", .smallest = 1e-30, .largest = 1, .of = "adamw|muon",
     .text = "added to the root of the second moment"},
    {"train.optimizer.lr", .type = REAL, .standard = "0.0003", .largest = 1e3, .position = 1, .of = "adamw|muon",
     .text = "learning rate"},
    {"train.optimizer.momentum", .type = REAL, .standard = "0.95", .largest = 0.999999, .of = "muon",
     .text = "share of the momentum that stays"},
    {"train.optimizer.norm_eps", .type = REAL, .standard = "1e-07", .smallest = 1e-30, .largest = 1, .of = "muon",
     .text = "added to the norm of what becomes orthogonal"},
    {"train.parameters", .type = LABEL, .standard = "", .text = "pattern of the paths of a group of parameters"},
    {"train.parameters.decay", .type = REAL, .standard = "", .largest = 1e3,
     .text = "their weight decay; not given: as without the group"},
    {"train.parameters.frozen", .type = SWITCH, .standard = "false", .text = "they are not trained"},
    {"train.parameters.lr_scale", .type = REAL, .standard = "1", .smallest = 1e-9, .largest = 1e9,
     .text = "factor of the learning rate"},
    {"train.parameters.optimizer", .type = CHOICE, .values = "role|adamw|muon", .standard = "role",
     .text = "what moves their matrices where train.optimizer = muon; role: as they are embeddings, heads, or none of both"},
    {"train.precision", .type = CHOICE, .values = "fp32|fp64|bf16", .standard = "fp32",
     .text = "of parameters and activations; bf16: of products, whose sums are fp32"},
    {"train.precision.master", .type = CHOICE, .values = "fp32", .standard = "fp32", .of = "bf16",
     .text = "of the optimizer's parameters"},
    {"train.precision.router", .type = CHOICE, .values = "fp32|bf16", .standard = "fp32",
     .of = "bf16", .text = "of the router"},
    {"train.schedule", .type = CHOICE, .values = "constant|cosine|linear|wsd", .standard = "constant",
     .text = "learning rate over the steps; wsd: warmup, stable, decay"},
    {"train.schedule.decay", .type = REAL, .standard = "0.1", .largest = 1, .of = "wsd",
     .text = "share of the steps, the last ones and at least one, in which the learning rate falls, linearly"},
    {"train.schedule.final", .type = REAL, .standard = "0.1", .largest = 1, .of = "cosine|linear|wsd",
     .text = "learning rate of the last step, as a share of lr"},
    {"train.schedule.warmup", .type = COUNT, .standard = "0", .largest = 1e12,
     .text = "steps in which the learning rate rises from 0"},
    {"train.seed", .type = COUNT, .standard = "1", .largest = 9e15, .text = "of all random numbers"},
    {"train.skip_max", .type = COUNT, .standard = "0", .largest = 1e9,
     .text = "steps in a row that are skipped where the loss or a gradient is not finite; then the run ends"},
    {"train.steps", .type = COUNT, .standard = "1000", .smallest = 1, .largest = 1e12, .text = "optimizer steps"},
    {"train.tokens", .type = COUNT, .flags = AUTO, .standard = "auto", .smallest = 1, .largest = 1e15,
     .text = "tokens per optimizer step, all devices together"},
};
// clang-format on
const int hec_setting_rows_count = sizeof hec_setting_rows / sizeof *hec_setting_rows;

// clang-format off
const struct hec_moe_row hec_moe_rows[] = {
    {"experts", "E * block", "", "number and body of the experts"},
    {"shared", "none, block", "none", "expert that every token goes to"},
    {"shared_gate", "none, sigmoid", "none", "gate of the shared expert's output"},
    {"capacity", "dropless, number", "dropless", "rows per expert, times the even share"},
    {"drop", "lowest, position", "lowest", "rows beyond the capacity: of the lowest weights, or the last"},
    {"router.score", scores + 2, "softmax", "from logits to scores"},
    {"router.topk", "count", "2", "experts per token"},
    {"router.groups", "count", "1", "groups that experts are chosen from"},
    {"router.topk_groups", "count", "1", "groups per token"},
    {"router.group_score", "auto, best, two_best", "auto",
     "a group's score: its best expert's, or its two best experts' sum"},
    {"router.weight", "scores, renormalized, softmax_of_topk", "renormalized",
     "weights of the chosen experts"},
    {"router.weight_on", "output, input", "output",
     "what the weights multiply: the experts' output, or their input"},
    {"router.scale", "number", "1", "factor of the weights"},
    {"router.bias", "true, false", "false", "trained bias of the logits"},
    {"router.jitter", "number", "0", "input noise in training, uniform in 1 +- jitter"},
    {"balance.aux", "number", "0", "coefficient of the auxiliary loss"},
    {"balance.per", "layer, sequence, batch, all_layers", "layer",
     "what the auxiliary loss averages over; all_layers with normalize = hf"},
    {"balance.normalize", "switch, hf", "switch",
     "value of the balanced loss: 1 (switch), or topk, as in transformers (hf)"},
    {"balance.z", "number", "0", "coefficient of the z-loss"},
    {"balance.bias", "none, number", "none", "step of the selection bias, once per step"},
};
// clang-format on
const int hec_moe_rows_count = sizeof hec_moe_rows / sizeof *hec_moe_rows;

const struct hec_setting_row *hec_setting_row(const char *key) {
    for (int i = 0; i < hec_setting_rows_count; i++) {
        if (!strcmp(hec_setting_rows[i].key, key)) return &hec_setting_rows[i];
    }
    return NULL;
}

bool hec_setting_lists(const char *list, const char *word) {
    const size_t length = strlen(word);
    while (list && *list) {
        const size_t here = strcspn(list, "|");
        if (here == length && !strncmp(list, word, length)) return true;
        list += here + (list[here] == '|');
    }
    return false;
}

void hec_settings_print(FILE *out) {
    for (int i = 0; i < hec_setting_rows_count; i++) {
        const struct hec_setting_row *row = &hec_setting_rows[i];
        fprintf(out, "%-38s %-10s %s", row->key, *row->standard ? row->standard : "\"\"",
                row->text);
        if (row->values) fprintf(out, " (%s)", row->values);
        fputc('\n', out);
    }
    for (int i = 0; i < hec_moe_rows_count; i++) {
        const struct hec_moe_row *row = &hec_moe_rows[i];
        fprintf(out, "moe: %-33s %-10s %s (%s)\n", row->key, row->standard, row->text, row->values);
    }
}
