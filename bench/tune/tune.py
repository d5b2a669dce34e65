#!/usr/bin/env python3
"""Tokens per second of tuning with adapters, next to transformers + PEFT, in one run.

    bench/tune/tune.py --peft PYTHON [--rounds 5] [--steps 4] [--precisions fp32,bf16] [--threads 2]

PYTHON is the interpreter of a virtual environment with transformers and peft. It writes a folder with a Qwen3-MoE of
random weights, which all sides load. Adapters are on all matrices of attention and of experts, of one rank and alpha;
all else is frozen. All sides train on the same file of random tokens, with sequences of one length, AdamW and clipping.

Peers are ways to run PEFT (peft_peer.py): experts one by one or grouped, compiled or not, weights and adapters in fp32
or bf16; experts as `batched_mm` would copy weights for each token, and are left out. A first run of each finds out what
works, and the fastest of each precision takes part in the rounds. Programs run in
turn, the order changing from round to round. Ratios are of medians of steps within a round, by the clock and by the
CPU seconds of both threads, which other work on the machine disturbs less. Prints a table and writes
<machine>-tune.json and .md into bench/results. Ends with 1 where the peak of a program of ours is more than 2 % off the announced one."""
import argparse
import array
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/train"))
import machine  # noqa: E402
from compare import mkl_environment  # noqa: E402

SIZES = {"vocab_size": 8192, "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4,
         "head_dim": 64, "num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 384, "intermediate_size": 1024,
         "decoder_sparse_step": 1, "norm_topk_prob": True, "max_position_embeddings": 512, "router_aux_loss_coef": 0.0}
ADAPTED = "*.attention.wq,*.attention.wk,*.attention.wv,*.attention.wo,*.experts.*"
# Experts, compiled, types of adapters and of weights.
WAYS = {"fp32": [("grouped_mm", 0, "fp32", "fp32"), ("eager", 0, "fp32", "fp32"), ("grouped_mm", 1, "fp32", "fp32"),
                 ("eager", 1, "fp32", "fp32")],
        "bf16": [("grouped_mm", 0, "bf16", "bf16"), ("grouped_mm", 0, "fp32", "bf16"), ("eager", 0, "bf16", "bf16"),
                 ("grouped_mm", 0, "fp32", "fp32"), ("grouped_mm", 1, "bf16", "bf16"), ("eager", 1, "bf16", "bf16")]}
PEER = pathlib.Path(__file__).with_name("peft_peer.py")
UNIT = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--peft", required=True, metavar="PYTHON")
    p.add_argument("--hecatec", default=str(ROOT / "build/bin/hecatec"))
    p.add_argument("--precisions", default="fp32,bf16")
    p.add_argument("--sequences", type=int, default=4)
    p.add_argument("--rank", type=int, default=16)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--warm", type=int, default=2)
    p.add_argument("--ways", type=int, default=9, help="of PEFT for each precision, the first ones")
    p.add_argument("--limit", type=float, default=150, help="seconds that a first run may take")
    p.add_argument("--set", action="append", default=[], help="of hecatec")
    p.add_argument("--machine", help="name of the result files (default: from the CPU)")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    return p.parse_args()


