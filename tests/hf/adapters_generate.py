#!/usr/bin/env python3
"""Writes stored/peft/mixtral.json: losses and norms of gradients of twenty steps of AdamW on adapters of PEFT's, and the
adapters behind them.
Needs torch and peft; the test that reads the results needs neither.

    python3 tests/hf/adapters_generate.py

The model is that of adapters.moe, in plain PyTorch, with Mixtral's names; its weights, and the first matrices of the
adapters, come from their names (weights.py). PEFT adds the adapters, and computes with them."""
import json
import pathlib
import sys

import peft
import torch
from torch import nn

sys.dont_write_bytecode = True
from weights import values  # noqa: E402

V, T, D, L, H, A, E, F, TOPK = 40, 16, 16, 2, 4, 4, 4, 12, 2
RANK, ALPHA, STEPS, SALT = 3, 6, 20, 1
TARGETS = ["q_proj", "v_proj", "o_proj", "w1", "w2", "w3", "lm_head"]


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self, name, nn.Linear(D, H * A, bias=False))
        self.o_proj = nn.Linear(H * A, D, bias=False)

    def forward(self, x):
        q, k, v = (f(x).view(*x.shape[:2], H, A).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        scores = (q @ k.transpose(-1, -2) / A ** 0.5).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(*x.shape[:2], H * A))


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = nn.Linear(D, F, bias=False), nn.Linear(D, F, bias=False)
        self.w2 = nn.Linear(F, D, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(D, E, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(E))

    def forward(self, x):
        scores, chosen = self.gate(x).softmax(-1).topk(TOPK)
        scores = scores / scores.sum(-1, keepdim=True)
        shares = torch.zeros(*x.shape[:2], E, dtype=x.dtype).scatter(-1, chosen, scores)
        return sum(shares[..., e:e + 1] * expert(x) for e, expert in enumerate(self.experts))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(), Norm()
        self.self_attn, self.block_sparse_moe = Attention(), Sparse()

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.block_sparse_moe(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens, self.norm = nn.Embedding(V, D), Norm()
        self.layers = nn.ModuleList(Layer() for _ in range(L))

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model, self.lm_head = Body(), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        return self.lm_head(self.model(ids))


def fill(model):
    """Weights, and first matrices of adapters, from their names in files; second ones are zeros."""
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            continue
        name = name.removeprefix("base_model.model.") if "lora_A" not in name else name
        name = name.replace(".base_layer", "").replace(".default", "")
        numbers = torch.tensor(values(name, parameter.shape, SALT), dtype=torch.float64).reshape(parameter.shape)
        with torch.no_grad():
            parameter.copy_(numbers)


def train(dtype, tokens):
    torch.manual_seed(0)
    model = Model()
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS))
    model = model.to(dtype)
    fill(model)
    ids = torch.tensor(tokens[:T])[None]
    targets = torch.tensor(tokens[1:])[None]
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1)
    losses, norms = [], []
    for _ in range(STEPS):
        loss = nn.functional.cross_entropy(model(ids).reshape(-1, V), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters() if p.requires_grad]).item())
        optimizer.step()
        losses.append(loss.item())
    state = peft.get_peft_model_state_dict(model)
    with torch.no_grad():
        logits = model(ids)
    return losses, norms, state, shapes, logits.reshape(-1).tolist()


def main():
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(7)
    tokens = torch.randint(0, V, (T + 1,), generator=draw).tolist()
    losses, norms, state, shapes, logits = train(torch.float64, tokens)
    single = train(torch.float32, tokens)
    case = {"peft": peft.__version__, "torch": torch.__version__, "rank": RANK, "alpha": ALPHA, "targets": TARGETS,
            "salt": SALT, "tokens": tokens, "tensors": shapes, "losses": losses, "norms": norms, "losses_fp32": single[0],
            "logits": logits, "adapters": {name: [list(t.shape), t.reshape(-1).tolist()] for name, t in sorted(state.items())}}
    worst = max(abs(a - b) / a for a, b in zip(losses, single[0]))
    print(f"losses {losses[0]:.6f} to {losses[-1]:.6f}; fp32 is {worst:.2g} away")
    out = pathlib.Path(__file__).parent / "stored" / "peft" / "mixtral.json"
    out.write_text(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()
