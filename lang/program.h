// The checked program: the interface of lang/ to ir/. Every user error ends before this exists. Names are
// resolved, `repeat` and `if` are decided, each call site has its own unit, every node has a shape.
//
// All of it lives in the arena of one compilation. Strings that name dimensions are interned: equal
// names are equal pointers.
#ifndef HECATE_LANG_PROGRAM_H
#define HECATE_LANG_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "lang/base/source.h" // struct hec_span: file, line, column, length
#include "lang/key.h"

enum {
    HEC_RANK_MAX = 6,
    HEC_OPERANDS_MAX = 12,  // Arguments of a block, too.
    HEC_EXPERTS_MAX = 4096, // Experts of a moe: the limit of routers and the planner.
    HEC_SHARED_MAX = 64,    // Shared experts of a moe.
    HEC_LOSSES_MAX = 8,     // Losses of a model, by name: the limit of programs' reports.
    HEC_PATH_MAX = 255,     // Bytes of a parameter's path: the limit of programs that read files.
};

struct hec_dim {
    const char *name;
    int64_t size;
};

// A tensor's dimensions as the user writes them: for one sequence. `batched` values have one such
// tensor per sequence of the microbatch; ir/build gives them a leading dimension.
struct hec_shape {
    int rank;
    struct hec_dim dim[HEC_RANK_MAX];
};

// The two matrices of an adapter.
enum hec_lora { HEC_LORA_NONE, HEC_LORA_A, HEC_LORA_B };

enum hec_init { HEC_INIT_NORMAL, HEC_INIT_ZEROS, HEC_INIT_ONES, HEC_INIT_ROPE };

// How the frequencies of a rope are scaled, as kernels/rope/rope.h has it. factor 0: they are not.
struct hec_rope {
    double factor, low, high, amplitude, original;
};

// Roles of a parameter in the model: bits.
enum hec_role {
    HEC_ROLE_EMBEDDING = 1, // Its rows are looked up.
    HEC_ROLE_HEAD = 2,      // A GEMM by it gives logits, of any loss.
    HEC_ROLE_ROUTER = 4,    // A GEMM by it gives a router's logits.
};

// Rates of one layer's tensor, by its groups.
struct hec_rates {
    double lr_scale;   // Factor of the learning rate; 0: none.
    bool decay;        // Weight decay applies.
    double decay_rate; // Rate of the decay, where it decays; 0: the optimizer's.
};

// One parameter of one call site; under a repeat it stands for `layers` tensors, one per iteration.
struct hec_param {
    const char *name;   // As declared: "wq".
    const char *symbol; // Unique in the program: "attention.wq", "sparse.experts.w1", "embed".
    const char *path;   // Checkpoint name; "{}" stands for the repeat index, "{e}" for the expert:
                        // "layers.{}.attention.wq", "layers.{}.sparse.experts.{e}.w1".
    struct hec_shape
        shape;      // Shape of one layer. An expert's parameter starts with the expert dimension.
    int64_t layers; // 0: not under a repeat.
    int64_t index_first; // Iteration of layer i: index_first + i * index_stride.
    int64_t index_stride;
    enum hec_init init;
    double init_value;    // Standard deviation (normal) or theta (rope).
    struct hec_rope rope; // HEC_INIT_ROPE
    bool trainable;       // False: a constant table, a selection bias, or frozen.
    bool frozen;          // By a group.
    enum hec_lora lora;   // A matrix of the adapter of the parameter whose path it continues.
    const struct hec_param *shares; // The weight whose matrix a a matrix b takes; NULL: its own.
    bool balances;                  // A selection bias: loads move it, unless it is frozen.
    unsigned role;                  // enum hec_role
    bool
        muon; // A matrix that Muon moves where train.optimizer = muon: by its role, or as its group says.
    struct hec_rates rates;
    const struct hec_rates *layer_rates; // [layers], where groups tell layers apart; else NULL.
    const struct hec_moe *expert_of;     // The moe whose chunk it belongs to, or NULL.
    struct hec_span at;
};

