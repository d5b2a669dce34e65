#!/usr/bin/env python3
"""Programs of 36 ranks on 18 nodes, whose counts go over a grid. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

They have the losses of one rank, and a run that goes on has the bits of one that was not stopped."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NODES, DEVICES, STEPS, STOP = 18, 2, 6, 4
CLOSE = 2e-6  # For losses, relative.
MOVING = ["parallel.experts=fssdp", "parallel.placement.memory=2", "parallel.placement.overlap=2", "parallel.placement.reshard=every(3)"]


def compiled(name, *settings):
    sets = [word for key in ("train.tokens=1152", f"train.steps={STEPS}", *settings) for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", "--ranks=tcp", *sets, os.environ["MPI_TESTS"] + "/small.moe", "-o", name], check=True)


def train(launcher, name, *more):
    run = subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], *more], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "HECATE_TOPOLOGY": "nodes", "HECATE_COMM_TIMEOUT": "60", "HECATE_COMM_JOIN": "120"})
    if run.returncode:
        sys.exit(f"{name} {' '.join(more)}: ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run.stdout


def losses(path):
    lines = map(json.loads, pathlib.Path(path).read_text().splitlines())
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def main():
    by_hand = ["sh", os.path.join(os.path.dirname(os.environ["RANKS"]), "by_hand.sh"), str(NODES * DEVICES)]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        pathlib.Path("nodes").write_text("0\n")
        compiled("one", "parallel.microbatch=8")
        train([], "one", "--log", "one.log")
        pathlib.Path("nodes").write_text("".join(f"{at}-{at + DEVICES - 1}\n" for at in range(0, NODES * DEVICES, DEVICES)))
        compiled("many", "parallel.microbatch=2", f"cluster.nodes={NODES}", f"cluster.devices={DEVICES}", *MOVING)
        train(by_hand, "many", "--log", "many.log", "--save", "whole", "--checkpoint", "ck", "--set", f"checkpoint.every={STOP}")
        one, many = losses("one.log"), losses("many.log")
        check(one.keys() == many.keys() == set(range(1, STEPS + 1)), f"all steps are in the logs: {one} {many}")
        check(all(abs(one[step] - many[step]) <= CLOSE * one[step] for step in one), f"losses are those of one rank: {one} {many}")
        shutil.rmtree(f"ck/step-{STEPS}")
        said = train(by_hand, "many", "--save", "on", "--checkpoint", "ck", "--resume")
        check(f"resumed: ck/step-{STOP}" in said and "placed anew" not in said, f"it goes on: {said}")
        check(pathlib.Path("whole").read_bytes() == pathlib.Path("on").read_bytes(), "the parameters are those of the whole run")


main()
