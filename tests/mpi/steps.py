#!/usr/bin/env python3
"""Replicas that live for a step of several iterations (parallel.placement.lifetime = step), in double precision:
four ranks have the losses and norms of one, and programs whose emitted code moves something at another time
have others. Planted are: gradients that are reduced before the last iteration, slots of gradients that are
released before it, and parameters of replicas that stay as they were in the step before. HECATEC, RANKS,
MPI_TESTS, TEXT, MPICC, LIBRARIES and EMITTED_CFLAGS come from the environment."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from units import build

RANKS, STEPS, TOKENS = 4, 6, 256  # A step has four iterations of 4 sequences of 16.
CLOSE = 1e-10  # Sums of 256 terms in another order.
MODEL = ["train.precision=fp64", "parallel.microbatch=1"]
STEP = [f"cluster.devices={RANKS}", "cluster.nodes=1", "parallel.experts=hecate", "parallel.placement.lifetime=step", "parallel.placement.overlap=4",
        "parallel.placement.memory=4", "parallel.placement.reshard=every(8)"]
KINDS = {"kept": ["parallel.placement.rematerialize=false"], "again": ["parallel.placement.rematerialize=true"]}
ENDS, BEGINS = "if (hrt_experts_step_ends(m->fssdp)) ", "if (hrt_experts_step_begins(m->fssdp)) "


def faults(kind, code):
    """Name and emitted code."""
    yield "gradients are reduced in each iteration", code.replace(ENDS + "hrt_experts_reduce(", "hrt_experts_reduce(")
    yield "slots of gradients are released in each iteration", code.replace(ENDS + "hrt_experts_release_grads(", "hrt_experts_release_grads(")
    yield "gradients are never reduced", code.replace(ENDS + "hrt_experts_reduce(", "if (0) hrt_experts_reduce(")
    if kind == "kept":  # The first layer's gather is left out in every second step.
        stale = "static int steps; if (hrt_experts_step_begins(m->fssdp) && steps++ % 2 == 0) "
        yield "parameters of replicas are those of the step before", re.sub(
            rf"{re.escape(BEGINS)}hrt_experts_materialize\(m->fssdp, 1,", f"{{ {stale}hrt_experts_materialize(m->fssdp, 1,", code, count=1
        ).replace("hrt_experts_materialize(m->fssdp, 1, 0, false);", "hrt_experts_materialize(m->fssdp, 1, 0, false); }", 1)


def emitted(name, settings):
    options = [word for key in settings for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-S", "-o", f"{name}.c", *options, os.environ["MPI_TESTS"] + "/small.moe"], check=True)
    return pathlib.Path(f"{name}.c").read_text()


def lines_of(name):
    return [json.loads(line) for line in pathlib.Path(f"{name}.jsonl").read_text().splitlines()]


def train(name, ranks, *options):
    """Losses and norms, step by step."""
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    log = pathlib.Path(f"{name}.jsonl")
    log.unlink(missing_ok=True)
    run = subprocess.run([*launcher, f"./{name}", "train", "--data", os.environ["TEXT"], "--steps", str(STEPS), "--log", log, "--set",
                          f"train.tokens={TOKENS}", *options], capture_output=True, text=True, timeout=120)
    if run.returncode:
        return None, run.stdout + run.stderr
    return [(line["loss"], line["grad_norm"]) for line in lines_of(name)], run.stdout


def apart(left, right):
    """The largest relative difference of two trainings."""
    return max(abs(x - y) / abs(x) for a, b in zip(left, right, strict=True) for x, y in zip(a, b))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        build("one", emitted("one", MODEL))
        one, _ = train("one", 1)
        for kind, settings in KINDS.items():
            code = emitted(kind, [*MODEL, *STEP, *settings])
            build(kind, code)
            several, said = train(kind, RANKS)
            if not several or not apart(one, several) <= CLOSE:
                sys.exit(f"{kind}: {RANKS} ranks learn {several}, and one {one}\n{said}")
            print(f"{kind}: {apart(one, several):.1e} from one rank")
            for what, changed in faults(kind, code):
                if changed == code:
                    sys.exit(f"{kind}: {what}: the emitted code has no place for it")
                build("planted", changed)
                other, _ = train("planted", RANKS)
                if other and apart(one, other) <= 1e3 * CLOSE:
                    sys.exit(f"{kind}: {what}: not noticed")
                print(f"{kind}: {what}: " + (f"{apart(one, other):.1e}" if other else "ended"))


if __name__ == "__main__":
    main()
