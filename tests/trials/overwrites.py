#!/usr/bin/env python3
"""Every pair of an input and an output that are one file, by whatever name: the input stays, or the command says no."""
import os
import shutil
import sys

import fixtures
import harness
import rules

ALIASES = ["same", "dot", "absolute", "symbolic", "hard", "descriptor", "folder", "twice"]


def alias(trial, name, kind):
    """Another name of a file in the folder."""
    folder = trial.folder
    if kind == "dot":
        return f"./{name}"
    if kind == "absolute":
        return str(folder / name)
    if kind in ("symbolic", "twice"):
        (folder / "link").symlink_to(name)
        trial.protect("link")
        if kind == "twice":
            (folder / "link2").symlink_to("link")
            trial.protect("link2")
        return "link2" if kind == "twice" else "link"
    if kind == "hard":
        os.link(folder / name, folder / "hard")
        trial.protect("hard")
        return "hard"
    if kind == "folder":
        (folder / "sub").mkdir()
        trial.allow("sub")
        return f"sub/../{name}"
    return name


def program_case(trial):
    """(command, environment, input, placeholder words) of a training program."""
    inputs = {"data": ("text", ["--data", "IN"]), "val": ("text", ["--data", "text2", "--val", "IN"]),
              "load": ("weights.st", ["--data", "text2", "--load", "IN"]), "ids": ("ids", ["--data", "text2", "--route", "ids:IN"]),
              "trace": ("loads", ["--data", "text2", "--route", "trace:IN"]), "pretend": ("pretend", ["--data", "text2", "--pretend", "IN"]),
              "blocking": ("blocking", ["--data", "text2"]), "pattern": ("text", ["--data", "tex[t]"]),
              "program": ("one", ["--data", "text2"]),
              "set": ("text", ["--set", "data.train=IN"])}
    outputs = [["--save", "OUT"], ["--log", "OUT"], ["--record-ids", "OUT"], ["--record-loads", "OUT"], ["--trace", "OUT"],
               ["--set", "log.jsonl=OUT"]]
    kind = trial.random.choice(list(inputs))
    name, reads = inputs[kind]
    shutil.copy(fixtures.one(trial.tools), trial.folder / "one")
    trial.protect("one")
    env = {"HECATE_BLOCKING": "blocking", "HECATE_ISA": "portable"} if kind == "blocking" else {}
    writes = trial.random.choice(outputs)
    return ["./one", "train", "--steps", "1", *reads, *writes], env, name


def two_outputs(trial):
    """Two outputs of one name."""
    outputs = ["--save", "--log", "--record-ids", "--record-loads", "--trace"]
    shutil.copy(fixtures.one(trial.tools), trial.folder / "one")
    trial.protect("one")
    one, other = trial.random.sample(outputs, 2)
    trial.allow("out")
    return ["./one", "train", "--steps", "1", "--data", "text2", one, "out", other, trial.random.choice(["out", "./out"])], {}, None


def compiler_case(trial):
    """hecatec."""
    two = fixtures.TWO
    inputs = {"model": ("model.moe", ["IN"]), "import": ("part.moe", ["importing.moe"]), "plan": ("plan", [*two, "--plan=IN", "model.moe"]),
              "loads": ("loads", [*two, "--profile=IN", "model.moe"]), "stage": ("stage.mlir", ["--compile-from=graph", "IN"])}
    outputs = [["-o", "OUT"], ["-S", "-o", "OUT"], ["-c", "-o", "OUT"], ["--compile-to=graph", "-o", "OUT"], ["-S", "-o", "x.c", *two, "--emit-plan=OUT"]]
    name, reads = inputs[trial.random.choice(list(inputs))]
    trial.allow("x.c")
    return [trial.tools.hecatec, "-w", "-O0", *trial.random.choice(outputs), *reads], {}, name


