#!/usr/bin/env python3
"""Groups of parameters on one and several ranks. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

Frozen parameters keep their bits, all others are learned; factors of the learning rate and decays are those that the
whole run could have, and of each layer its own; any number of ranks learns the same; a checkpoint knows which groups there were."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hf"))
import weights  # noqa: E402

STEPS = 6
FROZEN = ["embed", "layers.0.*", "*.sparse.experts.*.b1", "last.experts.*"]  # Some parameters of a set, and all.
MODELS = {  # Ranks, settings.
    "one": (1, []),
    "ep": (2, ["parallel.experts=ep"]),
    "fssdp": (4, ["parallel.placement.reshard=every(2)", "parallel.placement.memory=2"]),
    "shard": (2, ["parallel.dense=states", "parallel.experts=replicate"]),
    "units": (2, ["parallel.dense=shard", "parallel.experts=ep"]),
}


def build(name, groups, model="one"):
    ranks, settings = MODELS[model]
    given = [f"parallel.microbatch={16 // ranks}", f"cluster.devices={ranks}", "train.precision=fp64", *settings]
    given += [f"train.parameters.{group}" for group in groups]
    options = [word for key in given for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", *options, os.environ["MPI_TESTS"] + "/small.moe", "-o", name],
                   check=True)


def train(name, *more, ranks=1, code=0):
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    run = subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], "--save", f"{name}.st",
                          "--set", f"train.steps={STEPS}", *more], capture_output=True, text=True, timeout=120)
    if run.returncode != code:
        sys.exit(f"{name} {' '.join(more)}: ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run.stdout + run.stderr


def saved(name):
    return weights.read_numbers(f"{name}.st")


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def is_frozen(path):
    return path == "embed" or path.startswith(("layers.0.", "last.experts.")) or (
        ".sparse.experts." in path and path.endswith(".b1"))


def info(name):
    """Parameters that are frozen, and the kibibytes of parameters, gradients and states, as a program's info has them."""
    text = subprocess.run([f"./{name}", "info"], capture_output=True, text=True, check=True).stdout
    count = re.search(r"^  frozen .*\((\d+)\)$", text, re.MULTILINE)
    sizes = [re.search(rf"^  {line} +([\d.]+) (KiB|MiB)$", text, re.MULTILINE).groups()
             for line in ("parameters", "gradients", "AdamW states")]
    return int(count[1]) if count else 0, [float(number) * (1024 if unit == "MiB" else 1) for number, unit in sizes]


def frozen():
    groups = [f"{pattern}.frozen=true" for pattern in FROZEN] + ["*.router.lr_scale=0.1", "*.wq.decay=0.5"]
    build("one", groups)
    train("one", "--set", "train.optimizer.lr=0")
    before = saved("one")
    train("one")
    first = saved("one")
    count, (parameters, gradients, _) = info("one")
    elements = sum(len(values) for path, values in first.items() if is_frozen(path))
    check(count == elements, f"{elements} are frozen, info says {count}")
    check(parameters - gradients >= elements * 8 / 1024 - 0.1, "what is frozen has no gradients")
    for path, values in first.items():
        if path.endswith("select_bias"):
            continue  # It moves with loads.
        moves = not is_frozen(path)
        check((values != before[path]) == moves, f"{path} is {'trained' if moves else 'frozen'}")
    for model in ["ep", "fssdp", "shard", "units"]:
        build(model, groups, model)
        train(model, ranks=MODELS[model][0])
        for path, values in saved(model).items():
            far = max(abs(a - b) for a, b in zip(values, first[path]))
            check(far <= (0 if is_frozen(path) else 1e-9), f"{model} has {path} as one rank ({far})")


def rates():
    """A group of all parameters is another learning rate, or another decay, of the whole run."""
    build("plain", [])
    build("half", ["*.lr_scale=0.5"])
    train("half")
    train("plain", "--set", "train.optimizer.lr=0.00015")
    check(saved("half") == saved("plain"), "half the learning rate")
    build("less", ["*w*.decay=0.02", "*.v.decay=0.02", "embed.decay=0.02", "*router.decay=0.02"])
    train("less")
    train("plain", "--set", "train.optimizer.decay=0.02")
    less, plain = saved("less"), saved("plain")
    for path, values in less.items():
        check(values == plain[path], f"{path} decays less")


def by_layer():
    """Layers with rates of their own learn the same in one loop, by a table, as in code of their own.

    The norm that clips sums them in another order, and so do ranks."""
    groups = ["layers.0.*.lr_scale=0.5", "layers.1.*.lr_scale=2", "layers.*.wq.decay=0.5"]
    for model, near in ("one", 0), ("shard", 1e-9):
        build("table", groups, model)
        build("code", [*groups, "layers.0.*.optimizer=adamw"], model)
        for name in ("table", "code"):
            train(name, "--set", "train.optimizer.clip=none", ranks=MODELS[model][0])
        table, code = saved("table"), saved("code")
        far = max(abs(a - b) for path in table for a, b in zip(table[path], code[path]))
        check(far <= near, f"{model}: rates by layer ({far})")
    train("plain", "--set", "train.optimizer.clip=none")
    plain = saved("plain")
    check(max(abs(a - b) for path in table for a, b in zip(table[path], plain[path])) > 1e-6,
          "rates make a difference")


def resumed():
    """With its own groups a run goes on with the same bits; others are told apart, and may follow."""
    save = ["--checkpoint", "ck", "--set", "checkpoint.every=3", "--set", "checkpoint.keep=9"]
    train("one", *save)
    whole = saved("one")
    for folder in pathlib.Path("ck").glob(f"step-{STEPS}"):
        folder.rename("ck/later")
    train("one", *save, "--resume")
    check(saved("one") == whole, "a run that goes on has the same bits")
    said = train("half", *save, "--resume", code=1)
    check("train.parameters.embed was frozen = true there and is nothing here" in said, said)
    train("half", *save, "--resume", "--resume-changed", "--set", f"train.steps={STEPS + 2}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    frozen()
    rates()
    by_layer()
    resumed()
