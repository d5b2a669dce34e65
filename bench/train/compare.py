#!/usr/bin/env python3
"""Tokens per second of training, next to PyTorch programs, in one run.

    bench/train/compare.py [--peer torch_moe.py] [--newest PYTHON] [--rounds 3] [--models small,medium]
                           [--threads 1,2] [--precisions fp32,bf16]

Builds examples/bench-<model>.moe with hecatec and runs it and its peers in turn, the order changing from
round to round. Prints a table and writes bench/results/<machine>-train.json and .md. Peers:
  torch  a program with torch_moe.py's options and output, run by --python: fp32, and bf16 by autocast;
  again  the same program, run by --newest, the interpreter of a virtual environment with the newest
         torch that pip has (python3 -m venv DIR; DIR/bin/pip install torch numpy);
  eager, compile  newest_torch.py, run by it, as it is and with torch.compile, whose compilations are
         kept from run to run.
Without --peer or --newest those columns stay empty.

All sides: byte tokens of /usr/share/common-licenses, the same model, batch, AdamW and clipping; a step is
everything from drawing the batch to the update; the median of the steps after `--warm`. Every program gets the
same time, --seconds: as many steps as fit, at least one, as a probe before the rounds tells; where one step takes
longer, nothing is warmed up. A run that other programs disturbed is repeated; the results list disturbed runs that
remain. Routing is forced to be balanced on all sides (--route=balanced, --bal 1). Both PyTorches get the code paths of
their best instruction set, which OpenBLAS and MKL would not choose on every processor."""
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
    p.add_argument("--newest", default=os.environ.get("HECATE_NEWEST_TORCH"), metavar="PYTHON",
                   help="interpreter with the newest torch")
    p.add_argument("--precisions", default="fp32,bf16")
    p.add_argument("--hecatec", default=str(ROOT / "build/bin/hecatec"))
    p.add_argument("--models", default="small,medium")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=10, help="of each run, warming up apart")
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


def build(options, model, precision, work):
    program = work / f"bench-{model}-{precision}"
    settings = [word for s in [f"train.precision={precision}", *options.set] for word in ("--set", s)]
    run([options.hecatec, *settings, "-o", program, ROOT / f"examples/bench-{model}.moe"])
    return program


def write_text(work):
    """Writes the text that all sides train on."""
    licenses = sorted(pathlib.Path("/usr/share/common-licenses").iterdir())
    text = work / "text"
    text.write_bytes(b"".join(file.read_bytes() for file in licenses))
    return text


def imbalance(lines):
    """Largest over mean tokens of an expert, averaged over layers and steps."""
    layers = [layer for line in lines for unit in line.get("tokens_per_expert", {}).values()
              for layer in unit]
    return statistics.mean(max(layer) * len(layer) / sum(layer) for layer in layers) if layers else None


def run_ours(options, program, text, threads, work):
    log = work / "log.jsonl"
    run([program, "train", "--data", text, "--steps", str(options.warm + options.steps), "--seed", "1",
         "--log", log, "--route=balanced", "--set", "log.loads=1", "--set", "train.eval_steps=0",
         "--threads", str(threads)],
        {"OMP_NUM_THREADS": str(threads)})
    lines = [json.loads(line) for line in log.read_text().splitlines()][options.warm:]
    return {"ms": statistics.median(line["ms"] for line in lines),
            "tokens_per_s": statistics.median(line["tokens_per_s"] for line in lines),
            "imbalance": imbalance(lines)}


def read_line(program, out):
    found = PEER_LINE.search(out)
    if not found:
        sys.exit(f"{program}: cannot read its output:\n{out}")
    ms, rate, mflop = map(float, found.groups())
    return {"ms": ms, "tokens_per_s": rate, "mflop_per_token": mflop}


def peer_options(options, row):
    return ["--cfg", row["model"], "--threads", str(row["threads"]), "--bal", "1",
            "--bf16", str(int(row["precision"] == "bf16")), "--steps", str(options.steps),
            "--warm", str(options.warm)]


def run_torch(options, row, python, more):
    environment = {"OMP_NUM_THREADS": str(row["threads"]), **more}
    if machine.has_avx512():
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"  # OpenBLAS would take newer CPUs for a Haswell.
    return read_line(options.peer, run([python, options.peer, *peer_options(options, row)], environment))


