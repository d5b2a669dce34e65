"""cuda_rank_models.py EXAMPLES TEXT FOLDER [all]: small versions of examples train on several emulated devices as on target cpu with as many
ranks: where tokens go is replayed from there, and losses and norms of all steps agree, in fp32 to 1e-4, in bf16 losses to 2^-9 as in
cuda.py and norms to 2^-6: some forty values on a gradient's way are rounded by 2^-9 each, of either sign, and sqrt(40) is above 6. Without
`all` a cover of models, ranks and policies; with it all of them.

Environment: as of cuda_ranks.py, which this is a part of.
"""

import itertools
import os
import sys

from cuda import compare, run, words
from cuda_models import MODELS
from cuda_ranks import compile_for_devices, train

STEPS = 20
NAMES = ("tiny", "deepseek-v3-like", "gpt-moe-s")
RANKS = {1: (1, 1), 2: (1, 2), 4: (2, 2)}  # As nodes and devices of a node.
POLICIES = ("ep", "fssdp", "laer", "fastermoe")
COVER = [("deepseek-v3-like", 2, "ep", "fp32"), ("deepseek-v3-like", 4, "fssdp", "bf16"), ("gpt-moe-s", 2, "fastermoe", "fp32"),
         ("gpt-moe-s", 4, "fssdp", "fp32")]


def everything():
    for name, ranks, precision in itertools.product(NAMES, RANKS, ("fp32", "bf16")):
        for policy in POLICIES if ranks > 1 else POLICIES[:1]:
            yield name, ranks, policy, precision


def settings_of(name, ranks, policy, precision):
    nodes, devices = RANKS[ranks]
    small = [word for word in MODELS[name][2] if not word.startswith(("--set=cluster.", "--set=train.precision"))]
    own = {"cluster.nodes": nodes, "cluster.devices": devices, "parallel.experts": policy, "parallel.microbatch": 1,
           "train.tokens": 4 * int(next(word for word in small if word.startswith("-DT="))[4:]), "train.precision": precision}
    return [*small, *(f"--set={key}={value}" for key, value in own.items())]


def check(name, ranks, policy, precision, examples, text, folder):
    what = f"{name}-{ranks}-{policy}-{precision}"
    cpu, cuda, ids = f"{folder}/{what}-cpu", f"{folder}/{what}", f"{folder}/{what}.ids"
    model, settings = f"{examples}/{name}.moe", settings_of(name, ranks, policy, precision)
    run(*words("HECATEC"), "-w", "-o", cpu, *settings, model)
    compile_for_devices(["-w", *settings], model, cuda)
    expected = train(ranks, cpu, text, cpu, STEPS, "--record-ids", ids)
    actual = train(ranks, cuda, text, cuda, STEPS, "--route", "ids:" + ids)
    worst = {"loss": 0.0, "grad_norm": 0.0}
    for a, b in zip(expected, actual, strict=True):
        for key in ("loss", "cross_entropy", "aux", "grad_norm"):
            tolerance = 1e-4 if precision == "fp32" else 2 ** (-6 if key == "grad_norm" else -9)
            compare([a[key]], [b[key]], tolerance, f"{what}, step {a['step']}, {key}")
        for key in a.get("losses", ()):
            compare([a["losses"][key]], [b["losses"][key]], 1e-4 if precision == "fp32" else 2**-9, f"{what}, step {a['step']}, loss {key}")
        for key, known in worst.items():
            worst[key] = max(known, abs(b[key] / a[key] - 1))
    if len(expected) != STEPS or not expected[-1]["loss"] < expected[0]["loss"]:
        sys.exit(f"{what} learns nothing: {expected}")
    print(f"{what}: losses differ by {worst['loss']:.1e}, norms by {worst['grad_norm']:.1e} at most", flush=True)


def main(examples, text, folder, which="cover"):
    os.makedirs(folder, exist_ok=True)
    for case in everything() if which == "all" else COVER:
        check(*case, examples, text, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
