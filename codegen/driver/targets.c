// Targets, as the command line knows them, and the printers of their programs.
#include "codegen/driver/targets.h"

#include <string.h>

#include "codegen/c/printer.h"
#include "codegen/cuda/printer.h"
#include "ir/target/target.h"

static const struct {
    const char *name, *text;
} targets[] = {
#define HEC_TARGET(name, text, lacks) {#name, text},
#define HEC_TARGET_LATER(name, text) {#name, text},
#include "lang/targets.def"
#undef HEC_TARGET
#undef HEC_TARGET_LATER
};

enum { TARGETS = sizeof targets / sizeof *targets };

static const struct hec_printer *const printers[] = {&hec_c_printer, &hec_cuda_printer};

const struct hec_printer *hec_target_printer(MlirOperation module) {
    const char *name = hec_target_of(module)->name;
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        if (strcmp(printers[i]->target, name) == 0) return printers[i];
    }
    return NULL;
}

static bool is_listed(const char *name, size_t length) {
    for (int i = 0; i < TARGETS; i++) {
        if (strlen(targets[i].name) == length && strncmp(targets[i].name, name, length) == 0)
            return true;
    }
    return false;
}

// "cpu, cuda, sim".
static void complain_unknown(const char *text) {
    fprintf(stderr, "hecatec: error: unknown value '%s' of --target; it can be ", text);
    for (int i = 0; i < TARGETS; i++) fprintf(stderr, "%s%s", i ? ", " : "", targets[i].name);
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
    if (!is_listed(text, length)) {
        complain_unknown(text);
    } else if (!target) {
        fprintf(stderr, "hecatec: error: target '%s' is not supported yet\n", text);
    } else if (!hec_target_find(HEC_STR(text))) {
        complain_architecture(target, text);
    } else {
        return true;
    }
    return false;
}

void hec_targets_print(FILE *out) {
    for (int i = 0; i < TARGETS; i++) fprintf(out, "%-6s %s\n", targets[i].name, targets[i].text);
}
