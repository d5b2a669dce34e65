#!/usr/bin/env python3
"""behind.py HECATEC FOLDER [--rounds N] [--tokens N] [--memory BYTES]: the cost of saves behind the steps, of 2 GB.

A run saves --rounds times into FOLDER, and in between dd writes as many bytes there, with fsync. Prints for each save:
its time and rate; how much longer than the others the steps were that began it and that followed, which is where values
are copied; how much longer all steps were until it had ended, which is the share of processors and memory that the
writer takes, too; and the peak of the memory above that of a run that saves nothing."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import threading
import time

MODEL = """
dim V = 256, T = 128, D = 512, E = 54, F = 1024
block swiglu(x[T, D]) -> [T, D] {
  param w1[D, F], w3[D, F], w2[F, D]
  return (silu(x @ w1) * (x @ w3)) @ w2
}
moe sparse(x[T, D]) -> [T, D] {
  experts = E * swiglu
  router  { score = softmax, topk = 2, weight = renormalized }
}
model state(ids[T]) -> [T, V] {
  param embed[V, D], head[D, V]
  x = embed[ids]
  repeat i < 2 {
    x = x + sparse(rmsnorm(x))
  }
  return rmsnorm(x) @ head
}
data { format = bytes }
train { optimizer = adamw(lr = 1e-4) }
"""
STEPS = 24  # From one save to the next.


def watch(folder, saves, over):
    """Times between the first sight of a checkpoint's folder under its other name, and of the folder."""
    begun = {}
    while not over.is_set():
        for path in folder.glob("step-*"):
            number, partial = re.match(r"step-(\d+)(.*)", path.name).groups()
            if partial and int(number) not in begun:
                begun[int(number)] = time.monotonic()
            elif not partial and int(number) in begun and int(number) not in saves:
                saves[int(number)] = time.monotonic() - begun[int(number)]
        time.sleep(0.002)


def run(folder, given, *settings):
    """Seconds of every step, and the largest memory in bytes."""
    log = folder / "log.jsonl"
    settings += (f"train.tokens={given.tokens}", f"checkpoint.memory={given.memory}")
    options = [word for setting in settings for word in ("--set", setting)]
    command = ["./state", "train", "--data", "text", "--log", str(log), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder) as program:
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise SystemExit(f"the run ended with {program.returncode}")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    return {line["step"]: line["ms"] / 1e3 for line in lines if "ms" in line}, usage.ru_maxrss * 1024


def dd(folder, size):
    begun = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", f"of={folder}/dd", "bs=1M", f"count={size >> 20}", "conv=fsync"], check=True,
                   capture_output=True)
    seconds = time.monotonic() - begun
    (folder / "dd").unlink()
    return seconds


def one(folder, given):
    """A save after half of a run's steps; the one at its end is not of interest."""
    saves, over, ck = {}, threading.Event(), folder / "ck"
    shutil.rmtree(ck, ignore_errors=True)
    watcher = threading.Thread(target=watch, args=(ck, saves, over))
    watcher.start()
    seconds, memory = run(folder, given, f"checkpoint.every={STEPS}", "checkpoint.dir=ck", f"train.steps={2 * STEPS}")
    over.set()
    watcher.join()
    size = sum(path.stat().st_size for path in (ck / f"step-{STEPS}").iterdir())
    shutil.rmtree(ck)
    usual = statistics.median(seconds[step] for step in range(STEPS // 2, STEPS))
    later = [seconds[step] - usual for step in range(STEPS + 1, 2 * STEPS)]
    return size, saves[STEPS], later, memory, usual


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hecatec")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=4096, help="of a step")
    parser.add_argument("--memory", type=int, default=256 << 20, help="bytes of copies")
    given = parser.parse_args()
    folder = given.folder
    folder.mkdir(parents=True)
    (folder / "state.moe").write_text(MODEL)
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog. " * 4000)
    subprocess.run([os.path.abspath(given.hecatec), "-w", "state.moe", "-o", "state"], check=True, cwd=folder)
    _, least = run(folder, given, "train.steps=4")
    for _ in range(given.rounds):
        size, seconds, later, memory, usual = one(folder, given)
        plain = dd(folder, size)
        meanwhile, passed = 0, 0
        for more in later:
            if passed < seconds:
                meanwhile, passed = meanwhile + more, passed + usual + more
        print(f"{size / 1e9:.2f} GB in {seconds:.2f} s, {size / 1e9 / seconds:.2f} GB/s; dd {size / 1e9 / plain:.2f} GB/s: "
              f"{plain / seconds:.0%} of it. Steps of {usual:.2f} s; the step behind it {later[0]:+.3f} s, "
              f"{later[0] / seconds:.1%} of the write; all until its end {meanwhile:+.3f} s, {meanwhile / seconds:.1%}. "
              f"Memory {(memory - least) / 1e9:+.2f} GB", flush=True)
    shutil.rmtree(folder)


main()