def run(command, environment=None, limit=None):
    """Output, or none and the reason."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        return None, f"took more than {limit:g} s"
    if done.returncode:
        said = [line for line in done.stderr.strip().splitlines() if "warn" not in line]
        return None, f"exit {done.returncode}: {said[-1][:200] if said else 'no message'}"
    return done.stdout, None


def must(command, environment=None):
    out, why = run(command, environment)
    if out is None:
        sys.exit(f"{' '.join(map(str, command))}: {why}")
    return out


def write_tokens(file):
    """A file of 16-bit tokens, as llm.c writes them."""
    draw, count = random.Random(1), 1 << 18
    header = array.array("i", [20240520, 1, count] + [0] * 253)
    tokens = array.array("H", (draw.randrange(SIZES["vocab_size"]) for _ in range(count)))
    file.write_bytes(header.tobytes() + tokens.tobytes())


def cpu_seconds(pid):
    """Seconds that a running process has used so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.base, self.data = work / "base", work / "tokens.bin"
        self.environment = {"OMP_NUM_THREADS": str(options.threads), "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
                            "HF_HUB_OFFLINE": "1"}
        self.peer_environment = {**self.environment, **mkl_environment(work)}
        write_tokens(self.data)
        made = must([options.peft, PEER, "--make", self.base, "--sizes", json.dumps(SIZES)])
        self.parameters = json.loads(made.splitlines()[-1])["parameters"]
        must([options.hecatec, f"--from-hf={self.base}", "-o", work / "base.moe"])

    def build(self, precision):
        o = self.options
        settings = [f"train.precision={precision}", f"train.tokens={o.sequences * SIZES['max_position_embeddings']}",
                    f"adapt.of={ADAPTED}", f"adapt.rank={o.rank}", f"adapt.alpha={2 * o.rank}", "train.optimizer.lr=1e-4",
                    "train.optimizer.clip=1", *o.set]
        flags = [word for each in settings for word in ("--set", each)]
        must([o.hecatec, "-w", *flags, self.work / "base.moe", "-o", self.work / f"ours-{precision}"])

    def ours(self, precision):
        """Lines of the log, CPU seconds behind the warming up, and the peak of a run."""
        o, log = self.options, self.work / "log.jsonl"
        log.unlink(missing_ok=True)
        command = [self.work / f"ours-{precision}", "train", "--load", self.base, "--data", self.data, "--steps", o.warm + o.steps, "--log",
                   log, "--threads", o.threads, "--set", "train.eval_steps=0"]
        child = subprocess.Popen(list(map(str, command)), env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL)
        warm = None
        while True:
            ended, status, took = os.wait4(child.pid, os.WNOHANG)
            if ended:
                break
            if warm is None and log.exists() and log.read_text().count("\n") >= o.warm:
                warm = cpu_seconds(child.pid)
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode or warm is None:
            sys.exit(f"{command}: exit {child.returncode}")
        lines = [json.loads(line) for line in log.read_text().splitlines() if "tokens_per_s" in line]
        return lines, took.ru_utime + took.ru_stime - warm, took.ru_maxrss * 1024

    def announced(self, precision):
        """The sum of what `info` lists, in bytes: finer than its total."""
        text = must([self.work / f"ours-{precision}", "info"])
        part = text[text.index("memory in training"):text.index("\n  total")]
        return sum(float(number) * UNIT[unit] for number, unit in re.findall(r" ([\d.]+) (KiB|MiB|GiB)$", part, re.MULTILINE))

    def measure_ours(self, precision):
        o = self.options
        lines, cpu, peak = self.ours(precision)
        return {"ms": statistics.median(line["ms"] for line in lines[o.warm:]), "cpu_ms": 1e3 * cpu / o.steps,
                "tokens": o.sequences * SIZES["max_position_embeddings"], "peak_mib": peak / 2**20,
                "announced_mib": self.announced(precision) / 2**20}

    def measure_peer(self, precision, way, steps, warm, limit=None):
        o, (experts, compiled, adapters, kept) = self.options, way
        out, why = run([o.peft, PEER, "--base", self.base, "--data", self.data, "--precision", precision, "--experts", experts,
                        "--compile", compiled, "--adapters", adapters, "--weights", kept, "--sequences", o.sequences, "--rank", o.rank,
                        "--alpha", 2 * o.rank, "--steps", steps, "--warm", warm, "--threads", o.threads],
                       self.peer_environment, limit)
        return (json.loads(out.splitlines()[-1]), None) if out else (None, why)


def name_of(way):
    experts, compiled, adapters, kept = way
    return f"{experts}{', compiled' if compiled else ''}, weights in {kept}, adapters in {adapters}"


def probe(bench, precision):
    """Each way to run PEFT with the time that it takes, or with the reason why it does not run; and the fastest."""
    found = []
    for way in WAYS[precision][:bench.options.ways]:
        result, why = bench.measure_peer(precision, way, 2, 1, bench.options.limit)
        found.append({"way": name_of(way), **(result or {"failed": why})})
        print(f"{precision}, PEFT, {name_of(way)}: {why or round(result['cpu_ms'])} ms of CPU", flush=True)
    known = [(each["cpu_ms"], way) for each, way in zip(found, WAYS[precision]) if "cpu_ms" in each]
    if not known:
        sys.exit(f"PEFT does not run in {precision}")
    return found, min(known)[1]


def measure(bench, precisions):
    rows = []
    for precision in precisions:
        bench.build(precision)
        found, best = probe(bench, precision)
        rows.append({"precision": precision, "probes": found, "best": best, "ours": [], "peft": []})
    for turn in range(bench.options.rounds):
        for row in rows:
            sides = {"ours": lambda: bench.measure_ours(row["precision"]),
                     "peft": lambda: bench.measure_peer(row["precision"], row["best"], bench.options.steps, bench.options.warm)[0]}
            for side in list(sides)[::1 if turn % 2 == 0 else -1]:
                result = machine.undisturbed(sides[side], 2, 0)
                row[side].append(result)
                print(f"round {turn + 1}: {row['precision']}, {side}: {result['ms']:.0f} ms, {result['cpu_ms']:.0f} ms of CPU, "
                      f"others {result['disturbed']} cores", flush=True)
    return rows


def ratios(row, key):
    each = [theirs[key] / ours[key] for ours, theirs in zip(row["ours"], row["peft"])]
    return statistics.median(each), min(each), max(each)


def rate(entries):
    return statistics.median(1e3 * entry["tokens"] / entry["ms"] for entry in entries)


