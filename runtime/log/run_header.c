// The header of a log.
#include "runtime/log/run_header.h"

#include <jansson.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/config/config.h"

static json_t *sets_of(const struct hrt_program *program) {
    json_t *sets = json_object();
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_set *set = &program->set[program->load[i].set];
        json_object_set_new(sets, set->name,
                            json_pack("{s:I s:I s:I}", "layers", (json_int_t)set->layers, "experts",
                                      (json_int_t)set->experts, "topk", (json_int_t)set->topk));
    }
    return sets;
}

// As they are, and those that were compiled in.
static json_t *settings_of(const struct hrt_config *config, const struct hrt_program *program) {
    json_t *settings = json_object();
    for (int i = 0; i < program->settings; i++)
        json_object_set_new(settings, program->setting[i].key,
                            json_string(program->setting[i].value));
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        char *text = hrt_config_text(config, row);
        json_object_set_new(settings, row->key, json_string(text));
        free(text);
    }
    return settings;
}

static json_t *losses_of(const struct hrt_program *program) {
    json_t *losses = json_object();
    for (int i = 0; i < program->losses; i++)
        json_object_set_new(losses, program->loss[i].name,
                            json_pack("{s:f s:I s:b}", "weight", program->loss[i].weight, "ahead",
                                      (json_int_t)program->loss[i].ahead, "teacher",
                                      program->loss[i].teacher));
    return losses;
}

static json_t *nodes_of(const struct hrt_comm *comm) {
    json_t *nodes = json_array();
    for (int r = 0; r < comm->size; r++)
        json_array_append_new(nodes, json_integer(comm->node_of ? comm->node_of[r] : 0));
    return nodes;
}

const char *hrt_log_policy_of(const struct hrt_program *program) {
    if (program->movement) return program->movement->policy;
    if (program->owned) return "ep";
    return program->world ? "replicate" : "none";
}

const char *hrt_log_precision_of(const struct hrt_program *program) {
    if (program->precision == HRT_FP64) return "fp64";
    return program->bind_rounded ? "bf16" : "fp32";
}

json_t *hrt_log_of_run(const struct hrt_log_run *run) {
    const struct hrt_trainer *trainer = run->trainer;
    const struct hrt_program *program = trainer->state->program;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    json_t *line = json_pack(
        "{s:s s:s s:s s:s s:I s:s s:s s:i s:s s:i s:i s:I s:I s:I s:f}", "program", program->name,
        "version", program->version, "source", program->source, "host", host, "pid",
        (json_int_t)getpid(), "device", trainer->state->device.backend->name, "instructions",
        run->instructions, "threads", run->threads, "policy", hrt_log_policy_of(program), "ranks",
        trainer->comm->size, "nodes", trainer->comm->nodes, "from", (json_int_t)run->from, "steps",
        (json_int_t)trainer->config->train_steps, "tokens", (json_int_t)trainer->tokens,
        "flops_per_token", program->flops_per_token);
    if (!line) return NULL;
    json_object_set_new(line, "precision", json_string(hrt_log_precision_of(program)));
    if (run->peak > 0) json_object_set_new(line, "peak", json_real(run->peak));
    json_object_set_new(line, "node_of", nodes_of(trainer->comm));
    json_object_set_new(line, "sets", sets_of(program));
    if (program->losses) json_object_set_new(line, "losses", losses_of(program));
    json_object_set_new(line, "settings", settings_of(trainer->config, program));
    return line;
}
