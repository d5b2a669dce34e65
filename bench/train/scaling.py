#!/usr/bin/env python3
"""Whether large models train as fast as small ones: tokens/s times FLOPs per token.

    bench/train/scaling.py [--models small,medium,large] [--precision fp32] [--threads 2] [--rounds 3]

Trains examples/bench-<model>.moe in turn, the order changing from round to round, with balanced routing, and
prints a table: medians of the rounds, each round the median of its steps after --warm. Every model trains
equally long, the slowest for --steps: other work of the machine comes in spells of seconds, of which a
small model's few steps would see one. FLOPs are those that the program announces (info): GEMMs, and
attention without what the mask skips, forward and backward.
The last column is each model's share of the first one's FLOP/s: 0.9 or more is what we want. Writes
bench/results/<machine>-scaling-<precision>.json and .md."""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402
import machine  # noqa: E402

UNIT = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
COLUMNS = ("model", "parameters", "FLOP/token", "tokens/s", "GFLOP/s", "share", "disturbed")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--hecatec", default=str(compare.ROOT / "build/bin/hecatec"))
    p.add_argument("--models", default="small,medium,large")
    p.add_argument("--precision", default="fp32")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--warm", type=int, default=2)
    p.add_argument("--set", action="append", default=[], help="of hecatec: train.tokens=8Ki")
    p.add_argument("--allowed", type=float, default=0.1, help="cores that others may use during a run")
    p.add_argument("--patience", type=float, default=60, help="seconds to wait for that, per run")
    p.add_argument("--machine", help="name of the result files (default: from the CPU)")
    p.add_argument("--out", default=str(compare.ROOT / "bench/results"))
    return p.parse_args()


def announced(program, what):
    """A number of the program's info: "FLOP per token 28.1M, ..."."""
    found = re.search(rf"{what}\s+([\d.]+)([kMGT]?)", compare.run([program, "info"]))
    return float(found.group(1)) * UNIT[found.group(2)]


def run(options, row, steps, text, work):
    """A row's program, for so many steps behind --warm."""
    of_row = argparse.Namespace(**{**vars(options), "steps": steps})
    return compare.run_ours(of_row, row["program"], text, options.threads, work)


def choose_steps(options, rows, text, work):
    """As many for each as take as long as --steps of the slowest."""
    ms = [run(options, row, 1, text, work)["ms"] for row in rows]
    for row, own in zip(rows, ms):
        row["steps"] = round(options.steps * max(ms) / own)


def measure(options, work):
    text = compare.write_text(work)
    rows = []
    for model in options.models.split(","):
        program = compare.build(options, model, options.precision, work)
        rows.append({"model": model, "program": program, "parameters": announced(program, "parameters"),
                     "flops": announced(program, "FLOP per token"), "runs": []})
    choose_steps(options, rows, text, work)
    for turn in range(options.rounds):
        for row in rows[:: 1 if turn % 2 == 0 else -1]:
            once = lambda: run(options, row, row["steps"], text, work)
            row["runs"].append(machine.undisturbed(once, options.allowed, options.patience))
            print(f"round {turn + 1}: {row['model']}: {row['runs'][-1]['tokens_per_s']:.0f} tokens/s, others "
                  f"{row['runs'][-1]['disturbed']} cores", flush=True)
    for row in rows:
        del row["program"]
        row["tokens_per_s"] = statistics.median(run["tokens_per_s"] for run in row["runs"])
        row["gflops"] = row["tokens_per_s"] * row["flops"] / 1e9
        row["share"] = row["gflops"] / rows[0]["gflops"]
        row["disturbed"] = max(run["disturbed"] for run in row["runs"])
    return rows


def table(rows):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " ---: |" * len(COLUMNS)]
    for row in rows:
        lines.append(f"| {row['model']} | {row['parameters'] / 1e6:.1f}M | {row['flops'] / 1e6:.1f}M | "
                     f"{row['tokens_per_s']:,.0f} | {row['gflops']:.0f} | {row['share']:.2f} | "
                     f"{row['disturbed']:.2f} |")
    return "\n".join(lines)


def main():
    options = arguments()
    about = machine.describe({})
    with tempfile.TemporaryDirectory() as work:
        rows = measure(options, pathlib.Path(work))
    print(table(rows))
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    name = f"{options.machine or machine.slug(about)}-scaling-{options.precision}"
    (out / f"{name}.json").write_text(json.dumps({
        "machine": about, "precision": options.precision, "threads": options.threads, "rounds": options.rounds,
        "steps": options.steps, "warm": options.warm, "settings": options.set, "rows": rows}, indent=1) + "\n")
    (out / f"{name}.md").write_text("\n".join([
        f"# Scaling on the CPU, {options.precision}, {options.threads} threads: {machine.title(about)}", "",
        f"Real: measured on this machine by bench/train/scaling.py, in turn, medians of {options.rounds} rounds of "
        f"{', '.join(str(row['steps']) for row in rows)} steps after {options.warm}, equally long for each. FLOPs "
        "as the programs announce them; share: of the first model's FLOP/s. Disturbed: cores that other programs used in the worst run.", "", table(rows), "",
        *(f"- {key}: {value}" for key, value in about.items())]) + "\n")
    print(f"written: {out / name}.json, .md")


if __name__ == "__main__":
    main()
