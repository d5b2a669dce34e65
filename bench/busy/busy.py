#!/usr/bin/env python3
"""Training beside other programs: steps of a small model, on an idle and on a busy machine, for several ways of waiting.

    bench/busy/busy.py [--hecatec build/bin/hecatec] [--model examples/tiny.moe] [--cores 2] [--rounds 5]
                       [--seconds 3] [--out bench/results]

Ways: `default`, the program's own; `passive`, OMP_WAIT_POLICY=passive; and fixed numbers of rounds that a
waiting thread spins (GOMP_SPINCOUNT). Everything runs on the same `--cores` cores: the program with as many threads and,
for `busy`, as many processes that only compute. Every run has the same time; ways take turns. Prints a table and writes
<machine>-busy.md. A step's time is the fastest quarter of all rounds' steps, which other work of the machine disturbs
least; tokens/s are those of all steps together. `others` is what else ran meanwhile, in cores."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/train"))
import machine  # noqa: E402

FIXED = (300, 1000, 3000, 10000, 30001)  # 30000 is the program's own, which it may give up.
COMPUTE = "while True: pass"
DATA = "/usr/share/common-licenses/GPL-3"


def environment(way, threads):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
    more = {"passive": {"OMP_WAIT_POLICY": "passive"}, "default": {}}.get(way, {"GOMP_SPINCOUNT": way})
    return {**kept, **more, "OMP_NUM_THREADS": str(threads)}


def train(program, way, seconds, threads, log):
    """The lines of the log after `seconds`, without those of the first two steps."""
    log.unlink(missing_ok=True)
    with subprocess.Popen([program, "train", "--data", DATA, "--steps", "1000000", "--log", log, "--set",
                           "train.eval_steps=0"], env=environment(way, threads), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as run:
        time.sleep(seconds)
        run.kill()
    lines = log.read_text().split("\n")[:-1] if log.exists() else []  # It may not have come so far.
    return [json.loads(line) for line in lines[2:]]


def measure(program, busy, ways, options, log):
    """By way: all steps' lines; and what others used, in cores."""
    steps = {way: [] for way in ways}
    others, spent = 0, 0
    for _ in range(options.rounds):
        for way in ways:
            load = [subprocess.Popen([sys.executable, "-c", COMPUTE]) for _ in range(options.cores if busy else 0)]
            begin, before = time.monotonic(), machine.busy_seconds() - machine.own_seconds()
            steps[way] += train(program, way, options.seconds, options.cores, log)
            for process in load:
                process.kill()
                process.wait()
            others += machine.busy_seconds() - machine.own_seconds() - before
            spent += time.monotonic() - begin
    return steps, max(others, 0) / spent


def summary(lines):
    if not lines:
        return "none", "0"
    ms = sorted(line["ms"] for line in lines)
    tokens = sum(line["tokens_per_s"] * line["ms"] for line in lines) / sum(ms)
    return f"{ms[len(ms) // 4]:.1f}", f"{tokens:.0f}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--hecatec", default=str(ROOT / "build/bin/hecatec"))
    p.add_argument("--model", default=str(ROOT / "examples/tiny.moe"))
    p.add_argument("--cores", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--out", default=str(ROOT / "bench/results"))
    options = p.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:options.cores]
    os.sched_setaffinity(0, cores)
    about = machine.describe({})
    ways = ["default", "passive", *map(str, FIXED)]
    with tempfile.TemporaryDirectory() as work:
        program, log = pathlib.Path(work) / "program", pathlib.Path(work) / "log.jsonl"
        subprocess.run([options.hecatec, "-w", "-o", program, options.model], check=True)
        idle, idle_others = measure(program, False, ways, options, log)
        busy, busy_others = measure(program, True, ways, options, log)
    name = pathlib.Path(options.model).name
    lines = [f"# Waiting on an idle and on a busy machine: {machine.title(about)}", "",
             f"{about['date']}, {about['compiler']}. bench/busy/busy.py: {name}, {len(cores)} threads on {len(cores)} "
             f"cores, {options.rounds} rounds of {options.seconds:g} s;",
             f"busy: {len(cores)} processes that only compute beside it. Steps: the fastest quarter.",
             f"What else ran on the machine, in cores: idle {idle_others:.2f}, busy {busy_others:.2f}.", "",
             "| way | idle, ms a step | idle, tokens/s | busy, ms a step | busy, tokens/s |",
             "| --- | ---: | ---: | ---: | ---: |"]
    lines += ["| " + " | ".join([way if not way.isdigit() else f"spins {way}", *summary(idle[way]),
                                  *summary(busy[way])]) + " |" for way in ways]
    print("\n".join(lines))
    (pathlib.Path(options.out) / f"{machine.slug(about)}-busy.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
