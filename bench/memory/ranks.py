"""Peak memory of real ranks beside what their program announces: a table.

    ranks.py HECATEC [--model examples/bench-large.moe] [--ranks 4 8] [--dense shard] [--experts fssdp ep]
             [--steps 3] [--out FILE.md]

Ranks are processes of this machine, started by tests/runtime/ranks.sh; the peak of each is its resident set as
the kernel counts it. Compared are the smallest and the largest of a job's ranks with the total that
`PROGRAM info` prints.
Ends with 1 where a rank took more than is announced, or a tenth less.
"""
import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# Runs a rank and writes its peak to a file of its own.
RANK = """
import os, pathlib, resource, subprocess, sys
status = subprocess.call(sys.argv[2:], stdout=subprocess.DEVNULL)
taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
pathlib.Path(sys.argv[1], str(os.getpid())).write_text(str(taken))
sys.exit(status)
"""


def compile_model(options, ranks, experts, dense, program):
    settings = [f"cluster.devices={ranks}", "parallel.microbatch=1", f"train.tokens={ranks}Ki", f"parallel.experts={experts}",
                f"parallel.dense={dense}"]
    subprocess.run([options.hecatec, "-w", options.model, "-o", program, *(word for each in settings for word in ("--set", each))],
                   check=True)


def announced(program):
    text = subprocess.run([program, "info"], check=True, stdout=subprocess.PIPE, text=True).stdout
    number, unit = re.search(r"^  total +([0-9.]+) (\w+)$", text, re.MULTILINE).groups()
    return float(number) * UNIT[unit]


def peaks(options, ranks, program):
    env = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sh", ROOT / "tests/runtime/ranks.sh", str(ranks), sys.executable, "-c", RANK, folder, program, "train", "--data",
                        options.data, "--steps", str(options.steps)], check=True, stdout=subprocess.DEVNULL, env=env)
        return sorted(int(file.read_text()) for file in Path(folder).iterdir())


def rows(options):
    for ranks in options.ranks:
        for experts in options.experts:
            for dense in options.dense:
                with tempfile.TemporaryDirectory() as folder:
                    program = Path(folder, "program")
                    compile_model(options, ranks, experts, dense, program)
                    taken, bound = peaks(options, ranks, program), announced(program)
                yield ranks, experts, dense, taken[0], taken[-1], bound


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("hecatec")
    parser.add_argument("--model", default=ROOT / "examples/bench-large.moe")
    parser.add_argument("--ranks", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--dense", nargs="+", default=["shard"])
    parser.add_argument("--experts", nargs="+", default=["fssdp", "ep"])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--data", default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = (f"# Memory of ranks\n\nbench/memory/ranks.py, {Path(options.model).name}, {options.steps} steps, "
            f"ranks of one {platform.machine()} machine.\n\n"
            "| ranks | experts | dense | taken, MiB, least | most | announced | most of announced |\n|" + " --- |" * 7 + "\n")
    wrong = False
    for ranks, experts, dense, least, most, bound in rows(options):
        wrong |= most > bound or most < 0.9 * bound
        text += (f"| {ranks} | {experts} | {dense} | {least / 2**20:.0f} | {most / 2**20:.0f} | {bound / 2**20:.0f} | "
                 f"{most / bound:.3f} |\n")
        print(text.splitlines()[-1], flush=True)
    if options.out:
        options.out.write_text(text)
    sys.exit("a rank took more than announced, or a tenth less" if wrong else 0)


if __name__ == "__main__":
    main()