def summarize(row):
    clock, cpu = ratios(row, "ms"), ratios(row, "cpu_ms")
    return {"precision": row["precision"], "ours": rate(row["ours"]), "peft": rate(row["peft"]), "way": name_of(row["best"]),
            "clock": clock, "cpu": cpu, "disturbed": max(entry["disturbed"] for side in ("ours", "peft") for entry in row[side])}


def fastest(rows):
    """Each side at the precision that is its best: the median of the rounds' own ratios."""
    ours, theirs = (min(rows, key=lambda row: statistics.median(entry["cpu_ms"] for entry in row[side])) for side in ("ours", "peft"))
    both = {"ours": ours["ours"], "peft": theirs["peft"]}
    return {"ours": ours["precision"], "peft": theirs["precision"], "clock": ratios(both, "ms"), "cpu": ratios(both, "cpu_ms")}


def fastest_text(best):
    return (f"At its fastest precision each, hecate in {best['ours']} and PEFT in {best['peft']}: hecate is {best['clock'][0]:.2f} times as "
            f"fast ({best['clock'][1]:.2f} to {best['clock'][2]:.2f}), by CPU seconds {best['cpu'][0]:.2f} times "
            f"({best['cpu'][1]:.2f} to {best['cpu'][2]:.2f}).")


def share_of_announced(row):
    return max(entry["peak_mib"] for entry in row["ours"]) / row["ours"][0]["announced_mib"]


def memory_text(row):
    ours, theirs = (max(entry["peak_mib"] for entry in row[side]) for side in ("ours", "peft"))
    announced = row["ours"][0]["announced_mib"]
    return (f"- {row['precision']}: hecate took at most {ours:,.0f} MiB, {share_of_announced(row):.3f} of the {announced:,.0f} MiB that it "
            f"announced; PEFT {theirs:,.0f} MiB.")


def table(summary):
    lines = ["| precision | hecate tok/s | PEFT tok/s | times as fast | least | most | by CPU seconds | least | most | PEFT's way | disturbed |",
             "| --- |" + " ---: |" * 8 + " --- | ---: |"]
    for row in summary:
        numbers = " | ".join(f"{value:.2f}" for value in (*row["clock"], *row["cpu"]))
        lines.append(f"| {row['precision']} | {row['ours']:,.0f} | {row['peft']:,.0f} | {numbers} | {row['way']} | {row['disturbed']:.2f} |")
    return lines


def markdown(result):
    options = result["options"]
    lines = [f"# Adapters next to PEFT: {machine.title(result['machine'])}", "",
             f"Real: measured on this machine by bench/tune/tune.py, programs in turn, medians of {options['rounds']} rounds of "
             f"{options['steps']} steps.", "",
             f"A Qwen3-MoE of {result['parameters'] / 1e6:.0f}M parameters (random weights), {options['sequences']} sequences of "
             f"{SIZES['max_position_embeddings']} tokens a step, adapters of rank {options['rank']} on attention and experts.", "",
             *table(result["summary"]), "", fastest_text(result["fastest"]), "",
             "Resident memory:", "", *map(memory_text, result["rows"]), "",
             "Ratios are of medians of steps within a round. Disturbed: cores that other programs used in the worst run.", "",
             "One run of each way of PEFT; the fastest by CPU seconds took part above:", "",
             "| precision | way | ms of CPU per step | peak MiB |", "| --- | --- | ---: | ---: |"]
    for row in result["rows"]:
        for each in row["probes"]:
            numbers = f"{each['cpu_ms']:.0f} | {each['peak_mib']:.0f}" if "cpu_ms" in each else f"{each['failed']} |"
            lines.append(f"| {row['precision']} | {each['way']} | {numbers} |")
    lines += [""] + [f"- {key}: {value}" for key, value in result["machine"].items()]
    return "\n".join(lines) + "\n"


def main():
    options = arguments()
    about = machine.describe({"torch": options.peft})
    for package in "transformers", "peft":
        about[package] = machine.output(options.peft, "-c", f"import {package}; print({package}.__version__)")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        rows = measure(bench, options.precisions.split(","))
    kept = {key: getattr(options, key) for key in ("sequences", "rank", "threads", "rounds", "steps", "warm", "set")}
    result = {"machine": about, "hecatec": must([options.hecatec, "--version"]).strip(), "options": kept, "sizes": SIZES,
              "parameters": bench.parameters, "rows": rows, "summary": [summarize(row) for row in rows], "fastest": fastest(rows)}
    print("\n".join([*table(result["summary"]), fastest_text(result["fastest"]), *map(memory_text, rows)]))
    name = f"{options.machine or machine.slug(about)}-tune"
    (options.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.out / f"{name}.md").write_text(markdown(result))
    if not all(0.98 <= share_of_announced(row) <= 1.02 for row in rows):
        sys.exit("a program's peak is not within 2 % of what it announces")


if __name__ == "__main__":
    main()
