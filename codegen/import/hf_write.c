// A model as the text of a .moe file: blocks, the mixture, the model, and its training.
#include <inttypes.h>
#include <string.h>

#include "codegen/import/hf_model.h"

// DeepSeek-V3's weight of the loss is 0.3 for the first two thirds of its tokens (arXiv:2412.19437, section 4.2).
static void write_predictor_dims(const struct hec_hf_model *m, struct hec_writer *out) {
    hec_line(out, "let predictors = %d  # layers that predict a token more: %s",
             m->predictor_there ? 1 : 0,
             m->predictor_there ? "1, or 0 to do without"
                                : "config.json says 1, there are no weights");
    hec_line(out, "let mtp_weight = 0.3  # of its loss: in DeepSeek-V3 0.3, at the end 0.1");
}

static void write_factors(const struct hec_hf_model *m, struct hec_writer *out) {
    const struct hec_hf_factors *by = &m->factors;
    if (by->embedding != 1)
        hec_line(out, "let embed_scale = %.17g  # factor of embeddings", by->embedding);
    if (by->residual != 1)
        hec_line(out, "let residual_scale = %.17g  # factor of what layers add", by->residual);
    if (by->scores > 0) hec_line(out, "let score_scale = %.17g  # of attention", by->scores);
    if (by->logits != 1)
        hec_line(out, "let logit_scale = %.17g  # logits are divided by it", by->logits);
    if (by->cap_scores > 0) hec_line(out, "let score_cap = %.17g  # of attention", by->cap_scores);
    if (by->cap_logits > 0) hec_line(out, "let logit_cap = %.17g", by->cap_logits);
}

static void write_rope_dims(const struct hec_hf_model *m, struct hec_writer *out) {
    const double theta = m->rope.none ? m->windowed.theta : m->rope.theta;
    hec_line(out, "let eps = %.15g, theta = %.15g", m->eps, theta);
    if (m->apart && !m->rope.none)
        hec_line(out, "let local_theta = %.15g  # of layers with the window", m->windowed.theta);
}

static void write_dims(const struct hec_hf_model *m, struct hec_writer *out) {
    hec_line(out,
             "dim V = %" PRId64 ", D = %" PRId64 ", L = %" PRId64 "  # vocabulary, width, layers",
             m->vocabulary, m->width, m->layers);
    if (m->latent.rank)
        hec_hf_write_latent_dims(m, out);
    else
        hec_line(out,
                 "dim H = %" PRId64 ", G = %" PRId64 ", A = %" PRId64
                 "  # query heads, key/value heads, head width",
                 m->heads, m->groups, m->head_width);
    if (!m->latent.rank && m->rotated < m->head_width)
        hec_line(out, "dim R = %" PRId64 ", N = A - R  # of a head: rotated, not rotated",
                 m->rotated);
    if (m->mlp_width)
        hec_line(out, "dim F = %" PRId64 ", T = %" PRId64 "  # width of MLPs, positions",
                 m->mlp_width, m->positions);
    else
        hec_line(out,
                 "dim E = %" PRId64 ", F = %" PRId64 ", T = %" PRId64
                 "  # experts, expert width, positions",
                 m->experts, m->expert_width, m->positions);
    if (m->shared_width)
        hec_line(out, "dim S = %" PRId64 "  # width of the shared expert", m->shared_width);
    if (m->dense_width)
        hec_line(out, "dim M = %" PRId64 "  # width of layers without experts", m->dense_width);
    if (m->predictor) hec_line(out, "dim D2 = 2 * D  # what the predictor takes in");
    write_rope_dims(m, out);
    if (m->limit > 0)
        hec_line(out, "let limit = %.15g, alpha = %.15g  # of experts", m->limit, m->alpha);
    write_factors(m, out);
    if (m->window) hec_line(out, "let window = 0  # none; calls of attention set it");
    if (m->local.global_every) hec_hf_write_local_dims(m, out);
    if (m->predictor) write_predictor_dims(m, out);
    hec_align_comments(out);
    hec_blank(out);
}