def replay_case(trial):
    """hecate-replay."""
    outputs = [["--json=OUT"], ["--csv=OUT"], ["--svg=OUT"]]
    return [trial.tools.replay, "IN", "--policy=fssdp", "--nodes=1", "--devices=1", *trial.random.choice(outputs)], {}, "loads"


def ranks_case(trial):
    """A program of two ranks."""
    program = fixtures.two(trial.tools)
    inputs = {"topology": ("topology", ["--data", "text2"]), "load": ("weights.st", ["--data", "text2", "--load", "IN"])}
    kind = trial.random.choice(list(inputs))
    name, reads = inputs[kind]
    outputs = [["--log", "OUT"], ["--record-loads", "OUT"], ["--trace", "OUT"]] + [["--save", "OUT"]] * (kind == "topology")
    env = {"HECATE_TOPOLOGY": "topology"} if kind == "topology" else {}
    return ["mpirun", "--bind-to", "none", "-n", "2", program, "train", "--steps", "1", *reads, *trial.random.choice(outputs)], env, name


def default_output(trial):
    """A source that is called as the program would be."""
    trial.write("m", fixtures.MODEL)
    return [trial.tools.hecatec, "-w", "-O0", *trial.random.choice([[], ["-S", "-o", "m"], ["-c", "-o", "./m"]]), "m"], {}, None


def situation(trial):
    tools, random = trial.tools, trial.random
    for name, data in (("model.moe", fixtures.MODEL), ("importing.moe", fixtures.IMPORTING), ("part.moe", fixtures.PART),
                       ("text", fixtures.TEXT[:3000]), ("text2", fixtures.TEXT[:3000]), ("pretend", fixtures.PRETEND),
                       ("blocking", fixtures.BLOCKING), ("topology", fixtures.TOPOLOGY),
                       ("weights.st", fixtures.recorded(tools, "--save", "weights.st")),
                       ("loads", fixtures.recorded(tools, "--record-loads", "loads")),
                       ("ids", fixtures.recorded(tools, "--record-ids", "ids")), ("stage.mlir", fixtures.stage(tools, "graph", 1)),
                       ("plan", fixtures.compiled(tools, "plan.json", "-S", "-o", "/dev/null", *fixtures.TWO, "--emit-plan="))):
        trial.write(name, data)
    case = random.choice([program_case] * 8 + [compiler_case] * 6 + [replay_case] * 2 + [two_outputs, default_output] + [ranks_case])
    words, env, name = case(trial)
    kind = random.choice(ALIASES)
    swapped, opened = random.random() < 0.5, []
    if name:
        one, other = (name, alias(trial, name, kind))[::-1 if swapped else 1]
        if kind == "descriptor":
            opened = [os.open(trial.folder / name, os.O_RDONLY)]
            other = f"/dev/fd/{opened[0]}" if swapped else f"/proc/self/fd/{opened[0]}"
        words = [word.replace("IN", one).replace("OUT", other) if word not in ("IN", "OUT") else {"IN": one, "OUT": other}[word]
                 for word in words]
    if "--load" in words and "--save" in words:  # A checkpoint may be read, trained on, and written again.
        trial.kept = {path: what for path, what in trial.kept.items() if path.name not in (name, "hard")}
        trial.allow(name, "hard")
    existed = {path: path.stat().st_ino for path in trial.folder.iterdir()}
    process = trial.start(words, env=env, passed=opened)
    for number in opened:
        os.close(number)
    result = trial.finish(process, 60 if case is ranks_case else 20)
    for judged, text in rules.judge(result, (0, 1, 2, 3)):
        trial.fail(judged, text, result)
    for path in trial.kept:
        if path in existed and path.exists() and path.name == name and path.stat().st_ino != existed[path]:
            trial.fail("destroyed", f"{path.name} is another file now", result)
    if result.status == 0 and (case in (two_outputs, default_output)):
        trial.fail("status", "two files of one name were taken", result)


if __name__ == "__main__":
    sys.exit(harness.main(situation, __doc__))