enum hec_node_kind {
    HEC_NODE_ARGUMENT, // Argument of the unit, or a value carried by the enclosing loop.
    HEC_NODE_PARAM,
    HEC_NODE_NUMBER,  // A constant; rank 0.
    HEC_NODE_BUILTIN, // `builtin` says which; operands, `attribute` values.
    HEC_NODE_CALL,    // The result of `callee`, operands are its arguments.
    HEC_NODE_CARRIED, // Value `index` that `loop` leaves behind.
};

// Operations of the language: its functions, and its operators, too.
enum hec_builtin {
#define HEC_OPERATOR(id, rule, text) HEC_BUILTIN_##id,
#define HEC_FUNCTION(id, rule, call, text) HEC_BUILTIN_##id,
#include "lang/builtins.def"
    HEC_BUILTIN_COUNT
};

struct hec_node {
    enum hec_node_kind kind;
    enum hec_builtin builtin;
    struct hec_shape shape; // An expert's parameter, seen from its body, has no expert dimension.
    bool batched;           // Depends on the tokens: one tensor per sequence.
    bool integer;           // Token ids, or `places` (int32); everything else is real.
    bool places;            // Positions at which documents begin.
    int64_t
        ahead; // It knows tokens up to so many positions ahead of its own: more than 0 by function `ahead`.
    const char
        *name; // Variable it was assigned to, parameter or argument name; NULL: a subexpression.
    struct hec_span at;
    int operands;
    const struct hec_node *operand[HEC_OPERANDS_MAX];

    const struct hec_param *param; // HEC_NODE_PARAM
    double number;                 // HEC_NODE_NUMBER
    const struct hec_unit *callee; // HEC_NODE_CALL
    const struct hec_loop *loop;   // HEC_NODE_CARRIED
    int index;                     // HEC_NODE_CARRIED, HEC_NODE_ARGUMENT: which one
    struct {
        double eps, scale; // scale 0: 1 / sqrt(A).
        double cap;        // Cap of scores; 0: none.
        int64_t over;      // Norms, softmax: how many trailing dims, at least 1.
        int64_t window;    // 0: none.
        int64_t chunk;     // 0: none.
        double rate;       // Dropout: more than 0, less than 1,
        int64_t number;    // and its number among all calls.
        int64_t begin;     // Beginning of a slice.
        int64_t end;       // The token that ends documents.
        bool documents;    // It stays in documents: the last operand says where they begin.
        bool causal, interleaved;
    } attribute;
};

// Nodes and loops in the order of evaluation; every node of the body is listed exactly once, after
// its operands. Arguments are not listed: the unit or the loop names them. A value that a loop leaves
// behind (HEC_NODE_CARRIED) is listed after it.
struct hec_item {
    const struct hec_node *node; // Exactly one of the two is set.
    const struct hec_loop *loop;
};

struct hec_body {
    int items;
    const struct hec_item *item;
};

// A run of iterations of a `repeat` that do the same with other parameters. `repeat i < 61` with
// `if i < 3` inside becomes two loops; windows that alternate become one loop whose body holds two
// iterations, count halved. Operands inside may be nodes of the enclosing body, defined before it.
struct hec_loop {
    const char *variable; // "i"
    int64_t count;
    struct hec_body body;
    int carried; // argument[k] is init[k] at first, then yield[k].
    const struct hec_node *const *init;
    const struct hec_node *const *argument; // HEC_NODE_ARGUMENT
    const struct hec_node *const *yield;
    struct hec_span at;
};

enum hec_unit_kind { HEC_UNIT_MODEL, HEC_UNIT_BLOCK, HEC_UNIT_MOE };

// One call site of a block or moe, with its own parameters; or the model.
struct hec_unit {
    enum hec_unit_kind kind;
    const char *name;   // Name of the definition: "attention".
    const char *symbol; // Unique: "attention", "attention.1".
    int arguments;
    const struct hec_node *const *argument;
    struct hec_body body;          // Model and block.
    const struct hec_node *result; // Model and block.
    const struct hec_moe *moe;     // Moe.
    struct hec_span at;            // The definition's name.
};

// A router's scores: as enum hk_score of kernels.
enum hec_score {
#define HK_SCORE(ID, ...) HEC_SCORE_##ID,
#define HK_SCORE_OF_ALL HK_SCORE
#include "kernels/router/scores.def"
#undef HK_SCORE
#undef HK_SCORE_OF_ALL
    HEC_SCORE_COUNT
};
extern const char *const hec_score_words[HEC_SCORE_COUNT + 1]; // By score; NULL behind the last.

