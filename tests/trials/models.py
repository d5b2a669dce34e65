#!/usr/bin/env python3
"""Random models, right ones and slightly wrong ones: compiled, trained on 1 to 3 ranks, evaluated, sampled, explained."""
import json
import math
import re
import sys

import harness
import model as models
import rules

EXPLAINED = ["shapes", "memory", "settings", "plan", "comm"]
ODD = ["0", "1", "-1", "1e30", "99999999999999999999", "0.5", "1T", "none", "auto", "true", '"text"', "[1, 2]", "T", "D", "x", "sparse",
       "1 / 0", "8GiB", "nan", "1e-400", "auto(0)", "2us", "attention", "{", "}", ")", "(", ",", "", "#", "\n", "=", "@", "\ufeff", "\r\n"]


def losses(text):
    return [json.loads(line)["loss"] for line in text.splitlines() if '"loss"' in line]


def compile_(trial, text, name, *flags, statuses=(0,)):
    trial.write(f"{name}.moe", text)
    result = trial.run([trial.tools.hecatec, *flags, "-o", name, f"{name}.moe"], statuses=statuses)
    for kind, sentence in rules.judge_words(result):
        trial.fail(kind, sentence, result)
    trial.allow(name)
    return result


def read_log(trial, name):
    path = trial.folder / name
    return losses(path.read_text()) if path.exists() else []


def check_losses(trial, found, steps, result):
    if result.status == 0 and (len(found) != steps or not all(map(math.isfinite, found))):
        trial.fail("wrong", f"losses {found} of {steps} steps", result)


def same(one, other, tolerance):
    return len(one) == len(other) and all(abs(a - b) <= tolerance * max(1, abs(a)) for a, b in zip(one, other))


def train(trial, program, log, *extra, env=None, ranks=1):
    trial.allow(log)
    argv = [f"./{program}", "train", "--data", "data.bin", "--log", log, *extra]
    if ranks == 1:
        return trial.run(argv, statuses=(0,), env=env)
    return trial.ranks(ranks, argv, statuses=(0,), env=env, limit=60)


def alone(trial, drawn, steps):
    """A right model on one rank: everything that its program can do."""
    trial.allow("m.st")
    result = train(trial, "m", "one.jsonl", "--steps", str(steps), "--save", "m.st")
    check_losses(trial, read_log(trial, "one.jsonl"), steps, result)
    if result.status:
        return
    chosen = trial.random.randrange(7)
    if chosen == 0:
        train(trial, "m", "two.jsonl", "--steps", str(steps), env={"OMP_NUM_THREADS": "2"})
        if read_log(trial, "one.jsonl") != read_log(trial, "two.jsonl"):
            trial.fail("wrong", "another number of threads, other bits")
    elif chosen == 1:
        trial.run(["./m", "sample", "--load", "m.st", "--prompt", "0", "--tokens", "3"], statuses=(1, 2) if drawn.masked else (0,))
    elif chosen == 2:
        trial.run(["./m", "info", "--params"], statuses=(0,))
    elif chosen == 3:
        trial.run([trial.tools.hecatec, f"--explain={trial.random.choice(EXPLAINED)}", "m.moe", "-S", "-o", "m.c"], statuses=(0,))
        trial.allow("m.c")
    elif chosen == 4:
        read_back(trial, steps)
    elif chosen == 5:
        another_microbatch(trial, drawn, steps)
    else:
        result = trial.run(["./m", "eval", "--load", "m.st", "--val", "data.bin"], statuses=(0,))
        found = re.search(r"validation loss ([-\w.]+)", result.out)
        if result.status == 0 and not (found and math.isfinite(float(found.group(1)))):
            trial.fail("wrong", "no finite validation loss", result)


def agree(trial, drawn, name, found, result):
    """Any ranks and any microbatch have the losses of one."""
    one = read_log(trial, "one.jsonl")
    tolerance = {"fp64": 1e-9, "fp32": 1e-4, "bf16": 3e-2}[drawn.precision]
    kept = len(one) if drawn.precision == "fp64" else 1  # Later, rounding may have sent a token elsewhere.
    if result.status == 0 and not drawn.iteration and not same(one[:kept], found[:kept], tolerance):
        trial.fail("wrong", f"one rank: {one}, {name}: {found}", result)


def another_microbatch(trial, drawn, steps):
    """The same model with microbatches of one sequence."""
    text = re.sub(r"microbatch = \d+", "microbatch = 1", re.sub(r"\n  group = \d+", "", drawn.text))
    if drawn.text.count("group = 1\n") == drawn.text.count("\n  group =") and compile_(trial, text, "single", "-O0").status == 0:
        result = train(trial, "single", "single.jsonl", "--steps", str(steps))
        agree(trial, drawn, "microbatch 1", read_log(trial, "single.jsonl"), result)


