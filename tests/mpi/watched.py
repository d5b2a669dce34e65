"""watched.py MODEL.moe: the log of a run whose experts move says what was placed, and adds up.

Loads before placement follow from tokens and owners; every pick is computed somewhere; the imbalance is that
of the lists; replicas are none of the owners; no rank waits longer than it runs. Traces have a track per lane, and arrows. Environment: HECATEC; RANKS; TEXT.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

RANKS, STEPS, EVERY = 4, 6, 2  # Ranks, steps, and every how many of these there are layers.
EVERY_LINE = 3  # How many steps there are between lines.


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def imbalance(rows):
    return max(rows) * len(rows) / sum(rows)


def check_layer(layer, tokens, picks):
    before = [sum(n for n, owner in zip(tokens, layer["owner"]) if owner == rank) for rank in range(RANKS)]
    check(layer["before"] == before, f"before is {before}: {layer}")
    check(sum(layer["after"]) == sum(tokens) == picks, f"{picks} picks are computed: {layer}")
    check(layer["dropped"] == 0 and layer["waves"] >= 1, f"none is dropped: {layer}")
    check(all(layer["owner"][expert] != rank for expert, rank in layer["replicas"]), f"replicas: {layer}")
    check(0 <= layer["exposed_ms"], f"waits: {layer}")


def check_routers(line, number):
    """The worst layer is told of each step, all layers of some."""
    check(("routers" in line) == (number in (EVERY_LINE, 2 * EVERY_LINE)), f"routers of each layer, step {number}")
    if "routers" not in line or "layers" not in line:
        return
    tokens, of = line["tokens_per_expert"]["sparse"], line["routers"]["sparse"]
    entropy = [-sum(n / sum(row) * math.log(n / sum(row)) for n in row if n) / math.log(len(row)) for row in tokens]
    for told, expected in (of["load"], [imbalance(row) for row in tokens]), (of["entropy"], entropy), (of["dead"], [row.count(0) for row in tokens]):
        check(len(told) == len(expected) and all(abs(a - b) < 1e-9 for a, b in zip(told, expected)), f"routers: {told}, not {expected}")
    check(line["router"] == {"load": max(of["load"]), "entropy": min(of["entropy"]), "dead": sum(of["dead"])}, "the worst layer")


def check_output(output, run):
    """Ranks and devices are named, and lines are whole behind a launcher."""
    check(f"ranks: {RANKS} on {run['nodes']} node{'s' * (run['nodes'] > 1)}, experts: {run['policy']}\n" in output, output)
    check(re.search(r"^device: cpu \(\w+\), \d+ threads? a rank, fp32$", output, re.MULTILINE), output)
    size = re.search(rf"^step: (\d+) tokens = {RANKS} ranks x (\d+) x (\d+) sequences of (\d+)$", output, re.MULTILINE)
    tokens, *factors = map(int, size.groups())
    check(tokens == run["tokens"] == RANKS * math.prod(factors), "tokens of a step")
    lines = re.findall(rf"^step \d/{STEPS} \| loss .*$", output, re.MULTILINE)
    check(len(lines) == 3 and all(re.search(r" \| load .* \| wait .* \| rank load .* \| replicas \d+ .* \| aux \S+$", line) for line in lines), lines)


def check_line(line, number, run):
    check(line["step"] == number, f"line {number} is of its step")
    check(("run" in line) == (number == 1), "the first line has the header, and no other")
    check(("layers" in line) == (number % EVERY == 0), "every second line has the layers")
    check_routers(line, number)
    check(line["watch"]["time"] > 1e9 and 0 <= line["watch"]["waited"] <= 1, f"watch: {line['watch']}")
    if "layers" not in line:
        return
    layers = line["layers"]["sparse"]
    for layer, tokens in zip(layers, line["tokens_per_expert"]["sparse"]):
        check_layer(layer, tokens, run["tokens"] * run["sets"]["sparse"]["topk"])
    for when in "before", "after":
        check(abs(line["devices"][when] - max(imbalance(layer[when]) for layer in layers)) < 1e-9, f"{when} is the worst")
    check(line["devices"]["replicas"] == sum(len(layer["replicas"]) for layer in layers), "replicas are counted")
    check(len(line["ranks"]) == RANKS and all(0 <= rank["waited_ms"] <= rank["ms"] for rank in line["ranks"]), "ranks")
    slowest = min(range(RANKS), key=lambda rank: line["ranks"][rank]["waited_ms"])
    check(line["watch"]["slowest"] == slowest, f"rank {slowest} waits least")


def check_traces():
    """Each lane is a track whose lists follow each other; every message that leaves a rank arrives at another."""
    ends, slices = {"s": {}, "f": {}}, {}
    for rank in range(RANKS):
        with open("trace" + (f".{rank}" if rank else ""), encoding="utf-8") as file:
            for event in json.load(file)["traceEvents"]:
                check(event["pid"] == rank, "a file is of a rank")
                if event["ph"] in ends:
                    check(event["id"] not in ends[event["ph"]], f"one arrow of this name: {event}")
                    ends[event["ph"]][event["id"]] = event
                elif event["ph"] == "X" and event["tid"] > 0:
                    slices.setdefault((rank, event["name"]), []).append((event["ts"], event["ts"] + event["dur"]))
    check(len(ends["s"]) > 100 and ends["s"].keys() == ends["f"].keys(), "what leaves arrives")
    check(all(ends["s"][name]["pid"] != ends["f"][name]["pid"] for name in ends["s"]), "arrows go to others")
    for rank in range(RANKS):
        saved = sorted(name for of, name in slices if of == rank and name.startswith("checkpoint of step "))
        check(len(saved) >= 2, f"rank {rank} has saved: {saved}")
    for name in "rows", "counts", "gather experts", "reduce experts", "sum what all have":
        check(all((rank, name) in slices for rank in range(RANKS)), f"there is a track {name}")
    for track, spans in slices.items():
        check(all(before[1] <= after[0] + 1e-3 for before, after in zip(spans, spans[1:])), f"lists of {track} follow each other")


def main():
    hecatec, ranks, text = (os.environ[name] for name in ("HECATEC", "RANKS", "TEXT"))
    model = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        subprocess.run([hecatec, model, "-o", "four", "--set", f"cluster.devices={RANKS}", "--set", "parallel.experts=fssdp"],
                       check=True)
        told = subprocess.run([ranks, str(RANKS), "./four", "train", "--data", text, "--steps", str(STEPS), "--log", "run.jsonl",
                        "--trace=trace", "--checkpoint", "ck", "--set", "checkpoint.every=2", "--set", f"log.loads={EVERY}", "--set", f"log.every={EVERY_LINE}"], check=True, stdout=subprocess.PIPE, text=True)
        with open("run.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        run = lines[0]["run"]
        check((run["ranks"], run["policy"], run["program"]) == (RANKS, "fssdp", "tiny"), f"the header: {run}")
        check(run["peak"] > 1e9 and run["sets"]["sparse"] == {"layers": 4, "experts": 8, "topk": 2}, f"the header: {run}")
        check(len(lines) == STEPS, "a line a step")
        for number, line in enumerate(lines, 1):
            check_line(line, number, run)
        check_output(told.stdout, run)
        check_traces()
        last = lines[-1]["devices"]
        check(1 <= last["after"] < last["before"], f"placement balances: {last}")


if __name__ == "__main__":
    main()
