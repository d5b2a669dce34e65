"""The peer for a new PyTorch: the model and the options of torch_moe.py, written as one would today.

    newest_torch.py --cfg small|medium --threads N [--bf16 1] [--compile 1] [--bal 1] [--steps 12] [--warm 3]

Attention is scaled_dot_product_attention, which skips the masked half; rows are sorted by expert once
instead of searched per expert; AdamW is the fused one. --compile compiles what has fixed shapes as one
graph per layer, and the experts' function for any number of rows. --bf16 is autocast: weights and states
stay fp32. --bal routes evenly, for any weights. Prints one line, as torch_moe.py does."""
import argparse
import glob
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"small": dict(d=256, layers=4, heads=4, experts=8, f=512, positions=256, batch=8),
         "medium": dict(d=512, layers=6, heads=8, experts=16, f=1024, positions=512, batch=4)}
VOCABULARY, PICKS = 256, 2


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--cfg", default="small", choices=SIZES)
    for name, default in (("threads", 1), ("steps", 12), ("warm", 3), ("bf16", 0), ("bal", 0), ("compile", 0)):
        p.add_argument(f"--{name}", type=int, default=default)
    return p.parse_args()


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.width = c["heads"], c["d"] // c["heads"]
        self.norm = nn.RMSNorm(c["d"], eps=1e-5)
        self.qkv, self.out = nn.Linear(c["d"], 3 * c["d"], bias=False), nn.Linear(c["d"], c["d"], bias=False)
        angle = torch.outer(torch.arange(c["positions"]).float(),
                            10000.0 ** -(torch.arange(0, self.width, 2) / self.width))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x):
        qkv = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, self.width))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = (rope(t, self.cos, self.sin).to(v.dtype) for t in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Router(nn.Module):
    """The part before the experts: their input, weights and choice."""

    def __init__(self, c):
        super().__init__()
        self.experts, self.norm = c["experts"], nn.RMSNorm(c["d"], eps=1e-5)
        self.gate = nn.Linear(c["d"], c["experts"], bias=False)

    def forward(self, x, noise):
        n = self.norm(x).flatten(0, 1)
        scores = torch.softmax(self.gate(n).float() + noise, -1)
        weights, ids = scores.topk(PICKS, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        loads = F.one_hot(ids.flatten(), self.experts).sum(0)
        auxiliary = self.experts * (loads / loads.sum() * scores.mean(0)).sum()
        order = ids.flatten().argsort(stable=True)
        return n, weights.flatten()[order, None], order // PICKS, loads, auxiliary


class Expert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(c["d"], c["f"], bias=False) for _ in range(2))
        self.w2 = nn.Linear(c["f"], c["d"], bias=False)

    def forward(self, rows, weights):
        return self.w2(F.silu(self.w1(rows)) * self.w3(rows)) * weights


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention, self.router = Attention(c), Router(c)
        self.experts = nn.ModuleList(Expert(c) for _ in range(c["experts"]))

    def forward(self, x, noise):
        x = self.attention(x)
        n, weights, tokens, loads, auxiliary = self.router(x, noise)
        counts = loads.tolist()
        parts = zip(self.experts, n[tokens].split(counts), weights.split(counts))
        y = torch.cat([expert(rows, part) for expert, rows, part in parts if len(rows)])
        y = torch.zeros_like(n).index_add_(0, tokens, y.to(n.dtype))
        return x + y.view_as(x), auxiliary


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, c["d"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.norm, self.head = nn.RMSNorm(c["d"], eps=1e-5), nn.Linear(c["d"], VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def tail(self, x, targets):
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())

    def forward(self, ids, targets, noise):
        x, auxiliary = self.embed(ids), 0
        for layer, each in zip(self.layers, noise):
            x, more = layer(x, each)
            auxiliary = auxiliary + more
        return self.tail(x, targets) + 0.01 * auxiliary


def compile_parts(model):
    model.tail = torch.compile(model.tail)
    for layer in model.layers:
        layer.attention.compile()
        layer.router.compile()
        for expert in layer.experts:
            expert.compile(dynamic=True)


def flops_per_token(c):
    """Products and full attention, three times the forward pass: as torch_moe.py counts."""
    d, layers = c["d"], c["layers"]
    weights = layers * (4 * d * d + c["experts"] * d + PICKS * 3 * d * c["f"]) + VOCABULARY * d
    return 6 * weights + layers * 12 * c["positions"] * d


def main():
    options = arguments()
    c = SIZES[options.cfg]
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    text = b"".join(open(path, "rb").read() for path in sorted(glob.glob("/usr/share/common-licenses/*")))
    data = torch.tensor(list(text))
    model = Model(c)
    if options.compile:
        compile_parts(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = c["batch"] * c["positions"]

    def step():
        starts = torch.randint(0, len(data) - c["positions"] - 1, (c["batch"],))
        window = torch.stack([data[s : s + c["positions"] + 1] for s in starts])
        noise = 5.0 * options.bal * torch.randn(c["layers"], tokens, c["experts"])
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(options.bf16)):
            loss = model(window[:, :-1], window[:, 1:], noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    times, losses = [], []
    for _ in range(options.warm + options.steps):
        begin = time.perf_counter()
        losses.append(step())
        times.append(time.perf_counter() - begin)
    median = statistics.median(times[options.warm :])
    print(f"{options.cfg} T={options.threads} bf16={options.bf16} compile={options.compile} "
          f"step median {median * 1e3:.1f} ms  tok/s {tokens / median:.0f}  "
          f"MFLOP/tok {flops_per_token(c) / 1e6:.2f}  loss {losses[0]:.4f}->{losses[-1]:.4f}", flush=True)


if __name__ == "__main__":
    main()