def read_back(trial, steps):
    """A stage that is printed and read back gives a program with the same bits. (Names in its C may be others.)"""
    stage = trial.random.choice("graph group-experts inline differentiate recompute fuse-elementwise place-buffers".split())
    trial.allow("stage.mlir", "back")
    trial.run([trial.tools.hecatec, f"--compile-to={stage}", "-o", "stage.mlir", "m.moe"], statuses=(0,))
    result = trial.run([trial.tools.hecatec, f"--compile-from={stage}", "-O0", "-o", "back", "stage.mlir"], statuses=(0,))
    if result.status == 0:
        train(trial, "back", "back.jsonl", "--steps", str(steps))
        if read_log(trial, "one.jsonl") != read_log(trial, "back.jsonl"):
            trial.fail("wrong", f"read back from {stage}: {read_log(trial, 'one.jsonl')}, {read_log(trial, 'back.jsonl')}", result)


def together(trial, drawn, steps):
    """A right model on several ranks, next to one."""
    flags = models.cluster(drawn)
    may_not_fit = "laer" in drawn.text or "laer" in " ".join(flags)  # With few experts it may find no placement.
    if compile_(trial, drawn.text, "several", "-O0", *flags, statuses=(0, 1) if may_not_fit else (0,)).status:
        return
    env = {}
    if drawn.nodes > 1:
        trial.write("topology", "".join(f"{rank}\n" for rank in range(drawn.ranks)))
        env["HECATE_TOPOLOGY"] = "topology"
    trial.allow("several.st")
    result = train(trial, "several", "several.jsonl", "--steps", str(steps), "--save", "several.st", env=env, ranks=drawn.ranks)
    found = read_log(trial, "several.jsonl")
    check_losses(trial, found, steps, result)
    train(trial, "m", "one.jsonl", "--steps", str(steps))
    agree(trial, drawn, f"{drawn.ranks} ranks", found, result)
    if result.status == 0 and trial.chance(0.3):
        trial.run(["./m", "eval", "--load", "several.st", "--val", "data.bin"], statuses=(0,))


def right(trial, drawn):
    steps = trial.random.randint(1, 4)
    # Statistics are of groups of sequences, and evaluation takes a whole step.
    trial.write("data.bin", drawn.data(trial.random, drawn.tokens * 3 + 8 * drawn.positions + 1))
    if compile_(trial, drawn.text, "m", "-O0").status:
        return
    if drawn.ranks == 1:
        alone(trial, drawn, steps)
    else:
        together(trial, drawn, steps)


def spoil(random, text):
    """The text with one or a few words replaced, left out, doubled or exchanged."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        words = [match.span() for match in re.finditer(r"\w+(?:\.\w+)?|[^\w\s]|\n", text)]
        begin, end = random.choice(words)
        other = random.choice(words)
        kind = random.randrange(6)
        if kind == 0:
            new = random.choice(ODD)
        elif kind == 1:
            new = ""
        elif kind == 2:
            new = text[begin:end] + " " + text[begin:end]
        elif kind == 3:
            new = text[slice(*other)]
        else:
            numbers = [span for span in words if text[span[0]:span[1]].replace(".", "").isdigit()]
            begin, end = random.choice(numbers or words)
            new = random.choice(ODD[:16])
        text = text[:begin] + new + text[end:]
    return text


def wrong(trial, drawn):
    """A wrong model ends with messages that say where; or it is right still."""
    text = spoil(trial.random, drawn.text)
    trial.write("m.moe", text)
    trial.allow("m.c")
    flags = trial.random.choice([["-S", "-o", "m.c"]] * 3 + [["-S", "-o", "m.c", *models.cluster(drawn)], ["-fsyntax-only"],
                                 [f"--explain={trial.random.choice(EXPLAINED)}", "-S", "-o", "m.c"]])
    result = trial.run([trial.tools.hecatec, *flags, "m.moe"], statuses=(0, 1), limit=30)
    for kind, sentence in [*rules.judge_words(result), *rules.judge_placed(result, "m.moe")]:
        trial.fail(kind, sentence, result)


def situation(trial):
    chosen = trial.random.random()
    drawn = models.draw(trial.random, 1 if chosen < 0.35 else trial.random.choice([1, 1, 2, 3]) if chosen < 0.75
                        else trial.random.choice([2, 2, 3]))
    if 0.35 <= chosen < 0.75:
        wrong(trial, drawn)
    else:
        right(trial, drawn)


if __name__ == "__main__":
    sys.exit(harness.main(situation, __doc__))
