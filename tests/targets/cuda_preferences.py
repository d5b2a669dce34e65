"""cuda_preferences.py EXAMPLES TEXT FOLDER: programs that learn from pairs and from rollouts (docs/preferences.md)
train on 1, 2 and 4 emulated devices as on target cpu with as many ranks. The routing of tokens is replayed from there.
A model evaluates alike on both targets, and writes a reference alike.

In fp32 losses and norms agree to 1e-4. In bf16 losses agree up to the change by rounded logits: a logit x changes by
2^-9 |x|, a log-probability by twice that of the largest, a pair's loss by beta times that of all tokens that count in
it, a rollout's by the mean of its slopes times it. Logits of these models stay below LOGIT, and slopes below SLOPE.

Environment: as of cuda_ranks.py, which this is a part of.
"""
import json
import os
import random
import struct
import sys
import zlib

from cuda import compare, run
from cuda_rank_models import compile_for_cpu
from cuda_ranks import QUIET, compile_for_devices, launch, train

T, SEQUENCES, STEPS, BETA, LOGIT, SLOPE = 32, 24, 6, 0.2, 2, 8
SMALL = ["-DD=32", f"-DT={T}", "-DL=2", "-DF=24", "--set=data.format=llmc", "--set=data.order=sequential",
         "--set=train.schedule.warmup=1", "--set=train.optimizer.lr=2e-3"]
OBJECTIVES = {"dpo": f"dpo(beta = {BETA})", "policy": "policy(clip = 0.1, kl = 0.05)"}
RANKS = {1: (1, 1), 2: (1, 2), 4: (2, 2)}
CASES = [("dpo", 1, "fssdp", "fp32"), ("policy", 1, "fssdp", "bf16"), ("dpo", 2, "fssdp", "fp32"), ("policy", 2, "ep", "fp32"),
         ("dpo", 4, "ep", "bf16"), ("policy", 4, "fssdp", "fp32")]


def write(objective, text, folder):
    """Sequences whose first third does not count, pairs for dpo; beside them entries of a reference or a rollout."""
    with open(text, "rb") as file:
        tokens = list(file.read(T * SEQUENCES))
    path, pairs, draw = f"{folder}/{objective}.bin", 2 * (objective == "dpo"), random.Random(2)
    raw = struct.pack(f"<{len(tokens)}H", *tokens)
    counts = [i % T >= T // 3 for i in range(len(tokens))]
    with open(path, "wb") as file:
        file.write(struct.pack("<5i", 20240520, 1, len(tokens), T, pairs).ljust(1024, b"\0") + raw)
    with open(path + ".weights", "wb") as file:
        bits = [sum(counts[i + k] << k for k in range(8)) for i in range(0, len(counts), 8)]
        file.write(b"hcweight" + struct.pack("<Q", len(tokens)) + bytes(bits))
    entries = 1 if pairs else 3
    with open(path + ".said", "wb") as file:
        file.write(struct.pack("<8s2IQ4I24x", b"hecteach", 1, entries, len(tokens), 256, zlib.crc32(raw), 2, 4))
        for i in range(len(tokens)):
            said = [-5.5 + draw.gauss(0, 0.2), draw.gauss(0.3, 1), -5.5 + draw.gauss(0, 0.2)]
            file.write(struct.pack(f"<{entries}H{entries}f", *[tokens[(i + 1) % len(tokens)]] * entries, *said[:entries]))
    return path


def evaluate(ranks, program, data, load, *more):
    text = run(*launch(ranks, program, "eval", "--val", data, "--load", load, "--json", *more), **QUIET)
    return json.loads(text)["loss"]


def said_by(path):
    """The log-probabilities of a reference's tokens that count."""
    with open(path, "rb") as file:
        raw = file.read()[64:]
    entries = struct.unpack("<I", open(path, "rb").read(16)[12:])[0]
    rows = struct.iter_unpack(f"<{entries}H{entries}f", raw)
    return [row[entries] for row in rows if row[entries] > -float("inf")]


def check(objective, ranks, policy, precision, examples, text, folder):
    what = f"{objective}-{ranks}-{policy}-{precision}"
    data, model = write(objective, text, folder), f"{examples}/tiny.moe"
    cpu, cuda, ids = f"{folder}/{what}-cpu", f"{folder}/{what}", f"{folder}/{what}.ids"
    nodes, devices = RANKS[ranks]
    own = {"cluster.nodes": nodes, "cluster.devices": devices, "parallel.experts": policy, "parallel.microbatch": 2,
           "train.tokens": 2 * ranks * T, "train.precision": precision, "train.objective": OBJECTIVES[objective]}
    settings = [*SMALL, *(f"--set={key}={value}" for key, value in own.items())]
    compile_for_cpu(settings, model, cpu)
    compile_for_devices(["-w", *settings], model, cuda)
    said = ("--teacher", data + ".said", "--val", data)
    steps = min(STEPS, SEQUENCES // (2 * ranks))
    expected = train(ranks, cpu, data, cpu, steps, "--record-ids", ids, *said)
    actual = train(ranks, cuda, data, cuda, steps, "--route", "ids:" + ids, *said)
    of_own = 2 * LOGIT * 2**-9
    rounded = BETA * 2 * (T - T // 3) * of_own if objective == "dpo" else SLOPE * of_own
    worst = 0.0
    for a, b in zip(expected, actual, strict=True):
        keys = ("loss", "cross_entropy", "aux", "grad_norm") if precision == "fp32" else ("aux",)
        for key in keys:
            compare([a[key]], [b[key]], 1e-4 if precision == "fp32" else 2**-9, f"{what}, step {a['step']}, {key}")
        worst = max(worst, abs(a["loss"] - b["loss"]))
        if not worst <= rounded:
            sys.exit(f"{what}, step {a['step']}: losses {a['loss']} and {b['loss']}, {rounded:.1e} apart at most")
    if len(actual) != steps:
        sys.exit(f"{what}: {len(actual)} steps")
    if precision == "fp32":
        losses = [evaluate(ranks, program, data, cpu + ".st", *said[:2]) for program in (cpu, cuda)]
        compare(losses[:1], losses[1:], 1e-4, f"{what}, eval")
        for program in (cpu, cuda):
            evaluate(ranks, program, data, cpu + ".st", "--write-teacher", program + ".said", *(said[:2] if objective == "policy" else ()))
        compare(said_by(cpu + ".said"), said_by(cuda + ".said"), 1e-5, f"{what}, the reference")
    print(f"{what}: losses {expected[0]['loss']:.4f} to {expected[-1]['loss']:.4f}, {worst:.1e} apart", flush=True)


def main(examples, text, folder):
    os.makedirs(folder, exist_ok=True)
    for case in CASES:
        check(*case, examples, text, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
