"""graphs.py [--count N] [--seed S] [--seconds N] [--keep DIR]: random models (random_model.py), N of them from
seed S on, in double precision:

  compiles   hecatec takes each, or says "not yet"; the C has no warning
  values     losses and norms of a few steps, as without any pass that a program could do without
  gradients  --check-grad, against differences of the loss
  ranks      every fourth model also on two ranks, by a policy in turn: the values of one rank

A model that fails is kept as DIR/SEED.moe; `graphs.py --seed SEED --count 1` repeats it. Exit code 0: none
failed; 1: one did. Environment: HECATEC; TEXT; RANKS (ranks.sh), without which all run on one rank."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import random_model

STEPS = 4
SHOWN = 1000  # The end of a command's output.
SEQUENCES = 4  # In an iteration, over all ranks.
NEEDED = "check-shapes,group-experts,inline,differentiate"
# By how experts are spread: one rank, ranks with experts that stay, ranks with experts that move.
PLAIN = {
    "one": f"{NEEDED},select-kernels,place-buffers",
    "stay": f"{NEEDED},distribute-experts,distribute-dense,gather-dense,select-kernels,place-buffers",
    "move": f"{NEEDED},distribute-experts,distribute-dense,shard,materialize,gather-dense,verify-movement,select-kernels,place-buffers",
}
POLICIES = ["fssdp", "ep", "replicate", "hecate", "fsdp", "flexmoe", "llep"]
WARNINGS = "-Wall -Wextra -Werror"
CLOSE = {"loss": 1e-9, "cross_entropy": 1e-9, "aux": 1e-9, "grad_norm": 1e-6}  # Relative.
GRADIENT_SEEDS = (1, 2, 3)  # Beside a kink differences are wrong: a gradient is if it fails with each.


class Failed(Exception):
    pass


class NotYet(Exception):
    pass


def run(command, limit=120):
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=limit,
                              env=os.environ | {"OMP_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}\nstill runs after {limit} s") from error
    if done.returncode == 1 and ": not yet: " in done.stdout:
        raise NotYet(done.stdout)
    if done.returncode:  # The error may stand far before the end of a long table.
        errors = "".join(line for line in done.stdout.splitlines(True) if ": error: " in line)
        raise Failed(f"{' '.join(command)}\n{errors}{done.stdout[-SHOWN:]}exit code {done.returncode}")
    return done.stdout


class Model:
    """A random model, and its programs."""

    def __init__(self, folder, seed):
        self.folder, self.seed = pathlib.Path(folder), seed
        self.source = self.folder / f"{seed}.moe"
        self.source.write_text(random_model.model(seed))

    def settings(self, policy):
        """Settings for one rank, where `policy` is None, else for two."""
        chosen = {"train.precision": "fp64", "train.tokens": 8 * SEQUENCES * (1 + self.seed % 2),
                  "parallel.microbatch": SEQUENCES // (2 if policy else 1)}
        if self.seed % 3 == 0:
            chosen["parallel.logits"] = 5
        if policy:
            chosen |= {"cluster.devices": 2, "parallel.experts": policy,
                       "parallel.dense": ["replicate", "states", "shard"][self.seed // 4 % 3]}
        if policy == "fssdp":
            chosen["parallel.placement.rematerialize"] = ["true", "false"][self.seed // 32 % 2]
        return [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]

    def build(self, name, policy=None, plain=False):
        kind = "one" if not policy else "stay" if policy in ("ep", "replicate") else "move"
        compiler = "mpicc" if policy else "gcc"
        run([os.environ["HECATEC"], "-w", "-O0", f"--cc={compiler} {WARNINGS}",
             *self.settings(policy), *([f"--passes={PLAIN[kind]}"] if plain else []), self.source,
             "-o", self.folder / name])

    def train(self, name, *more, ranks=1):
        launch = ["sh", os.environ["RANKS"], ranks] if ranks > 1 else []
        return run([*launch, self.folder / name, "train", "--data", os.environ["TEXT"], *more])

    def values(self, name, *more, ranks=1):
        """The log of each step."""
        log = self.folder / f"{name}.log"
        log.unlink(missing_ok=True)
        self.train(name, "--steps", STEPS, "--log", log, *more, ranks=ranks)
        return [json.loads(line) for line in log.read_text().splitlines()]

    def compare(self, name, ranks=1):
        """With the values of the program `one`; as rounding may exchange experts of equal score, a second time
        with its choice of experts."""
        differs = difference(self.values("one"), self.values(name, ranks=ranks))
        if differs and "moe sparse" in self.source.read_text():
            ids = self.folder / "ids"
            one = self.values("one", "--record-ids", ids)
            differs = difference(one, self.values(name, f"--route=ids:{ids}", ranks=ranks))
        if differs:
            raise Failed(f"{name}: {differs}")

    def check_gradients(self):
        for seed in GRADIENT_SEEDS:
            try:
                return self.train("one", "--check-grad", 1, "--seed", seed)
            except Failed as failed:
                last = failed
                if "every small change of an element changes the routing" in str(failed):
                    return None  # Experts of equal scores: there is no gradient.
        raise last

    def check(self):
        self.build("one")
        self.build("plain", plain=True)
        self.compare("plain")
        self.check_gradients()
        if self.seed % 4 == 0 and "RANKS" in os.environ:
            policy = POLICIES[self.seed // 4 % len(POLICIES)]
            self.build("two", policy)
            self.compare("two", ranks=2)
            if self.seed % 16 == 0:
                self.build("two-plain", policy, plain=True)
                self.compare("two-plain", ranks=2)


def difference(one, other):
    """The first difference of two logs; None: there is none."""
    if len(one) != len(other) or len(one) != STEPS:
        return f"{len(one)} and {len(other)} steps"
    for a, b in zip(one, other):
        for key, bound in CLOSE.items():
            scale = max(abs(a[key]), abs(b[key]), 1e-12)
            if not (math.isfinite(scale) and abs(a[key] - b[key]) <= bound * scale):
                return f"{key} of step {a['step']}: {a[key]!r}, as one with all passes, and {b[key]!r}"
    return None


def arguments():
    parser = argparse.ArgumentParser(description="random models")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no model after them")
    parser.add_argument("--keep", default="graphs-failed", help="folder for models that fail")
    return parser.parse_args()


def main():
    options, start = arguments(), time.monotonic()
    keep, checked, refused, failed = pathlib.Path(options.keep), 0, 0, 0
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() - start > options.seconds:
            break
        checked += 1
        with tempfile.TemporaryDirectory() as folder:
            model = Model(folder, seed)
            try:
                model.check()
            except NotYet:
                refused += 1
            except Failed as error:
                failed += 1
                keep.mkdir(parents=True, exist_ok=True)
                (keep / model.source.name).write_bytes(model.source.read_bytes())
                print(f"{keep / model.source.name}: {error}\n"
                      f"again: {sys.argv[0]} --seed {seed} --count 1", flush=True)
    print(f"{checked} models, {refused} of them not yet, {failed} failed")
    sys.exit(1 if failed or not checked else 0)


if __name__ == "__main__":
    main()
