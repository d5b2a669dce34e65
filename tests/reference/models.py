"""The models of models/*.moe in PyTorch. Each takes Parameters and ids [batch, T] and returns logits
[batch, T, V]; names and sizes are those of the .moe file."""
import math

import torch
import torch.nn.functional as F

from mathematics import (clamped_glu, gelu_ffn, layernorm, linear, llama3, moe, rmsnorm, rope, rope_neighbours, sdpa, swiglu,
                         yarn)

V, D, T, L = 29, 16, 12, 2


def norm(p, path, x, eps=1e-5):
    return rmsnorm(x, p(path, (x.shape[-1],), "ones"), eps)


def project(x, w):
    return torch.einsum("btd,dha->btha", x, w)


def attention(p, path, x, heads, groups, width, theta=None, window=0, qk_norm=None, biases=False,
              scaling=linear(1), causal=True, sinks=False, documents=None):
    d = x.shape[-1]
    parts = []
    for name, count in (("q", heads), ("k", groups), ("v", groups)):
        y = project(x, p(f"{path}.w{name}", (d, count, width)))
        if biases:
            y = y + p(f"{path}.b{name}", (count, width), "zeros")
        if qk_norm and name != "v":
            over = 1 if qk_norm == "head" else 2
            gain = p(f"{path}.{name}_norm", (count, width)[2 - over:], "ones")
            y = rmsnorm(y, gain, 1e-5, over)
        parts.append(rope(y, theta, scaling) if theta and name != "v" else y)
    logits = p(f"{path}.sinks", (heads,)) if sinks else None
    out = sdpa(*parts, causal=causal, window=window, sinks=logits, documents=documents)
    return torch.einsum("btha,had->btd", out, p(f"{path}.wo", (heads, width, d)))


def dense(p, ids):
    """GPT-2's shape: learned positions, layernorm, gelu, biases, tied embedding."""
    embed = p("embed", (V, D))
    x = embed[ids] + p("position", (T, D))
    for i in range(L):
        at = f"layers.{i}."
        affine = lambda name: (p(name + ".gain", (D,), "ones"), p(name + ".bias", (D,), "zeros"))
        x = x + attention(p, at + "attention", layernorm(x, *affine(at + "attention_norm"), 1e-5),
                          heads=4, groups=4, width=4, biases=True)
        x = x + gelu_ffn(p, at + "ffn", layernorm(x, *affine(at + "ffn_norm"), 1e-5), 24)
    return layernorm(x, p("norm.gain", (D,), "ones"), p("norm.bias", (D,), "zeros"), 1e-5) @ embed.T


def mixtral(p, ids):
    """examples/tiny.moe, smaller: renormalized weights, grouped heads, both auxiliary losses."""
    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", norm(p, at + "attention_norm", x), 4, 2, 4, theta=1e4)
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: swiglu(p, path, rows, 24), experts=4, topk=2,
                    weight="renormalized", aux=0.01, z=0.001)
    return norm(p, "norm", x) @ p("head", (D, V))


def dpo(p, ids):
    """mixtral, whose own loss is that of a pair."""
    p.beta = 0.3
    return mixtral(p, ids)


def policy(p, ids):
    """mixtral, whose own loss is that of a rollout."""
    p.clip, p.kl = 0.25, 0.07
    return mixtral(p, ids)


def olmoe(p, ids):
    """Plain scores as weights, query and key normalized whole, a gated shared expert (Qwen2), a capacity."""
    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", norm(p, at + "attention_norm", x), 2, 2, 8, theta=1e4,
                          qk_norm="whole")
        n = norm(p, at + "sparse_norm", x)
        routed = moe(p, at + "sparse", n, lambda p, path, rows: swiglu(p, path, rows, 12),
                     experts=6, topk=3, weight="scores", aux=0.02, capacity=0.9)
        gate = torch.sigmoid(n @ p(at + "sparse.shared_gate", (D,)))
        x = x + routed + gate[..., None] * swiglu(p, at + "sparse.shared", n, 20)
    return norm(p, "norm", x) @ p("head", (D, V))


