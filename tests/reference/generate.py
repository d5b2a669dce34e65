#!/usr/bin/env python3
"""Writes stored/*.json: the results of PyTorch, in float64, for models/*.moe. Needs torch and numpy;
the tests that read the results need neither.

    /usr/bin/python3 tests/reference/generate.py [model ...]

Per model: loss, cross entropy, auxiliary, loads, logits and, per tensor, its gradient. For every
array, stored are the L2 norm, the projection on numbers hashed from its name (no element can
change, nor two swap places, without moving it) and some elements for a readable failure."""
import json
import math
import pathlib
import sys

import numpy as np
import torch

sys.dont_write_bytecode = True
import curve  # noqa: E402
from draw import hashed  # noqa: E402
from mathematics import Parameters  # noqa: E402
from models import MODELS, T, V, ahead  # noqa: E402

BATCH, AUXILIARY_SCALE, SAMPLES = 2, 0.5, 8
ENTRIES = 5  # A teacher's for a token.
NEAR = 4e-3  # Smallest distance to another choice that we accept.


def summary(name, values):
    flat = np.ascontiguousarray(values.detach().numpy(), dtype=np.float64).reshape(-1)
    at = sorted({round(i * (flat.size - 1) / (SAMPLES - 1)) for i in range(SAMPLES)})
    return {"size": int(flat.size), "norm": float(np.sqrt(flat @ flat)),
            "projection": float(flat @ hashed("project " + name, flat.size)),
            "at": at, "value": [float(flat[i]) for i in at]}


def tokens(name):
    """ids and targets [batch, T], with one target to ignore."""
    ids = np.floor((hashed(name + " ids", BATCH * T) + 1) / 2 * V).astype(np.int64)
    targets = np.floor((hashed(name + " targets", BATCH * T) + 1) / 2 * V).astype(np.int64)
    targets[T + 1] = -1
    return ids, targets


def sum_of_losses(logits, targets):
    return torch.nn.functional.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=-1, reduction="sum")


def teacher(name):
    """ids [batch * T, entries] and log-probabilities, floats up to a number for each row; -inf is no entry, and one token has
    none."""
    ids = np.floor((hashed(name + " teacher's ids", BATCH * T * ENTRIES) + 1) / 2 * V).astype(np.int64)
    log_probs = (3 * hashed(name + " teacher", BATCH * T * ENTRIES) - 4).astype(np.float32)
    log_probs[7::11] = -np.inf
    log_probs.reshape(-1, ENTRIES)[T + 4] = -np.inf
    return ids.reshape(-1, ENTRIES), log_probs.reshape(-1, ENTRIES)


def sum_of_soft_losses(logits, ids, log_probs, temperature):
    probabilities = torch.softmax(torch.from_numpy(log_probs).double() / temperature, -1)
    there = torch.from_numpy(np.isfinite(log_probs).any(-1))
    wanted = torch.zeros(ids.shape[0], V, dtype=torch.float64).scatter_add(-1, torch.from_numpy(ids), probabilities)
    flat = logits.reshape(-1, V)[there] / temperature
    return temperature**2 * torch.nn.functional.cross_entropy(flat, wanted[there], reduction="sum")


def said_of_targets(name, targets, entries):
    """Entries as a teacher's, so many of each target: log-probabilities, and the second one is an advantage; none where
    it is ignored."""
    values = (1.5 * hashed(name + " said", targets.size * entries) - 3.3).astype(np.float32).reshape(-1, entries)
    if entries > 1:
        values[:, 1] += np.float32(3.3)
    ids = np.repeat(np.maximum(targets, 0).reshape(-1, 1), entries, 1)
    return ids, np.where(targets.reshape(-1, 1) >= 0, values, -np.inf)


