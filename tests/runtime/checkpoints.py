#!/usr/bin/env python3
"""checkpoints.py [--all] [--seed N] PROGRAM [RANKS]: runs that are cut off, and go on. PROGRAM may be a model, of several
ranks; then HECATEC compiles it, and the script RANKS starts it. --all: 200 kills, 20 full disks, 20 folders that cannot be
written and 500 spoilt files, in place of a few (minutes; a program built with sanitizers fails on their complaints).

A run that resumes has the losses and the parameters of one that was never stopped, bit by bit: after a regular end, a
kill -9 at any moment, saves included (--kills of them), a signal. Saves that fail leave what was there, and training goes
on. Files that are damaged are never loaded: an older checkpoint is taken, or the run says why there is none."""
import argparse
import ctypes
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

STEPS = 60
RUN = ["--data", "text", "--steps", str(STEPS), "--set", "train.schedule=cosine", "--set", "train.schedule.warmup=5",
       "--set", "train.optimizer.lr=0.01"]
SAVES = ["--checkpoint", "ck", "--set", "checkpoint.every=5"]


class Trial:
    def __init__(self, program, ranks, work):
        self.work, self.ranks = work, ranks
        launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
        self.command = launcher + [program, "train"]
        words = "the quick brown fox jumps over the lazy dog and on it goes ".split()
        draw = random.Random(5)
        (work / "text").write_text(" ".join(draw.choice(words) for _ in range(6000)))

    def start(self, *more, **options):
        options = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, **options}
        return subprocess.Popen([*self.command, *RUN, *more], cwd=self.work, text=True, **options)

    def run(self, *more, code=0, **options):
        run = self.start(*more, **options)
        out, err = run.communicate(timeout=120)
        if run.returncode != code or "Sanitizer" in err:
            raise SystemExit(f"{' '.join(more)}: ended with {run.returncode}, not {code}\n{out}\n{err}")
        return out, err

    def path(self, name):
        return self.work / name

    def clean(self, name="ck"):
        shutil.rmtree(self.path(name), ignore_errors=True)

    def same_end(self, what, parameters="resumed.st", log="resumed.jsonl"):
        check(self.path(parameters).read_bytes() == self.path("whole.st").read_bytes(),
              f"{what}: the parameters are those of a run that was not stopped")
        check(losses(self.path(log)) == losses(self.path("whole.jsonl")),
              f"{what}: the log has the same losses, each step once")


def check(holds, what):
    if not holds:
        raise SystemExit(f"not so: {what}")


def losses(path):
    return [(line["step"], line["loss"], line["grad_norm"]) for line in map(json.loads, path.read_text().splitlines())]


def steps_in(folder):
    return sorted(int(path.name[5:]) for path in folder.glob("step-*") if path.name[5:].isdigit())


RESUMED = ["--save", "resumed.st", "--log", "resumed.jsonl", *SAVES]


def end_and_go_on(trial):
    trial.clean()
    trial.run(*RESUMED)
    trial.same_end("checkpoints change nothing")
    check(steps_in(trial.path("ck")) == [STEPS - 10, STEPS - 5, STEPS], "the newest three are kept")
    check(trial.path("ck/latest").read_text() == f"step-{STEPS}\n", "latest names the newest")
    trial.path("resumed.st").unlink()
    trial.run(*RESUMED, "--resume")
    trial.same_end("of a run that has ended nothing is left to do")
    for step in (STEPS, STEPS - 5):
        shutil.rmtree(trial.path("ck") / f"step-{step}")
    out, _ = trial.run(*RESUMED, "--resume")
    check(f"resumed: ck/step-{STEPS - 10}\n" in out, "it says what it goes on from")
    trial.same_end("a run that goes on")
    _, err = trial.run(*SAVES, code=2)
    check("ck' has checkpoints of another run, the newest of step 60" in err, "runs are not mixed")


