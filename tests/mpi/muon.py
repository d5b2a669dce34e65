#!/usr/bin/env python3
"""Muon on one and several ranks. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

Any number of ranks learns the same, and any number of threads has the same bits; a run that goes on has those of one that was
not stopped."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hf"))
import weights  # noqa: E402

MODELS = {  # Ranks, settings.
    "one": (1, []),
    "ep": (2, ["parallel.experts=ep"]),
    "fssdp": (4, ["parallel.placement.reshard=every(2)", "parallel.placement.memory=2"]),
    "shard": (2, ["parallel.dense=states"]),
    "units": (4, ["parallel.dense=shard"]),
    "shard-all": (4, ["parallel.dense=states", "parallel.experts=replicate"]),
    "half": (1, ["train.precision=bf16"]),
}
MUON = ["train.optimizer=muon(0.01, momentum = 0.9)", "train.precision=fp64"]


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def build(name):
    ranks, settings = MODELS[name]
    given = [f"parallel.microbatch={16 // ranks}", f"cluster.devices={ranks}", *MUON, *settings]
    if name == "half":
        given.remove("train.precision=fp64")
    options = [word for key in given for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", *options, os.environ["MPI_TESTS"] + "/small.moe", "-o", name],
                   check=True)


def train(name, *more, code=0, threads="1"):
    ranks = MODELS[name][0]
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    run = subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], "--save", f"{name}.st", "--log",
                          f"{name}.log", "--set", "train.steps=6", *more], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "OMP_NUM_THREADS": threads})
    if run.returncode != code:
        sys.exit(f"{name} {' '.join(more)}: ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run.stdout + run.stderr


def saved(name):
    return weights.read_numbers(f"{name}.st")


def losses(name):
    return [json.loads(line)["loss"] for line in pathlib.Path(f"{name}.log").read_text().splitlines() if '"loss"' in line]


def far(a, b):
    return max(abs(x - y) for key in a for x, y in zip(a[key], b[key]))


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    build("one")
    train("one")
    first = saved("one")
    check(losses("one")[-1] < losses("one")[0] - 0.05, "the loss falls")
    train("one", threads="2")
    check(saved("one") == first, "two threads have the bits of one")
    for name in ["ep", "fssdp", "shard", "shard-all", "units"]:
        build(name)
        train(name)
        check(far(saved(name), first) < 1e-9, f"{name} learns what one rank learns")
    save = ["--checkpoint", "ck", "--set", "checkpoint.every=3", "--set", "checkpoint.keep=9"]
    train("one", *save)
    pathlib.Path("ck/step-6").rename("ck/later")
    train("one", *save, "--resume")
    check(saved("one") == first, "a run that goes on has the same bits")
    train("one", "--set", "train.optimizer=adamw")
    check(far(saved("one"), first) > 1e-3, "AdamW learns something else")
    build("half")
    train("half")
    check(abs(losses("half")[-1] - losses("one")[-1]) < 1 and losses("half")[-1] < losses("half")[0], "bf16 learns, too")
    train("shard", "--checkpoint", "parts", "--set", "checkpoint.every=3", "--set", "checkpoint.keep=9")
    whole = saved("shard")
    pathlib.Path("parts/step-6").rename("parts/later")
    train("shard", "--checkpoint", "parts", "--resume")
    check(saved("shard") == whole, "parts of momenta go on with the same bits")
