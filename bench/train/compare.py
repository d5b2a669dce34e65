#!/usr/bin/env python3
"""Tokens per second of training, next to a PyTorch program, in one run.

    bench/train/compare.py [--peer torch_moe.py] [--rounds 3] [--models small,medium] [--threads 1,2]

Builds examples/bench-<model>.moe with hecatec and runs it and the peer in turn, the order changing
from round to round. Prints a table and writes bench/results/<machine>-train.json and .md. The peer
is a program with torch_moe.py's options and output; without it only our figures are taken.

Both sides: byte tokens of /usr/share/common-licenses, the same model, batch, AdamW and clipping; a
step is everything from drawing the batch to the update; the median of the steps after `--warm`.
A run that other programs disturbed is repeated; what remains of that is in the results.
Routing is forced to be balanced on both sides (--route=balanced, --bal 1)."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machine  # noqa: E402
import report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER_LINE = re.compile(r"step median ([\d.]+) ms .*tok/s (\d+) .*MFLOP/tok ([\d.]+)")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    shared = os.environ.get("HECATE_SHARED")
    p.add_argument("--peer", default=shared and f"{shared}/peers/torch_moe.py")
    p.add_argument("--python", default="/usr/bin/python3", help="the peer's interpreter")
    p.add_argument("--hecatec", default=str(ROOT / "build/bin/hecatec"))
    p.add_argument("--models", default="small,medium")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--warm", type=int, default=3)
    p.add_argument("--set", action="append", default=[], help="of hecatec: train.precision=fp32")
    p.add_argument("--allowed", type=float, default=0.1, help="cores that others may use during a run")
    p.add_argument("--patience", type=float, default=60, help="seconds to wait for that, per run")
    p.add_argument("--machine", help="name of the result files (default: from the CPU)")
    p.add_argument("--out", default=str(ROOT / "bench/results"))
    return p.parse_args()


def run(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def build(options, model, work):
    program = work / f"bench-{model}"
    settings = [word for s in options.set for word in ("--set", s)]
    run([options.hecatec, *settings, "-o", program, ROOT / f"examples/bench-{model}.moe"])
    return program


def imbalance(lines):
    """Largest over mean tokens of an expert, averaged over layers and steps."""
    layers = [layer for line in lines for unit in line.get("tokens_per_expert", {}).values()
              for layer in unit]
    return statistics.mean(max(layer) * len(layer) / sum(layer) for layer in layers) if layers else None


def run_ours(options, program, text, threads, work):
    log = work / "log.jsonl"
    run([program, "train", "--data", text, "--steps", str(options.warm + options.steps), "--seed", "1",
         "--log", log, "--route=balanced", "--set", "log.loads=1", "--set", "train.eval_every=0",
         "--threads", str(threads)],
        {"OMP_NUM_THREADS": str(threads)})
    lines = [json.loads(line) for line in log.read_text().splitlines()][options.warm:]
    return {"ms": statistics.median(line["ms"] for line in lines),
            "tokens_per_s": statistics.median(line["tokens_per_s"] for line in lines),
            "imbalance": imbalance(lines)}


def run_peer(options, model, threads):
    environment = {"OMP_NUM_THREADS": str(threads)}
    if machine.has_avx512():
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"  # OpenBLAS would take newer CPUs for a Haswell.
    out = run([options.python, options.peer, "--cfg", model, "--threads", str(threads), "--bal", "1",
               "--steps", str(options.steps), "--warm", str(options.warm)], environment)
    found = PEER_LINE.search(out)
    if not found:
        sys.exit(f"{options.peer}: cannot read its output:\n{out}")
    ms, rate, mflop = map(float, found.groups())
    return {"ms": ms, "tokens_per_s": rate, "mflop_per_token": mflop}


def have_peer(options):
    if not options.peer or not pathlib.Path(options.peer).exists():
        print(f"no peer at {options.peer or '--peer, $HECATE_SHARED/peers/torch_moe.py'}: ours alone")
        return False
    probe = [options.python, "-c", "import torch; print(torch.__version__)"]
    if not shutil.which(options.python) or subprocess.run(probe, capture_output=True).returncode:
        print(f"{options.python} has no torch (packages in bench/packages.txt): ours alone")
        return False
    return True


def measure(options, work):
    """One row per model and number of threads; in each, one entry per round and program."""
    peer, text = have_peer(options), work / "text"
    licenses = sorted(pathlib.Path("/usr/share/common-licenses").iterdir())
    text.write_bytes(b"".join(file.read_bytes() for file in licenses))
    models, threads = options.models.split(","), [int(t) for t in options.threads.split(",")]
    programs = {model: build(options, model, work) for model in models}
    rows = [{"model": m, "threads": t, "ours": [], "peer": []} for m in models for t in threads]
    for turn in range(options.rounds):
        for row in rows:
            sides = ["ours", "peer"] if turn % 2 == 0 else ["peer", "ours"]
            for side in sides if peer else ["ours"]:
                if side == "ours":
                    once = lambda: run_ours(options, programs[row["model"]], text, row["threads"], work)
                else:
                    once = lambda: run_peer(options, row["model"], row["threads"])
                result = machine.undisturbed(once, options.allowed, options.patience)
                row[side].append(result)
                print(f"round {turn + 1}: {row['model']}, {row['threads']} threads, {side}: "
                      f"{result['tokens_per_s']:.0f} tokens/s, others {result['disturbed']} cores", flush=True)
    return rows


def main():
    options = arguments()
    about = machine.describe(options.python if have_peer(options) else None)
    with tempfile.TemporaryDirectory() as work:
        rows = measure(options, pathlib.Path(work))
    result = {"machine": about, "hecatec": run([options.hecatec, "--version"]).strip(),
              "settings": options.set, "rounds": options.rounds, "steps": options.steps,
              "warm": options.warm, "rows": rows}
    name = f"{options.machine or machine.slug(about)}-train"
    report.write(result, pathlib.Path(options.out), name)


if __name__ == "__main__":
    main()