def parameters_alone(trial):
    """--load takes a step's folder, however many ranks have written it."""
    for path in ("ck/step-60", "whole.st"):
        trial.run("--load", path, "--steps", "3", "--save", f"from-{path[:2]}.st")
    check(trial.path("from-ck.st").read_bytes() == trial.path("from-wh.st").read_bytes(), "the folder's are the file's")
    damaged = trial.path("ck/step-60/parameters.0.safetensors")
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    _, err = trial.run("--load", "ck/step-60", code=1)
    check("'ck/step-60/parameters.0.safetensors' is damaged" in err, f"damage is told: {err}")
    for path in ("ck", "ck/latest", "ck/"):
        _, err = trial.run("--load", path, code=1)
        check("has checkpoints of several steps: give one of them, such as the newest, ck/step-60" in err,
              f"it must be one checkpoint's: {err}")


def what_is_kept(trial):
    trial.run("--steps", "2", "--checkpoint", "new/folders/ck", "--tensorboard", "board/of/mine")
    check(steps_in(trial.path("new/folders/ck")) == [2], "folders are made with those that they lie in")
    check(list(trial.path("board/of/mine").iterdir()), "of TensorBoard, too")
    trial.clean()
    trial.run("--checkpoint", "ck", "--set", "checkpoint.every=4", "--set", "checkpoint.keep=1",
              "--set", "checkpoint.keep_every=20")
    check(steps_in(trial.path("ck")) == [20, 40, 60], "multiples of keep_every stay")


def refused(trial):
    trial.clean()
    trial.run("--checkpoint", "ck")
    _, err = trial.run("--checkpoint", "ck", "--resume", "--steps", "70", "--seed", "2", code=1)
    check("'ck/step-60' is of another run: train.seed was 1 there and is 2 here; train.steps was 60 there and is "
          "70 here (--resume-changed goes on all the same)" in err, f"other settings are named: {err}")
    text = trial.path("text").read_text()
    trial.path("text").write_text("x" + text[1:])
    _, err = trial.run("--checkpoint", "ck", "--resume", code=1)
    check("training file 1 was" in err, f"another data set is named: {err}")
    trial.path("text").write_text(text)
    _, err = trial.run("--checkpoint", "ck", "--resume", "--resume-changed", "--steps", "70")
    check("warning: 'ck/step-60' is of another run" in err, "it goes on when told to, and says so")
    check(steps_in(trial.path("ck")) == [60, 70], "it went on")
    _, err = trial.run("--resume=none", code=1)
    check("--resume: 'none' has no checkpoint" in err, "there must be one where one is named")
    _, err = trial.run("--resume", code=2)
    check("--resume needs a folder" in err, "a folder must be named")
    _, err = trial.run("--checkpoint", "ck", "--resume-changed", code=2)
    check("--resume-changed says how to go on: add --resume" in err, "--resume-changed alone is told")
    out, _ = trial.run("--checkpoint", "fresh", "--resume")
    check("'fresh' has no checkpoint yet: training begins" in out, "the first start may have --resume, too")


def killed(trial, kills, draw):
    """kill -9 at any moment; half of the time goes into saves."""
    trial.clean()
    begun, cut = time.time(), 0
    trial.run(*RESUMED, "--set", "checkpoint.every=1")
    whole = time.time() - begun
    while cut < kills:
        trial.clean()
        for name in ("resumed.st", "resumed.jsonl"):
            trial.path(name).unlink(missing_ok=True)
        for _ in range(3):  # Kills of one run.
            run = trial.start(*RESUMED, "--set", "checkpoint.every=1", "--resume")
            time.sleep(draw.uniform(0, whole))
            kill_all(run.pid)
            _, err = run.communicate()
            check("cannot be resumed" not in err, f"what is visible is whole: {err}")
            cut += 1
        _, err = trial.run(*RESUMED, "--set", "checkpoint.every=1", "--resume")
        check("cannot be resumed" not in err, f"what is visible is whole: {err}")
        trial.same_end("killed")
        left = {path.name for path in trial.path("ck").iterdir()}
        check(left == {"latest", ".hecate-lock", "step-58", "step-59", "step-60"}, f"nothing is left over: {left}")


