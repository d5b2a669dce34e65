"""Twenty AdamW steps of models/curve.moe: the runtime's random streams, data, accumulation, clipping
and schedule, again in Python; the update is torch.optim.AdamW's. Writes curve.bytes, the data, and
curve_weighted.weights and curve_fractions.weights, weights of it: three iterations are then a weighted mean."""
import math
import struct

import numpy as np
import torch

from draw import draw_below, draw_normals, hashed
from mathematics import Parameters
from models import T, V, mixtral

STEPS = 20
PLAIN, WEIGHTED = (2, 4), (3, 8)  # Iterations of a step; their sequences, of all ranks.
LR, BETAS, EPS, DECAY, CLIP, WARMUP, FINAL = 1e-2, (0.9, 0.95), 1e-8, 0.1, 0.7, 5, 0.1
DATA_TOKENS, VALIDATION_SHARE = 4000, 20
DEVIATION = {"embed": 0.5, "w1": 0.3, "w3": 0.3}
NEAR, NEAR_DOUBLE = 1e-5, 1e-9  # So that single precision routes alike, too; the run with weights is in double alone.


class Drawn(Parameters):
    """Initialized as runtime/params/init.c does; salt is the seed."""

    def first_value(self, path, shape, init):
        if init == "ones":
            return np.ones(shape)
        assert init == "normal"
        deviation = DEVIATION.get(path.split(".")[-1], 0.02)
        return deviation * draw_normals(self.salt, "init", path, int(np.prod(shape))).reshape(shape)


def make_data():
    """A rule that can be learned, with a disturbance now and then."""
    u, data = hashed("curve data", 2 * DATA_TOKENS), [1]
    for i in range(1, DATA_TOKENS):
        random = u[2 * i] > 0.7
        data.append(int((u[2 * i + 1] + 1) / 2 * V) if random else (3 * data[-1] + 5) % V)
    return bytes(data)


def make_weights():
    """Stretches of ten tokens of which many count, or few, or none."""
    u = hashed("curve weights", DATA_TOKENS)
    return [int(u[i] < 1.2 * u[i - i % 10]) for i in range(DATA_TOKENS)]


def make_fractions():
    """The same, with many a weight between 0 and 1, each a half."""
    u = hashed("curve fractions", DATA_TOKENS)
    return [weight and float(np.float16(abs(u[i])) if u[i] < 0.4 else 1) for i, weight in enumerate(make_weights())]


def weights_file(weights):
    """As runtime/data/weights.h has them."""
    if any(weight not in (0, 1) for weight in weights):
        return b"hcwhalfs" + struct.pack(f"<q{len(weights)}e", len(weights), *weights)
    bits = [sum(weight << i for i, weight in enumerate(weights[at:at + 8])) for at in range(0, len(weights), 8)]
    return b"hcweight" + struct.pack("<q", len(weights)) + bytes(bits)


def rate(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    done = (step - WARMUP) / (STEPS - WARMUP - 1)  # The last step has the last rate.
    return LR * (FINAL + (1 - FINAL) * 0.5 * (1 + math.cos(math.pi * done)))


def batch(data, weights, seed, first, count):
    """As runtime/data/data.c: validation keeps the last 1/20, a sequence starts anywhere before."""
    starts = len(data) - len(data) // VALIDATION_SHARE - T
    rows, counts = [], []
    for i in range(first, first + count):
        start = draw_below(seed, "data", "", i, starts)
        rows.append(list(data[start:start + T + 1]))
        counts.append(weights[start + 1:start + T + 1])
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, 1:], torch.tensor(counts, dtype=torch.float64)


def iterate(p, given, iterations, count):
    """Loss and its parts as the runtime reports them, over `count` targets; adds gradients."""
    ids, targets, weights = given
    p.auxiliary = torch.zeros((), dtype=torch.float64)
    logits = mixtral(p, ids)
    losses = torch.nn.functional.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), reduction="none")
    cross_entropy = (losses * weights.reshape(-1)).sum() / count
    auxiliary = p.auxiliary / iterations
    (cross_entropy + auxiliary).backward()
    return np.array([float(cross_entropy + auxiliary), float(cross_entropy), float(auxiliary)])


def train(seed, data, weights, iterations, sequences):
    p, rows = Drawn(seed), []
    mixtral(p, batch(data, weights, seed, 0, sequences)[0])  # Makes the parameters.
    decayed = [t for t in p.tensors.values() if t.dim() >= 2]
    others = [t for t in p.tensors.values() if t.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY},
                                   {"params": others, "weight_decay": 0.0}], betas=BETAS, eps=EPS)
    for step in range(STEPS):
        optimizer.zero_grad()
        given = [batch(data, weights, seed, (step * iterations + i) * sequences, sequences) for i in range(iterations)]
        count = sum(float(one[2].sum()) for one in given)
        losses = sum(iterate(p, one, iterations, count) for one in given)
        norm = math.sqrt(sum(float(t.grad.pow(2).sum()) for t in p.tensors.values()))
        for t in p.tensors.values():
            t.grad *= min(1.0, CLIP / norm)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        rows.append({"loss": losses[0], "cross_entropy": losses[1], "aux": losses[2],
                     "grad_norm": norm, "lr": rate(step)})
    return rows, p.near


def evaluate(directory, weighted=""):
    """`weighted`: "weighted" or "fractions"."""
    data, seed = make_data(), 1
    weights = {"": lambda: [1] * len(data), "weighted": make_weights, "fractions": make_fractions}[weighted]()
    shape = WEIGHTED if weighted else PLAIN
    (directory / "curve.bytes").write_bytes(data)
    if weighted:
        (directory / f"curve_{weighted}.weights").write_bytes(weights_file(weights))
    rows, near = train(seed, data, weights, *shape)
    while near < (NEAR_DOUBLE if weighted else NEAR):
        seed += 1
        rows, near = train(seed, data, weights, *shape)
    return {"seed": seed, "near": near, "steps": rows}