// The norm of `text`, with further arguments.
static const char *norm_of(const struct hec_hf_model *m, struct hec_writer *out, const char *text,
                           const char *arguments) {
    return hec_arena_format(out->arena, "%s(%s, eps = eps%s%s%s)",
                            m->layer_norm ? "layernorm" : "rmsnorm", text,
                            m->layer_norm ? ", bias = none" : "",
                            m->zero_centered ? ", gain = zero_centered" : "", arguments);
}

// `text` of queries or keys with its norm.
static const char *normalized(const struct hec_hf_model *m, struct hec_writer *out, char of,
                              const char *text) {
    if (m->norm == HEC_HF_NORM_HEADS) return norm_of(m, out, text, "");
    if (m->norm == HEC_HF_NORM_ALL)
        return norm_of(m, out, text, of == 'q' ? ", over = [H, A]" : ", over = [G, A]");
    return text;
}

// "clipped(rmsnorm(x @ wq + bq, eps = eps))" of one of q, k, v.
static const char *projection(const struct hec_hf_model *m, struct hec_writer *out, char of) {
    const char *text = hec_arena_format(out->arena, "x @ w%c", of);
    if (m->bias_qkv) text = hec_arena_format(out->arena, "%s + b%c", text, of);
    if (of != 'v' && !m->norm_last) text = normalized(m, out, of, text);
    if (m->clip > 0)
        text = hec_arena_format(out->arena, "minimum(maximum(%s, -%.15g), %.15g)", text, m->clip,
                                m->clip);
    return text;
}

// Writes queries or keys; dims that are not rotated stay behind the rest.
static void write_rotated(const struct hec_hf_model *m, const char *scaling, char of,
                          struct hec_writer *out) {
    const char *all = projection(m, out, of);
    const char *label = m->norm ? hec_arena_format(out->arena, "%c_norm: ", of) : "";
    const bool whole = m->rotated == m->head_width;
    if (m->local.global_every) {
        hec_line(out, "%c = %s", of, all);
        return;
    }
    if (m->norm_last && whole) {
        const char *turned =
            hec_arena_format(out->arena, "rope(%s, theta = theta%s)", all, scaling);
        hec_line(out, "%c = %s%s", of, label, normalized(m, out, of, turned));
        return;
    }
    if (whole && !m->apart) {
        hec_line(out, "%c = rope(%s, theta = theta%s)", of, all, scaling);
        return;
    }
    hec_line(out, "%c = %s%s", of, label, all);
    if (m->apart) return;
    hec_line(out, "%c_rope = rope(slice(%c, A = R), theta = theta%s)", of, of, scaling);
    hec_line(out, "%c = concat(%c_rope, slice(%c, A = N, from = R), A = [R, N])", of, of, of);
}

static void write_turns(const struct hec_hf_rope *rope, const char *theta, const char *pairs,
                        struct hec_writer *out) {
    static const char names[] = "qk";
    for (int i = 0; i < 2; i++)
        hec_line(out, "%c = rope(%c, theta = %s%s%s%s)", names[i], names[i], theta,
                 rope->scaling ? ", scaling = " : "", rope->scaling ? rope->scaling : "", pairs);
}

// Layers with the window turn in their own way; the others may know no positions.
static void write_turns_apart(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *pairs = m->interleaved ? ", interleaved = true" : "";
    hec_open(out, "if window > 0 {");
    write_turns(&m->windowed, m->rope.none ? "theta" : "local_theta", pairs, out);
    if (!m->rope.none) {
        hec_close(out, "} else {");
        out->indent++;
        write_turns(&m->rope, "theta", pairs, out);
    }
    hec_close(out, "}");
}

// The arguments of sdpa behind q, k and v.
static const char *sdpa_arguments(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *window = m->window               ? ", window = window"
                         : m->local.global_every ? ", chunk = chunk"
                                                 : "";
    const char *scale = m->factors.scores > 0 ? ", scale = score_scale" : "";
    const char *cap = m->factors.cap_scores > 0 ? ", cap = score_cap" : "";
    return hec_arena_format(out->arena, "causal = true%s%s%s%s", window, scale, cap,
                            m->sinks ? ", sinks = sinks" : "");
}

