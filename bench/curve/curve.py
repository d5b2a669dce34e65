#!/usr/bin/env python3
"""Two loss curves: examples/tiny.moe on the fortune cookies, and an equal PyTorch model on equal tokens.

    bench/curve/curve.py [--steps 2000] [--hecatec build/bin/hecatec] [--threads 1] [--work FOLDER]

Both start from the same parameters (a safetensors file that the compiled program writes) and see the
same sequences. Writes docs/curve.svg, and how far they are apart into bench/results/<machine>-curve.json and .md. Needs
torch and numpy (bench/packages.txt). A third run, the same program with the kernels of another instruction set, whose
sums round otherwise, shows how far rounding alone moves the losses; its first steps are enough for that.

Says how far it is and how long it will take: 10 to 40 minutes of one core. With --work it keeps there what it
has; the same command again goes on where it was stopped, PyTorch within its run, the others at its beginning."""
import argparse
import json
import os
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
import picture  # noqa: E402

SMOOTH, LATE = 20, 500  # Steps of a point of the picture; the last steps, for their mean loss.
ALIKE = 1e-5  # Nats: more than rounding does to a loss before some token goes to another expert.
OTHER = 250  # Steps of the run with other kernels.
EVERY = 10  # Seconds between two lines of progress.


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--hecatec", default=str(ROOT / "build/bin/hecatec"))
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--texts", default="/usr/share/games/fortunes")
    p.add_argument("--machine", help="name of the result files (default: from the CPU)")
    p.add_argument("--out", default=str(ROOT))
    p.add_argument("--work", type=pathlib.Path, help="folder for what is finished, to go on with")
    return p.parse_args()


class Progress:
    """Prints how far a run is, and the time that the rest takes at the speed so far."""

    def __init__(self, name, steps):
        self.name, self.steps, self.start, self.first, self.next = name, steps, time.monotonic(), None, 0

    def __call__(self, step, loss):
        """`step` steps are done."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.start = step, now
        if step < self.steps and now < self.next:
            return
        self.next = now + EVERY
        rest = (now - self.start) / max(1, step - self.first) * (self.steps - step)
        left = f", {rest / 60:.1f} min left" if step > self.first and step < self.steps else ""
        print(f"{self.name}: step {step} of {self.steps}, loss {loss:.4f}{left}", flush=True)


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive", **environment})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")


def gather(folder, out):
    """The collections without an extension are the texts, as quickstart.sh takes them."""
    texts = sorted(path for path in pathlib.Path(folder).iterdir() if path.is_file() and "." not in path.name)
    if not texts:
        sys.exit(f"{folder} has no texts: install the package fortunes, or give --texts")
    out.write_bytes(b"".join(path.read_bytes() for path in texts))


def read_losses(log):
    """Losses of the steps whose lines are whole."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line)["loss"] for line in lines]


def train(options, program, work, name, steps, **environment):
    """Losses of the first `steps` steps of the training of options.steps; if an earlier call got as far, its."""
    log, complaints = work / f"{name}.jsonl", work / f"{name}.stderr"
    losses = read_losses(log)
    if len(losses) >= steps:
        return losses[:steps]
    log.unlink(missing_ok=True)
    command = [program, "train", "--data", work / "text", "--set", "data.order=random", "--seed", options.seed, "--threads", options.threads,
               "--log", log, "--steps", options.steps, "--load", work / "start.safetensors"]
    progress = Progress(name, steps)
    with open(complaints, "w") as stderr:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=stderr,
                                   env={**os.environ, "OMP_WAIT_POLICY": "passive", **environment})
    try:
        while process.poll() is None and len(losses) < steps:
            time.sleep(0.5)
            losses = read_losses(log)
            if losses:
                progress(min(len(losses), steps), losses[-1])
    finally:
        process.kill()
        process.wait()
    losses = read_losses(log)
    if len(losses) < steps:
        sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}\n{complaints.read_text()}")
    return losses[:steps]


def smooth(losses):
    return [(first + SMOOTH / 2, statistics.mean(losses[first:first + SMOOTH]))
            for first in range(0, len(losses) - SMOOTH + 1, SMOOTH)]


