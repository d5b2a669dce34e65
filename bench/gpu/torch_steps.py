"""The same training in plain PyTorch: steps of a stack of MoE layers on a GPU, in bf16 with float master weights.

    torch_steps.py --model qwen3|mixtral [--layers N] [--sequences B] [--positions T] [--steps 12] [--warm 4] [--eager]

Attention is scaled_dot_product_attention (flash), experts are torch._grouped_mm over rows sorted by expert, AdamW is the
fused one, and each layer is compiled. Prints one line: tokens a second, the median of the steps. Status 77: there is no
PyTorch with CUDA and grouped GEMMs here. Never run so far: no GPU was at hand when it was written."""
import argparse
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    print("there is no PyTorch", file=sys.stderr)
    sys.exit(77)

MODELS = {
    "qwen3": dict(d=2048, heads=32, groups=4, width=128, experts=128, f=768, picks=8, vocabulary=151936),
    "mixtral": dict(d=4096, heads=32, groups=8, width=128, experts=8, f=14336, picks=2, vocabulary=32000),
}


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q = nn.Linear(c["d"], c["heads"] * c["width"], bias=False)
        self.k, self.v = (nn.Linear(c["d"], c["groups"] * c["width"], bias=False) for _ in range(2))
        self.out = nn.Linear(c["heads"] * c["width"], c["d"], bias=False)

    def forward(self, x, cos, sin):
        split = lambda t: t.unflatten(-1, (-1, self.c["width"])).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.router = nn.Linear(c["d"], c["experts"], bias=False)
        shapes = {"w1": (c["d"], c["f"]), "w3": (c["d"], c["f"]), "w2": (c["f"], c["d"])}
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.randn(c["experts"], *shape) * 0.02))

    def forward(self, x):
        rows = x.flatten(0, 1)
        weights, ids = self.router(rows).float().softmax(-1).topk(self.c["picks"], -1)
        weights = weights / weights.sum(-1, keepdim=True)
        order = ids.flatten().argsort(stable=True)
        ends = torch.bincount(ids.flatten(), minlength=self.c["experts"]).cumsum(0).to(torch.int32)
        w1, w3, w2 = (w.to(rows.dtype) for w in (self.w1, self.w3, self.w2))
        sorted_rows = rows[order // self.c["picks"]]
        hidden = F.silu(torch._grouped_mm(sorted_rows, w1, offs=ends)) * torch._grouped_mm(sorted_rows, w3, offs=ends)
        out = torch._grouped_mm(hidden, w2, offs=ends) * weights.flatten()[order].unsqueeze(-1).to(rows.dtype)
        return torch.zeros_like(rows).index_add_(0, order // self.c["picks"], out).view_as(x)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(c["d"], eps=1e-6), nn.RMSNorm(c["d"], eps=1e-6)
        self.attention, self.experts = Attention(c), Experts(c)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.experts(self.norm2(x))


class Model(nn.Module):
    def __init__(self, c, layers, positions):
        super().__init__()
        self.embed, self.head = nn.Embedding(c["vocabulary"], c["d"]), nn.Linear(c["d"], c["vocabulary"], bias=False)
        self.norm = nn.RMSNorm(c["d"], eps=1e-6)
        self.layers = nn.ModuleList(Layer(c) for _ in range(layers))
        angle = torch.outer(torch.arange(positions).float(), 1e-6 ** (torch.arange(0, c["width"], 2) / c["width"]))
        self.register_buffer("cos", angle.cos().bfloat16(), persistent=False)
        self.register_buffer("sin", angle.sin().bfloat16(), persistent=False)

    def forward(self, ids, targets):
        x = self.embed(ids).bfloat16()
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", choices=MODELS, required=True)
    p.add_argument("--eager", action="store_true")
    for name, default in (("layers", 4), ("sequences", 2), ("positions", 4096), ("steps", 12), ("warm", 4)):
        p.add_argument(f"--{name}", type=int, default=default)
    o = p.parse_args()
    if not torch.cuda.is_available() or not hasattr(torch, "_grouped_mm"):
        print("there is no PyTorch with CUDA and grouped products", file=sys.stderr)
        return 77
    c = MODELS[o.model]
    model = Model(c, o.layers, o.positions).cuda()
    if not o.eager:
        for layer in model.layers:
            layer.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ids = torch.randint(256, (o.sequences, o.positions + 1), device="cuda")
    seconds = []
    for _ in range(o.warm + o.steps):
        begun = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    tokens = o.sequences * o.positions / statistics.median(seconds[o.warm:])
    print(f"torch {torch.__version__} {o.model} layers {o.layers} tok/s {tokens:.0f} loss {loss.item():.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
