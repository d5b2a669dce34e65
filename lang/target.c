// Reports settings that a target lacks, before anything is compiled.
#include <string.h>

#include "lang/check.h"
#include "lang/settings.h"
#include "lang/target.h"

static const struct {
    const char *name, *lacks;
} targets[] = {
#define HEC_TARGET(name, text, lacks) {#name, lacks},
#include "codegen/targets/targets.def"
};

// Whether `lacks`, "key=value|value key=value", has this one.
static bool has_setting(const char *lacks, const char *key, const char *value) {
    const size_t length = strlen(key);
    while (*lacks) {
        const char *end = lacks + strcspn(lacks, " ");
        if (strncmp(lacks, key, length) == 0 && lacks[length] == '=') {
            char values[64];
            const char *first = lacks + length + 1;
            snprintf(values, sizeof values, "%.*s", (int)(end - first), first);
            return hec_setting_lists(values, value);
        }
        lacks = end + (*end == ' ');
    }
    return false;
}

bool hec_target_lacks(const char *name, const char *key, const char *value) {
    const size_t length = strcspn(name, ":");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (strlen(targets[i].name) == length && memcmp(targets[i].name, name, length) == 0)
            return has_setting(targets[i].lacks, key, value);
    }
    return false;
}

static void check_settings(const struct hec_program *program, const char *target,
                           struct hec_diag *diag) {
    for (int i = 0; i < program->settings; i++) {
        const struct hec_setting *setting = &program->setting[i];
        if (!hec_target_lacks(target, setting->key, setting->value)) continue;
        hec_diag_report(diag, HEC_ERROR, setting->at, "not yet: `%s = %s` (target %s)",
                        setting->key, setting->value, target);
    }
}

// One process: every policy computes the same, so those that need no other process are accepted.
static void check_cluster(const struct hec_program *program, struct hec_diag *diag) {
    const int64_t nodes = hec_program_count(program, HEC_KEY_cluster_nodes, 1);
    const int64_t devices = hec_program_count(program, HEC_KEY_cluster_devices, 1);
    const struct hec_setting *experts = hec_program_setting(program, HEC_KEY_parallel_experts);
    if (nodes * devices == 1 && experts->given && strcmp(experts->value, "ep")) {
        hec_diag_report(diag, HEC_WARNING, experts->at,
                        "one process holds every expert: `%s` runs like `ep`", experts->value);
    }
}

bool hec_check_target(const struct hec_program *program, const char *target,
                      struct hec_diag *diag) {
    const uint32_t errors_before = diag->errors;
    check_settings(program, target, diag);
    check_cluster(program, diag);
    return diag->errors == errors_before;
}
