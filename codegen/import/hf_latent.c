// Multi-head latent attention: the keys of config.json, and the block.
#include <inttypes.h>

#include "codegen/import/hf_model.h"

void hec_hf_read_latent(struct hec_hf_config *config, struct hec_hf_model *model) {
    struct hec_hf_latent *latent = &model->latent;
    if (hec_hf_has(config, "q_lora_rank"))
        latent->query_rank = hec_hf_count(config, "q_lora_rank", 0);
    latent->rank = hec_hf_count(config, "kv_lora_rank", 0);
    latent->plain = hec_hf_count(config, "qk_nope_head_dim", 0);
    latent->turned = hec_hf_count(config, "qk_rope_head_dim", 0);
    latent->value = hec_hf_count(config, "v_head_dim", 0);
    model->interleaved = hec_hf_flag(config, "rope_interleave", true);
    latent->mscale = 1;
    if (hec_hf_count(config, "head_dim", latent->turned) != latent->turned)
        hec_hf_refuse(config, "head_dim", "must be qk_rope_head_dim: rope rotates that many");
    if (latent->turned % 2) hec_hf_refuse(config, "qk_rope_head_dim", "must be even");
    if (hec_hf_count(config, "num_key_value_heads", model->heads) != model->heads)
        hec_hf_refuse(config, "num_key_value_heads",
                      "must be num_attention_heads: each head has its keys");
}

void hec_hf_write_latent_dims(const struct hec_hf_model *m, struct hec_writer *out) {
    const struct hec_hf_latent *latent = &m->latent;
    hec_line(out,
             "dim N = %" PRId64 ", R = %" PRId64 ", U = %" PRId64
             "  # widths of a head: not rotated, rotated, of values",
             latent->plain, latent->turned, latent->value);
    hec_line(out, "dim H = %" PRId64 ", A = N + R  # heads, their width", m->heads);
    if (latent->query_rank)
        hec_line(out,
                 "dim Q = %" PRId64 ", C = %" PRId64
                 "  # latent vectors of queries, of keys with values",
                 latent->query_rank, latent->rank);
    else
        hec_line(out, "dim C = %" PRId64 "  # latent vectors of keys with values", latent->rank);
    hec_line(out, "dim CR = C + R, NU = N + U  # with what is rotated, with values");
    if (latent->mscale != 1) hec_line(out, "let mscale = %.15g  # of YaRN", latent->mscale);
}

static void write_params(const struct hec_hf_model *m, struct hec_writer *out) {
    const char *queries = m->latent.query_rank ? "wq_a[D, Q], wq_b[Q, H, A]" : "wq[D, H, A]";
    hec_line(out, "param %s, wkv_a[D, CR], wkv_b[C, H, NU], wo[H, U, D]", queries);
    if (m->bias_qkv && m->latent.query_rank)
        hec_line(out, "param bq_a[Q] (init = zeros), bkv_a[CR] (init = zeros)");
    else if (m->bias_qkv)
        hec_line(out, "param bkv_a[CR] (init = zeros)");
    if (m->bias_out) hec_line(out, "param bo[D] (init = zeros)");
}

// Norms of latent vectors have transformers' own epsilon, for any rms_norm_eps.
static void write_products(const struct hec_hf_model *m, struct hec_writer *out) {
    static const char norm[] = "eps = 1e-6";
    if (m->latent.query_rank)
        hec_line(out, "q = q_a: rmsnorm(x @ wq_a%s, %s) @ wq_b", m->bias_qkv ? " + bq_a" : "",
                 norm);
    else
        hec_line(out, "q = x @ wq");
    hec_line(out, "latent = x @ wkv_a%s", m->bias_qkv ? " + bkv_a" : "");
    hec_line(out, "kv = kv_a: rmsnorm(slice(latent, CR = C), %s) @ wkv_b", norm);
}

void hec_hf_write_latent(const struct hec_hf_model *m, const char *scaling,
                         struct hec_writer *out) {
    const char *pairs = m->interleaved ? ", interleaved = true" : "";
    const char *scale = m->latent.mscale != 1 ? ", scale = mscale * mscale / sqrt(A)" : "";
    hec_open(out, "block attention(x[T, D]) -> [T, D] {");
    write_params(m, out);
    write_products(m, out);
    hec_line(out, "q_rope = rope(slice(q, A = R, from = N), theta = theta%s%s)", scaling, pairs);
    hec_line(
        out,
        "k_rope = rope(slice(latent, CR = R, from = C), theta = theta%s%s)  # one for all heads",
        scaling, pairs);
    hec_line(out, "queries = concat(slice(q, A = N), q_rope, A = [N, R])");
    hec_line(out, "keys = concat(slice(kv, NU = N), k_rope, A = [N, R])");
    hec_line(out, "values = slice(kv, NU = U, from = N)");
    hec_line(out, "return sdpa(queries, keys, values, causal = true%s) @ wo%s", scale,
             m->bias_out ? " + bo" : "");
    hec_close(out, "}");
    hec_blank(out);
}