def compare(a, b):
    """Figures of two curves, of single steps and of the means that the picture shows: as long as both go."""
    a, b = a[:len(b)], b[:len(a)]
    steps = [abs(x - y) for x, y in zip(a, b)]
    means = [abs(x - y) for (_, x), (_, y) in zip(smooth(a), smooth(b))]
    late = min(LATE, len(a))
    return {"mean": statistics.mean(steps), "max": max(steps), "max_at_step": steps.index(max(steps)) + 1,
            "mean_smoothed": statistics.mean(means), "max_smoothed": max(means),
            "alike": next((i for i, step in enumerate(steps) if step > ALIKE), len(steps)),
            "late_mean": [statistics.mean(a[-late:]), statistics.mean(b[-late:])]}


def markdown(result):
    rows = [f"| {name} | {c['alike']} | {c['mean']:.4f} | {c['max']:.4f} | "
            f"{c['mean_smoothed']:.4f} | {c['max_smoothed']:.4f} | "
            f"{c['late_mean'][0]:.4f}, {c['late_mean'][1]:.4f} |" for name, c in result["compared"].items()]
    return "\n".join([
        f"# Loss curves: tiny.moe on the fortune cookies, {result['steps']} steps", "",
        "Real: computed by bench/curve/curve.py. Absolute differences of the training loss in nats; "
        f"alike: the first steps that agree to {ALIKE:g}; then rounding sends a token to another expert, and the "
        f"runs part; smoothed: means of {SMOOTH} steps.", "",
        "| | alike | mean | max | smoothed, mean | smoothed, max | "
        f"mean of the last {LATE} steps of both, or of all |", "| --- | ---: | ---: | ---: | ---: | ---: | --- |", *rows, "",
        "![curves](../../docs/curve.svg)", "", *[f"- {k}: {v}" for k, v in result["machine"].items()]]) + "\n"


def write(options, result, ours, theirs):
    out, name = pathlib.Path(options.out), options.machine or machine.slug(result["machine"])
    curves = {"hecate": smooth(ours), "PyTorch": smooth(theirs)}
    difference = [(step, x - y) for (step, x), (_, y) in zip(*curves.values())]
    c = result["compared"]["hecate, PyTorch"]
    note = (f"means of {SMOOTH} steps; single steps differ by {c['mean']:.4f} on average, {c['max']:.4f} at most; "
            f"the first {c['alike']} agree to {ALIKE:g}")
    title = "Training loss of examples/tiny.moe on the fortune cookies, single precision"
    (out / "docs/curve.svg").write_text(picture.draw(curves, difference, options.steps, title, note))
    results = out / "bench/results"
    (results / f"{name}-curve.json").write_text(json.dumps(result, indent=1) + "\n")
    (results / f"{name}-curve.md").write_text(markdown(result))
    print(markdown(result))


def prepare(options, work):
    """Text, program and first parameters, unless `work` has those of an equal call."""
    wanted = {"steps": options.steps, "seed": options.seed, "texts": options.texts}
    note = work / "options.json"
    if note.exists():
        if json.loads(note.read_text()) != wanted:
            sys.exit(f"{work} is of another call: {note.read_text()}")
        return
    gather(options.texts, work / "text")
    run(options.hecatec, "-o", work / "tiny", "--set", "parallel.microbatch=8", ROOT / "examples/tiny.moe")
    run(work / "tiny", "train", "--data", work / "text", "--set", "data.order=random", "--seed", options.seed, "--steps", 1,
        "--set", "train.optimizer.lr=0", "--save", work / "start.safetensors")
    note.write_text(json.dumps(wanted))


def train_all(options, work):
    """The three lists of losses: hecate, with other kernels, PyTorch."""
    from peer import train as train_peer
    prepare(options, work)
    ours = train(options, work / "tiny", work, "hecate", options.steps)
    other = train(options, work / "tiny", work, "hecate with other kernels", min(OTHER, options.steps),
                  HECATE_ISA="avx2" if machine.has_avx512() else "portable")
    theirs = train_peer(work / "start.safetensors", work / "text", options.steps, options.seed,
                        Progress("PyTorch", options.steps), work / "peer")
    return ours, other, theirs


def main():
    options = arguments()
    try:
        import torch
    except ImportError:
        sys.exit(f"{sys.executable} has no torch: another interpreter may have it (bench/packages.txt)")
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or pathlib.Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        ours, other, theirs = train_all(options, work)
    result = {"machine": {**machine.describe({}), "torch": torch.__version__}, "steps": options.steps,
              "seed": options.seed, "compared": {"hecate, PyTorch": compare(ours, theirs),
                  f"hecate, hecate with other kernels (first {len(other)} steps)": compare(ours, other)}}
    write(options, result, ours, theirs)


if __name__ == "__main__":
    main()
