"""packing.py TOKENIZER: a document in a sequence of whole ones is learned as if it were alone.
Environment: HECATEC, DATA."""
import json
import os
import pathlib
import random
import struct
import sys
import tempfile

from documents import END, end_of, model, run

T = 32


def tokens_of(path):
    raw = pathlib.Path(path).read_bytes()
    return struct.unpack(f"<{struct.unpack('<3i', raw[:12])[2]}H", raw[1024:])


def write_alone(path, tokens, end):
    """Each document in a sequence of its own."""
    padded, counts, document = [], [], []
    for token in tokens:
        document.append(token)
        if token == end:
            assert len(document) <= T
            padded += document + [end] * (T - len(document))
            counts += [0] + [1] * (len(document) - 1) + [0] * (T - len(document))
            document = []
    bits = bytearray((len(counts) + 7) // 8)
    for i, one in enumerate(counts):
        bits[i // 8] |= one << i % 8
    header = struct.pack("<4i", 20240520, 1, len(padded), T).ljust(1024, b"\0")
    pathlib.Path(path).write_bytes(header + struct.pack(f"<{len(padded)}H", *padded))
    pathlib.Path(f"{path}.weights").write_bytes(b"hcweight" + struct.pack("<q", len(counts)) + bits)


def losses(end, apart, name):
    pathlib.Path(f"{name}.moe").write_text(model(end, T, experts=4, tokens=128, lr=1e-2, apart=apart))
    run(os.environ["HECATEC"], "-w", "--set", "parallel.microbatch=2", f"{name}.moe", "-o", name)
    run(f"./{name}", "train", "--data", "packed/train/a.lines.bin", "--steps", 5, "--save", f"{name}.safetensors")
    return [json.loads(run(f"./{name}", "eval", "--json", "--val", path, "--load", f"{name}.safetensors"))
            for path in ("packed/train/a.lines.bin", "alone.bin")]


def main(tokenizer):
    end = end_of(tokenizer)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        drawn = random.Random(1)
        pathlib.Path("a.lines").write_text("".join(" ".join(drawn.choice("abcde") for _ in range(drawn.randint(1, T // 2 - 1))) + "\n"
                                                   for _ in range(200)))
        flags = ("--tokenizer", tokenizer, f"--end={END}", "--input=lines", "a.lines")
        run(os.environ["DATA"], "tokenize", "--out", "plain", *flags)
        run(os.environ["DATA"], "tokenize", "--out", "packed", f"--pack={T}", *flags)
        write_alone("alone.bin", tokens_of("plain/train/a.lines.bin"), end)
        together, alone = losses(end, True, "masked")
        assert together["tokens"] == alone["tokens"], (together, alone)
        apart = abs(together["loss"] - alone["loss"])
        assert apart < 1e-12, (together, alone)
        together, alone = losses(end, False, "seen")  # It sees others.
        assert abs(together["loss"] - alone["loss"]) > 1e-6, (together, alone)
        print(f"losses differ by {apart:.1e}, of {together['tokens']} tokens")


main(pathlib.Path(sys.argv[1]).resolve())