def gpt_oss(p, ids):
    """Sinks, documents, softmax of the chosen logits, clamped experts, biases everywhere, windows in every other layer, YaRN."""
    x = p("embed", (V, D))[ids]
    scaling = yarn(32, 4096, fast=128, slow=0.5, truncate=False)
    ends = (ids == 9).long()
    documents = ends.cumsum(1) - ends
    for i in range(4):
        at = f"layers.{i}."
        name, window = ("windowed", 5) if i % 2 == 0 else ("attention", 0)
        x = x + attention(p, at + name, norm(p, f"{at}{name}_norm", x), 4, 2, 8, theta=1.5e5,
                          window=window, biases=True, scaling=scaling, sinks=True, documents=documents)
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: clamped_glu(p, path, rows, 5, 1.5), experts=4, topk=2,
                    weight="softmax_of_topk", bias=True, aux=0.01)
    return norm(p, "norm", x) @ p("head", (D, V))


def latent_attention(p, path, x, heads=2, plain=6, turned=4, values=5, q_latent=12, latent=10):
    """DeepSeek's: queries, and keys with values, come from vectors that are normalized between two products. A part of
    each head is rotated by neighbouring elements; that of keys is one for all heads."""
    d = x.shape[-1]
    q = norm(p, f"{path}.q_a", x @ p(f"{path}.wq_a", (d, q_latent)))
    q = project(q, p(f"{path}.wq_b", (q_latent, heads, plain + turned)))
    both = x @ p(f"{path}.wkv_a", (d, latent + turned))
    kv = norm(p, f"{path}.kv_a", both[..., :latent])
    kv = project(kv, p(f"{path}.wkv_b", (latent, heads, plain + values)))
    rotated = rope_neighbours(torch.cat((q[..., plain:], both[..., None, latent:]), 2), 1e4)
    queries = torch.cat((q[..., :plain], rotated[:, :, :heads]), -1)
    keys = torch.cat((kv[..., :plain], rotated[:, :, heads:].expand(-1, -1, heads, -1)), -1)
    out = sdpa(queries, keys, kv[..., plain:], causal=True, window=0)
    return torch.einsum("btha,had->btd", out, p(f"{path}.wo", (heads, values, d)))


def fused_attention(p, path, x, heads=2, width=8, turned=4):
    """Queries, keys and values of one product; the first elements of a head are rotated, the others are not."""
    d = x.shape[-1]
    q, k, v = project(x, p(f"{path}.wqkv", (d, heads, 3 * width))).split(width, -1)
    q, k = (torch.cat((rope(y[..., :turned], 1e4, linear(1)), y[..., turned:]), -1) for y in (q, k))
    return torch.einsum("btha,had->btd", sdpa(q, k, v, causal=True, window=0), p(f"{path}.wo", (heads, width, d)))


def ahead(targets, by):
    """Those of so many positions further on; -1 where the sequence has ended."""
    return torch.nn.functional.pad(targets[:, by:], (0, by), value=-1)


def rows_or_zeros(table, ids):
    return torch.where(ids[..., None] >= 0, table[ids.clamp(min=0)], torch.zeros((), dtype=table.dtype))


def deepseek_mixture(p, at, x):
    n = norm(p, at + "sparse_norm", x)
    routed = moe(p, at + "sparse", n, lambda p, path, rows: swiglu(p, path, rows, 12), experts=8, topk=3, score="sigmoid",
                 weight="renormalized", scale=2.5, groups=4, topk_groups=2, select_bias=True, aux=0.01, per="sequence")
    return x + routed + swiglu(p, at + "sparse.shared", n, 18)


def deepseek_v3(p, ids):
    """Latent attention; sigmoid scores, groups, selection bias, scale, shared expert, a dense first layer, each sequence
    balanced; a second and a third token predicted, one after the other (arXiv:2412.19437, section 2.2)."""
    embed, head = p("embed", (V, D)), p("head", (D, V))
    x = embed[ids]
    for i in range(3):
        at = f"layers.{i}."
        x = x + latent_attention(p, at + "attention", norm(p, at + "attention_norm", x))
        if i < 1:
            x = x + swiglu(p, at + "swiglu", norm(p, at + "swiglu_norm", x), 40)
            continue
        x = deepseek_mixture(p, at, x)
    h = x
    for depth, weight in (1, 0.3), (2, 0.15):
        at = f"mtp{depth}."
        next_token = rows_or_zeros(embed, ahead(p.targets, depth - 1))
        h = torch.cat((norm(p, at + "hnorm", h), norm(p, at + "enorm", next_token)), -1) @ p(at + "both", (2 * D, D))
        h = h + latent_attention(p, at + "attention", norm(p, at + "attention_norm", h))
        h = deepseek_mixture(p, at, h)
        p.losses[f"mtp{depth}"] = weight, norm(p, f"mtp{depth}_norm", h) @ head, depth + 1
    return norm(p, "norm", x) @ head


