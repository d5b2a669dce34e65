#!/usr/bin/env python3
"""Spoilt files of every kind that is read: bits, lengths, fields, numbers; and what is no file: folders, FIFOs, devices, loops."""
import os
import socket
import sys

import fixtures
import harness
import mutate
import rules

FILE = "spoilt"
TRAIN = ["{one}", "train", "--steps", "1", "--data"]
MOE = ["{hecatec}", "-w"]


def kinds(tools):
    """name: (right bytes, commands that read FILE, environment)."""
    two = [*MOE, *fixtures.TWO, "-S", "-o", "out.c"]
    right = {
        "moe": (lambda: fixtures.MODEL.encode(), [[*MOE, "-S", "-o", "out.c", FILE], [*MOE, "-fsyntax-only", FILE],
                                                  [*two, "--explain=comm", FILE]]),
        "import": (lambda: fixtures.PART.encode(), [[*MOE, "-S", "-o", "out.c", "importing.moe"]]),
        "plan": (lambda: fixtures.compiled(tools, "plan.json", "-S", "-o", "/dev/null", *fixtures.TWO, "--emit-plan="),
                 [[*two, f"--plan={FILE}", "model.moe"], [*two, "--explain=plan", f"--plan={FILE}", "model.moe"]]),
        "loads": (lambda: fixtures.recorded(tools, "--record-loads", "loads"),
                  [[*two, f"--profile={FILE}", "model.moe"], [*TRAIN, "text", "--route", f"trace:{FILE}"],
                   ["{replay}", FILE, "--policy=fssdp,ep", "--nodes=1", "--devices=1"]]),
        "zstd": (lambda: fixtures.zstd(fixtures.recorded(tools, "--record-loads", "loads")),
                 [[*two, f"--profile={FILE}", "model.moe"], ["{replay}", FILE, "--policy=fssdp", "--devices=1"]]),
        "ids": (lambda: fixtures.recorded(tools, "--record-ids", "ids"), [[*TRAIN, "text", "--route", f"ids:{FILE}"]]),
        "weights": (lambda: fixtures.recorded(tools, "--save", "weights.st"),
                    [[*TRAIN, "text", "--load", FILE], ["{one}", "eval", "--val", "text", "--load", FILE, "--sequences", "2"],
                     ["{one}", "sample", "--tokens", "2", "--load", FILE]]),
        "tokens": (fixtures.tokens, [[*TRAIN, FILE, "--format", "llmc"],
                                     ["{one}", "eval", "--load", "weights.st", "--format", "llmc", "--val", FILE]]),
        "text": (lambda: fixtures.TEXT[:3000], [[*TRAIN, FILE]]),
        "pretend": (lambda: fixtures.PRETEND, [[*TRAIN, "text", "--pretend", FILE]]),
        "blocking": (lambda: fixtures.BLOCKING, [[*TRAIN, "text"]]),
        "topology": (lambda: fixtures.TOPOLOGY, [["mpirun", "--bind-to", "none", "-n", "2", "{two}", *TRAIN[1:], "text"]]),
    }
    for name in fixtures.STAGES:
        devices = 2 if name in ("distribute-experts", "shard", "materialize", "overlap") else 1
        right[f"stage {name}"] = (lambda name=name, devices=devices: fixtures.stage(tools, name, devices),
                                  [[*MOE, f"--compile-from={name}", "-S", "-o", "out.c", FILE]])
    return right


def no_file(trial, path, data):
    """Something that is no ordinary file. Returns what has to stay open."""
    kind = trial.random.choice(["folder", "fifo", "held fifo", "loop", "dangling", "socket", "sparse", "zero", "full", "null", "random",
                                "link", "missing", "unreadable", "long", "stdin"])
    if kind == "folder":
        path.mkdir()
    elif kind in ("fifo", "held fifo"):
        os.mkfifo(path)
        if kind == "held fifo":
            return os.open(path, os.O_RDWR)
    elif kind in ("loop", "dangling"):
        path.symlink_to(path.name if kind == "loop" else "nowhere")
    elif kind == "socket":
        made = socket.socket(socket.AF_UNIX)
        here = os.open(path.parent, os.O_PATH)
        made.bind(f"/proc/self/fd/{here}/{path.name}")
        return made
    elif kind == "sparse":
        with open(path, "wb") as file:
            file.write(data)
            file.truncate(1 << 31)
    elif kind == "link":
        (path.parent / "right").write_bytes(data)
        trial.protect("right")
        path.symlink_to("right")
    elif kind == "unreadable":
        path.write_bytes(data)
        path.chmod(0)
    elif kind != "missing":
        targets = {"zero": "/dev/zero", "full": "/dev/full", "null": "/dev/null", "random": "/dev/urandom", "stdin": "/dev/stdin",
                   "long": "/" + "x" * 300}
        path.symlink_to(targets[kind])
    return None


def situation(trial):
    tools = trial.tools
    name, (right, commands) = trial.random.choice(list(kinds(tools).items()))
    if name == "topology" and trial.chance(0.5):  # Ranks take longer than all others.
        name, (right, commands) = "weights", kinds(tools)["weights"]
    trial.write("model.moe", fixtures.MODEL)
    trial.write("importing.moe", fixtures.IMPORTING)
    trial.write("text", fixtures.TEXT[:3000])
    trial.write("weights.st", fixtures.recorded(tools, "--save", "weights.st"))
    called = "part.moe" if name == "import" else FILE
    path, held = trial.folder / called, None
    if trial.chance(0.2):
        held = no_file(trial, path, right())
    else:
        path.write_bytes(mutate.mutate(trial.random, right()))
    if path.is_symlink() or path.exists():
        trial.protect(called)
    trial.allow("out.c", "m")
    env = {"HECATE_BLOCKING": FILE, "HECATE_ISA": "portable"} if name == "blocking" else {}
    env |= {"HECATE_TOPOLOGY": FILE} if name == "topology" else {}
    words = {"one": fixtures.one(tools), "hecatec": tools.hecatec, "replay": tools.replay}
    if name == "topology":
        words["two"] = fixtures.two(tools)
    command = [word.format(**words) for word in trial.random.choice(commands)]
    result = trial.run(command, env=env, limit=60 if name == "topology" else 3 if name == "pretend" else 10, judge=False)
    for kind, sentence in rules.judge(result, (0, 1, 2)):
        # A device that computes a GEMM a year; text that MLIR's parser takes for a result of a billion values.
        if (name, kind) != ("pretend", "hang") and "LLVM ERROR: out of memory" not in result.err:
            trial.fail(kind, sentence, result)
    if isinstance(held, int):
        os.close(held)
    for kind, sentence in rules.judge_words(result) if name in ("moe", "import", "plan") else []:
        trial.fail(kind, sentence, result)
    # A fault of an import shows in the importing file; weights that are too large, in the loss.
    elsewhere = {"import": "importing.moe", "weights": "not finite"}.get(name, called)
    if result.status in (1, 2) and called not in result.err and elsewhere not in result.err:
        trial.fail("unnamed", f"a spoilt {name}, and the message does not name the file", result)
    if result.status and (trial.folder / "out.c").exists():
        trial.fail("left", "out.c of a failed compilation", result)


if __name__ == "__main__":
    sys.exit(harness.main(situation, __doc__))
