"""best.py MODEL TEXT: the best parameters are kept, and training ends when patience does, also over a stop; keys of
--resume-changed. Environment: HECATEC."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FLAGS = ("-D", "T=16", "-D", "L=1", "-D", "D=32", "-D", "F=32", "--set", "train.precision=fp64", "--set", "train.tokens=256",
         "--set", "parallel.microbatch=16", "--set", "train.schedule=constant", "--set", "train.optimizer=adamw(3e-2)")
RULES = ("--set", "train.eval_every=3", "--set", "train.eval_steps=1", "--set", "train.patience=2")


def run(*command, code=0, wanted=""):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{command} ended with {done.returncode}, wanted {code} and '{wanted}':\n{done.stdout}{done.stderr}")
    return done.stdout


def train(*more, **wanted):
    return run("./m", "train", "--data", "text", "--val", "val", *more, **wanted)


def losses(log):
    lines = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    return len([line for line in lines if "loss" in line]), {line["step"]: line["val_loss"] for line in lines if "val_loss" in line}


def stops():
    """A text of 600 bytes is soon known by heart, and others are guessed ever worse."""
    shown = train("--steps", 300, *RULES, "--save-best", "best.st", "--save", "last.st", "--log", "log")
    steps, found = losses("log")
    best = min(found, key=found.get)
    assert best < steps < 300 and steps == best + 6, (best, steps, found)
    assert "ended early: 2 evaluations" in shown and f"best: step {best}, validation loss {found[best]:.4f}, in best.st" in shown, shown
    for name, step in (("best.st", best), ("last.st", steps)):
        loss = json.loads(run("./m", "eval", "--val", "val", "--load", name, "--sequences", 16, "--json"))["loss"]
        assert abs(loss - found[step]) < 1e-12, (name, loss, found[step])
    return steps, found, pathlib.Path("best.st").read_bytes()


def goes_on(steps, found, best):
    """The same with a stop behind the best evaluation: it counts on."""
    at = min(found, key=found.get) + 3
    kept = (*RULES, "--checkpoint", "ck", "--resume", "--save-best", "again.st", "--log", "again.log")
    train("--steps", at, *kept)
    train("--steps", 300, *kept, wanted="ended early")
    assert losses("again.log") == (steps, found), (losses("again.log"), steps, found)
    assert pathlib.Path("again.st").read_bytes() == best
    train("--steps", 300, *kept, wanted="no step was taken")


def keys():
    other = ("--checkpoint", "ck", "--resume", "--steps", 300, *RULES, "--set", "train.patience=3", "--seed", 7, "--set", "train.optimizer.lr=1e-3")
    train(*other, code=1, wanted="train.seed was 1 there and is 7 here")
    train(*other, "--resume-changed=train.optimizer", code=1, wanted="train.seed was 1 there and is 7 here (--resume-changed has other keys)")
    train(*other, "--resume-changed=train.seed,data.train", code=1, wanted="train.optimizer.lr was 0.03 there")
    train(*other, "--resume-changed=train.sed", code=2, wanted="'train.sed' is no setting")
    train(*other, "--resume-changed=train.optimizer,train.seed", wanted="train.seed was 1 there and is 7 here")


def main(model, text):
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        pathlib.Path("text").write_bytes(text[:600])
        pathlib.Path("val").write_bytes(text[5000:5600])
        run(os.environ["HECATEC"], model, *FLAGS, "-o", "m")
        train("--steps", 3, "--save-best", "best.st", code=2, wanted="--save-best asks for evaluations: set train.eval_every")
        train("--steps", 3, "--set", "train.patience=1", code=2, wanted="train.patience asks for evaluations")
        goes_on(*stops())
        keys()


main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).read_bytes())
