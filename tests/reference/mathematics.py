"""The operations of the language in PyTorch, float64, written from the papers and from
docs/language.md, and not from our kernels. Gradients are autograd's.

Every choice that is not differentiable reports how near it came to going the other way
(`Parameters.near`): the generator refuses weights with near-ties, where rounding could decide."""
import math

import torch
import torch.nn.functional as F

from draw import fill

NEG_INF = float("-inf")


class Parameters:
    """Makes parameters on first use; a path names the same tensor as in the emitted program."""

    def __init__(self, salt):
        self.salt, self.tensors, self.frozen = salt, {}, set()
        self.dropped = 0
        self.targets, self.losses = None, {}  # Further losses by name: weight, logits, which token ahead they predict.
        self.beta = 0  # Direct preference optimization; 0: the model's own loss is the cross-entropy.
        self.clip = self.kl = 0  # Clipped ratios with advantages; clip 0: as above.
        self.weight = 1  # The weight of the loss on the model's result.
        self.soft_losses = {}  # Those against a teacher: weight, logits, temperature.
        self.loads, self.auxiliary, self.near = {}, torch.zeros((), dtype=torch.float64), math.inf

    def __call__(self, path, shape, init="normal", trainable=True):
        if path not in self.tensors:
            value = torch.from_numpy(self.first_value(path, shape, init))
            self.tensors[path] = value.requires_grad_(trainable)
            if not trainable:
                self.frozen.add(path)
        return self.tensors[path]

    def first_value(self, path, shape, init):
        return fill(path, self.salt, shape, init)

    def note(self, distance):
        if distance.numel():
            self.near = min(self.near, float(distance.detach().min()))


def rmsnorm(x, gain, eps, over=1):
    y = x / torch.sqrt(x.pow(2).mean(tuple(range(-over, 0)), keepdim=True) + eps)
    return y if gain is None else y * gain


def layernorm(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    y = centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + eps)
    return y if gain is None else y * gain + bias