def distill(p, ids):
    """Two losses against a teacher: of the model's own logits, and of logits of the layers' input. Three shared experts."""
    p.weight = 0.5
    embed, head = p("embed", (V, D)), p("head", (D, V))
    x = embed[ids]
    p.soft_losses["early"] = 0.25, norm(p, "early_norm", x) @ head, 1.0
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", norm(p, at + "attention_norm", x), 4, 2, 4, theta=1e4)
        n = norm(p, at + "sparse_norm", x)
        shared = sum(swiglu(p, f"{at}sparse.shared.{k}", n, 10) for k in range(3))
        x = x + shared + moe(p, at + "sparse", n, lambda p, path, rows: swiglu(p, path, rows, 24), experts=4, topk=2,
                             weight="renormalized", aux=0.01)
    logits = norm(p, "last", x) @ head
    p.soft_losses["soft"] = 0.6, logits, 2.0
    return logits


def deepseek_v2(p, ids):
    """One matrix for queries, keys and values; softmax scores with groups, weights scaled and not renormalized; a capacity, the last dropped."""
    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + fused_attention(p, at + "attention", norm(p, at + "attention_norm", x))
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: swiglu(p, path, rows, 12), experts=8, topk=2,
                    weight="scores", scale=1.5, groups=4, topk_groups=2, z=0.01,
                    capacity=1.0, drop="position")
    return norm(p, "norm", x) @ p("head", (D, V))


def elementwise(p, ids):
    """Every elementwise operation, broadcasts both ways, norms without gain, full attention."""
    x = p("embed", (V, D))[ids]
    wide, narrow = 70, 3  # More than one panel of 64 columns; few elements near a kink.
    for i in range(L):
        at = f"layers.{i}.smooth."
        n = rmsnorm(x, None, 1e-5)
        a, b, g = n @ p(at + "wa", (D, wide)), n @ p(at + "wb", (D, wide)), p(at + "g", (wide,), "ones")
        u = torch.tanh(a) * g - F.gelu(b) / (1 + torch.exp(-b))
        v = torch.sqrt(a * a + 0.5) + torch.sigmoid(-a)
        h = F.silu(u) * v + F.gelu(a - 2 * b, approximate="tanh")
        x = x + (h @ p(at + "wo", (wide, D))) * p(at + "s", (T, D), "ones")
        at = f"layers.{i}.kinked."
        g, c = p(at + "g", (narrow,), "zeros"), n @ p(at + "wi", (D, narrow))
        p.note((c - g).abs())
        p.note(c.abs())
        p.note((c + 1).abs())
        h = torch.minimum(c, g) + F.relu(c) * torch.maximum(c, torch.tensor(-1.0).double())
        x = x + h @ p(at + "wo", (narrow, D))
        at = f"layers.{i}.mixer."
        n = layernorm(x, None, None, 1e-5)
        q, k = (project(n, p(at + name, (D, count, 6))) for name, count in (("wq", 4), ("wk", 2)))
        v = project(n, p(at + "wv", (D, 2, 10)))
        out = sdpa(q, k, v, causal=False, scale=0.3)
        x = x + torch.einsum("bthu,hud->btd", out, p(at + "wo", (4, 10, D)))
    return norm(p, "norm", x) @ p("head", (D, V))


def qwen2_moe(p, ids):
    """Biases of queries, keys and values, plain scores as weights, a gated shared expert, every second
    layer dense."""
    x = p("embed", (V, D))[ids]
    for i in range(4):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", norm(p, at + "attention_norm", x, 1e-6), 4, 2, 4, theta=1e6,
                          biases=True)
        if i % 2 == 0:
            x = x + swiglu(p, at + "swiglu", norm(p, at + "swiglu_norm", x, 1e-6), 20)
            continue
        n = norm(p, at + "sparse_norm", x, 1e-6)
        routed = moe(p, at + "sparse", n, lambda p, path, rows: swiglu(p, path, rows, 10), experts=6,
                     topk=4, weight="scores", aux=0.004)
        gate = torch.sigmoid(n @ p(at + "sparse.shared_gate", (D,)))
        x = x + routed + gate[..., None] * swiglu(p, at + "sparse.shared", n, 14)
    return norm(p, "norm", x, 1e-6) @ p("head", (D, V))


