#!/usr/bin/env python3
"""Signals at random moments of training, saving, evaluating and compiling, to one process, to a rank and to mpirun."""
import os
import shutil
import signal
import sys
import time

import fixtures
import harness
import rules

SIGNALS = ["TERM", "TERM", "INT", "INT", "HUP", "PIPE", "KILL", "KILL", "QUIT", "USR1", "USR2", "ALRM", "STOP", "TSTP", "WINCH", "CHLD"]
STOPS = ("STOP", "TSTP")
IGNORED = ("WINCH", "CHLD")


def ends(name):
    """Exit statuses after a signal: by its handler, or by the signal itself where none is."""
    number = getattr(signal, f"SIG{name}")
    return (-number, 128 + number, 0, 1)


def moment(trial, process, program):
    """Waits for a random moment: soon after the start, in the middle, or when a file is written."""
    kind = trial.random.choice(["start", "time", "time", "line", "saving"])
    delay, limit = trial.random.random(), time.monotonic() + 3
    if kind == "start":
        time.sleep(delay * 0.02)
    elif kind == "time":
        time.sleep(delay * program)
    while kind in ("line", "saving") and process.poll() is None and time.monotonic() < limit:
        if kind == "line" and "step 1/" in trial.text(process, "out"):
            break
        if kind == "saving" and any("saved" in name and name != "saved" for name in os.listdir(trial.folder)):
            break
        time.sleep(0.0005)
    return kind


def targets(process, ranks, random):
    """Processes that the signal goes to."""
    if ranks == 1:
        return [process.pid]
    below = []
    for pid in harness.descendants():
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as name:
                if name.read().startswith("slow"):
                    below.append(pid)
        except OSError:
            continue
    return random.choice([[process.pid], below[:1], below[-1:], below, [process.pid, *below]]) or [process.pid]


def send(trial, process, ranks, names):
    for name in names:
        for pid in targets(process, ranks, trial.random):
            try:
                os.kill(pid, getattr(signal, f"SIG{name}"))
            except ProcessLookupError:
                continue
        time.sleep(trial.random.choice([0, 0.001, 0.05]))
        if name in STOPS:
            time.sleep(trial.random.random() * 0.2)
            for pid in [process.pid, *harness.descendants()]:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue


def stop(process, patience):
    """Ends a run that would go on: a signal may have come too early, or gone to what ignores it."""
    limit = time.monotonic() + patience
    while process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    for _ in range(20):
        if process.poll() is None:
            process.terminate()
            time.sleep(0.5)


def check_saved(trial, old, result, kind):
    """`saved` is the old file or a whole new one."""
    path = trial.folder / "saved"
    if not path.exists():
        if old is not None:
            trial.fail("destroyed", f"the old saved file is gone ({kind})", result)
        return
    if path.read_bytes() == old:
        return
    loaded = trial.run([fixtures.slow(trial.tools, 1), "eval", "--val", "text", "--load", "saved", "--sequences", "1"], judge=False,
                       env={"OMP_NUM_THREADS": "1"})
    if loaded.status:
        trial.fail("destroyed", f"the saved file is half-written ({kind}): {loaded.err}", result)


