#!/usr/bin/env python3
"""Measures the gain of each pass and each choice of the compiler.

    bench/ablation/ablate.py --hecatec build/bin/hecatec [--models small,medium] [--threads 1]
                             [--rounds 3] [--steps 4] [--out FILE]

Compiles examples/bench-<model>.moe once with the default pipeline and once for each line of VARIANTS with
one thing changed, runs all of them in turn, round by round, and prints a table (--out: writes it, with
the machine). The time of a step is the median of its run. With one thread that is processor time, which
other programs lengthen less, by taking caches; with more it is the wall clock. Only an idle machine gives figures:
the least and the most of the rounds say how far they go. The median of the rounds' ratios to the default
program of the same round counts."""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/train"))
import machine  # noqa: E402

FRONT = "check-shapes,group-experts,inline"
BACK = "fuse-elementwise", "fuse-epilogue", "select-kernels,place-buffers"


def pipeline(simplify=True, fuse=BACK[0], epilogue=BACK[1], place=BACK[2]):
    middle = ("simplify,use-bf16,fuse-head-loss,differentiate,simplify" if simplify else "use-bf16,fuse-head-loss,differentiate").split(",")
    return ",".join([FRONT, *middle, "recompute", *filter(None, [fuse, epilogue, place])])


VARIANTS = (  # The change, the passes, and parallel.recompute.
    ("default", pipeline(), "elementwise"),
    ("no fuse-elementwise", pipeline(fuse=None), "elementwise"),
    ("no fuse-epilogue", pipeline(epilogue=None), "elementwise"),
    ("no simplify", pipeline(simplify=False), "elementwise"),
    *((f"parallel.recompute = {policy}", pipeline(), policy) for policy in ("none", "cheap", "all")),
    ("select-kernels(sums=apart)", pipeline(place="select-kernels(sums=apart),place-buffers"), "elementwise"),
    ("place-buffers(results=apart)", pipeline(place="select-kernels,place-buffers(results=apart)"), "elementwise"),
    ("all of them off", pipeline(False, None, None, "select-kernels(sums=apart),place-buffers(results=apart)"), "none"),
)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hecatec", required=True)
    parser.add_argument("--models", default="small,medium", type=lambda text: text.split(","))
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--steps", default=4, type=int)
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def build(options, model, passes, recompute, program):
    source = ROOT / f"examples/bench-{model}.moe"
    run([options.hecatec, f"--passes={passes}", "--set", f"parallel.recompute={recompute}",
         f"--save-temps={program}.temps", "-o", program, source])
    lines = run([program, "info"]).splitlines()
    return next(line.split(None, 1)[1] for line in lines if line.split()[:1] == ["arena"])


def processor_seconds(pid):
    """Processor time of a process with one thread; None when it has ended."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        return None


def step_seconds(options, program, text):
    """The median over the steps behind the first two. A step has ended when its line is in the log."""
    log = program.with_suffix(".jsonl")
    log.unlink(missing_ok=True)
    command = [program, "train", "--data", text, "--steps", str(options.steps + 2), "--log", log,
               "--threads", str(options.threads), "--route=balanced", "--set", "train.eval_steps=0"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    size, ends = 0, []
    while running.poll() is None:
        time.sleep(0.001)
        grown = log.stat().st_size if log.exists() else 0
        if grown == size:
            continue
        size = grown
        now = processor_seconds(running.pid) if options.threads == 1 else time.monotonic()
        if now is not None:
            ends.append(now)
    if running.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {running.returncode}\n{running.stderr.read().decode()}")
    return statistics.median(after - before for before, after in zip(ends[1:], ends[2:]))


def measure(options, model, text, work):
    programs = [(name, work / f"{model}-{i}") for i, (name, *_) in enumerate(VARIANTS)]
    arena = {name: build(options, model, passes, recompute, program)
             for (name, passes, recompute), (_, program) in zip(VARIANTS, programs)}
    rounds = []
    for number in range(options.rounds):
        order = programs if number % 2 == 0 else programs[::-1]
        rounds.append({name: step_seconds(options, program, text) for name, program in order})
    rows = []
    for name, *_ in VARIANTS:
        ratios = [times[name] / times["default"] for times in rounds]
        rows.append((model, name, f"{1e3 * min(times[name] for times in rounds):.1f}",
                     f"{100 * (statistics.median(ratios) - 1):+.1f} %",
                     f"{100 * (min(ratios) - 1):+.1f} .. {100 * (max(ratios) - 1):+.1f} %", arena[name]))
    return rows


def table(rows):
    heads = ("model", "changed", "least ms per step", "time, median", "least .. most", "arena")
    lines = [heads, ("---", "---", "---:", "---:", "---:", "---:"), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main():
    options = arguments()
    clock = "processor time of 1 thread" if options.threads == 1 else f"wall clock, {options.threads} threads"
    rows, busy, begin = [], machine.busy_seconds() - machine.own_seconds(), time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        text = work / "text"
        licenses = sorted(pathlib.Path("/usr/share/common-licenses").iterdir())
        text.write_bytes(b"".join(file.read_bytes() for file in licenses))
        for model in options.models:
            rows += measure(options, model, text, work)
    others = (machine.busy_seconds() - machine.own_seconds() - busy) / (time.monotonic() - begin)
    about = machine.describe({})
    page = f"""# What passes are worth: {machine.title(about)}

Real: measured by bench/ablation/ablate.py, {clock}; {options.rounds} rounds of {options.steps} steps, one thing
changed at a time. Other programs used {others:.1f} cores meanwhile.

{table(rows)}

{chr(10).join(f"- {key}: {value}" for key, value in about.items())}
"""
    print(page)
    if options.out:
        options.out.write_text(page)


main()