def qwen3_moe(p, ids):
    """Query and key normalized per head, heads wider than D / H, renormalized weights, linear scaling."""
    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", norm(p, at + "attention_norm", x), 4, 1, 6, theta=1e6,
                          qk_norm="head", scaling=linear(4))
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: swiglu(p, path, rows, 12), experts=8, topk=3,
                    weight="renormalized", aux=0.003)
    return norm(p, "norm", x) @ p("head", (D, V))


def layer_norm(p, path, x):
    return layernorm(x, p(path + ".gain", (D,), "ones"), p(path + ".bias", (D,), "zeros"), 1e-5)


def bert_moe(p, ids):
    """BERT's shape with GShard's mixture: attention both ways, learned positions, two experts of renormalized
    weights, a capacity, the auxiliary loss."""
    x = layer_norm(p, "first", p("embed", (V, D))[ids] + p("position", (T, D)))
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", layer_norm(p, at + "attention_norm", x), 4, 4, 4,
                          biases=True, causal=False)
        x = x + moe(p, at + "sparse", layer_norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: gelu_ffn(p, path, rows, 24), experts=4, topk=2,
                    weight="renormalized", aux=0.01, capacity=1.0)
    return layer_norm(p, "norm", x) @ p("embed", (V, D)).T


def switch(p, ids):
    """One expert for each token, its score as weight, a capacity that drops the last."""
    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", layer_norm(p, at + "attention_norm", x), 2, 2, 8)
        x = x + moe(p, at + "sparse", layer_norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: gelu_ffn(p, path, rows, 24), experts=4, topk=1,
                    weight="scores", aux=0.01, z=0.001, capacity=1.25, drop="position")
    return layer_norm(p, "norm", x) @ p("head", (D, V))


def softplus(p, ids):
    """Roots of softplus as scores; groups by their best expert; YaRN with whole bounds."""
    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", norm(p, at + "attention_norm", x), 2, 2, 8, theta=1e4,
                          scaling=yarn(40, 64, fast=4, slow=1, attention=1.0))
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x),
                    lambda p, path, rows: swiglu(p, path, rows, 12), experts=8, topk=3,
                    score="sqrtsoftplus", weight="renormalized", scale=1.5, groups=4, topk_groups=2,
                    two_best=False, select_bias=True, aux=0.01)
    return norm(p, "norm", x) @ p("head", (D, V))


def softcap(p, ids):
    """Caps as Gemma 2 has them, of scores, of logits and inside a layer, and one that is learned."""
    def capped(x, cap):
        return cap * torch.tanh(x / cap)

    x = p("embed", (V, D))[ids]
    for i in range(L):
        n = norm(p, f"layers.{i}.attention_norm", x)
        q, k, v = (project(n, p(f"layers.{i}.attention.w{name}", (D, 2, 8))) for name in "qkv")
        out = sdpa(3 * q, k, v, window=7, cap=0.5)
        x = x + torch.einsum("btha,had->btd", out, p(f"layers.{i}.attention.wo", (2, 8, D)))
        at = f"layers.{i}.ffn"
        h = norm(p, at + "_norm", x) @ p(at + ".w1", (D, 10))
        y = capped(h, p(at + ".cap", (10,), "ones")) @ p(at + ".w2", (10, D))
        x = x + capped(4 * y, 0.5)
    return capped(norm(p, "norm", x) @ p("head", (D, V)), 30)


def llama4_attention(p, path, x, local, heads=4, groups=2, width=8):
    """Chunked layers rotate neighbouring elements and normalize heads; the others see everything and no positions."""
    q, k, v = (project(x, p(f"{path}.w{name}", (D, count, width)))
               for name, count in (("q", heads), ("k", groups), ("v", groups)))
    if local:
        q, k = (rmsnorm(rope_neighbours(y, 5e5, llama3(16, 400, 1, 4)), None, 1e-5) for y in (q, k))
    out = sdpa(q, k, v, chunk=5 if local else 0)
    return torch.einsum("btha,had->btd", out, p(f"{path}.wo", (heads, width, D)))


