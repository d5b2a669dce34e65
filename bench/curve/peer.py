"""examples/tiny.moe in PyTorch, single precision: the same parameters, sequences, losses, clipping,
schedule and AdamW as the compiled program. The model's parts come from tests/reference."""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/reference"))
from draw import draw_below  # noqa: E402
from mathematics import rmsnorm, rope, sdpa  # noqa: E402

V, T, D, L, H, E, TOPK = 256, 128, 128, 4, 4, 8, 2
EPS, THETA, AUX = 1e-5, 1e4, 0.01
LR, BETAS, ADAM_EPS, DECAY, CLIP, WARMUP, FINAL = 2e-3, (0.9, 0.95), 1e-8, 0.1, 1.0, 20, 0.1
MICROBATCH, ITERATIONS = 8, 2
VALIDATION_SHARE = 20
KEEP = 50  # Steps.


def load(path):
    """Tensors of a safetensors file, float32, each a leaf."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, tensors = json.loads(raw[8:8 + length]), {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", name
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(raw[begin:end], dtype="<f4").reshape(entry["shape"]).copy()
        tensors[name] = torch.from_numpy(array).requires_grad_(True)
    return tensors


def sequences(data, seed, iteration):
    """As data.order = random: one file, whose last twentieth is validation data."""
    starts = len(data) - len(data) // VALIDATION_SHARE - T
    rows = [draw_below(seed, "data", "", iteration * MICROBATCH + i, starts) for i in range(MICROBATCH)]
    batch = torch.from_numpy(np.stack([data[at:at + T + 1] for at in rows]).astype(np.int64))
    return batch[:, :-1], batch[:, 1:]


def attention(p, at, x):
    q, k, v = (torch.einsum("btd,dha->btha", x, p[f"{at}.w{name}"]) for name in "qkv")
    return torch.einsum("btha,had->btd", sdpa(rope(q, THETA), rope(k, THETA), v), p[f"{at}.wo"])


def moe(p, at, x):
    """Output and auxiliary loss; expert by expert on its own tokens."""
    rows = x.reshape(-1, D)
    scores = torch.softmax(rows @ p[f"{at}.router"], -1)
    top, ids = scores.topk(TOPK, -1)
    weights = top / top.sum(-1, keepdim=True)
    y = torch.zeros_like(rows)
    for e in range(E):
        token, pick = (ids == e).nonzero(as_tuple=True)
        part, name = rows[token], f"{at}.experts.{e}"
        out = (F.silu(part @ p[f"{name}.w1"]) * (part @ p[f"{name}.w3"])) @ p[f"{name}.w2"]
        y = y.index_add(0, token, out * weights[token, pick, None])
    share = torch.bincount(ids.reshape(-1), minlength=E) / (TOPK * len(rows))
    return y.reshape(x.shape), AUX * E * (share * scores.mean(0)).sum()


def forward(p, ids):
    x, auxiliary = p["embed"][ids], 0.0
    for i in range(L):
        at = f"layers.{i}."
        x = x + attention(p, at + "attention", rmsnorm(x, p[at + "attention_norm"], EPS))
        y, loss = moe(p, at + "sparse", rmsnorm(x, p[at + "sparse_norm"], EPS))
        x, auxiliary = x + y, auxiliary + loss
    return rmsnorm(x, p["norm"], EPS) @ p["head"], auxiliary


def rate(step, steps):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    done = (step - WARMUP) / (steps - WARMUP - 1)  # The last step has the last rate.
    return LR * (FINAL + (1 - FINAL) * 0.5 * (1 + math.cos(math.pi * done)))


def optimizer_of(p):
    groups = [{"params": [t for t in p.values() if t.dim() >= 2], "weight_decay": DECAY},
              {"params": [t for t in p.values() if t.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=BETAS, eps=ADAM_EPS)


def take_step(p, optimizer, data, seed, step, steps):
    """Returns its loss."""
    optimizer.zero_grad()
    total = 0.0
    for i in range(ITERATIONS):
        ids, targets = sequences(data, seed, step * ITERATIONS + i)
        logits, auxiliary = forward(p, ids)
        loss = (F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1)) + auxiliary) / ITERATIONS
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(p.values(), CLIP)
    for group in optimizer.param_groups:
        group["lr"] = rate(step, steps)
    optimizer.step()
    return total


def keep(path, p, optimizer, losses):
    part = path.with_suffix(".part")
    torch.save({"parameters": p, "optimizer": optimizer.state_dict(), "losses": losses}, part)
    part.replace(path)


def train(parameters, text, steps, seed, progress, kept):
    """Trains from the file `parameters` on the file `text`; returns the loss of every step. The state is
    kept in the file `kept` every KEEP steps; where that exists, it goes on from there."""
    p, data, losses = load(parameters), np.frombuffer(text.read_bytes(), dtype=np.uint8), []
    optimizer = optimizer_of(p)
    if kept.exists():
        state = torch.load(kept)
        losses = state["losses"]
        optimizer.load_state_dict(state["optimizer"])
        with torch.no_grad():
            for name, tensor in p.items():
                tensor.copy_(state["parameters"][name])
    for step in range(len(losses), steps):
        losses.append(take_step(p, optimizer, data, seed, step, steps))
        progress(len(losses), losses[-1])
        if len(losses) % KEEP == 0:
            keep(kept, p, optimizer, losses)
    return losses
