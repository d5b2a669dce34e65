// Operations.
#ifndef HECATE_IR_BUILD_NODE_H
#define HECATE_IR_BUILD_NODE_H

#include "ir/build/scope.h"

// Builds one node and records its value.
void hec_build_node(struct hec_scope *scope, const struct hec_node *node);

#endif