def run_newest(options, row, compiled, work):
    environment = {"OMP_NUM_THREADS": str(row["threads"]), "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
                   **mkl_environment(work)}
    program = pathlib.Path(__file__).with_name("newest_torch.py")
    return read_line(program, run([options.newest, program, *peer_options(options, row),
                                   "--compile", str(int(compiled))], environment))


def mkl_environment(work):
    """MKL asks this function, and takes its slow path on other makers' processors."""
    library = work / "every-cpu.so"
    if not library.exists():
        source = work / "every-cpu.c"
        source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
        run(["cc", "-shared", "-fPIC", "-o", library, source])
    return {"LD_PRELOAD": str(library)}


def has_torch(python, what):
    probe = [python, "-c", "import torch; print(torch.__version__)"] if python else []
    if python and shutil.which(python) and subprocess.run(probe, capture_output=True).returncode == 0:
        return True
    print(f"{what}: no interpreter with torch; its columns stay empty")
    return False


def sides_of(options, programs, text, work):
    """Name of each side and what runs it for a row, given options with steps and warm."""
    sides = {"ours": lambda options, row: run_ours(options, programs[row["model"], row["precision"]], text,
                                          row["threads"], work)}
    peer = options.peer and pathlib.Path(options.peer).exists()
    if peer and has_torch(options.python, "torch"):
        sides["torch"] = lambda options, row: run_torch(options, row, options.python, {})
    if has_torch(options.newest, "newest torch (--newest)"):
        if peer:
            sides["again"] = lambda options, row: run_torch(options, row, options.newest, mkl_environment(work))
        sides["eager"] = lambda options, row: run_newest(options, row, False, work)
        sides["compile"] = lambda options, row: run_newest(options, row, True, work)
    return sides


def with_counts(options, steps, warm):
    return argparse.Namespace(**{**vars(options), "steps": steps, "warm": warm})


def count_steps(options, run_side, row):
    """The options for one side of a row, with as many steps as take --seconds. A first step says whether it is so slow
    that it is all there is time for."""
    if run_side(with_counts(options, 1, 0), row)["ms"] > options.seconds * 1000:
        return with_counts(options, 1, 0)
    ms = run_side(with_counts(options, 3, 1), row)["ms"]
    return with_counts(options, max(1, round(options.seconds * 1000 / ms)), options.warm)


def measure(options, work):
    """One row per model, number of threads and precision; in each, one entry per round and side."""
    text = write_text(work)
    models, threads = options.models.split(","), [int(t) for t in options.threads.split(",")]
    precisions = options.precisions.split(",")
    programs = {(m, p): build(options, m, p, work) for m in models for p in precisions}
    sides = sides_of(options, programs, text, work)
    rows = [{"model": m, "threads": t, "precision": p, **{side: [] for side in report.SIDES}}
            for m in models for t in threads for p in precisions]
    counted = {(at, side): count_steps(options, sides[side], row) for at, row in enumerate(rows) for side in sides}
    for turn in range(options.rounds):
        for at, row in enumerate(rows):
            for side in list(sides)[:: 1 if turn % 2 == 0 else -1]:
                counts = counted[at, side]
                result = machine.undisturbed(lambda: sides[side](counts, row), options.allowed, options.patience)
                row[side].append({**result, "steps": counts.steps})
                print(f"round {turn + 1}: {row['model']}, {row['threads']} threads, {row['precision']}, {side}: "
                      f"{result['tokens_per_s']:.0f} tokens/s, others {result['disturbed']} cores", flush=True)
    return rows


def main():
    options = arguments()
    about = machine.describe({"torch": options.peer and options.python, "newest": options.newest})
    with tempfile.TemporaryDirectory() as work:
        rows = measure(options, pathlib.Path(work))
    result = {"machine": about, "hecatec": run([options.hecatec, "--version"]).strip(),
              "settings": options.set, "rounds": options.rounds, "seconds": options.seconds,
              "warm": options.warm, "rows": rows}
    name = f"{options.machine or machine.slug(about)}-train"
    report.write(result, pathlib.Path(options.out), name)


if __name__ == "__main__":
    main()
