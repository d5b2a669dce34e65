// A log's lines on the layers and ranks of a step: docs/log.md has every field.
#ifndef HECATE_RUNTIME_LOG_LAYERS_H
#define HECATE_RUNTIME_LOG_LAYERS_H

#include "runtime/train/load_counts.h"
#include "runtime/train/watch.h"

struct json_t;

// The caller gives them back by json_decref; NULL: out of memory.
struct json_t *hrt_log_of_layers(const struct hrt_watch *watch);
struct json_t *hrt_log_of_routers(const struct hrt_load_counts *loads);
struct json_t *hrt_log_of_ranks(const struct hrt_watch *watch);

#endif
