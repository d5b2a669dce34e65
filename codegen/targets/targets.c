// The back ends, and targets as the command line knows them.
#include "codegen/targets/targets.h"

#include <string.h>

#include "ir/target/target.h"

#define HEC_TARGET(name, text, lacks) extern const struct hec_back_end hec_back_end_##name;
#include "codegen/targets/targets.def"

static const struct {
    const char *text;
    const struct hec_back_end *back_end;
} targets[] = {
#define HEC_TARGET(name, text, lacks) {text, &hec_back_end_##name},
#include "codegen/targets/targets.def"
};

enum { TARGETS = sizeof targets / sizeof *targets };

const struct hec_back_end *hec_back_end_named(const char *name) {
    for (int i = 0; i < TARGETS; i++) {
        if (strcmp(targets[i].back_end->name, name) == 0) return targets[i].back_end;
    }
    return NULL;
}

const struct hec_back_end *hec_back_end_of(MlirOperation module) {
    return hec_back_end_named(hec_target_of(module)->name);
}

static void complain_unknown(const char *text) {
    fprintf(stderr, "hecatec: error: unknown value '%s' of --target; it can be ", text);
    for (int i = 0; i < TARGETS; i++)
        fprintf(stderr, "%s%s", i ? ", " : "", targets[i].back_end->name);
    fputc('\n', stderr);
}

static void complain_architecture(const struct hec_target *target, const char *text) {
    fprintf(stderr, "hecatec: error: --target=%s: target %s ", text, target->name);
    if (!target->architectures) {
        fprintf(stderr, "has no architectures\n");
        return;
    }
    fprintf(stderr, "has the architectures ");
    for (const char *at = target->architectures; *at; at++)
        fputs(*at == '|' ? ", " : (const char[]){*at, '\0'}, stderr);
    fputc('\n', stderr);
}

bool hec_target_check(const char *text) {
    const size_t length = strcspn(text, ":");
    const struct hec_target *target = hec_target_find(mlirStringRefCreate(text, length));
    if (!target) {
        complain_unknown(text);
    } else if (!hec_target_find(HEC_STR(text))) {
        complain_architecture(target, text);
    } else {
        return true;
    }
    return false;
}

void hec_targets_print(FILE *out) {
    for (int i = 0; i < TARGETS; i++)
        fprintf(out, "%-6s %s\n", targets[i].back_end->name, targets[i].text);
}
