"""packing.py TOKENIZER: a document in a sequence of whole ones is learned as if it were alone.
Environment: HECATEC, DATA."""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

END, T = "<|endoftext|>", 32
MODEL = """
dim V = 1024, T = 32, D = 32, H = 2, A = D / H, L = 2, E = 4, F = 32
block attention(x[T, D], d[T]) -> [T, D] {
  param wq[D, H, A], wk[D, H, A], wv[D, H, A], wo[H, A, D]
  return sdpa(rope(x @ wq), rope(x @ wk), x @ wv, causal = trueDOCUMENTS) @ wo
}
block relu_mlp(x[T, D]) -> [T, D] {
  param w1[D, F], w2[F, D]
  return relu(x @ w1) @ w2
}
moe sparse(x[T, D]) -> [T, D] {
  experts = E * relu_mlp
  router { score = softmax, topk = 2 }
}
model packed(ids[T]) -> [T, V] {
  param embed[V, D]
  x = embed[ids]
  d = documents(ids, ID)
  repeat i < L {
    x = x + attention(rmsnorm(x), d)
    x = x + sparse(rmsnorm(x))
  }
  return rmsnorm(x) @ embed
}
train {
  precision = fp64
  tokens = 128
  optimizer = adamw(1e-2)
}
parallel { microbatch = 2 }
data { format = llmc }
"""


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


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


def losses(model, name):
    pathlib.Path(f"{name}.moe").write_text(model)
    run(os.environ["HECATEC"], f"{name}.moe", "-o", name)
    run(f"./{name}", "train", "--data", "packed/train/a.lines.bin", "--steps", 5, "--save", f"{name}.safetensors")
    return [json.loads(run(f"./{name}", "eval", "--json", "--val", path, "--load", f"{name}.safetensors"))
            for path in ("packed/train/a.lines.bin", "alone.bin")]


def main(tokenizer):
    added = json.loads(tokenizer.read_text(encoding="utf-8"))["added_tokens"]
    end = {token["content"]: token["id"] for token in added}[END]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        drawn = random.Random(1)
        pathlib.Path("a.lines").write_text("".join(" ".join(drawn.choice("abcde") for _ in range(drawn.randint(1, T // 2 - 1))) + "\n"
                                                   for _ in range(200)))
        flags = ("--tokenizer", tokenizer, f"--end={END}", "--input=lines", "a.lines")
        run(os.environ["DATA"], "tokenize", "--out", "plain", *flags)
        run(os.environ["DATA"], "tokenize", "--out", "packed", f"--pack={T}", *flags)
        write_alone("alone.bin", tokens_of("plain/train/a.lines.bin"), end)
        model = MODEL.replace("ID", str(end))
        together, alone = losses(model.replace("DOCUMENTS", ", documents = d"), "masked")
        assert together["tokens"] == alone["tokens"], (together, alone)
        apart = abs(together["loss"] - alone["loss"])
        assert apart < 1e-12, (together, alone)
        together, alone = losses(model.replace("DOCUMENTS", ""), "seen")  # It sees others.
        assert abs(together["loss"] - alone["loss"]) > 1e-6, (together, alone)
        print(f"losses differ by {apart:.1e}, of {together['tokens']} tokens")


main(pathlib.Path(sys.argv[1]).resolve())
