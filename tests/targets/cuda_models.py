"""cuda_models.py EXAMPLES TEXT FOLDER: small versions of examples train on the emulator as on target cpu: the routing
of tokens is replayed from there, and the losses and norms of all steps agree to 1e-4, in bf16 to 2^-7.
Saved models evaluate alike.
In a step the host waits for nothing but the report of the step before; a loss that is not finite stops updates all the same.

Environment: as of cuda.py, which this is a part of.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys
import zlib

from cuda import EVALUATE, compare, compile_for_device, run, weights, words

ONE_RANK = ("--set=cluster.nodes=1", "--set=cluster.devices=1", "--set=train.precision=fp32")
BYTES = ("--set=data.format=bytes", "-DV=256", "--set=train.schedule.warmup=1", "--set=train.optimizer.lr=2e-3")
# Widths that no vector of 16 bytes divides: tensors begin anywhere, and their last elements are fewer.
ODD = ("-DD=30", "-DH=3", "-DT=13", "-DL=2", "-DF=23", "--set=train.tokens=39", "--set=train.schedule.warmup=1", "--set=parallel.microbatch=1")
# Example, and behind a + a change in it -> steps, tokens of a step, settings that make it small.
MODELS = {
    "tiny": (20, 64, ("-DD=32", "-DT=32", "-DL=2", "-DF=24", "--set=parallel.microbatch=1")),
    "tiny+muon": (6, 64, ("-DD=32", "-DT=32", "-DL=2", "-DF=24", "--set=parallel.microbatch=1", "--set=train.optimizer=muon(lr = 2e-2)")),
    "deepseek-v3-like": (10, 32, ("-DD=16", "-DT=16", "-DL=2", "-Ddense_layers=1", "-Ddense_F=24", "-DH=2", "-DN=6", "-DR=4", "-DU=8", "-DQ=24", "-DC=24", "-DE=16", "-DF=12", "--set=parallel.logits=10", *BYTES, *ONE_RANK)),
    "tiny+adapters": (10, 64, ("-DD=32", "-DT=32", "-DL=2", "-DF=24", "--set=parallel.microbatch=1", "--set=adapt.of=*.attention.*,*.experts.*", "--set=train.optimizer.lr=1e-2")),
    "tiny+dropped": (10, 64, ("-DD=32", "-DT=32", "-DL=2", "-DF=24", "--set=parallel.microbatch=1", "--set=adapt.of=*.attention.*", "--set=adapt.dropout=0.1", "--set=train.optimizer.lr=1e-2")),
    "tiny-student": (10, 64, ("-DD=32", "-DT=32", "-DF=24", "-Dtemperature=1.5", "--set=parallel.microbatch=1", "--set=data.order=random")),
    "tiny+odd": (10, 39, (*ODD, "--set=train.optimizer.lr=1e-2")),
    "tiny+odd, bf16": (3, 39, (*ODD, "--set=train.optimizer.lr=2e-3", "--set=train.precision=bf16")),
    "gpt-moe-s": (12, 64, ("-DD=24", "-DT=32", "-DL=2", "-DH=2", "-DE=6", "--set=parallel.recompute=all", *BYTES, *ONE_RANK)),
}


def teacher_of(name, text, folder):
    """The option of a file that some teacher has written of the text, for models that want one."""
    if name != "tiny-student":
        return ()
    with open(text, "rb") as file:
        tokens = file.read()
    draw, path = random.Random(1), f"{folder}/{name}.teacher"
    with open(path, "wb") as file:
        file.write(struct.pack("<8s2IQ4I24x", b"hecteach", 1, 5, len(tokens), 256, zlib.crc32(tokens), 2, 4))
        for i in range(len(tokens)):  # Often that of the text is likely; of some tokens nothing is known, or less.
            ids = [tokens[(i + 1) % len(tokens)], *(draw.randrange(256) for _ in range(4))]
            known = [i % 7 != 0 and draw.random() < 0.9 for _ in ids]
            file.write(struct.pack("<5H5f", *ids, *(-3 * draw.random() if k else -float("inf") for k in known)))
    return "--teacher", path


def train(program, text, steps, tokens, *arguments):
    log = program + ".jsonl"
    if os.path.exists(log):
        os.remove(log)
    output = run(program, "train", "--data", text, "--steps", str(steps), "--set", f"train.tokens={tokens}", "--set",
                 f"log.jsonl={log}", "--save", program + ".st", *EVALUATE, *arguments)
    with open(log, encoding="utf-8") as file:
        return output, [json.loads(line) for line in file]


def check(name, example, text, folder):
    steps, tokens, smaller = MODELS[name]
    cpu, cuda = f"{folder}/{name}-cpu", f"{folder}/{name}-cuda"
    run(*words("HECATEC"), "-w", "-O1", "-o", cpu, *smaller, example)
    compile_for_device(example, cuda, "-w", *smaller)
    ids = f"{folder}/{name}.ids"
    teacher = teacher_of(name, text, folder)
    expected = train(cpu, text, steps, tokens, "--record-ids", ids, *teacher)[1]
    output, actual = train(cuda, text, steps, tokens, "--route", "ids:" + ids, "--profile", *teacher)
    if len(expected) != steps or not re.search("waits for device", output):
        sys.exit(f"{name}: {len(expected)} steps\n{output}")
    tolerance = 2.0**-7 if "bf16" in name else 1e-4  # As in cuda.py.
    for a, b in zip(expected, actual, strict=True):
        for key in ("loss", "cross_entropy", "aux", "grad_norm"):
            compare([a[key]], [b[key]], tolerance, f"{name}, step {a['step']}, {key}")
        for key in a.get("losses", ()):
            compare([a["losses"][key]], [b["losses"][key]], 1e-4, f"{name}, step {a['step']}, loss {key}")
    if "muon" in name:
        check_muon(name, cpu, cuda, text, tokens)
    if not expected[-1]["loss"] < expected[0]["loss"]:
        sys.exit(f"{name} learns nothing: {expected}")
    losses = [run(program, "eval", "--data", text, "--sequences", "4", "--load", cuda + ".st", *teacher) for program in (cpu, cuda)]
    numbers = [[float(n) for n in re.findall(r"\d+\.\d+", text)] for text in losses]
    compare(numbers[0], numbers[1], tolerance, f"{name}, eval")


def check_muon(name, cpu, cuda, text, tokens):
    """Single steps are compared with doubles in tests/runtime/muon_test.c. Here parameters, to ten times what was measured; and its room is
    listed before it is taken."""
    saved = weights.read_numbers(cuda + ".st")
    for tensor, numbers in weights.read_numbers(cpu + ".st").items():
        compare(numbers, saved[tensor], 1e-5, f"{name}, {tensor}")
    for program in (cpu, cuda):
        if "Muon's scratch" not in run(program, "info") or "Muon" in run(program, "info", "--set", "train.optimizer=adamw"):
            sys.exit(f"{program} does not list Muon's scratch as it is")


def check_waits(program, text, tokens):
    output = run(program, "train", "--data", text, "--steps", "4", "--set", f"train.tokens={tokens}", "--profile")
    found = re.search(r"part of it: waits for device +(\d+) .*\n((?:  .*\n)*)", output)
    lines = [" ".join(line.split()[:6]) for line in found[2].splitlines()]
    if found[1] != "1" or lines != ["the report of the step before"]:
        sys.exit(f"{program} waits in a step:\n{output}")


def spoil(path, spoilt, token):
    """Copies parameters; the vector of a token is no number."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    size = struct.unpack("<Q", data[:8])[0]
    embed = json.loads(data[8 : 8 + size])["embed"]
    width = 4 * embed["shape"][1]
    at = 8 + size + embed["data_offsets"][0] + ord(token) * width
    data[at : at + width] = struct.pack("<f", float("nan")) * (width // 4)
    with open(spoilt, "wb") as file:
        file.write(data)


def fail(program, text, tokens, load):
    """Trains until the token is drawn: the complaint, the steps until then and what was saved."""
    log, saved = program + ".failed.jsonl", program + ".failed.st"
    for path in (log, saved):
        if os.path.exists(path):
            os.remove(path)
    done = subprocess.run([program, "train", "--data", text, "--steps", "20", "--set", f"train.tokens={tokens}", "--set",
                           f"log.jsonl={log}", "--load", load, "--save", saved],
                          capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 1:
        sys.exit(f"{program}: status {done.returncode}\n{done.stdout}{done.stderr}")
    with open(log, encoding="utf-8") as file:
        steps = [json.loads(line)["step"] for line in file]
    return re.search(r"error: (step .*) \(", done.stderr)[1], steps, weights.read_numbers(saved)


def check_failure(programs, text, tokens, folder):
    spoil(programs[0] + ".st", folder + "/spoilt.st", ";")
    cpu, cuda = (fail(program, text, tokens, folder + "/spoilt.st") for program in programs)
    if cpu[:2] != cuda[:2] or not cpu[1]:
        sys.exit(f"they fail differently: {cpu[:2]} {cuda[:2]}")
    for name, numbers in cpu[2].items():
        sound = [[n if n == n else 0 for n in values] for values in (numbers, cuda[2][name])]
        compare(*sound, 1e-3, f"{name}, after a failure")


def main(examples, text, folder):
    os.makedirs(folder, exist_ok=True)
    for name in MODELS:
        check(name, f"{examples}/{name.split('+')[0]}.moe", text, folder)
    tokens = MODELS["tiny"][1]
    check_waits(f"{folder}/tiny-cuda", text, tokens)
    check_failure([f"{folder}/tiny-{target}" for target in ("cpu", "cuda")], text, tokens, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
