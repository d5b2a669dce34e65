#!/usr/bin/env python3
"""busy.py HECATEC MODEL: beside other programs on its cores a program wastes little on threads that spin: at most
twice the processor time of one whose threads sleep at once. When they spin for tenths of a millisecond it is four times."""
import os
import pathlib
import subprocess
import sys
import tempfile

CORES = sorted(os.sched_getaffinity(0))[:2]


def seconds(program, policy):
    """Processor time of a few steps; the clock on the wall would tell of the other programs."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
    run = subprocess.Popen([program, "train", "--data", "/usr/share/common-licenses/GPL-3", "--steps", "8", "--set",
                            "train.eval_steps=0"], env={**kept, **policy}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = status
    if status:
        sys.exit(f"{program}: ended with wait status {status}")
    return used.ru_utime + used.ru_stime


def main():
    hecatec, model = sys.argv[1:]
    if len(CORES) < 2:
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        program = pathlib.Path(work) / "program"
        subprocess.run([hecatec, "-w", "-O1", "-o", program, model], check=True)
        os.sched_setaffinity(0, CORES)
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in CORES]
        try:
            passive = seconds(program, {"OMP_WAIT_POLICY": "passive"})
            default = seconds(program, {})
        finally:
            for process in others:
                process.kill()
                process.wait()
    print(f"{default:.2f} s of processor time, with threads that sleep at once {passive:.2f} s")
    sys.exit(default > 2 * passive)


main()
