"""check.py PROGRAM-FOLDER OUT [--time] [--mps]: trains a program of the bundle on the GPU. Losses and norms of all steps agree with those of target cpu;
a second run, and one without CUDA graphs, save the same bits. Several ranks share the GPU. With --time it trains once, with a profile. Prints what it
found, in its last line the worst difference, or tokens a second. Status 0; 1 where something is wrong; 77 where there is no GPU."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys


def start(ranks, command, meet, **environment):
    """Runs a command, as so many ranks of this machine that meet by a file. Returns its status, the first that is not
    0, and the output of each rank, which is in files, MEET.RANK, too, while it runs."""
    meet = pathlib.Path(meet)
    meet.unlink(missing_ok=True)
    several = {"OMP_NUM_THREADS": "2", "HECATE_RANKS": str(ranks), "HECATE_RENDEZVOUS": str(meet)} if ranks > 1 else {}
    every = []
    for rank in range(ranks):
        own = {**os.environ, **several, **({"HECATE_RANK": str(rank)} if ranks > 1 else {}), **environment}
        with open(f"{meet}.{rank}", "wb") as said:
            every.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=own))
    status = [process.wait() for process in every]
    texts = [pathlib.Path(f"{meet}.{rank}").read_text(errors="replace") for rank in range(ranks)]
    return next((one for one in status if one), 0), texts


def train(place, case, out, name, *arguments, **environment):
    log, saved = out / f"{name}.jsonl", out / f"{name}.safetensors"
    for path in (log, saved):
        path.unlink(missing_ok=True)
    options = [option.replace("$HERE", str(place)) for option in case["options"]]
    command = [str(place / "program"), "train", "--data", str(place.parent.parent / "data/text"), "--steps", str(case["steps"]),
               "--set", f"log.jsonl={log}", "--set=log.every=1", *options, *arguments]
    print(f"$ {' '.join(command)}", flush=True)
    status, texts = start(case["ranks"], command, out / f"{place.name}.meet", **environment)
    for rank, text in enumerate(texts):
        print(f"rank {rank}: {text}" if len(texts) > 1 else text, flush=True)
    if status == 127:  # The loader's: the text says which library.
        sys.exit(77)
    if any("this program is for a GPU (target cuda), and there is none" in text for text in texts):
        sys.exit(77)
    if status:
        sys.exit(f"{name}: status {status}")
    return [json.loads(line) for line in log.read_text().splitlines()]


def apart(expected, actual):
    """The largest difference, as a share of the expected number; infinite where a number is none."""
    worst = max((abs(a - b) / max(abs(a), 1e-9) for a, b in zip(expected, actual, strict=True)), default=float("inf"))
    return worst if worst == worst else float("inf")


def compare(place, case, out):
    expected = [json.loads(line) for line in (place / "cpu.jsonl").read_text().splitlines()]
    saved = {}
    runs = (("first", {}), ("again", {}), *([("no-graphs", {"HECATE_GRAPHS": "off"})] if case["ranks"] == 1 else []))
    for name, environment in runs:
        file = out / f"{name}.st"
        log = train(place, case, out, name, "--route", f"ids:{place}/ids", "--save", str(file), **environment)
        saved[name] = file.read_bytes()
        file.unlink()
        if name == "first":
            loss, norm = (apart(*([step[key] for step in steps] for steps in (expected, log))) for key in ("loss", "grad_norm"))
            for a, b in zip(expected, log):
                print(f"step {a['step']}: loss {a['loss']:.6f} {b['loss']:.6f}, norm {a['grad_norm']:.6f} {b['grad_norm']:.6f}")
    bits = [name for name in saved if saved[name] != saved["first"]]
    said = f"loss {loss:.1e} (bound {case['loss']:.1e}), norm {norm:.1e} (bound {case['norm']:.1e}), other bits: {' '.join(bits) or 'none'}"
    print(said)
    return loss <= case["loss"] and norm <= case["norm"] and not bits


def time(place, case, out):
    log = train(place, case, out, "timed", "--profile")
    later = log[len(log) // 2:]  # By then everything has been asked for before.
    median = lambda key: sorted(step[key] for step in later)[len(later) // 2]
    print(f"median {median('ms'):.1f} ms, {median('tokens_per_s'):.0f} tok/s, loss {log[0]['loss']:.3f} to {log[-1]['loss']:.3f}")
    return True


@contextlib.contextmanager
def sharing(out):
    """NVIDIA's service by which processes compute beside each other on one GPU, if the driver's package has it; else nothing."""
    control = shutil.which("nvidia-cuda-mps-control")
    if not control:
        print("there is no nvidia-cuda-mps-control: ranks take turns")
        yield
        return
    for name in ("PIPE", "LOG"):
        folder = os.environ[f"CUDA_MPS_{name}_DIRECTORY"] = f"{out}/mps-{name}".lower()
        os.makedirs(folder, exist_ok=True)
    subprocess.run([control, "-d"], check=False)
    try:
        yield
    finally:
        subprocess.run([control], input="quit\n", text=True, check=False)


def main(place, out, *flags):
    place, out = pathlib.Path(place).resolve(), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    case = json.loads((place / "case.json").read_text())
    with sharing(out) if "--mps" in flags else contextlib.nullcontext():
        return 0 if (time if "--time" in flags else compare)(place, case, out) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
