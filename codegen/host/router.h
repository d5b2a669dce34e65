// Data of the program for routers: forced and recorded choices, a step's loads, constants for experts.
#ifndef HECATE_CODEGEN_HOST_ROUTER_H
#define HECATE_CODEGEN_HOST_ROUTER_H

#include "codegen/host/emitter.h"

// Where the runtime forces and records the choice of the router that counts `loads`: two arguments.
const char *hec_routing(struct hec_emitter *e, MlirValue loads);

// The number of the layer of `op` among all layers of all mixtures, or of all calls of dropout.
const char *hec_layer_number(struct hec_emitter *e, MlirOperation op);

// The further counts of moe.fractions besides its own top-k choices: the loads of the step so far, or NULL; and the
// iteration, or 0.
const char *hec_step_loads(struct hec_emitter *e, MlirOperation op);
const char *hec_step_iteration(struct hec_emitter *e, MlirOperation op);

// The constant of the first set with this many experts: routing is not tied to a set in the IR.
const char *hec_experts_of(struct hec_emitter *e, int64_t experts);

#endif
