"""emitted.py MODEL [FLAG...]: the emitted program computes what the reference interpreter does. One step in double
precision, on one sequence, from the interpreter's parameters and tokens: losses, and the gradient norm that AdamW
without momentum would see. Environment: HECATEC, INTERPRET."""
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

TOLERANCE = 1e-12


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def write_parameters(like, numbers, path):
    """The file `like`, with the interpreter's numbers: experts lie in files of their own name."""
    data = like.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head, body = json.loads(data[8:8 + size]), bytearray(data[8 + size:])
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        expert = re.search(r"experts\.(\d+)\.", name)
        generic = re.sub(r"experts\.\d+\.", "experts.{e}.", name)
        own = [key for key in numbers if key in (f"param {generic}", f"param {generic}[0]")]
        count = (end - begin) // 8
        at = int(expert[1]) * count if expert else 0
        body[begin:end] = struct.pack(f"<{count}d", *numbers[own[0]][at:at + count])
    path.write_bytes(data[:8 + size] + body)


def write_teacher(tokens, numbers, path):
    ids, log_probs = ([*map(float, numbers[f"teacher {name}"])] for name in ("ids", "log_probs"))
    each = len(ids) // len(tokens)
    head = struct.pack("<8s2IQ4I", b"hecteach", 1, each, len(tokens), 256, zlib.crc32(tokens), 2, 4)
    rows = [struct.pack(f"<{each}H{each}f", *map(int, ids[i:i + each]), *log_probs[i:i + each])
            for i in range(0, len(ids), each)]
    path.write_bytes(head.ljust(64, b"\0") + b"".join(rows))


def main():
    hecatec, model, *flags = os.environ["HECATEC"], *sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(hecatec, "--compile-to=place-buffers", "-o", folder / "m.mlir", *flags, model)
        text = run(os.environ["INTERPRET"], "--all", folder / "m.mlir")
        numbers = {line.split("\t")[0]: [float(word) for word in line.split("\t")[1].split()] for line in text.splitlines()}
        run(hecatec, "-o", folder / "m", *flags, model)
        tokens = bytes(int(token) for token in numbers["tokens"])
        (folder / "data").write_bytes(tokens)
        write_teacher(tokens, numbers, folder / "teacher")
        step = [folder / "m", "train", "--data", folder / "data", "--steps", 1, "--teacher", folder / "teacher"]
        run(*step, "--save", folder / "any")
        write_parameters(folder / "any", numbers, folder / "own")
        run(*step, "--load", folder / "own", "--log", folder / "log")
        lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    found = next(line for line in lines if "loss" in line)
    norm = math.sqrt(sum(x * x for key, all in numbers.items() if key.startswith("grad ") for x in all))
    found.update(found["losses"])
    want = {"far": numbers["named 0"][0], "soft": numbers["named 1"][0], "cross_entropy": numbers["cross_entropy"][0], "aux": numbers["auxiliary"][0], "grad_norm": norm}
    print({key: (found.get(key), value) for key, value in want.items()})
    wrong = [key for key, value in want.items() if not abs(found[key] - value) <= TOLERANCE * abs(value)]
    sys.exit(f"different: {', '.join(wrong)}" if wrong else 0)


main()
