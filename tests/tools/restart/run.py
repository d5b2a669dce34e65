"""run.py HECATE_RUN PROGRAM: hecate-run starts what has failed again, from its newest checkpoint, and gives up where nothing gets on.
PROGRAM is a model's: killed twice it ends with the parameters of a run that nobody killed."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# A stand-in for a program: notes how it was called; does what $PLAN, a word a call, says.
STAND_IN = """#!/bin/sh
echo "$*" >> calls
word=$(echo "$PLAN" | cut -d' ' -f"$(wc -l < calls)")
case $word in
  step-*) mkdir -p ck/$word; exit 1;;
  kill) kill -9 $$;;
  wait) trap 'echo asked >> calls; exit 0' TERM; trap 'echo save >> calls' USR1; touch waiting; while :; do sleep 0.05; done;;
  *) exit $word;;
esac
"""


def check(holds, what):
    if not holds:
        sys.exit(f"{what}: does not hold")


def start(work, *command, **environment):
    return subprocess.Popen(command, cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                            env={**os.environ, **environment})


def run(work, *command, **environment):
    begun = start(work, *command, **environment)
    out, err = begun.communicate(timeout=300)
    return begun.returncode, out, err


def plan(work, tool, words, *options):
    """Exit code, calls, and messages, of the stand-in that does as planned."""
    for name in ("calls", "waiting"):
        (work / name).unlink(missing_ok=True)
    code, _, err = run(work, tool, *options, "./stand-in", "train", "--checkpoint", "ck", PLAN=words)
    return code, (work / "calls").read_text().splitlines(), err


def stand_ins(work, tool):
    (work / "stand-in").write_text(STAND_IN)
    (work / "stand-in").chmod(0o755)
    code, calls, err = plan(work, tool, "step-3 kill 0")
    check(code == 0 and calls == ["train --checkpoint ck --resume"] * 3, f"two failures, then the end: {code} {calls}")
    check("exit code 137; runs it again from step 3" in err, f"why it is run again: {err}")
    code, calls, err = plan(work, tool, "7 7 0", "--failures", "2")
    check(code == 7 and len(calls) == 2 and "gives up after 2 failures" in err, f"no progress: {code} {calls} {err}")
    code, calls, _ = plan(work, tool, "1 step-9 1 0", "-f2")
    check(code == 0 and len(calls) == 4, f"progress between failures: {code} {calls}")
    code, calls, _ = plan(work, tool, "2 0")
    check(code == 2 and len(calls) == 1, f"a refused command line is not run again: {code} {calls}")


def signals(work, tool):
    for name in ("calls", "waiting"):
        (work / name).unlink(missing_ok=True)
    job = start(work, tool, "./stand-in", "--checkpoint=ck", "--resume-changed", PLAN="wait 0")
    until = time.monotonic() + 20
    while not (work / "waiting").exists() and time.monotonic() < until:
        time.sleep(0.02)
    job.send_signal(signal.SIGUSR1)
    time.sleep(0.3)
    job.send_signal(signal.SIGTERM)
    code = job.wait(timeout=20)
    calls = (work / "calls").read_text().splitlines()
    check(code == 0 and calls == ["--checkpoint=ck --resume-changed", "save", "asked"], f"signals are handed on: {code} {calls}")


def refused(work, tool):
    for words, said in (((), "which command?"), (("./stand-in",), "needs --checkpoint DIR"), (("-f", "0", "x"), "--failures is '0'"),
                        (("-f", "1x", "x"), "--failures is '1x'")):
        code, _, err = run(work, tool, *words)
        check(code == 2 and said in err, f"{words} is refused: {code} {err}")
    code, _, err = run(work, tool, "./none", "--checkpoint", "ck")
    check(code == 127 and "cannot run './none'" in err, f"a command that is not there: {code} {err}")
    code, out, _ = run(work, tool, "--help")
    check(code == 0 and "usage: hecate-run" in out, "help")


def killed_model(work, tool, program):
    (work / "text").write_text("the quick brown fox jumps over the lazy dog " * 800)
    train = [program, "train", "--data", "text", "--steps", "3000", "--set", "checkpoint.every=200"]
    code, _, err = run(work, *train, "--save", "whole.st")
    check(code == 0, f"a run that nobody kills: {code} {err}")
    job = start(work, tool, *train, "--checkpoint", "saves", "--save", "killed.st")
    for step in (200, 600):
        until = time.monotonic() + 30
        while not any((work / "saves" / f"step-{s}").exists() for s in range(step, 3001, 200)) and time.monotonic() < until:
            time.sleep(0.01)
        subprocess.run(["pkill", "-9", "-f", f"^{program} train.*--checkpoint saves"], check=False)
    _, err = job.communicate(timeout=300)
    check(job.returncode == 0 and "exit code 137; runs it again from step " in err, f"a killed model ends: {job.returncode} {err}")
    check((work / "killed.st").read_bytes() == (work / "whole.st").read_bytes(), "it has the parameters of a run that nobody killed")


def main(tool, program):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        stand_ins(work, tool)
        signals(work, tool)
        refused(work, tool)
        killed_model(work, tool, program)


main(*map(os.path.abspath, sys.argv[1:]))