static void write_attention(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *scaling =
        m->rope.scaling ? hec_arena_format(out->arena, ", scaling = %s", m->rope.scaling) : "";
    if (m->latent.rank) {
        hec_hf_write_latent(m, scaling, out);
        return;
    }
    if (m->interleaved && !m->local.global_every)
        scaling = hec_arena_format(out->arena, "%s, interleaved = true", scaling);
    hec_open(out, "block attention(x[T, D]) -> [T, D] {");
    hec_line(out, "param wq[D, H, A], wk[D, G, A], wv[D, G, A], wo[H, A, D]");
    static const char rule[] = "(init = zeros, decay = false)";
    if (m->bias_qkv) hec_line(out, "param bq[H, A] %s, bk[G, A] %s, bv[G, A] %s", rule, rule, rule);
    if (m->bias_out) hec_line(out, "param bo[D] (init = zeros)");
    if (m->sinks) hec_line(out, "param sinks[H] %s", rule);
    if (m->gated) hec_line(out, "param wg[D, H, A]");
    write_rotated(m, scaling, 'q', out);
    write_rotated(m, scaling, 'k', out);
    hec_line(out, "v = %s", projection(m, out, 'v'));
    if (m->local.global_every) hec_hf_write_local(m, scaling, out);
    if (m->apart) write_turns_apart(m, out);
    const char *arguments = sdpa_arguments(m, out), *bias = m->bias_out ? " + bo" : "";
    if (m->gated)
        hec_line(out, "return (sigmoid(x @ wg) * sdpa(q, k, v, %s)) @ wo%s", arguments, bias);
    else
        hec_line(out, "return sdpa(q, k, v, %s) @ wo%s", arguments, bias);
    hec_close(out, "}");
    hec_blank(out);
}

// A selection bias stays as it was loaded: transformers does not train it.
static void write_router(const struct hec_hf_model *m, struct hec_writer *out) {
    hec_open(out, "router {");
    hec_line(out, "score = %s, topk = %" PRId64 ", weight = %s", m->sigmoid ? "sigmoid" : "softmax",
             m->topk,
             m->limit > 0         ? "softmax_of_topk, bias = true"
             : m->softmax_of_topk ? "softmax_of_topk"
             : m->renormalized    ? "renormalized"
                                  : "scores");
    if (m->expert_groups > 1)
        hec_line(out, "groups = %" PRId64 ", topk_groups = %" PRId64, m->expert_groups,
                 m->topk_groups);
    if (m->on_input) hec_line(out, "weight_on = input");
    if (m->scale != 1) hec_line(out, "scale = %.15g", m->scale);
    if (m->jitter > 0) hec_line(out, "jitter = %.15g", m->jitter);
    hec_close(out, "}");
    if (m->aux > 0) hec_line(out, "balance { aux = %.15g, normalize = hf }", m->aux);
    if (m->select_bias) hec_line(out, "balance { bias = 0 }");
}

// Gate and up are clamped, and up is one more; SiLU with a factor in its sigmoid.
static void write_clamped(struct hec_writer *out) {
    static const char rule[] = "(init = zeros, decay = false)";
    hec_line(out, "param b1[F] %s, b3[F] %s, b2[D] %s", rule, rule, rule);
    hec_line(out, "gate = minimum(x @ w1 + b1, limit)");
    hec_line(out, "up = maximum(minimum(x @ w3 + b3, limit), -limit)");
    hec_line(out, "return ((up + 1) * gate * sigmoid(alpha * gate)) @ w2 + b2");
}

static void write_glu(const struct hec_hf_model *m, struct hec_writer *out) {
    hec_open(out, "block glu(x[T, D]) -> [T, D] {");
    hec_line(out, "param w1[D, F], w3[D, F], w2[F, D]");
    if (m->limit > 0)
        write_clamped(out);
    else
        hec_line(out, "return (%s(x @ w1) * (x @ w3)) @ w2", m->act);
    hec_close(out, "}");
    hec_blank(out);
}

static void write_mixture(const struct hec_hf_model *m, struct hec_writer *out) {
    hec_open(out, "moe sparse(x[T, D]) -> [T, D] {");
    hec_line(out, "experts = E * glu");
    if (m->shared_width) {
        hec_line(out, "shared = 1 * glu(F = S)");
        if (m->shared_gate) hec_line(out, "shared_gate = sigmoid");
    }
    write_router(m, out);
    hec_close(out, "}");
    hec_blank(out);
}