def linear(factor):
    """Linear scaling of rope: inverse frequencies and the factor of cosines and sines."""
    return lambda theta, width: ([theta ** (-2 * j / width) / factor for j in range(width // 2)], 1.0)


def yarn(factor, original, fast=32, slow=1, truncate=True, attention=None):
    """YaRN, after Hugging Face's modeling_rope_utils.py."""
    def scale(theta, width):
        dim = lambda turns: width * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
        low, high = dim(fast), dim(slow)
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        if low == high:
            high += 0.001
        inverse = []
        for j in range(width // 2):
            ramp = min(max((j - low) / (high - low), 0), 1)
            plain = 1 / theta ** (2 * j / width)
            inverse.append(1 / (factor * theta ** (2 * j / width)) * ramp + plain * (1 - ramp))
        return inverse, attention or 0.1 * math.log(factor) + 1
    return scale


def llama3(factor, original, low=1, high=4):
    """Llama 3.1's scaling, after Meta's llama-models: by how often an element turns in the original positions."""
    def scale(theta, width):
        inverse = []
        for j in range(width // 2):
            plain = theta ** (-2 * j / width)
            length = 2 * math.pi / plain
            if length < original / high:
                inverse.append(plain)
            elif length > original / low:
                inverse.append(plain / factor)
            else:
                smooth = (original / length - low) / (high - low)
                inverse.append((1 - smooth) * plain / factor + smooth * plain)
        return inverse, 1.0
    return scale


def rope(x, theta, scaling=linear(1)):
    """x [batch, T, heads, A]; half-split."""
    positions, half = x.shape[1], x.shape[3] // 2
    inverse, amplitude = scaling(theta, 2 * half)
    angle = torch.arange(positions, dtype=x.dtype)[:, None] * torch.tensor(inverse, dtype=x.dtype)
    cos, sin = (amplitude * f(angle)[:, None, :] for f in (torch.cos, torch.sin))
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def rope_neighbours(x, theta, scaling=linear(1)):
    """x [batch, T, heads, A]; elements 2 j and 2 j + 1 are the parts of complex numbers, as in the paper."""
    positions, half = x.shape[1], x.shape[3] // 2
    inverse, amplitude = scaling(theta, 2 * half)
    angle = torch.outer(torch.arange(positions, dtype=x.dtype), torch.tensor(inverse, dtype=x.dtype))
    by = torch.polar(torch.full_like(angle, amplitude), angle)[:, None]
    turned = torch.view_as_complex(x.reshape(*x.shape[:-1], half, 2)) * by
    return torch.view_as_real(turned).reshape(x.shape)


def sdpa(q, k, v, causal=True, window=0, scale=None, sinks=None, documents=None, chunk=0, cap=0):
    """q [batch, T, H, A], k [batch, T, G, A], v [batch, T, G, U], sinks [H], documents [batch, T] -> [batch, T, H, U]."""
    repeat = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(repeat, 2), v.repeat_interleave(repeat, 2)
    scores = torch.einsum("bqha,bkha->bhqk", q, k) * (scale or q.shape[3] ** -0.5)
    if cap:
        scores = cap * torch.tanh(scores / cap)
    position = torch.arange(q.shape[1])
    distance = position[:, None] - position[None, :]
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if causal:
        hidden |= distance < 0
    if window:
        hidden |= distance >= window
    if chunk:
        hidden |= position[:, None] // chunk != position[None, :] // chunk
    scores = scores.masked_fill(hidden, NEG_INF)
    if documents is not None:  # The number of each position's.
        scores = scores.masked_fill((documents[:, :, None] != documents[:, None, :])[:, None], NEG_INF)
    if sinks is not None:
        scores = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    weights = torch.softmax(scores, -1)[..., :k.shape[1]]
    return torch.einsum("bhqk,bkhu->bqhu", weights, v)


def swiglu(p, path, x, width):
    w1, w3 = p(path + ".w1", (x.shape[-1], width)), p(path + ".w3", (x.shape[-1], width))
    return (F.silu(x @ w1) * (x @ w3)) @ p(path + ".w2", (width, x.shape[-1]))


def gelu_ffn(p, path, x, width):
    d = x.shape[-1]
    h = x @ p(path + ".w1", (d, width)) + p(path + ".b1", (width,), "zeros")
    return F.gelu(h, approximate="tanh") @ p(path + ".w2", (width, d)) + p(path + ".b2", (d,), "zeros")


def clamped_glu(p, path, x, width, most):
    """gpt-oss: gate and up with biases, both clamped, one more than up. The edges of the clamps keep away
    farther than differences step (2e-4 times an input), a quarter of what choices do."""
    d = x.shape[-1]
    g = x @ p(path + ".w1", (d, width)) + p(path + ".b1", (width,), "zeros")
    u = x @ p(path + ".w3", (d, width)) + p(path + ".b3", (width,), "zeros")
    for edge in (g - most, u - most, u + most):
        p.note(4 * edge.abs())
    g, u = g.clamp(max=most), u.clamp(-most, most)
    h = (u + 1) * g * torch.sigmoid(1.702 * g)
    return h @ p(path + ".w2", (width, d)) + p(path + ".b2", (d,), "zeros")


def choose(p, candidates, topk, groups, topk_groups, two_best):
    """Indices of the chosen experts, best first, and the distance to another choice."""
    n, experts = candidates.shape
    if groups > 1:
        grouped = candidates.view(n, groups, experts // groups)
        best = grouped.topk(2, -1)[0].sum(-1) if two_best else grouped.max(-1)[0]
        order = best.sort(-1, descending=True)
        if topk_groups < groups:
            p.note(order[0][:, topk_groups - 1] - order[0][:, topk_groups])
        keep = torch.zeros_like(best, dtype=torch.bool).scatter_(1, order[1][:, :topk_groups], True)
        candidates = candidates.masked_fill(~keep.repeat_interleave(experts // groups, 1), NEG_INF)
    values, ids = candidates.sort(-1, descending=True)
    if topk < experts:
        p.note(values[:, topk - 1] - values[:, topk])
    return ids[:, :topk]


def limit(p, ids, weights, experts, most, drop):
    """1 where a pick stays, 0 where its expert has `most` others: larger ones, or earlier ones."""
    keep = torch.ones_like(weights)
    for e in range(experts):
        at = (ids == e).nonzero()  # In the order of the tokens.
        if len(at) <= most:
            continue
        if drop == "lowest":
            values, order = weights[at[:, 0], at[:, 1]].sort(descending=True)
            p.note(values[most - 1] - values[most])
            at = at[order]
        keep[at[most:, 0], at[most:, 1]] = 0
        p.dropped += len(at) - most
    return keep


def moe(p, path, x, expert, experts, topk, score="softmax", weight="scores", scale=1.0, groups=1,
        topk_groups=1, two_best=None, bias=False, select_bias=False, aux=0.0, per="layer", z=0.0,
        capacity=None, drop="lowest", on_input=False):
    """x [batch, T, D]. expert(p, path, rows) is one expert's body. Returns the routed output."""
    rows = x.reshape(-1, x.shape[-1])
    n = rows.shape[0]
    logits = rows @ p(path + ".router", (x.shape[-1], experts))
    if bias:
        logits = logits + p(path + ".router_bias", (experts,), "zeros")
    scores = {"softmax": lambda l: torch.softmax(l, -1), "sigmoid": torch.sigmoid,
              "sqrtsoftplus": lambda l: F.softplus(l, threshold=100).sqrt()}[score](logits)
    candidates = scores.detach()
    if select_bias:
        candidates = candidates + p(path + ".select_bias", (experts,), "zeros", trainable=False)
    two_best = score != "softmax" if two_best is None else two_best
    ids = choose(p, candidates, topk, groups, topk_groups, two_best)
    weights = scores.gather(1, ids)
    if weight == "renormalized":
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    elif weight == "softmax_of_topk":
        weights = torch.softmax(logits.gather(1, ids), -1)
    weights = weights * scale

    loads = torch.bincount(ids.reshape(-1), minlength=experts)
    p.loads[path] = loads.tolist()
    share = scores if score == "softmax" else scores / scores.sum(-1, keepdim=True)
    parts = [(share, ids)] if per == "layer" else zip(share.split(x.shape[1]), ids.split(x.shape[1]))
    losses = [(torch.bincount(i.reshape(-1), minlength=experts) * s.sum(0)).sum() / (topk * len(i)**2)
              for s, i in parts]
    p.auxiliary = p.auxiliary + aux * experts * torch.stack(losses).mean()
    p.auxiliary = p.auxiliary + z * torch.logsumexp(logits, -1).pow(2).mean()

    if capacity:
        keep = limit(p, ids, weights.detach(), experts, math.ceil(capacity * n * topk / experts), drop)
        weights = weights * keep

    # Every expert on every token, most weights zero: slow, and free of index bookkeeping.
    dense = torch.zeros_like(scores).scatter(1, ids, weights)
    if on_input:  # An expert with biases makes something of zeros: experts that are not chosen add nothing.
        y = sum((ids == e).any(-1)[:, None] * expert(p, f"{path}.experts.{e}", dense[:, e, None] * rows) for e in range(experts))
    else:
        y = sum(dense[:, e, None] * expert(p, f"{path}.experts.{e}", rows) for e in range(experts))
    return y.reshape(x.shape)
