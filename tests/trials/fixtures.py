"""A small model, the programs made of it, and one right file of every kind that something reads."""
import os
import re
import struct
import subprocess

TEXT = b"".join(b"%d bottles of beer on the wall, take one down; " % n for n in range(400, 0, -1))

MODEL = """dim V = 256, T = 16, D = 16, L = 2, H = 2, A = 8, E = 4, F = 16
block attention(x[T, D]) -> [T, D] {
  param wq[D, H, A], wk[D, H, A], wv[D, H, A], wo[H, A, D]
  return sdpa(rope(x @ wq), rope(x @ wk), x @ wv, causal = true) @ wo
}
block ffn(x[T, D]) -> [T, D] {
  param w1[D, F], w2[F, D]
  return gelu(x @ w1) @ w2
}
moe sparse(x[T, D]) -> [T, D] {
  experts = E * ffn
  router { topk = 2 }
}
model m(ids[T]) -> [T, V] {
  param embed[V, D]
  x = embed[ids]
  repeat i < L { x = x + sparse(rmsnorm(x + attention(x))) }
  return rmsnorm(x) @ embed
}
train { steps = 2, tokens = 64 }
parallel { microbatch = 2 }
"""
IMPORTING = 'import "part.moe"\n' + MODEL[MODEL.index("model m("):]
PART = MODEL[:MODEL.index("model m(")]
TWO = ["--set", "cluster.devices=2"]
TOPOLOGY = b"# each rank a node\n0\n1\n"
PRETEND = b"products  400e12 # FLOP/s\nattention 400e12\nmemory    6e12\ncall      1e-7\n"
BLOCKING = b"hecate-blocking 1 portable\n" + b"".join(
    name + b" nn_rows=192 nt_rows=384 tn_rows=768 team=18\n" for name in (b"f32", b"f64", b"bf16"))
STAGES = ["parse", "check-shapes", "graph", "group-experts", "inline", "simplify", "differentiate", "recompute", "distribute-experts",
          "fuse-elementwise", "shard", "materialize", "overlap", "fuse-epilogue", "select-kernels", "place-buffers"]


def one(tools):
    """The program of one rank."""
    return tools.program("one", MODEL)


def two(tools):
    """The program of two ranks, whose experts move."""
    return tools.program("two", MODEL, *TWO)


def slow(tools, ranks):
    """A program that takes some time to start, to train and to save: a million parameters."""
    sizes = ["-D", "D=64", "-D", "F=256", "-D", "E=16", "-D", "A=32", "--set", "train.steps=100000"]
    return tools.program(f"slow{ranks}", MODEL, *sizes, "--set", f"cluster.devices={ranks}", "--set", f"train.tokens={32 * ranks}")


def tokens(count=2000):
    """Text as an llm.c file."""
    head = struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0")
    return head + struct.pack(f"<{count}H", *TEXT[:count])


def run(tools, *command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=tools.shared,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})


def recorded(tools, flag, name, program=one):
    """The file that a run writes with `flag`."""
    def make(path):
        data = tools.made("text", lambda text: text.write_bytes(TEXT))
        run(tools, program(tools), "train", "--data", str(data), "--steps", "2", flag, f"{path}.new")
        os.rename(f"{path}.new", path)
    return tools.made(name, make).read_bytes()


def slow_weights(tools):
    """The file that the slow program of one rank saves."""
    return recorded(tools, "--save", "slow.st", lambda known: slow(known, 1))


def compiled(tools, name, *flags):
    """The file that hecatec writes as -o, or as the flag that ends with '='."""
    def make(path):
        source = tools.made("source.moe", lambda text: text.write_text(MODEL))
        run(tools, tools.hecatec, "-w", *flags[:-1], f"{flags[-1]}{path}.new", str(source))
        os.rename(f"{path}.new", path)
    return tools.made(name, make).read_bytes()


def stage(tools, name, devices):
    """The IR after a stage, without most of its locations."""
    text = compiled(tools, f"{name}.{devices}", "--set", f"cluster.devices={devices}", f"--compile-to={name}", "-o")
    text = re.sub(rb" loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", b"", text)
    return re.sub(rb"(?m)^#loc.*\n", b"", text)


def zstd(data):
    """A zstd frame of raw blocks: RFC 8878, 3.1.1."""
    data = data[:1 << 16]
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data)) + (1 | len(data) << 3).to_bytes(3, "little") + data