// When layer i is dense; NULL: never.
static const char *dense_condition(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *text = NULL;
    if (m->dense_first > 0) text = hec_arena_format(out->arena, "i < %" PRId64, m->dense_first);
    if (m->sparse_step > 1)
        text = hec_arena_format(out->arena, "%s%s(i + 1) %% %" PRId64 " != 0", text ? text : "",
                                text ? " or " : "", m->sparse_step);
    for (size_t i = 0; i < json_array_size(m->dense_layers); i++) {
        const long long layer = json_integer_value(json_array_get(m->dense_layers, i));
        text = hec_arena_format(out->arena, "%s%si == %lld", text ? text : "", text ? " or " : "",
                                layer);
    }
    return text;
}

// A window or, of local attention, a chunk.
static bool has_window(const struct hec_hf_model *m, int64_t layer) {
    if (m->local.global_every) return hec_hf_is_local(m, layer);
    if (!m->layer_types) return layer >= m->window_from;
    const char *type = json_string_value(json_array_get(m->layer_types, (size_t)layer));
    return strcmp(type, HEC_HF_WINDOWED) == 0;
}

// Layers after which windows come again, at least once as a whole; otherwise the number of all.
static int64_t window_period(const struct hec_hf_model *m) {
    for (int64_t period = 1; 2 * period <= m->layers; period++) {
        int64_t layer = period;
        while (layer < m->layers && has_window(m, layer) == has_window(m, layer % period)) layer++;
        if (layer == m->layers) return period;
    }
    return m->layers;
}

// Where of the first `period` layers, which come again, those are that have the window, or have none.
static const char *places(const struct hec_hf_model *m, int64_t period, bool with,
                          struct hec_writer *out) {
    const char *text = "", *is = with ? "==" : "!=";
    for (int64_t i = 0; i < period; i++) {
        if (has_window(m, i) != with) continue;
        const char *before = !*text ? "" : with ? " or " : " and ";
        text = period < m->layers
                   ? hec_arena_format(out->arena, "%s%si %% %" PRId64 " %s %" PRId64, text, before,
                                      period, is, i)
                   : hec_arena_format(out->arena, "%s%si %s %" PRId64, text, before, is, i);
    }
    return text;
}

// When layer i has the window; "": always. NULL: never.
static const char *window_condition(const struct hec_hf_model *m, struct hec_writer *out) {
    const bool any = m->window || m->local.global_every;
    const int64_t period = any ? window_period(m) : 1;
    if (period == 1) return any && has_window(m, 0) ? "" : NULL;
    if (m->window && !m->layer_types)
        return hec_arena_format(out->arena, "i >= %" PRId64, m->window_from);
    int64_t count = 0;
    for (int64_t i = 0; i < period; i++) count += has_window(m, i);
    return places(m, period, 2 * count <= period, out);
}

// The window argument of a call of attention. Chunks of all positions set none, but those layers are told from others.
static const char *window_text(const struct hec_hf_model *m, struct hec_writer *out) {
    if (!m->local.global_every) return hec_arena_format(out->arena, "window = %" PRId64, m->window);
    if (!m->local.chunk) return "chunk = T";
    return hec_arena_format(out->arena, "chunk = %" PRId64, m->local.chunk);
}

// Adds a block's value to x, with norms before it, behind it, or both.
static void write_sum(const struct hec_hf_model *m, const char *block, const char *arguments,
                      struct hec_writer *out) {
    const char *x = m->order == HEC_HF_AFTER    ? "x"
                    : m->order == HEC_HF_BESIDE ? "n"
                                                : norm_of(m, out, "x", "");
    const char *half = m->averaged && strcmp(block, "sparse") == 0 ? "0.5 * " : "";
    const char *call = hec_arena_format(out->arena, "%s%s(%s%s)", half, block, x, arguments);
    if (m->order == HEC_HF_AFTER || m->order == HEC_HF_AROUND)
        call = hec_arena_format(out->arena, "post_%s: %s", block, norm_of(m, out, call, ""));
    hec_line(out, "x = x + %s%s", m->factors.residual != 1 ? "residual_scale * " : "", call);
}

