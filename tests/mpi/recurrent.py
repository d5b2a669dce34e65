#!/usr/bin/env python3
"""The delta rule and short convolutions on one and several ranks, for any microbatch: sequences stay whole, so that
states never travel. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

MODELS = {  # Ranks, settings.
    "one": (1, ["parallel.microbatch=8"]),
    "small": (1, ["parallel.microbatch=2", "parallel.recompute=all"]),
    "ep": (2, ["parallel.microbatch=4", "parallel.experts=ep"]),
    "four": (4, ["parallel.microbatch=1", "parallel.experts=ep"]),
    "fssdp": (2, ["parallel.microbatch=2", "parallel.experts=fssdp", "parallel.placement.memory=1"]),
    "moved": (4, ["parallel.microbatch=2", "parallel.placement.reshard=every(2)", "parallel.placement.memory=2"]),
}
MODEL = pathlib.Path(os.environ["MPI_TESTS"]).parent / "reference" / "models" / "recurrent.moe"


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def build(name, model, *more):
    ranks, settings = MODELS[name]
    keys = [f"cluster.devices={ranks}", "train.precision=fp64", "train.tokens=96", "train.group=1", *settings]
    options = [word for key in keys for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", "-D", "V=256", *options, *more, model, "-o", name], check=True)


def trained(name):
    ranks = MODELS[name][0]
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], "--save", f"{name}.st", "--set", "train.steps=5"],
                   check=True, capture_output=True, text=True, timeout=120)
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
    text = MODEL.read_text()
    check("documents(ids, 9)" in text, "the model has documents")
    pathlib.Path("words.moe").write_text(text.replace("documents(ids, 9)", "documents(ids, 32)"))
    pathlib.Path("whole.moe").write_text(text.replace("documents(ids, 9)", "documents(ids, 0)"))
    build("one", "words.moe")
    first = trained("one")
    check(trained("one") == first, "the same run has the same bits")
    for name in ["small", "ep", "four", "fssdp", "moved"]:
        build(name, "words.moe")
        check(far(trained(name), first) < 1e-9, f"{name} learns what one rank learns")
    build("one", "whole.moe")
    check(far(trained("one"), first) > 1e-5, "documents change what is learned")
