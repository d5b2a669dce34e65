// The interface of an emitted program for the runtime: tables that describe the model, and the functions
// that compute it. The emitted main is one call: `return hrt_cli_main(argc, argv, &program);`.
//
// Buffers: `params` and `grads` have the same layout, `param_elements` elements of `precision`.
// Every parameter (or chunk of a set) lies at a fixed offset; Adam's states use the same layout.
// Parameters that GEMMs read in bf16 have a copy, rounded to nearest even, at the same offset in
// elements of a buffer of bf16: code that changes parameters makes it anew (params/rounded.h).
// The arena holds everything else: saved values and temporaries, `arena_bytes`, known when compiled.
#ifndef HECATE_RUNTIME_PROGRAM_H
#define HECATE_RUNTIME_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/plan/movement.h"

struct hrt_comm_backend;   // net/backend.h
struct hrt_device_backend; // device/device.h
struct hrt_executor;       // net/transport.h

enum hrt_precision { HRT_FP32, HRT_FP64 };
// The two matrices of an adapter: x @ w + (alpha / rank) (x @ a) @ b.
enum hrt_lora { HRT_LORA_NONE, HRT_LORA_A, HRT_LORA_B };

enum hrt_init { HRT_INIT_NORMAL, HRT_INIT_ZEROS, HRT_INIT_ONES, HRT_INIT_ROPE };
enum hrt_layout { HRT_ROWS, HRT_PANELS };              // As enum hk_layout.
enum hrt_packing { HRT_UNPACKED, HRT_MXFP4, HRT_FP8 }; // As enum hk_packing.

// Instruction sets beyond the platform's own. HRT_INSTRUCTIONS is the set that the C compiler may use where this is
// included: emitted programs are compiled for the processor that they are compiled on.
enum hrt_instructions { HRT_INSTRUCTIONS_ANY, HRT_INSTRUCTIONS_AVX2, HRT_INSTRUCTIONS_AVX512 };
#if defined(__AVX512F__)
#define HRT_INSTRUCTIONS HRT_INSTRUCTIONS_AVX512
#elif defined(__AVX2__)
#define HRT_INSTRUCTIONS HRT_INSTRUCTIONS_AVX2
#else
#define HRT_INSTRUCTIONS HRT_INSTRUCTIONS_ANY
#endif

enum { HRT_RANK_MAX = 6 };

// Ranks and parameters that all of them read, parallel.dense: each has all of them, or the optimizer's states of a part
// (train/dense.h), or also parameters and gradients of a part only, and units of others come and go.
enum hrt_dense { HRT_DENSE_REPLICATE, HRT_DENSE_STATES, HRT_DENSE_SHARD };

// A set: the experts of one MoE layer of the source, in all its layers. A rank that has all of a chunk has that of
// (layer, expert) at offset + (layer * experts + expert) * chunk_elements.
struct hrt_set {
    const char *name; // "sparse"
    int64_t experts, topk, layers;
    int64_t offset, chunk_elements;
    // For programs whose ranks own experts (struct hrt_program, owned); else 0.
    int64_t width, wave_rows; // Elements of a row that is sent; rows of a wave on one rank.
    bool rows_bf16;           // The rows that are sent are of bf16.
    bool limited;             // The ranks drop rows of its experts together (hrt_experts_drop).
    // Also for those with HRT_DENSE_SHARD:
    size_t chunks, chunk_grads; // Bytes into the model: tables of pointers, [layers][experts], of
                                // the chunks that this rank holds, by number, and their gradients.
    size_t chunk_rounded;       // The same table of their rounded copies. 0: GEMMs read none.
    size_t slot[2][2];          // As of a parameter: of a layer's chunks, one behind the other.
    // For programs that move experts (struct hrt_program, movement); else NULL.
    const int32_t *owner;     // [layers][experts] first owners. NULL: hpl_even_owner's.
    const uint32_t *forecast; // [layers][world][experts] rows that each rank is expected to route
                              // in the first iteration. NULL: it has no replicas.
};

// For HRT_INIT_ROPE, besides theta (init_value): as struct hk_rope_rule (kernels/rope/rope.h).
struct hrt_rope {
    double factor, low, high, amplitude, original;
};

// Rates of one layer of a parameter.
struct hrt_param_rates {
    double lr_scale; // Factor of the learning rate.
    double decay;    // Weight decay; 0: train.optimizer.decay, negative: none.
};