static void write_attention_of_layer(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *windowed = window_condition(m, out);
    if (windowed && *windowed) hec_open(out, "if %s {", windowed);
    if (windowed)
        write_sum(m, "attention", hec_arena_format(out->arena, ", %s", window_text(m, out)), out);
    if (windowed && *windowed) {
        hec_close(out, "} else {");
        out->indent++;
    }
    if (!windowed || *windowed) write_sum(m, "attention", "", out);
    if (windowed && *windowed) hec_close(out, "}");
}

static void write_layers(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *dense = dense_condition(m, out);
    hec_open(out, "repeat i < L {");
    if (m->order == HEC_HF_BESIDE) // Attention and experts get the same.
        hec_line(out, "n = attention_norm: %s", norm_of(m, out, "x", ""));
    write_attention_of_layer(m, out);
    if (dense) {
        hec_open(out, "if %s {", dense);
        write_sum(m, "glu", ", F = M", out);
        hec_close(out, "} else {");
        out->indent++;
    }
    write_sum(m, m->mlp_width ? "glu" : "sparse", "", out);
    if (dense) hec_close(out, "}");
    hec_close(out, "}");
}

// Its own layer mixes what the model knows of a position, behind the last norm, with the token behind it.
static void write_predictor(struct hec_writer *out) {
    hec_line(out, "# Multi-token prediction (arXiv:2412.19437, equations 21 to 25): from what the "
                  "model knows of a");
    hec_line(out, "# position and the token behind it, the token after that. Embedding and head "
                  "are the model's.");
    hec_open(out, "block predictor(h[T, D], next[T, D]) -> [T, D] {");
    hec_line(out, "param eh_proj[D2, D]");
    hec_line(out, "x = concat(enorm: rmsnorm(next, eps = eps), hnorm: rmsnorm(h, eps = eps), D2 = "
                  "[D, D]) @ eh_proj");
    hec_line(out, "x = x + attention(rmsnorm(x, eps = eps))");
    hec_line(out, "x = x + sparse(rmsnorm(x, eps = eps))");
    hec_line(out, "return rmsnorm(x, eps = eps)");
    hec_close(out, "}");
    hec_blank(out);
}

static void write_head(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *head = m->tied ? "embed" : "head";
    if (!m->predictor) {
        const char *logits = hec_arena_format(out->arena, "%s @ %s%s", norm_of(m, out, "x", ""),
                                              head, m->factors.logits != 1 ? " / logit_scale" : "");
        hec_line(out, m->factors.cap_logits > 0 ? "return softcap(%s, logit_cap)" : "return %s",
                 logits);
        return;
    }
    hec_line(out, "x = norm: rmsnorm(x, eps = eps)");
    hec_open(out, "if predictors > 0 {");
    hec_line(out, "h = mtp: predictor(x, embed[ahead(ids, 1)])");
    hec_line(out, "loss mtp (weight = mtp_weight) = cross_entropy(h @ %s, targets = ahead(ids, 2))",
             head);
    hec_close(out, "}");
    hec_line(out, "return x @ %s", head);
}

void hec_hf_write_model(const struct hec_hf_model *m, struct hec_writer *out) {
    write_dims(m, out);
    write_attention(m, out);
    write_glu(m, out);
    if (!m->mlp_width) write_mixture(m, out);
    if (m->predictor) write_predictor(out);
    hec_open(out, "model %s(ids[T]) -> [T, V] {", m->family);
    hec_line(out, m->tied ? "param embed[V, D]" : "param embed[V, D], head[D, V]");
    hec_line(out, "x = %sembed[ids]", m->factors.embedding != 1 ? "embed_scale * " : "");
    write_layers(m, out);
    write_head(m, out);
    hec_close(out, "}");
    hec_blank(out);
    hec_line(out, "names hf { family = \"%s\" }", m->family);
    hec_line(out, "data { format = llmc }");
    if (m->base && m->bf16) // As it is released. It means something where weights are frozen.
        hec_line(out, "adapt { base = %s }", m->base);
    hec_open(out, "train {");
    if (m->bf16) hec_line(out, "precision = bf16");
    if (m->aux > 0) hec_line(out, "group = iteration");
    hec_line(out, "optimizer = adamw(lr = 1e-5)");
    hec_close(out, "}");
}