def llama4(p, ids):
    """Chunked attention but for every fourth layer, every second layer dense, one expert whose weight multiplies its input."""
    x = p("embed", (V, D))[ids]
    for i in range(4):
        at = f"layers.{i}."
        name = "local" if i % 4 != 3 else "attention"
        x = x + llama4_attention(p, at + name, norm(p, f"{at}{name}_norm", x), i % 4 != 3)
        if i % 2 == 0:
            x = x + swiglu(p, at + "swiglu", norm(p, at + "swiglu_norm", x), 20)
            continue
        n = norm(p, at + "sparse_norm", x)
        routed = moe(p, at + "sparse", n, lambda p, path, rows: swiglu(p, path, rows, 12), experts=4, topk=1,
                     score="sigmoid", on_input=True)
        x = x + routed + swiglu(p, at + "sparse.shared", n, 12)
    return norm(p, "norm", x) @ p("head", (D, V))


def turned(p, ids):
    """Operands whose dims stand in orders that products do not take: indices say what is meant."""
    def mixes(at, x):
        w1, w2 = p(at + ".w1", (2, D, 8)), p(at + ".w2", (8, 2, D))
        q = torch.einsum("btd,hda->btha", x, w1)
        g = torch.einsum("btha,adg->bthdg", q + p(at + ".b", (8, 2)).T, p(at + ".w3", (8, D, 4)))
        z = torch.einsum("bthdg,df->bthgf", g, p(at + ".w5", (D, 6)))
        y = torch.einsum("btha,ahd->btd", q, w2) + torch.einsum("bthgf,fghd->btd", z, p(at + ".w6", (6, 4, 2, D)))
        mixed = torch.einsum("btdg,gd->bt", g.mean(2), p(at + ".w4", (4, D)))
        return y + mixed[..., None] * x + p(at + ".c", (D, T)).T * x

    def expert(p, at, rows):
        q = torch.einsum("rd,dha->rha", rows, p(at + ".w1", (D, 2, 8)))
        y = torch.einsum("rha,ahd->rd", q, p(at + ".w2", (8, 2, D)))
        gated = F.silu(torch.einsum("rha,fah->rf", q, p(at + ".w3", (6, 8, 2)))) @ p(at + ".w4", (6, D))
        return y + gated * (q * q).mean((1, 2))[:, None]

    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + mixes(at + "mixes", norm(p, at + "mixes_norm", x))
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x), expert, experts=4, topk=2, weight="renormalized")
    return norm(p, "norm", x) @ p("head", (V, D)).T


def softmax(p, ids):
    """Softmax over values of tokens, parameters, rows of experts."""
    def mixes(at, x):
        q = torch.einsum("btd,dha->btha", x, p(at + ".w1", (D, 2, 8)))
        mixed = torch.softmax(x @ p(at + ".gate", (D, 2)), -1) * torch.softmax(p(at + ".shares", (2,)), -1)
        y = torch.softmax(q, 2) * q + torch.softmax(q, 3) * mixed[..., None] + torch.softmax(q.flatten(2), -1).view(q.shape)
        places = torch.softmax(p(at + ".places", (T, D)), 0)
        return torch.einsum("btha,had->btd", y, p(at + ".w2", (2, 8, D))) + places * x

    def expert(p, at, rows):
        h = rows @ p(at + ".w1", (D, 6))
        return (torch.softmax(h, -1) * h) @ p(at + ".w2", (6, D))

    x = p("embed", (V, D))[ids]
    for i in range(L):
        at = f"layers.{i}."
        x = x + mixes(at + "mixes", norm(p, at + "mixes_norm", x))
        x = x + moe(p, at + "sparse", norm(p, at + "sparse_norm", x), expert, experts=4, topk=2, weight="renormalized")
    return norm(p, "norm", x) @ p("head", (D, V))


def causal_conv(x, w, begins):
    """x [batch, T, heads, width], w [heads, width, taps]: position by position, as far as the document of each goes."""
    rows = []
    for t in range(x.shape[1]):
        sum_ = torch.zeros_like(x[:, 0])
        for back in range(min(t + 1, w.shape[-1])):
            inside = (begins[:, t] <= t - back).double()[:, None, None]
            sum_ = sum_ + inside * x[:, t - back] * w[..., -1 - back]
        rows.append(sum_)
    return torch.stack(rows, 1)


