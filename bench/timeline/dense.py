"""dense.py HECATEC [--check]: steps with each value of `parallel.dense`, the table of docs/ranks.md.

`hecatec --simulate` says the time of a step, and `--explain=comm` how much of the gathers of dense units is hidden.
Every row is a model of the FSSDP paper on one of its clusters, in bf16 on GPUs with experts = fssdp.
--check compares the table with the document, and refuses less than 90 % hidden on cluster B. Otherwise the table is
written."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from page_table import renew  # noqa: E402

PAGE = ROOT / "docs" / "ranks.md"
BEGIN, END = "<!-- bench/timeline/dense.py -->\n", "<!-- end of the table -->\n"
CLUSTERS = ("paper-b", "paper-a")
MODELS = ("gpt-moe-s", "gpt-moe-l", "bert-moe", "bert-moe-deep")
LEAST = {"paper-b": 90}
# Its embedding comes at the start of a step: 3.3 to 3.7 ms that nothing hides, of 24 to 30 that the gathers take, as the
# chunks of experts beside them let them.
LESS = {("gpt-moe-s", "paper-b"): 84}
US = {"us": 1, "ms": 1e3, "s": 1e6}


def report(hecatec, model, cluster, dense, *words):
    command = [hecatec, "-w", "--target=cuda", f"--cluster={ROOT}/examples/clusters/{cluster}.moe", *words,
               *(word for key in ("train.precision=bf16", "parallel.experts=fssdp", f"parallel.dense={dense}") for word in ("--set", key)),
               ROOT / "examples" / f"{model}.moe"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def us(text):
    number, unit = text.split()
    return float(number) * US[unit]


def gathers(comm):
    """Returns the time that the gathers of a step take, and the part of it that devices do not wait for."""
    lines = re.findall(r"^  dense parameters .*?([\d.]+ [mu]?s)(?: +[\d.]+%)?$", comm, re.M)
    take, wait = map(us, lines)
    return take, 100 * (1 - wait / take)


def row(hecatec, model, cluster):
    steps = {dense: json.loads(report(hecatec, model, cluster, dense, "--simulate=4", "--json"))["step_us"] for dense in ("replicate", "states", "shard")}
    take, hidden = gathers(report(hecatec, model, cluster, "shard", "--explain=comm"))
    least = LESS.get((model, cluster), LEAST.get(cluster, 0))
    if hidden < least:
        sys.exit(f"{model} on {cluster}: {hidden:.1f} % of the gathers are hidden, less than {least}")
    columns = " | ".join(f"{value / 1e3:.1f} ms" for value in steps.values())
    return f"| {model} | {cluster} | {columns} | {100 * (steps['shard'] / steps['replicate'] - 1):+.1f} % | {take / 1e3:.0f} ms | {hidden:.0f} % |\n"


def table(hecatec):
    head = "| model | cluster | `replicate` | `states` | `shard` | to `replicate` | gathers of `shard` | of it hidden |\n"
    return head + "| --- " * 8 + "|\n" + "".join(row(hecatec, model, cluster) for cluster in CLUSTERS for model in MODELS)


def main():
    parser = argparse.ArgumentParser(description="what parallel.dense costs a step")
    parser.add_argument("hecatec")
    parser.add_argument("--check", action="store_true", help="compare with the document, and change nothing")
    options = parser.parse_args()
    renew(PAGE, BEGIN, END, table(options.hecatec), options.check, f"{sys.argv[0]} {options.hecatec}")


if __name__ == "__main__":
    main()
