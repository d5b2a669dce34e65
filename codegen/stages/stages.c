// Stages by name.
#include "codegen/stages/stages.h"

#include <string.h>

#include "codegen/base/status.h"
#include "lang/base/str.h"

static const struct {
    const char *name;
    enum hec_stage stage;
    const char *text;
} fixed_stages[] = {
    {"parse", STAGE_PARSE, "the model as it was read; .moe text"},
    {"check", STAGE_CHECK, "names, dimensions and settings resolved; for people"},
    {"graph", STAGE_GRAPH, "the IR before any pass"},
    {"c", STAGE_C, "the program's C"},
};
enum { FIXED_STAGES = sizeof fixed_stages / sizeof *fixed_stages };

void hec_stages_print(FILE *out) {
    for (int i = 0; i < FIXED_STAGES; i++) {
        if (fixed_stages[i].stage == STAGE_C) {
            fprintf(out, "and after each pass, by its name, the second use of one as NAME-2:\n  ");
            fprintf(out, "%s\n", hec_pipeline_default);
        }
        fprintf(out, "%-8s %s\n", fixed_stages[i].name, fixed_stages[i].text);
    }
}

bool hec_find_stage(struct hec_compilation *c, const char *flag, const char *name, int *stage) {
    for (int i = 0; i < FIXED_STAGES; i++) {
        if (strcmp(fixed_stages[i].name, name) == 0) return *stage = fixed_stages[i].stage, true;
    }
    if (!hec_make_pipeline(c)) return false;
    const int step = hec_pipeline_find(c->pipeline, name);
    if (step >= 0) return *stage = STAGE_PASS + step, true;

    const int steps = hec_pipeline_steps(c->pipeline);
    const char **names = hec_arena_alloc(c->arena, (size_t)(steps + FIXED_STAGES), sizeof *names);
    for (int i = 0; i < FIXED_STAGES; i++) names[i] = fixed_stages[i].name;
    for (int i = 0; i < steps; i++) {
        names[FIXED_STAGES + i] = hec_pipeline_step(c->pipeline, i)->stage;
    }
    const char *close = hec_closest(name, names, FIXED_STAGES + steps);
    fprintf(stderr, "hecatec: error: %s: there is no stage '%s'", flag, name);
    if (close) fprintf(stderr, "; did you mean '%s'?", close);
    fprintf(stderr, "%s\n", close ? "" : " (see --print-stages)");
    return false;
}

bool hec_choose_stages(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    c->from = STAGE_PARSE;
    c->to = STAGE_PROGRAM;
    if (o->emit_c) c->to = STAGE_C;
    if (o->syntax_only && !o->emit_plan) c->to = STAGE_CHECK;
    int stage;
    if (o->compile_to) {
        if (!hec_find_stage(c, "--compile-to", o->compile_to, &stage)) return false;
        if (stage < c->to) c->to = stage;
    }
    if (o->compile_from) {
        if (!hec_find_stage(c, "--compile-from", o->compile_from, &c->from)) return false;
        if (c->from == STAGE_CHECK)
            return hec_fail("--compile-from=check: that stage is for people and "
                            "cannot be read back; parse and graph can");
        if (o->cluster && c->from > STAGE_CHECK)
            return hec_fail("--cluster needs the model: IR of a "
                            "later stage has its cluster");
        if (c->from > c->to)
            return hec_fail("--compile-from=%s comes after the stage to compile "
                            "to",
                            o->compile_from);
    }
    if (o->passes && !hec_make_pipeline(c)) return false;
    return true;
}