def delta_rule(q, k, v, decay, beta, begins):
    """The recurrence of arXiv:2412.06464, with a state [key, value] for each head."""
    k, q = (y.repeat_interleave(v.shape[2] // y.shape[2], 2) for y in (k, q))
    state, rows = torch.zeros(*v.shape[:1], v.shape[2], k.shape[3], v.shape[3], dtype=v.dtype), []
    for t in range(v.shape[1]):
        state = state * (begins[:, t] < t).double()[:, None, None, None] * decay[:, t].exp()[..., None, None]
        found = torch.einsum("bhkv,bhk->bhv", state, k[:, t])
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * (v[:, t] - found))
        rows.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]) / math.sqrt(q.shape[-1]))
    return torch.stack(rows, 1)


def delta_net(p, at, x, begins, groups=2, heads=4, width=6, values=5, taps=4):
    shapes = {"q": (groups, width), "k": (groups, width), "v": (heads, values)}
    q, k, v = (F.silu(causal_conv(project(x, p(f"{at}.w{name}", (D, *shape))), p(f"{at}.conv_{name}", (*shape, taps)), begins))
               for name, shape in shapes.items())
    q, k = (y / torch.sqrt(y.pow(2).sum(-1, keepdim=True) + 1e-6) for y in (q, k))
    decay = -p(f"{at}.a_log", (heads,)).exp() * F.softplus(x @ p(f"{at}.wa", (D, heads)) + p(f"{at}.dt_bias", (heads,), "ones"))
    o = delta_rule(q, k, v, decay, torch.sigmoid(x @ p(f"{at}.wb", (D, heads))), begins)
    o = rmsnorm(o, p(f"{at}.norm", (values,), "ones"), 1e-6) * F.silu(project(x, p(f"{at}.wz", (D, heads, values))))
    return torch.einsum("btha,had->btd", o, p(f"{at}.wo", (heads, values, D)))


def scaled(p, path, x):
    """A norm that multiplies by 1 + gain."""
    return rmsnorm(x, 1 + p(path, (x.shape[-1],), "zeros"), 1e-6)


def gated_attention(p, at, x, documents, heads=4, groups=2, width=8, turned=4):
    both = project(x, p(f"{at}.wq", (D, heads, 2 * width)))
    q = scaled(p, f"{at}.q_gain", both[..., :width])
    k = scaled(p, f"{at}.k_gain", project(x, p(f"{at}.wk", (D, groups, width))))
    q, k = (torch.cat((rope(y[..., :turned], 1e4, linear(1)), y[..., turned:]), -1) for y in (q, k))
    out = sdpa(q, k, project(x, p(f"{at}.wv", (D, groups, width))), causal=True, window=0, documents=documents)
    return torch.einsum("btha,had->btd", out * torch.sigmoid(both[..., width:]), p(f"{at}.wo", (heads, width, D)))


def recurrent(p, ids):
    """Gated delta nets and gated attention in turn, in documents; a shared expert with a gate (Qwen3-Next)."""
    ends = (ids == 9).long()
    documents = ends.cumsum(1) - ends
    first = documents[:, :, None] == documents[:, None, :]
    begins = first.long().argmax(-1)
    x = p("embed", (V, D))[ids]
    for i in range(4):
        at = f"layers.{i}."
        n = scaled(p, at + "before.gain", x)
        x = x + (delta_net(p, at + "delta_net", n, begins) if i % 2 == 0 else gated_attention(p, at + "attention", n, documents))
        n = scaled(p, at + "after.gain", x)
        gate = torch.sigmoid(n @ p(at + "sparse.shared_gate", (D,)))
        x = x + gate[..., None] * swiglu(p, at + "sparse.shared", n, 10)
        x = x + moe(p, at + "sparse", n, lambda p, path, rows: swiglu(p, path, rows, 12), experts=4, topk=2,
                    weight="renormalized", aux=0.01)
    return scaled(p, "last.gain", x) @ p("head", (D, V))


MODELS = {f.__name__: f for f in (dense, mixtral, dpo, policy, olmoe, gpt_oss, deepseek_v3, deepseek_v2, elementwise,
                                  qwen2_moe, qwen3_moe, bert_moe, switch, softplus, softcap, distill, turned, softmax, llama4, recurrent)}