def training(trial):
    """A run that saves, under any signals."""
    random, tools = trial.random, trial.tools
    ranks = random.choice([1, 1, 1, 1, 2, 2, 3])
    program = fixtures.slow(tools, ranks)
    steps = random.choice(["1", "3", "100000"])
    names = [random.choice(SIGNALS) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    if all(name in STOPS + IGNORED for name in names) and steps == "100000":
        steps = "3"
    old = None
    if random.random() < 0.5:
        old = fixtures.slow_weights(tools)
        (trial.folder / "saved").write_bytes(old)
    trial.allow("saved", "log", "loads*", "ids*", "trace*")
    extra = random.choice([[], [], ["--log", "log"], ["--record-loads", "loads"], ["--record-ids", "ids"], ["--trace", "trace"],
                           ["--profile"], ["--load", "start.st"]])
    if "start.st" in extra:
        trial.write("start.st", fixtures.slow_weights(tools))
    words = [program, "train", "--data", "text", "--steps", steps, "--save", "saved", *extra]
    if ranks > 1:
        words = ["mpirun", "--bind-to", "none", "-n", str(ranks), *words]
    process = trial.start(words)
    kind = moment(trial, process, 0.15 if ranks == 1 else 0.7)
    if process.poll() is None:
        send(trial, process, ranks, names)
    what = f"{'+'.join(names)} at {kind}, {ranks} ranks, {steps} steps"
    if steps == "100000":
        stop(process, 0 if {"TERM", "INT"}.isdisjoint(names) else 15)
    killed = any(name not in ("TERM", "INT", *STOPS, *IGNORED) for name in names)
    result = trial.finish(process, 20 if ranks == 1 else 45, leaves_processes=ranks > 1)
    allowed = {status for name in names for status in ends(name)} | {0, 143, -15}
    for judged, text in rules.judge(result, tuple(allowed)):
        # How mpirun itself takes a signal is its own affair, and it says of which signal a rank died.
        stuck = judged == "hang" and any("slow" in name.split("mpirun")[0] for name in result.ended)
        if ranks == 1 or stuck or (judged == "crash" and "it says" in text and not killed):
            trial.fail(judged, f"{text} ({what})", result)
    # A second signal, or one that cannot be handled, ends a save on its way; the next save takes its file.
    if killed or len(names) > 1 or ranks > 1 or kind == "start":
        trial.allow("*saved*", ".saved*", "*.tmp*")
        trial.messy = True
    check_saved(trial, old, result, what)


def compiling(trial):
    """A compiler that is told to end leaves no half-written output."""
    trial.write("model.moe", fixtures.MODEL)
    name = trial.random.choice(["TERM", "INT", "HUP", "KILL", "QUIT", "STOP"])
    words = [trial.tools.hecatec, "-w", *trial.random.choice([["-O1", "-o", "m"], ["-S", "-o", "m.c"], ["-O0", *fixtures.TWO, "-o", "m"]]),
             "model.moe"]
    process = trial.start(words)
    time.sleep(trial.random.random() * (0.02 if "-S" in words else 0.3))
    if process.poll() is None:
        send(trial, process, 1, [name])
    trial.messy = name in ("KILL", "QUIT")  # Then the C compiler works on, and nobody clears up.
    result = trial.finish(process, leaves_processes=trial.messy)
    trial.allow("m", "m.c", *["m.*"] * trial.messy)
    # The linker writes the program itself, in place; only a status of 0 promises one.
    for kind, text in rules.judge(result, (0, 3, *ends(name))):
        trial.fail(kind, f"{text} ({name})", result)
    if result.status == 0 and not any((trial.folder / made).exists() for made in ("m", "m.c")):
        trial.fail("wrong", f"status 0 and no output ({name})", result)


def reading(trial):
    """Signals to what only reads."""
    program = fixtures.slow(trial.tools, 1)
    shutil.copy(fixtures.one(trial.tools), trial.folder / "one")
    trial.protect("one")
    trial.write("weights.st", fixtures.recorded(trial.tools, "--save", "weights.st"))
    name = trial.random.choice(["TERM", "INT", "HUP", "KILL", "STOP", "TERM"])
    words = trial.random.choice([[program, "sample", "--tokens", "1000000"], ["./one", "eval", "--load", "weights.st", "--val", "text"],
                                 ["./one", "sample", "--load", "weights.st", "--tokens", "100000"], ["./one", "info"]])
    process = trial.start(words)
    time.sleep(trial.random.random() * 0.1)
    if process.poll() is None:
        send(trial, process, 1, [name])
        if name == "STOP":
            process.terminate()
    result = trial.finish(process)
    for kind, text in rules.judge(result, (0, 1, 2, -15, 143, *ends(name))):
        trial.fail(kind, f"{text} ({name})", result)


def closing(trial):
    """Standard output is closed by who reads it."""
    program = fixtures.slow(trial.tools, 1)
    trial.allow("saved")
    lines = trial.random.randint(0, 2)
    script = f'"$0" train --data text --steps {trial.random.choice([30, 100])} --set log.every=1 --save saved | head -n {lines} > /dev/null'
    result = trial.run(["sh", "-c", script, program], statuses=(0, 1), limit=30)
    check_saved(trial, None, result, "standard output closed")
    if not (trial.folder / "saved").exists():
        trial.fail("lost", "standard output was closed, and nothing was saved", result)


def situation(trial):
    trial.write("text", fixtures.TEXT)
    trial.random.choice([training] * 8 + [compiling] * 2 + [reading, closing])(trial)


if __name__ == "__main__":
    sys.exit(harness.main(situation, __doc__))