def family(root):
    """A process and its descendants: a launcher and its ranks."""
    found = [root]
    for pid in found:
        for tasks in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += map(int, tasks.read_text().split())
            except OSError:
                pass
    return found


def kill_all(root):
    """None of them gets to say goodbye."""
    for pid in reversed(family(root)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def asked(trial):
    """SIGTERM saves and ends, SIGUSR1 saves."""
    for number in (signal.SIGTERM, signal.SIGINT):
        trial.clean()
        run = trial.start("--set", "train.steps=1000000", "--checkpoint", "ck")
        wait_for_line(run, "step 10/")
        rank = family(run.pid)[-1]
        os.kill(rank, signal.SIGUSR1)
        wait_for(lambda: steps_in(trial.path("ck")))
        os.kill(rank, number)
        out, err = run.communicate(timeout=60)
        check(run.returncode == 128 + number, f"it stops: {run.returncode} {out} {err}")
        check(f" after step {steps_in(trial.path('ck'))[-1]}\n" in out, f"the last step is saved: {out}")


def wait_for_line(run, begin):
    for line in run.stdout:
        if line.startswith(begin):
            return
    raise SystemExit(f"it ended before '{begin}': {run.stderr.read()}")


def wait_for(holds):
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise SystemExit("waited in vain")


def full(trial):
    """A save that fails keeps what was there; the run goes on without it."""
    trial.clean()
    trial.run("--checkpoint", "ck", "--steps", "20")
    most = (10000, 10000)  # Bytes: less than a file of parameters.
    begin = None if trial.ranks > 1 else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, most)
    run = trial.start("--checkpoint", "ck", "--resume", "--resume-changed", "--set", "checkpoint.every=10",
                      preexec_fn=begin)
    if trial.ranks > 1:  # Before it trains, MPI writes files, too.
        wait_for_line(run, "step: ")
        for pid in family(run.pid):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, most)
    out, err = run.communicate(timeout=60)
    check(run.returncode == 1, f"a last save that fails is an error: {run.returncode} {out} {err}")
    check("warning: no checkpoint of step 30: cannot write 'ck/step-30.hecate-partial/" in err and
          "error: cannot write 'ck/step-60.hecate-partial/" in err, f"saves that fail are told: {err}")
    left = {path.name for path in trial.path("ck").iterdir()}
    check(left == {"latest", ".hecate-lock", "step-20"}, f"what was there stays, and nothing else: {left}")
    _, err = trial.run("--checkpoint", "text/ck", code=1)
    check("cannot write 'text/ck/.hecate-lock'" in err or "cannot make 'text/ck'" in err, f"no folder: {err}")


def one_in_the_middle(trial, draw):
    """Leaves the checkpoint of one step of a whole run."""
    trial.clean()
    trial.run(*SAVES, "--set", "checkpoint.keep=100")
    kept = draw.choice(steps_in(trial.path("ck"))[:-1])
    for step in steps_in(trial.path("ck")):
        if step != kept:
            shutil.rmtree(trial.path(f"ck/step-{step}"))
    return kept


