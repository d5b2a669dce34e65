"""cuda_rank_models.py EXAMPLES TEXT FOLDER [all]: small versions of examples train on several emulated devices as on target cpu with as many
ranks: where tokens go is replayed from there, and losses agree, in fp32 to 1e-4, in bf16 to 2^-9 as in cuda.py. Without `all` a cover of
models, ranks and policies; with it all of them.

In fp32 norms of gradients agree to 1e-4, too. In bf16 those of single steps do not: AdamW turns what rounding changes in small gradients into
other parameters, and a step's norm may be that of one token, whose gradient changes much with them (docs/experiments.md, "Norms of gradients in bf16"). So there
gradients are compared at the same parameters, tensor by tensor: from those in fp64 they are as far as target cpu's in bf16, whose median is
exceeded 1.1 to 1.9 times, as more values are rounded, and 3 times where one token decides. Four times, and 2^-7 of the tensor, are allowed.

Environment: as of cuda_ranks.py, which this is a part of.
"""

import itertools
import math
import os
import shutil
import sys

from cuda import compare, run, weights, words
from cuda_models import MODELS, teacher_of
from cuda_ranks import compile_for_devices, train

STEPS, STILL = 20, 4
NAMES = ("tiny", "tiny+muon", "tiny-student", "deepseek-v3-like", "gpt-moe-s")
RANKS = {1: (1, 1), 2: (1, 2), 4: (2, 2)}  # As nodes and devices of a node.
POLICIES = ("ep", "fssdp", "laer", "fastermoe")
COVER = [("tiny+muon", 2, "fssdp", "fp32"), ("deepseek-v3-like", 2, "ep", "fp32"), ("deepseek-v3-like", 4, "fssdp", "bf16"), ("gpt-moe-s", 2, "fastermoe", "fp32"),
         ("gpt-moe-s", 4, "fssdp", "fp32"), ("tiny-student", 2, "fssdp", "bf16")]


def everything():
    for name, ranks, precision in itertools.product(NAMES, RANKS, ("fp32", "bf16")):
        for policy in POLICIES if ranks > 1 else POLICIES[:1]:
            yield name, ranks, policy, precision


def settings_of(name, ranks, policy, precision):
    nodes, devices = RANKS[ranks]
    small = [word for word in MODELS[name][2] if not word.startswith(("--set=cluster.", "--set=train.precision"))]
    own = {"cluster.nodes": nodes, "cluster.devices": devices, "parallel.experts": policy, "parallel.microbatch": 1,
           "train.tokens": 4 * int(next(word for word in small if word.startswith("-DT="))[4:]), "train.precision": precision}
    if "muon" in name and ranks > 1:  # Parts of what becomes orthogonal go to all.
        own["parallel.dense"] = "states"
    return [*small, *(f"--set={key}={value}" for key, value in own.items())]


def gradients(ranks, program, text, load, *route):
    """Each tensor's gradients, of steps that change nothing, one behind the other: with betas of 0 they are AdamW's
    means."""
    folder, found = program + ".still", {}
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"train.optimizer.lr": 0, "train.optimizer.betas": "[0,0]", "train.optimizer.clip": "none", "checkpoint.every": 1, "checkpoint.keep": STILL}
    train(ranks, program, text, program + "-still", STILL, "--load", load, "--checkpoint", folder, *route,
          *(f"--set={key}={value}" for key, value in settings.items()))
    for step, rank in itertools.product(range(1, STILL + 1), range(ranks)):
        for name, numbers in weights.read_numbers(f"{folder}/step-{step}/means.{rank}.safetensors").items():
            found.setdefault(name, []).extend(numbers)
    return found


def check_gradients(what, ranks, exact, cpu, cuda, text, teacher):
    load, ids = cpu + ".st", cpu + "-still.ids"
    rounded = gradients(ranks, cpu, text, load, "--record-ids", ids, *teacher)
    true, actual = (gradients(ranks, program, text, load, "--route", "ids:" + ids, *teacher) for program in (exact, cuda))
    worst = 0.0
    for name, numbers in true.items():
        apart = math.dist(numbers, actual[name])
        allowed = 4 * math.dist(numbers, rounded[name]) + 2**-7 * math.hypot(*numbers)
        if not apart <= allowed:
            sys.exit(f"{what}, gradient of {name}: {apart:.1e} from that in fp64, {allowed:.1e} allowed, its norm is {math.hypot(*numbers):.1e}")
        worst = max(worst, apart / (allowed or 1))
    return f"gradients are {worst:.2f} of what is allowed from those in fp64"


def compile_for_cpu(settings, model, program):
    run(*words("HECATEC"), "-w", "-O1", "-o", program, *settings, model)
    return program


def check(name, ranks, policy, precision, examples, text, folder):
    what = f"{name}-{ranks}-{policy}-{precision}"
    cpu, cuda, ids = f"{folder}/{what}-cpu", f"{folder}/{what}", f"{folder}/{what}.ids"
    model, settings = f"{examples}/{name.split('+')[0]}.moe", settings_of(name, ranks, policy, precision)
    compile_for_cpu(settings, model, cpu)
    compile_for_devices(["-w", *settings], model, cuda)
    teacher = teacher_of(name, text, folder)
    expected = train(ranks, cpu, text, cpu, STEPS, "--record-ids", ids, *teacher)
    actual = train(ranks, cuda, text, cuda, STEPS, "--route", "ids:" + ids, *teacher)
    keys, tolerance = ["loss", "cross_entropy", "aux"], 2**-9
    if precision == "fp32":
        keys, tolerance = [*keys, "grad_norm"], 1e-4
    worst = dict.fromkeys(keys, 0.0)
    for a, b in zip(expected, actual, strict=True):
        for key in keys:
            compare([a[key]], [b[key]], tolerance, f"{what}, step {a['step']}, {key}")
            worst[key] = max(worst[key], abs(b[key] - a[key]) / (abs(a[key]) or 1))
        for key in a.get("losses", ()):
            compare([a["losses"][key]], [b["losses"][key]], tolerance, f"{what}, step {a['step']}, loss {key}")
    if len(expected) != STEPS or not expected[-1]["loss"] < expected[0]["loss"]:
        sys.exit(f"{what} learns nothing: {expected}")
    more = f"norms by {worst['grad_norm']:.1e} at most" if precision == "fp32" else check_gradients(
        what, ranks, compile_for_cpu(settings_of(name, ranks, policy, "fp64"), model, cpu + "-fp64"), cpu, cuda, text, teacher)
    print(f"{what}: losses differ by {worst['loss']:.1e}, {more}", flush=True)


def main(examples, text, folder, which="cover"):
    os.makedirs(folder, exist_ok=True)
    for case in everything() if which == "all" else COVER:
        check(*case, examples, text, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