enum hec_group_score { HEC_GROUP_BEST, HEC_GROUP_TWO_BEST };
enum hec_weight { HEC_WEIGHT_SCORES, HEC_WEIGHT_RENORMALIZED, HEC_WEIGHT_SOFTMAX_OF_TOPK };
enum hec_drop { HEC_DROP_LOWEST, HEC_DROP_POSITION };
enum hec_aux_per { HEC_AUX_LAYER, HEC_AUX_SEQUENCE, HEC_AUX_BATCH, HEC_AUX_ALL_LAYERS };

// A mixture-of-experts layer. Its unit has one argument x [T, D] and a result of the same shape.
struct hec_moe {
    const char *symbol; // The unit's; names the set of chunks.
    struct hec_dim experts;
    const struct hec_unit *expert; // Body of one expert: argument x [T, D]; row-wise.
    int shared_count;
    const struct hec_unit *const *shared;  // Applied to every token, added to the output.
    const struct hec_param *shared_gate;   // Or NULL: [D]; output times sigmoid(x @ gate).
    const struct hec_param *router_weight; // [D, E]
    const struct hec_param *router_bias;   // Or NULL: [E], trainable, added to the logits.
    const struct hec_param *select_bias;   // Or NULL: [E], not trainable, for selection only.
    int64_t layers;                        // As in hec_param.
    int64_t topk, groups, topk_groups;     // groups 1: none.
    struct hec_span topk_at;               // Nowhere: it is the default.
    enum hec_group_score group_score;
    enum hec_score score;
    enum hec_weight weight;
    bool weight_on_input; // The weight multiplies the experts' input; else their output.
    double scale;
    double jitter;   // 0: none.
    double capacity; // 0: dropless.
    enum hec_drop drop;
    double aux; // Coefficient; 0: no auxiliary loss.
    enum hec_aux_per aux_per;
    double z;         // Coefficient of the z-loss; 0: none.
    double bias_rate; // Update of select_bias; 0: none.
    struct hec_span at;
};

// One setting with its final value: the user's or the default. Keys are dotted: "train.steps",
// "train.optimizer.lr". Values are in base units, as text: "300", "0.0003", "fp32", "a.txt".
struct hec_setting {
    const char *key;
    const char *value;
    bool given; // By the user.
    struct hec_span at;
};

// A loss that a model has besides that of its logits: the mean cross-entropy over the positions that predict a token,
// or with teacher entries of all positions.
struct hec_named_loss {
    const char *name; // "mtp"
    double weight;
    double temperature; // Temperature of a loss against teacher entries; 0: tokens are predicted.
    const struct hec_node *logits;  // [T, V]
    const struct hec_node *targets; // From function `ahead`; NULL: those of the model's own logits.
    int64_t ahead;                  // Position t predicts token t + ahead.
    struct hec_span at;
};

struct hec_program {
    const char *name;             // The model's: "tiny".
    const struct hec_unit *model; // argument ids [T]; result logits [T, V]
    int64_t positions;            // T
    int64_t vocabulary;           // V
    int params;
    const struct hec_param *const *param; // In order of appearance.
    int moes;
    const struct hec_moe *const *moe;
    int losses;
    const struct hec_named_loss *loss;
    int settings;
    const struct hec_setting *setting; // Sorted by key.
    struct hec_sources sources;        // All that was read for it.
};

// Bytes of the longest path that `path` stands for, of layers and experts up to these numbers.
int64_t hec_path_length(const char *path, int64_t layer, int64_t expert);

// A role as text, "embedding and head"; NULL: it has none.
const char *hec_role_text(unsigned role);

// The value of a setting, as text. NULL: settings are not read yet, or it is of groups of parameters.
const struct hec_setting *hec_program_setting(const struct hec_program *program, enum hec_key key);
const char *hec_program_text(const struct hec_program *program, enum hec_key key);
// The same of a count; `otherwise` where it is a word, such as auto.
int64_t hec_program_count(const struct hec_program *program, enum hec_key key, int64_t otherwise);

#endif
