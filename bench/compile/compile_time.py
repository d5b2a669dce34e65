#!/usr/bin/env python3
"""How long hecatec takes, without the C compiler: processor time, median and least of several runs.

    bench/compile/compile_time.py [--hecatec build/bin/hecatec] [--peer OTHER_HECATEC] [--runs 21] [--out bench/results]

With --peer both compile in turn, and the ratio is that of neighbouring runs. Prints a table and writes
<machine>-compile.md. Wanted: 200 ms for examples/gpt-moe-s.moe, most of which is the search of how its experts move."""
import argparse
import pathlib
import resource
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/train"))
import machine  # noqa: E402

ONE_RANK = ["--set", "cluster.nodes=1", "--set", "cluster.devices=1", "--set", "train.precision=fp32"]
CASES = (("tiny, to the graph", ["--compile-to=graph", "-o", "/dev/null", "tiny.moe"]),
         ("tiny", ["-S", "-o", "/dev/null", "tiny.moe"]),
         ("gpt-moe-s, one rank", ["-S", "-o", "/dev/null", *ONE_RANK, "gpt-moe-s.moe"]),
         ("gpt-moe-s", ["-S", "-o", "/dev/null", "gpt-moe-s.moe"]),
         ("qwen3-30b-a3b", ["-S", "-o", "/dev/null", "qwen3-30b-a3b.moe"]))


def spent(hecatec, arguments):
    """Milliseconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([hecatec, "-w", *arguments], cwd=ROOT / "examples", check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def measure(options, arguments):
    own, peer = [], []
    for run in range(options.runs + 1):
        pair = [spent(program, arguments) for program in (options.hecatec, options.peer) if program]
        if run > 0:  # The first one warms up.
            own.append(pair[0])
            peer += pair[1:]
    return own, peer


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hecatec", default=str(ROOT / "build/bin/hecatec"))
    p.add_argument("--peer", help="another hecatec, to compare with")
    p.add_argument("--runs", type=int, default=21)
    p.add_argument("--out", default=str(ROOT / "bench/results"))
    options = p.parse_args()
    about = machine.describe({})
    rows = ["| model | ms, median | least | peer's median | times as fast |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, arguments in CASES:
        own, peer = measure(options, arguments)
        ratio = statistics.median(b / a for a, b in zip(own, peer)) if peer else None
        rows.append(f"| {name} | {statistics.median(own):.0f} | {min(own):.0f} | "
                    + (f"{statistics.median(peer):.0f} | {ratio:.2f} |" if peer else " | |"))
        print(rows[-1])
    text = "\n".join([f"# Compile time: {machine.title(about)}", "",
                      f"Real: bench/compile/compile_time.py, processor time of {options.runs} runs, without the C compiler.", "",
                      *rows, "", *[f"- {key}: {value}" for key, value in about.items()]]) + "\n"
    path = pathlib.Path(options.out) / f"{machine.slug(about)}-compile.md"
    path.write_text(text)
    print(f"written: {path}")


main()