def without_privileges():
    """Root's right to write where nobody may goes, too (CAP_DAC_OVERRIDE)."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def no_save_works(trial, kept, begin, started=lambda run: None):
    """All saves of a run fail; the next run can save again, and ends as one that was not disturbed."""
    run = trial.start(*SAVES, "--resume", preexec_fn=begin)
    started(run)
    out, err = run.communicate(timeout=120)
    check(run.returncode == 1 and "Sanitizer" not in err, f"a last save that fails is an error: {out} {err}")
    check(err.count("warning: no checkpoint of step ") == (STEPS - kept) // 5 - 1, f"each save is told: {err}")
    left = {path.name for path in trial.path("ck").iterdir()}
    check(left == {"latest", ".hecate-lock", f"step-{kept}"}, f"what was there stays, and nothing else: {left}")


def goes_on(trial, what):
    trial.path("resumed.st").unlink(missing_ok=True)
    trial.run(*SAVES, "--resume", "--save", "resumed.st")
    check(trial.path("resumed.st").read_bytes() == trial.path("whole.st").read_bytes(), f"{what}: it ends alike")


def full_at_any_size(trial, draw):
    kept = one_in_the_middle(trial, draw)
    files = trial.path(f"ck/step-{kept}").glob("parameters.*")
    most = (draw.randrange(min(file.stat().st_size for file in files)),) * 2

    def started(run):  # Before it trains, MPI writes files, too.
        wait_for_line(run, "step: ")
        for pid in family(run.pid):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, most)
    if trial.ranks > 1:
        no_save_works(trial, kept, None, started)
    else:
        no_save_works(trial, kept, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, most))
    goes_on(trial, f"a disk with room for {most[0]} bytes")


def read_only(trial, draw):
    kept = one_in_the_middle(trial, draw)
    trial.path("ck").chmod(0o555)
    try:
        no_save_works(trial, kept, without_privileges)
    finally:
        trial.path("ck").chmod(0o755)
    goes_on(trial, "a folder that could not be written")


def spoil(data, kind, draw):
    """None: the file is not there."""
    at = draw.randrange(len(data))
    return {"cut": data[:at], "bit": data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1:],
            "longer": data + b"x", "empty": b"", "gone": None}[kind]


def damaged(trial, draw, files):
    """Every file, cut short and spoilt, `files` times in all: an older checkpoint is taken."""
    trial.clean()
    trial.run("--checkpoint", "ck", "--set", "checkpoint.every=30", "--save", "resumed.st")
    newest = trial.path("ck/step-60")
    names = sorted(path.name for path in newest.iterdir())
    kinds = itertools.cycle(itertools.product(names, ("cut", "bit", "longer", "empty", "gone")))
    for name, kind in itertools.islice(kinds, files):
        wrong = spoil((newest / name).read_bytes(), kind, draw)
        shutil.copytree(trial.path("ck"), trial.path("bad"))
        bad = trial.path("bad/step-60") / name
        bad.unlink()
        if wrong is not None:
            bad.write_bytes(wrong)
        out, err = trial.run("--resume=bad", "--save", "resumed.st")
        check("warning: step 60 cannot be resumed: " in err and name in err, f"{name}, {kind}: {err}")
        check("resumed: bad/step-30\n" in out, "an older one is taken")
        check(trial.path("resumed.st").read_bytes() == trial.path("whole.st").read_bytes(), "it ends alike")
        trial.clean("bad")
    for folder in trial.path("ck").glob("step-*"):
        (folder / "index.json").unlink()
    _, err = trial.run("--resume=ck", code=1)
    check("no checkpoint in 'ck' can be resumed" in err, "there may be none")


def compiled(model, ranks, work):
    settings = [f"cluster.devices={ranks}", "parallel.microbatch=2", "train.tokens=128",
                "parallel.placement.reshard=every(3)", "parallel.placement.lifetime=step"]  # Steps of two iterations.
    options = [word for setting in settings for word in ("--set", setting)]
    subprocess.run([os.environ["HECATEC"], "-w", *options, model, "-o", f"{work}/program"], check=True)
    return f"{work}/program"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("program")
    parser.add_argument("ranks", type=int, nargs="?", default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    with tempfile.TemporaryDirectory() as work:
        program = os.path.abspath(given.program)
        if program.endswith(".moe"):
            program = compiled(program, given.ranks, work)
        trial = Trial(program, given.ranks, pathlib.Path(work))
        trial.run("--save", "whole.st", "--log", "whole.jsonl")
        end_and_go_on(trial)
        parameters_alone(trial)
        what_is_kept(trial)
        killed(trial, 200 if given.all else given.kills, draw)
        asked(trial)
        full(trial)
        for _ in range(20 if given.all else 1):
            full_at_any_size(trial, draw)
            read_only(trial, draw)
        if given.ranks == 1:
            refused(trial)
            damaged(trial, draw, 500 if given.all else 25)


main()
