#!/usr/bin/env python3
"""Checkpoints of programs of several ranks. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

On the same ranks a run that goes on has the bits of one that was not stopped, wherever experts were and had been. On
others, or with another policy, the next losses agree, with tokens sent to the experts of the whole run. A checkpoint
has the state in which the save began, though files are slow, and the run goes on meanwhile."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

STEPS, STOP = 20, 9  # Owners may change every other step.
CLOSE = 2e-5  # For losses, relative.
MOVING = ["parallel.placement.reshard=every(3)", "parallel.placement.memory=2", "parallel.placement.overlap=2"]
MODELS = {  # Ranks, settings.
    "one": (1, []),
    "ep": (2, ["parallel.experts=ep"]),
    "fssdp": (2, [*MOVING]),
    "nodes": (4, ["cluster.nodes=2", "cluster.devices=2", *MOVING]),
    "eplb": (4, ["parallel.experts=eplb", "parallel.placement.reshard=every(3)"]),
    "flexmoe": (4, ["parallel.experts=flexmoe", "parallel.placement.reshard=every(3)"]),
    "replicate": (2, ["parallel.experts=replicate"]),
    "shard": (4, ["parallel.dense=states", *MOVING]),
    "units": (4, ["parallel.dense=shard", *MOVING]),
    "whole": (2, ["parallel.experts=replicate", "parallel.dense=states"]),
    "half": (2, ["train.precision=bf16"]),
}
LIKE = ["one", "ep", "fssdp", "nodes", "eplb", "replicate", "shard", "units", "whole"]  # The same numbers, but for rounding.


def compiled(name, model=None, sets=None):
    ranks, settings = MODELS[name]
    given = sets or [f"parallel.microbatch={16 // ranks}"]
    if not any(key.startswith("cluster.devices") for key in settings):
        given.append(f"cluster.devices={ranks}")
    options = [word for key in given + settings for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", *options, model or os.environ["MPI_TESTS"] + "/small.moe", "-o",
                    name], check=True)


SLOW = ["fssdp", "shard", "units", "whole", "half"]  # Values change in a way of their own.


def slow_files():
    subprocess.run([os.environ["CC"], "-shared", "-fPIC", "-o", "slow.so", os.environ["MPI_TESTS"] + "/slow.c"],
                   check=True)
    return {"LD_PRELOAD": os.path.abspath("slow.so"), "SLOW_FILE": "60000"}


def train(name, *more, code=0, within=None):
    """Its output; mpirun prints more about a failure than the program."""
    ranks = MODELS[name][0]
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    environment = {**os.environ, **(within or {})}
    if name == "nodes":
        pathlib.Path("nodes.txt").write_text("0-1\n2-3\n")
        environment["HECATE_TOPOLOGY"] = "nodes.txt"
    run = subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], *more], capture_output=True,
                         text=True, timeout=120, env=environment)
    if run.returncode != code:
        sys.exit(f"{name} {' '.join(more)}: ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run.stdout + run.stderr


def losses(path):
    return {line["step"]: line["loss"] for line in map(json.loads, pathlib.Path(path).read_text().splitlines())}


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def only_stop(folder):
    for path in pathlib.Path(folder).glob("step-*"):
        if path.name != f"step-{STOP}":
            shutil.rmtree(path)


def state_of(name):
    """The last step's state of moving experts: facts, and the loads of each rank."""
    folder = pathlib.Path(f"{name}.ck/step-{STEPS}")
    facts = json.loads((folder / "state.json").read_text())["experts"]
    loads = {path.name: path.read_bytes() for path in folder.glob("loads.*.safetensors")}
    check(len(loads) == (MODELS[name][0] if facts else 0), f"{name}: each rank has a file of loads where experts move")
    return facts, loads


