"""fits.py HECATEC [--check]: which models fit which devices, as `hecatec --explain=memory` says: the table of docs/fssdp.md.

Every row is a model on a cluster, in bf16 with experts = fssdp. The settings are those that need least: one sequence
per microbatch, everything recomputed, blocks of 512 logits, dense = shard, or replicate where only that fits: slots of
whole units may be more than two ranks save. GPUs have the optimizer's states in memory of the host. --check compares the table with the document; otherwise it is written.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from page_table import renew  # noqa: E402

PAGE = ROOT / "docs" / "fssdp.md"
BEGIN, END = "<!-- bench/memory/fits.py -->\n", "<!-- end of the table -->\n"
SMALL = {"train.precision": "bf16", "parallel.experts": "fssdp", "parallel.microbatch": 1, "parallel.recompute": "all",
         "parallel.logits": 512}
TARGETS = {"cuda": {"parallel.states": "host"}, "cpu": {}}
H100, PAPER = "80GB", ("paper-a", "paper-b")
# Model: of examples/, or a folder beside this file with a config.json; nodes, devices of a node, positions; None: the
# model's own.
ROWS = [("qwen3-30b-a3b", 1, 8, 4096), ("qwen3-30b-a3b", 8, 8, 32768), ("mixtral-8x7b", 2, 8, None),
        ("glm45-air", 4, 8, None), ("gpt-oss-20b", 1, 8, None), ("gpt-oss-20b", 1, 2, None),
        ("deepseek-v3-like", 32, 8, None), ("deepseek-v3", 32, 8, 4096)]
PAPERS = [(model, cluster) for cluster in PAPER for model in ("gpt-moe-s", "gpt-moe-l", "bert-moe", "bert-moe-deep")]


def source_of(hecatec, model, folder):
    """Returns the model's .moe file, made from its config.json in `folder` where it has one."""
    config = pathlib.Path(__file__).parent / model / "config.json"
    if not config.exists():
        return ROOT / "examples" / f"{model}.moe"
    made = pathlib.Path(folder) / f"{model}.moe"
    subprocess.run([hecatec, f"--from-hf={config.parent}", "-o", made], check=True, timeout=60)
    return made


def explain(hecatec, target, model, *words):
    reports = (explain_with(dense, hecatec, target, model, *words) for dense in ("shard", "replicate"))
    first = next(reports)
    second = next(reports) if "TOO LITTLE" in first else first
    return first if "TOO LITTLE" in second else second


def explain_with(dense, hecatec, target, model, *words):
    settings = {**SMALL, **TARGETS[target], "parallel.dense": dense}
    chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [hecatec, "-w", "--explain=memory", f"--target={target}", *chosen, *words]
    with tempfile.TemporaryDirectory() as folder:
        command.append(source_of(hecatec, model, folder))
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def cell(report):
    """Returns the bytes of a device, and the share of its memory that they take."""
    needed = re.search(r"^ *([\d.]+ [KMG]iB)  together", report, re.M)[1]
    verdict = re.search(r"  of a device +(?:(\d+) % taken|TOO LITTLE, by ([\d.]+ [KMGT]iB))", report)
    return f"{needed}, fits: {verdict[1]} %" if verdict[1] else f"{needed}, too much by {verdict[2]}"


def ideal(report):
    return re.search(r"^ideal: ([\d.]+ [KMG]iB)", report, re.M)[1]


def row(hecatec, model, name, what, *words):
    reports = {target: explain(hecatec, target, model, *words) for target in TARGETS}
    return f"| {name} | {what} | {ideal(reports['cuda'])} | {cell(reports['cuda'])} | {ideal(reports['cpu'])} | {cell(reports['cpu'])} |\n"


def table(hecatec):
    lines = ["| model | devices | ideal | GPUs | ideal | CPUs |\n", "| --- | --- | --- | --- | --- | --- |\n"]
    for model, nodes, devices, positions in ROWS:
        sizes = ["--set", f"cluster.nodes={nodes}", "--set", f"cluster.devices={devices}", "--set", f"cluster.device.memory={H100}"]
        at = f", T = {positions}" if positions else ""
        what = f"{model}, from its config.json" if (pathlib.Path(__file__).parent / model).exists() else model
        lines.append(row(hecatec, model, what, f"{nodes} x {devices} of {H100[:-2]} GB{at}", *sizes,
                         *(["-D", f"T={positions}"] if positions else [])))
    for model, cluster in PAPERS:
        lines.append(row(hecatec, model, model, cluster, f"--cluster={ROOT / 'examples' / 'clusters' / cluster}.moe"))
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description="which models fit which devices")
    parser.add_argument("hecatec")
    parser.add_argument("--check", action="store_true", help="compare with the document, and change nothing")
    options = parser.parse_args()
    renew(PAGE, BEGIN, END, table(options.hecatec), options.check, f"{sys.argv[0]} {options.hecatec}")


if __name__ == "__main__":
    main()
