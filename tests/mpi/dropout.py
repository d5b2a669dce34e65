#!/usr/bin/env python3
"""Dropout on one and several ranks, for any microbatch. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

Masks belong to global sequences: any rank that computes one learns the same. Values that are recomputed have the masks
of forward, or backward would be another one. Evaluation knows no masks."""
import os
import pathlib
import re
import struct
import json
import subprocess
import sys
import tempfile

MODELS = {  # Ranks, settings.
    "one": (1, ["parallel.microbatch=16"]),
    "small": (1, ["parallel.microbatch=4"]),
    "ep": (2, ["parallel.microbatch=8", "parallel.experts=ep"]),
    "fssdp": (4, ["parallel.microbatch=2", "parallel.placement.reshard=every(2)", "parallel.placement.memory=2"]),
}


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def model(rate):
    text = pathlib.Path(os.environ["MPI_TESTS"], "small.moe").read_text()
    text, attention = re.subn(r"attention\(rmsnorm\(x\), d\)", f"dropout(attention(dropout(rmsnorm(x), {rate}), d), {rate})", text)
    text, embedding = re.subn(r"x = embed\[ids\]", f"x = dropout(embed[ids], {rate})", text)
    check(attention == 1 and embedding == 1, "small.moe is as it was")
    pathlib.Path("small.moe").write_text(text)


def build(name, *more):
    ranks, settings = MODELS[name]
    options = [word for key in [f"cluster.devices={ranks}", "train.precision=fp64", *settings] for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", *options, *more, "small.moe", "-o", name], check=True)


def run(name, command, *more):
    ranks = MODELS[name][0]
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    return subprocess.run([*launcher, f"./{name}", command, "--data", os.environ["TEXT"], *more], check=True,
                          capture_output=True, text=True, timeout=120).stdout


def trained(name):
    run(name, "train", "--save", f"{name}.st", "--set", "train.steps=5")
    data = pathlib.Path(f"{name}.st").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {key: entry["data_offsets"] for key, entry in header.items() if key != "__metadata__"}
    return {key: struct.unpack(f"<{(end - begin) // 8}d", data[8 + size + begin:8 + size + end])
            for key, (begin, end) in tensors.items()}


def far(a, b):
    return max(abs(x - y) for key in a for x, y in zip(a[key], b[key]))


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    model(0.2)
    build("one")
    first = trained("one")
    check(trained("one") == first, "the same run has the same bits")
    for name in ["small", "ep", "fssdp"]:
        build(name)
        check(far(trained(name), first) < 1e-9, f"{name} learns what one rank learns")
    masked = run("one", "eval", "--load", "one.st", "--json")
    model(0)
    build("one")
    check(run("one", "eval", "--load", "one.st", "--json") == masked, "evaluation knows no masks")
    check(far(trained("one"), first) > 1e-4, "masks change what is learned")