def policy_loss(logits, targets, said, clip, kl):
    """Sum over tokens (arXiv:1707.06347, equation 7; arXiv:2402.03300, equation 4)."""
    there = targets.reshape(-1) >= 0
    own = torch.log_softmax(logits, -1).reshape(-1, V)[there].gather(-1, targets.reshape(-1)[there][:, None])[:, 0]
    before, advantage, reference = torch.from_numpy(said).double()[there].unbind(-1)
    ratio = torch.exp(own - before)
    gained = torch.minimum(ratio * advantage, torch.clamp(ratio, 1 - clip, 1 + clip) * advantage)
    return (kl * (torch.exp(reference - own) - (reference - own) - 1) - gained).sum()


def pair_loss(logits, targets, said, beta):
    """The first sequence is preferred (arXiv:2305.18290, equation 7)."""
    log_probs = torch.log_softmax(logits, -1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    apart = torch.where(targets >= 0, log_probs - torch.from_numpy(said).double().view(BATCH, T), torch.zeros((), dtype=torch.float64))
    gains = apart.sum(-1)
    return -torch.nn.functional.logsigmoid(beta * (gains[0] - gains[1]))


def evaluate(name, salt):
    ids, targets = tokens(name)
    p = Parameters(salt)
    p.targets = torch.from_numpy(targets).view(BATCH, T)
    logits = MODELS[name](p, torch.from_numpy(ids).view(BATCH, T))
    scale = 1 / float((targets >= 0).sum()) if not p.beta else 0.75
    said = said_of_targets(name, targets, 1 if p.beta else 3) if p.beta or p.clip else teacher(name)
    own = (pair_loss(logits, p.targets, said[1], p.beta) if p.beta else policy_loss(logits, p.targets, said[1], p.clip, p.kl) if p.clip
           else sum_of_losses(logits, p.targets))
    cross_entropy = scale * own
    loss = p.weight * cross_entropy + AUXILIARY_SCALE * p.auxiliary
    losses = {}
    for other, (weight, its_logits, which) in p.losses.items():
        mean = scale * T / (T - which + 1) * sum_of_losses(its_logits, ahead(p.targets, which - 1))
        loss = loss + weight * mean
        losses[other] = float(mean.detach())
    for other, (weight, its_logits, temperature) in p.soft_losses.items():
        mean = scale * sum_of_soft_losses(its_logits, *said, temperature)
        loss = loss + weight * mean
        losses[other] = float(mean.detach())
    loss.backward()
    result = {
        "model": name, "salt": salt, "near": p.near if math.isfinite(p.near) else None,
        "batch": BATCH, "scale": scale, "auxiliary_scale": AUXILIARY_SCALE, "ids": ids.tolist(),
        "targets": targets.tolist(),
        "loss": float(loss), "cross_entropy": float(cross_entropy), "auxiliary": float(p.auxiliary),
        "loads": p.loads, "logits": summary("logits", logits),
        "gradients": {path: summary(path, torch.zeros_like(t) if t.grad is None else t.grad)
                      for path, t in sorted(p.tensors.items()) if path not in p.frozen},
        "frozen": sorted(p.frozen),
    }
    if losses:
        result["losses"] = losses
    if p.soft_losses or p.beta or p.clip:
        log_probs = [None if math.isinf(x) else x for x in said[1].reshape(-1).tolist()]
        result["teacher"] = {"entries": said[0].shape[1], "ids": said[0].reshape(-1).tolist(), "log_probs": log_probs}
    if p.dropped:
        result["compete"] = True  # Tokens of other sequences change what is dropped.
    return result, p.near


def main():
    here = pathlib.Path(__file__).parent / "stored"
    names = sys.argv[1:] or [*MODELS, "curve", "curve_weighted", "curve_fractions"]
    for name in names:
        if name.startswith("curve"):
            text = json.dumps(curve.evaluate(here, name.partition("_")[2])).replace('}, ', '},\n')
        else:
            salt, (result, near) = 0, evaluate(name, 0)
            while near < NEAR:
                salt += 1
                result, near = evaluate(name, salt)
            text = json.dumps(result).replace('}, "', '},\n"')
        (here / f"{name}.json").write_text(text + "\n")
        print(name, len(text), "bytes", "" if name.startswith("curve") else f"salt {salt} near {near:.3g}")


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