def loads_are_numbers(name, experts):
    """They are those of the last iterations, of one rank's rows: a file that other programs read."""
    content = pathlib.Path(f"{name}.ck/step-{STEPS}/loads.1.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    check({key: entry["shape"][2] for key, entry in header.items()} == experts, f"each set has its loads: {header}")
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        counts, width = struct.unpack(f"<{(end - begin) // 4}I", content[start + begin:start + end]), experts[key]
        rows = {sum(counts[at:at + width]) for at in range(0, len(counts), width)}
        check(entry["dtype"] == "U32" and len(rows) == 1 and rows.pop() > 0, f"all rows of the rank are there: {counts}")


def rewritten(folder, change, drop):
    """A checkpoint with other facts, and without the files that `drop` names; its index fits."""
    folder = pathlib.Path(folder)
    facts = json.loads((folder / "state.json").read_text())
    change(facts)
    text = json.dumps(facts, separators=(",", ":"), sort_keys=True).encode() + b"\n"
    (folder / "state.json").write_bytes(text)
    index = json.loads((folder / "index.json").read_text())
    index["files"] = [entry for entry in index["files"] if not entry["name"].startswith(drop)]
    for entry in index["files"]:
        if entry["name"] == "state.json":
            entry.update(bytes=len(text), crc32=f"{zlib.crc32(text):08x}")
    del index["crc32"]
    whole = json.dumps(index, separators=(",", ":"), sort_keys=True).encode()
    index["crc32"] = f"{zlib.crc32(whole):08x}"
    (folder / "index.json").write_text(json.dumps(index))
    for path in folder.glob(f"{drop}*"):
        path.unlink()


def older_and_broken_loads(name):
    """Loads in JSON, as versions before had them, are not read; a rank whose file is not there is named by it."""
    def with_counts(facts):
        facts["experts"]["sets"][0]["counts"] = [1, 2, 3]

    only_stop(f"{name}.ck")
    shutil.copytree(f"{name}.ck", f"{name}.broken")
    rewritten(f"{name}.broken/step-{STOP}", lambda facts: None, "loads.1")
    said = train(name, f"--resume={name}.broken", code=1)
    check("loads.1.safetensors': No such file" in said, f"the missing file is named: {said}")
    rewritten(f"{name}.ck/step-{STOP}", with_counts, "loads.")
    said = train(name, "--checkpoint", f"{name}.ck", "--resume", "--log", "log")
    check("placed anew: the checkpoint is of an older version, whose loads are not read" in said, f"it says so: {said}")
    check(len(losses("log")) == STEPS - STOP, "it goes on all the same")


def same_ranks(name):
    """Bits, with the routers' own choice."""
    within = slow_files() if name in SLOW else None
    train(name, "--save", f"{name}.whole", "--log", f"{name}.log", "--checkpoint", f"{name}.ck", "--set",
          f"checkpoint.every={STOP}", within=within)
    state = state_of(name)
    only_stop(f"{name}.ck")
    out = train(name, "--save", f"{name}.on", "--log", f"{name}.log2", "--checkpoint", f"{name}.ck", "--resume")
    check("placed anew" not in out, f"{name}: the history of its own run fits")
    whole, later = losses(f"{name}.log"), losses(f"{name}.log2")
    check(later == {step: whole[step] for step in range(STOP + 1, STEPS + 1)}, f"{name}: the losses are those of the "
          f"whole run: {later} {whole}")
    check(pathlib.Path(f"{name}.whole").read_bytes() == pathlib.Path(f"{name}.on").read_bytes(),
          f"{name}: the parameters are those of the whole run")
    check(state_of(name) == state, f"{name}: owners and forecast are those of the whole run")


def records_go_on():
    """A record that a run has begun, and another one goes on with, is that of one run."""
    name = "fssdp"
    model = pathlib.Path(os.environ["MPI_TESTS"] + "/small.moe").read_text()
    pathlib.Path("even.moe").write_text(model.replace("N = 3", "N = 5"))  # As records of loads want it.
    compiled(name, "even.moe")
    for part in ("whole", "parts"):
        files = ["--record-ids", f"{part}.ids", "--record-loads", f"{part}.loads"]
        shutil.rmtree(f"{name}.ck", ignore_errors=True)
        train(name, *files, "--checkpoint", f"{name}.ck", "--set", f"checkpoint.every={STOP}")
    only_stop(f"{name}.ck")
    train(name, *files, "--checkpoint", f"{name}.ck", "--resume")
    for kind in ("ids", "loads"):
        check(pathlib.Path(f"whole.{kind}").read_bytes() == pathlib.Path(f"parts.{kind}").read_bytes(),
              f"the record of {kind} goes on")
    only_stop(f"{name}.ck")
    pathlib.Path("parts.loads").write_bytes(b"HLOADS1\n")
    said = train(name, *files, "--checkpoint", f"{name}.ck", "--resume", code=1)
    check("'parts.loads' cannot go on: it is not the record of such a run" in said, f"another file is refused: {said}")


def groups_of_iterations():
    """Statistics of an iteration are of as many sequences as that has: ranks and microbatch count then."""
    for name in ("one", "ep"):
        compiled(name, sets=["train.group=iteration", "parallel.microbatch=4"])
    shutil.rmtree("one.ck", ignore_errors=True)
    train("one", "--checkpoint", "one.ck", "--set", f"checkpoint.every={STOP}")
    only_stop("one.ck")
    said = train("ep", "--resume=one.ck", code=1)
    check("the sequences of train.group was 4 there and is 8 here" in said, f"the group is named: {said}")


def any_to_any(name, whole, other):
    train(other, f"--resume={name}.forced", "--route", "ids:ids", "--log", "log")
    for step, loss in losses("log").items():
        check(abs(loss - whole[step]) <= CLOSE * abs(loss), f"{name} -> {other}: step {step} has the loss {loss}, and "
              f"{whole[step]} of the whole run")
    check(len(losses("log")) == STEPS - STOP, f"{name} -> {other}: it takes the steps that are left")


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in MODELS:
            compiled(name)
            same_ranks(name)
        train("one", "--record-ids", "ids")
        for at, name in enumerate(LIKE):
            train(name, "--route", "ids:ids", "--checkpoint", f"{name}.forced", "--log", "forced.log", "--set",
                  f"checkpoint.every={STOP}")
            only_stop(f"{name}.forced")
            whole = losses("forced.log")
            others = LIKE if "--all" in sys.argv else {LIKE[(at + 1) % len(LIKE)], LIKE[(at + 3) % len(LIKE)]}
            for other in sorted(others):
                any_to_any(name, whole, other)
        said = train("half", "--resume=ep.forced", "--log", "log", code=1)  # Other precisions read it, too.
        check("train.precision was fp32 there and is bf16 here" in said, f"the precision is named: {said}")
        train("half", "--resume=ep.forced", "--resume-changed", "--log", "log")
        check(len(losses("log")) == STEPS - STOP, "another precision goes on")
        loads_are_numbers("fssdp", {"0.sparse": 5, "1.last": 3})
        older_and_broken_loads("fssdp")
        records_go_on()
        groups_of_iterations()


main()