// A parameter of the source; under a repeat it has one tensor per layer.
struct hrt_param {
    const char *symbol; // "attention.wq"
    const char *path;   // "layers.{}.attention.wq"; {} and {e} as in lang/program.h.
    int rank; // Rank of one layer's tensor; an expert's parameter without the expert dimension.
    const char *dim[HRT_RANK_MAX];
    int64_t shape[HRT_RANK_MAX];
    int64_t layers;                    // At least 1.
    int64_t index_first, index_stride; // Repeat index of layer i; -1, 0: not under a repeat.
    enum hrt_init init;
    double init_value;
    struct hrt_rope rope; // 0: not scaled.
    bool decay, trainable;
    bool frozen;        // Not trained, though it could be.
    enum hrt_lora lora; // It adapts the parameter whose path it continues.
    const char *shares; // HRT_LORA_B: path of the weight whose lora_a it takes; NULL: its own.
    const char *role;   // "embedding", "head", "embedding and head", "router"; NULL: none.
    bool muon;          // A matrix that Muon updates, where the run uses Muon.
    double lr_scale;    // Factor of the learning rate; 0: none.
    double decay_rate;  // Where it decays; 0: train.optimizer.decay.
    const struct hrt_param_rates
        *layer_rates; // [layers], in place of decay, lr_scale and decay_rate; or NULL.
    enum hrt_layout layout;
    bool rounded;      // GEMMs read its copy in bf16.
    bool rounded_only; // Frozen, and read by nothing else: there is the copy alone.
    enum hrt_packing
        packing; // The copy that is alone may be packed: `elements` are places of bf16 then.
    int64_t rows, columns; // The matrix that `layout` arranges: all elements of `shape`.
    int64_t elements;      // Stored, per layer (per expert), with padding.
    int set;               // Index into sets, or -1.
    int64_t offset; // Set: inside the chunk. Else: of layer 0 (params/tensor.h has the others').
    // The same of pointers [layers] to it, where ranks keep parts of it (HRT_DENSE_SHARD); 0: it has none. Without
    // `pointers`, its copy is gathered alone: elements lie in the same order in both.
    size_t pointers, grad_pointers, rounded_pointers;
    // Bytes into memory of units where layers come, even and odd ones: parameters, with their copies behind them, and
    // gradients.
    size_t slot[2][2];
};

// The choice of one layer's router, [batch, positions, topk] each; NULL, as bind leaves them: none.
// The runtime sets them before a forward and the backward that belongs to it.
struct hrt_routing {
    const int32_t *forced; // The experts tokens go to, for any scores; all different.
    int32_t *record;       // Gets the experts that they went to.
};

// Output and input of the router of a set: token counts of every expert, [layers][experts] int32,
// and its choice.
struct hrt_loads {
    int set;             // Index into sets.
    size_t arena_offset; // Bytes into the arena: layer i at + i * arena_stride.
    size_t arena_stride;
    size_t routing_offset; // Bytes into the model: struct hrt_routing [layers]. 0: it has none.
    int select_bias;       // Index into params of the router's selection bias; -1: none is updated.
    double bias_rate;      // By how much, once per step.
};

struct hrt_setting {
    const char *key, *value; // "train.optimizer.lr", "0.0003"
};

// A loss that the model has besides the cross-entropy of its logits (`loss` statements).
struct hrt_loss {
    const char *name; // "mtp"
    double weight;
    int64_t ahead; // Which token position t predicts: t + ahead. The last ahead - 1 predict none.
    size_t logits_offset; // As those of hrt_program.
    int64_t logits_rows;
    bool logits_bf16;
    bool teacher; // It is against teacher entries: no logits are kept, but
    size_t
        losses_offset; // bytes into the arena: the loss of each token, [batch, positions] of `precision`.
};

enum { HRT_NAMED_LOSSES = 8 }; // At most.

struct hrt_losses {
    double
        loss; // The differentiated loss: cross_entropy + auxiliary_scale * auxiliary + the sum of weight * named.
    double cross_entropy; // scale * sum of token losses.
    double auxiliary; // Sum over layers of auxiliary and z losses (not scaled by auxiliary_scale).
    double named
        [HRT_NAMED_LOSSES]; // As cross_entropy, of positions that predict a token: as the program has them.
};

// Gradients that are complete at one place of backward (fssdp.all_reduce): of parameters outside of
// sets, and of whole sets that every rank has; `layers` at least 1, of one layer each time.
struct hrt_bucket {
    int64_t layers;
    int params, sets;
    const int *param, *set; // Indices.
};

struct hrt_program {
    const char *name;    // "tiny"
    const char *source;  // "examples/tiny.moe"
    const char *version; // Version of hecatec.
    enum hrt_instructions instructions;
    enum hrt_precision precision;
    int64_t vocabulary;
    int64_t positions; // T: tokens of one sequence.
    int64_t batch;     // Most sequences of one call.
    int64_t param_elements;
    size_t arena_bytes;
    double flops_per_token; // Forward and backward, GEMMs and attention only.

    int params, sets, loads, settings, parts, losses;
    const struct hrt_param *param;
    const struct hrt_set *set;
    const struct hrt_loads *load;
    const struct hrt_setting *setting; // Sorted by key.
    const struct hrt_setting
        *part; // The meaning of the model (passes/fingerprint.c): words key=value of each part, by
               // its name; sorted by it.
    const struct hrt_loss *loss;

