#!/usr/bin/env python3
"""Adapters on one and several ranks. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

Any number of ranks learns the same adapters, where experts stay and where they move; all else keeps its bits; a step
sends the gradients of adapters alone; in bf16 frozen matrices are there once."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hf"))
import weights  # noqa: E402

STEPS = 6
UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 1e3, "MB": 1e6, "GB": 1e9}
ADAPT = ["adapt.of=*.wq,*.wv,*.experts.*.w1,*.experts.*.w2,last.experts.*,embed", "adapt.rank=2", "adapt.alpha=3"]
MODELS = {  # Ranks, settings.
    "one": (1, []),
    "ep2": (2, ["parallel.experts=ep"]),
    "ep4": (4, ["parallel.experts=ep"]),
    "fssdp2": (2, ["parallel.placement.memory=2"]),
    "fssdp4": (4, ["parallel.placement.reshard=every(2)", "parallel.placement.memory=2"]),
    "step4": (4, ["parallel.placement.lifetime=step", "parallel.placement.memory=2"]),
    "states": (2, ["parallel.dense=states", "parallel.experts=replicate"]),
    "units": (2, ["parallel.dense=shard", "parallel.experts=ep"]),
}


def build(name, model, *settings, sizes=()):
    ranks, own = MODELS[model]
    given = [f"parallel.microbatch={16 // ranks}", f"cluster.devices={ranks}", "train.precision=fp64", *own, *settings]
    options = [word for key in given for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", *sizes, *options, os.environ["MPI_TESTS"] + "/small.moe", "-o", name],
                   check=True)


def train(name, *more, ranks=1):
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    run = subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], "--save", f"{name}.st",
                          "--log", f"{name}.jsonl", "--set", f"train.steps={STEPS}", *more], capture_output=True, text=True,
                         timeout=120)
    if run.returncode:
        sys.exit(f"{name} {' '.join(more)}: ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return weights.read_numbers(f"{name}.st")


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def is_adapter(path):
    return path.endswith((".lora_a", ".lora_b"))


def exact():
    build("one", "one", *ADAPT)
    before = train("one", "--set", "train.optimizer.lr=0")
    first = train("one")
    check(any(map(is_adapter, first)) and not all(map(is_adapter, first)), "there are adapters, and others")
    for path, values in first.items():
        check((values != before[path]) == is_adapter(path), f"{path} is {'trained' if is_adapter(path) else 'frozen'}")
    for model, (ranks, _) in list(MODELS.items())[1:]:
        build(model, model, *ADAPT)
        for path, values in train(model, ranks=ranks).items():
            far = max(abs(a - b) for a, b in zip(values, first[path]))
            check(far <= (1e-9 if is_adapter(path) else 0), f"{model} has {path} as one rank ({far})")


def packed():
    """Bases that stay packed travel so, and each rank computes what it does with their values in bf16."""
    for base in "mxfp4", "fp8":
        settings = [*ADAPT, "train.precision=bf16"]
        build("made", "one", *settings, f"adapt.base={base}")
        train("made", "--set", "train.optimizer.lr=0")
        values = weights.read_numbers("made.st")
        for model in "one", "ep2", "fssdp2", "fssdp4":
            own = [] if model != "fssdp2" else ["parallel.experts=fsdp"]  # Replicas of all experts, alike with both.
            build("plain", model, *settings, *own)
            build("packed", model, *settings, *own, f"adapt.base={base}")
            found = [train(name, "--load", "made.st", ranks=MODELS[model][0]) for name in ("plain", "packed")]
            for path, own in found[1].items():
                check((own != values[path]) == is_adapter(path), f"{path} of {model} is frozen, or it is trained")
                far = max(abs(a - b) for a, b in zip(own, found[0][path]))
                check(far <= (1e-5 if model == "fssdp4" else 0), f"{path} of {model} is as with bf16 ({far})")
            if model.startswith("fssdp"):
                share = moved("packed") / moved("plain")
                print(f"{base}, {model}: {share:.0%} of the bytes")
                check(share < 0.9, f"{base} moves {share:.0%} of the bytes of bf16")


def moved(name, which="bytes"):
    """Bytes of experts, or of their gradients, that a rank received in all steps."""
    lines = map(json.loads, pathlib.Path(f"{name}.jsonl").read_text().splitlines())
    return sum(line["moved"][which] for line in lines if "moved" in line)


def gradients(*settings):
    """Bytes of experts' gradients, and of dense ones, that the busiest device gets."""
    options = [word for key in settings for word in ("--set", key)]
    text = subprocess.run([os.environ["HECATEC"], "-w", "--explain=comm", "-DD=256", "-DF=512", "-DA=128", *options,
                           os.environ["MPI_TESTS"] + "/small.moe"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^  gradients +[\d.]+ +([\d.]+) (\w+)", text, re.MULTILINE)
    check(found, f"gradients in {text}")
    return float(found[1]) * UNIT[found[2]]


def traffic():
    """Gradients of adapters alone travel, as announced, and in programs that bring all experts to all ranks."""
    settings = ["cluster.devices=4", "parallel.microbatch=4", "parallel.placement.memory=2", "train.precision=fp64"]
    share = gradients(*settings, "adapt.of=*.experts.*", "adapt.rank=1") / gradients(*settings)
    check(0 < share < 0.02, f"adapters' gradients are {share:.2%} of all")
    whole, some = "whole4", "some4"
    for name, adapt in (whole, []), (some, ["adapt.of=*.wq,*.experts.*", "adapt.rank=1"]):
        build(name, "ep4", "parallel.experts=fsdp", *adapt)
        train(name, ranks=4)
    share = moved(some) / moved(whole)  # Parameters, and no gradients worth mentioning.
    check(0.5 < share < 0.75, f"with adapters {share:.2%} of the bytes move")
    for name, adapt in (whole, []), (some, ["adapt.of=*.experts.*", "adapt.rank=1"]):
        build(name, "ep4", "parallel.experts=fsdp", *adapt, sizes=["-DD=256", "-DF=512"])
        train(name, "--set", "train.steps=2", ranks=4)
    share = moved(some, "gradient_bytes") / moved(whole, "gradient_bytes")
    print(f"gradients of adapters: {share:.2%} of the bytes that all gradients take, as ranks counted them")
    check(0 < share < 0.02, f"adapters' gradients are {share:.2%} of all, as ranks counted them")


MODEL = """
dim V = 256, T = 32, D = 256, F = 1024, E = 8, L = 4
block ffn(x[T, D]) -> [T, D] {
  param w1[D, F], w2[F, D]
  return gelu(x @ w1) @ w2
}
moe sparse(x[T, D]) -> [T, D] { experts = E * ffn }
model m(ids[T]) -> [T, V] {
  param embed[V, D], head[D, V]
  x = embed[ids]
  repeat i < L { x = x + sparse(rmsnorm(x)) }
  return rmsnorm(x) @ head
}
train { tokens = 64, precision = bf16 }
"""
ELEMENTS = 4 * 8 * 2 * 256 * 1024


def bf16(number):
    """To the nearest even; denormal numbers are zeros."""
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    bits = 0 if bits & 0x7fffffff < 0x800000 else (bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16
    return struct.unpack("<f", struct.pack("<I", bits))[0]


LAUNCH = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); " \
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"


def peak(*command):
    """The most memory that a process takes, in bytes; a small process starts it, since its own memory counts."""
    return int(subprocess.run([sys.executable, "-c", LAUNCH, *command], capture_output=True, text=True, check=True).stdout)


def tensors(name):
    return {path: memoryview(data).cast("f") for path, (_, _, data) in weights.read_safetensors(f"{name}.st").items()}


def memory():
    """In bf16 what is frozen is there once, in two bytes, or packed; programs take what they announce."""
    pathlib.Path("m.moe").write_text(MODEL)
    adapt = ["adapt.of=*.experts.*", "adapt.rank=4"]
    programs = {"base": [], "lora": adapt, "mxfp4": [*adapt, "adapt.base=mxfp4"], "fp8": [*adapt, "adapt.base=fp8"]}
    for name, settings in programs.items():
        options = [word for key in settings for word in ("--set", key)]
        subprocess.run([os.environ["HECATEC"], "-w", "-O1", *options, "m.moe", "-o", name], check=True)
    data = ["--data", os.environ["TEXT"], "--set", "train.eval_steps=0"]
    subprocess.run(["./base", "train", *data, "--steps", "1", "--save", "base.st"], check=True, stdout=subprocess.DEVNULL)
    # Bytes of what is frozen, in experts; MXFP4 has a byte of scales for 32 elements, 8 bits have 64 bytes for 32 rows.
    held = {"lora": 2 * ELEMENTS, "mxfp4": ELEMENTS * 17 / 32, "fp8": ELEMENTS * 33 / 32}
    for name, bytes_held in held.items():
        took = peak(f"./{name}", "train", *data, "--load", "base.st", "--steps", "3", "--save", f"{name}.st")
        text = subprocess.run([f"./{name}", "info"], capture_output=True, text=True, check=True).stdout
        number, unit = re.search(r"^  total +([\d.]+) (\w+)$", text, re.MULTILINE).groups()
        announced = float(number) * UNIT[unit]
        print(f"{name}: {took / 2**20:.1f} MiB of {announced / 2**20:.1f} MiB announced; all that is frozen is "
              f"{bytes_held / 2**20:.1f} MiB")
        check(announced < bytes_held + 3 * 2**23, f"what is frozen takes its bytes once, {name}")
        check(took <= 1.02 * announced, f"memory of {name} is as announced")
    base, tuned = tensors("base"), tensors("lora")
    for path, values in tuned.items():
        if is_adapter(path):
            check(path.endswith("lora_a") or any(values), f"{path} is trained")
        elif ".experts." in path or path == "head":
            check(all(values[i] == bf16(base[path][i]) for i in range(0, len(values), 61)), f"{path} is the base's copy")
        else:
            check(values == base[path], f"{path} is the base's")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for part in sys.argv[1:] or ["exact", "packed", "traffic", "memory"]:
        globals()[part]()
