"""phases.py MODEL TEXT: learning rates of the log beside closed forms and, where PyTorch is, its SequentialLR; runs
that stop inside of a piece go on with the same rates, and other pieces are another run. Environment: HECATEC."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    torch = None

FLAGS = ("-D", "T=16", "-D", "L=1", "-D", "D=32", "-D", "F=32", "--set", "train.precision=fp64", "--set", "train.tokens=32",
         "--set", "parallel.microbatch=2", "--set", "train.eval_steps=0")
LR, STEPS = 3e-3, 40
PIECES = "[warmup(8), constant(0.25), cosine(12, to = 0.1), linear(from = 0.6, to = 0)]"


def run(*command, code=0, wanted=""):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{command} ended with {done.returncode}, wanted {code} and '{wanted}':\n{done.stdout}{done.stderr}")
    return done.stdout


def train(*more, **wanted):
    return run("./m", "train", "--data", "text", *more, **wanted)


def rates(log):
    lines = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    return [line["lr"] for line in lines if "lr" in line]


def closed():
    rise = [(s + 1) / 8 for s in range(8)]
    fall = [0.1 + 0.45 * (1 + math.cos(math.pi * j / 12)) for j in range(1, 13)]
    return [LR * x for x in [*rise, *[1] * 10, *fall, *[0.6 * (1 - j / 9) for j in range(10)]]]


def by_torch():
    """Its schedulers have their first rate in their first step: the cosine begins in the last constant one."""
    schedulers = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    parts = [schedulers.LinearLR(optimizer, start_factor=1 / 8, end_factor=1, total_iters=7),
             schedulers.CosineAnnealingLR(optimizer, T_max=12, eta_min=0.1 * LR),
             schedulers.LinearLR(optimizer, start_factor=0.6, end_factor=0, total_iters=9)]
    both = schedulers.SequentialLR(optimizer, parts, milestones=[17, 30])
    found = []
    for _ in range(STEPS):
        found.append(both.get_last_lr()[0])
        optimizer.step()
        both.step()
    return found


def compare():
    shown = train("--log", "whole", "--checkpoint", "ck", "--set", "checkpoint.every=22")
    assert "learning rate: warmup to 0.003 until step 8, constant 0.003 until step 18, cosine to 0.0003 until step 30, linear from 0.0018 to 0 until step 40" in shown, shown
    found = rates("whole")
    assert len(found) == STEPS
    for name, other in (("closed forms", closed()), *([("PyTorch", by_torch())] if torch else ())):
        worst = max(abs(a - b) for a, b in zip(found, other, strict=True)) / LR
        print(f"{name}: {worst:.1e} of lr")
        assert worst < 1e-14, (name, found, other)


def stops():
    """From step 22, inside of the cosine. The shares of another number of steps are other steps."""
    subprocess.run(["cp", "-r", "ck", "again"], check=True)
    subprocess.run(["rm", "-r", "again/step-40"], check=True)
    train("--checkpoint", "again", "--resume", "--log", "rest")
    assert rates("rest") == rates("whole")[22:], rates("rest")
    subprocess.run(["rm", "-r", "again/step-40"], check=True)
    other = ("--checkpoint", "again", "--resume", "--set", f"train.schedule.pieces={PIECES.replace('0.6', '0.5')}")
    train(*other, code=1, wanted="train.schedule.pieces was")
    train(*other, "--resume-changed=train.schedule.pieces", "--log", "other")
    assert rates("other")[:8] == rates("whole")[22:30] and rates("other")[8] == LR * 0.5, rates("other")


def main():
    model, text = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("text").write_bytes(text[:5000])
        run(os.environ["HECATEC"], model, *FLAGS, "--set", f"train.optimizer=adamw({LR})", "--set", f"train.steps={STEPS}",
            "--set", f"train.schedule=pieces({PIECES})", "-o", "m")
        compare()
        stops()
        train("--steps", 20, code=2, wanted="take 25 steps and a rest, but the run has 20")
        train("--set", "train.schedule=wsd", "--set", "train.schedule.pieces=constant", wanted="train.schedule.pieces has no meaning with train.schedule = wsd")


main()