    // 0 in programs of one rank. Others run with exactly this many, which all make the same calls:
    // forward and backward talk.
    int64_t world;
    bool
        owned; // Each expert lives on one rank (params/placement.h); else every rank has all experts.
    size_t experts_offset; // Bytes into the model: the struct hrt_experts * that it calls.
    const struct hpl_movement *movement; // NULL: experts stay (ep, replicate, one rank).
    size_t fssdp_offset;                 // Bytes into the model: struct hrt_fssdp *. 0: none.
    int buckets;
    const struct hrt_bucket *bucket; // As backward completes them.
    int64_t bucket_bytes;            // As many at least are summed together.
    enum hrt_dense dense;
    int64_t
        nodes; // Rows cross once to each of so many nodes (parallel.rows); 0: each goes to its expert.
    bool gradients_bf16; // They travel in bf16 (parallel.gradients); sums are floats.
    int units;
    const struct hrt_bucket *unit; // Parameters that come together, of one layer each time.
    size_t unit_bytes;             // Memory that they come to, and their gradients.
    size_t dense_offset; // Bytes into the model: the struct hrt_train_dense * that it calls.
    const struct hrt_comm_backend *backend; // Joins the ranks; NULL: hrt_net_comm_self.

    const struct hrt_executor *executor; // Moves memory of their devices; NULL: none does.

    // The device that has the tensors and computes; NULL: the host. On a device all pointers of the emitted struct, and
    // the arguments of its functions, are the device's; it reads the struct itself, too.
    const struct hrt_device_backend *device;
    bool host_states; // The optimizer's states lie in memory of the host, which the device reaches.
    size_t device_offset; // Bytes into the model: struct hrt_device *, which the runtime sets.
    size_t lane_offset;   // Bytes into the model: struct hkc_lane *, of all work.

    size_t model_bytes; // Bytes of the emitted struct; the runtime allocates it, zeroed.
    size_t
        iteration_offset; // Bytes into it: int64_t, the iteration of the step, which training sets
                          // from 1 on; 0 outside of steps. 0: it has none.
    size_t
        noise_offset; // Bytes into it: struct hk_noise, which training sets. 0: no jitter, no dropout.
    size_t
        teacher_offset; // Bytes into it: struct hk_teacher, which the runtime sets. 0: no loss is against one.
    size_t
        weights_offset; // Bytes into it: const float *, weights of tokens (runtime/params/state.h). 0: no
                        // loss is a cross-entropy.
    size_t logits_offset; // Bytes into the arena: [batch, positions, vocabulary] after forward.
    int64_t logits_rows;  // Not 0: no more are there at a time, and `logits` computes them.
    bool logits_bf16;     // Logits of bf16; otherwise of `precision`.

    // Stores the buffers, which stay the caller's, in the model struct and derives its pointer tables. Call once.
    void (*bind)(void *model, void *params, void *grads, void *arena);
    // Does the same with the copies in bf16, param_elements of 2 bytes. NULL: no parameter has one.
    void (*bind_rounded)(void *model, const void *rounded);
    // The next forward is of one sequence and computes `count` of its positions from `first` on: ids, targets and
    // logits are theirs, [1, count]. It knows of positions before `first` the values that forwards since the last
    // `seek` to 0 have left. Losses of such calls mean nothing. (0, positions) makes everything as it was: before
    // forwards of other kinds, and backward. NULL: forwards compute all positions.
    void (*seek)(void *model, int64_t first, int64_t count);
    // Computes logits of `count` tokens of the last forward, from token `first` of its batch on, for loss number
    // `loss` (0: the model's own, then `loss` in order): they lie from its logits_offset on. At most its
    // logits_rows, which is not 0. NULL: no loss has that.
    void (*logits)(void *model, int loss, int64_t first, int64_t count);
    // The losses of ids, targets [batch, positions], 1 <= batch <= program->batch; a negative target is ignored. Leaves
    // the values of backward in the arena. Deterministic. Collective where `world` is not 0, as backward is.
    struct hrt_losses (*forward)(void *model, int64_t batch, const int32_t *ids,
                                 const int32_t *targets, double scale, double auxiliary_scale);
    // Adds the gradients of the last forward's loss to grads. Same arguments as that forward.
    void (*backward)(void *model, int64_t batch, const int32_t *ids, const int32_t *targets,
                     double scale, double auxiliary_scale);
};

// The text of a setting that the program was compiled with, the program's; NULL where it has none of that key.
static inline const char *hrt_program_setting(const struct hrt_program *program, const char *key) {
    for (int i = 0; i < program->settings; i++) {
        if (!strcmp(program->setting[i].key, key)) return program->setting[i].value;
    }
    return NULL;
}

// Runs the command line of a training program: train, eval, sample, export, info, --help. Returns the exit
// code: 0 done; 1 data, file or run failed; 2 bad command line. Messages go to stderr.
int hrt_cli_main(int argc, char **argv, const struct hrt_program *program);

#endif
