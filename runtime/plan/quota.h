// quota.h: the state of policy fssdp, shared by its steps (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_QUOTA_H
#define HECATE_RUNTIME_PLAN_QUOTA_H

#include "runtime/plan/draft.h"

struct hpl_pair {
    int32_t expert;
    int32_t device;
};

// Everything between the steps. Arrays of a node's experts lie at node_first[n].
struct hpl_quota {
    const struct hpl_problem *problem;
    struct hpl_draft draft;
    uint32_t *node_rows; // [nodes][experts] rows that start in a node

    int32_t import_limit; // Entries of a node, at most.
    int32_t *import;      // [nodes][import_limit] most asked first
    int32_t *imports;     // [nodes] how many of them are taken
    int32_t *entered;     // [nodes] chunks that had entered before
    int32_t *locked;      // [nodes] how many of those balance asks for; they stand in front
    int64_t *without;     // [import_limit] rows of imports that do not fit, while packing a node

    int64_t *link_in, *link_out; // [nodes] rows across
    int32_t *home_first;         // [nodes + 1] experts by their owners' nodes

    struct hpl_topology nodes; // Nodes as devices.
    struct hpl_plan where;     // Which node has which expert.
    int64_t *share;            // [where's holders]
    struct hpl_level level;
    bool raised; // The level is higher than the mean and the slack alone ask for.

    bool strained; // Packing left something out.

    int32_t *node_first; // [nodes + 1]
    int32_t *item;       // experts of a node; once it is packed, those with most rows first
    int64_t *item_rows;  // rows of each that the node computes

    int64_t *rest; // [experts] rows not yet placed, while packing a node
    int64_t *room; // [devices]
    int32_t *ids;  // [experts]

    struct hpl_pair *added; // Replicas added by packing, so that it can be undone.
    int32_t added_count;
};

// Step 1: fills `import` and `imports`, by the rows that would otherwise leave the node, if those
// are at least `least`, and more where the chunk is waited for.
void hpl_quota_choose_imports(struct hpl_quota *q, int64_t least);

// Evens the links of nodes: while more rows come to one than leave any, another node imports from it
// in place of from others. False: nothing has changed.
bool hpl_quota_even_links(struct hpl_quota *q);

// Step 1 again, where nodes cannot be balanced with those imports: exchanges some so that experts
// whose rows are too many for the nodes that have them get more nodes.
void hpl_quota_spread_imports(struct hpl_quota *q);

// Step 3: places every node's rows on its devices so that none exceeds the level of step 2, and adds the replicas to
// the draft. A node leaves out the imports that do not fit. False when some did not, or other rows.
bool hpl_quota_pack(struct hpl_quota *q);

// Step 5: replicas give way to others while that lowers the draft's level.
enum hpl_status hpl_quota_mend(struct hpl_quota *q, struct hpl_work *work);

#endif
