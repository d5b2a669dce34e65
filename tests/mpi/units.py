#!/usr/bin/env python3
"""Units of dense parameters that come and go (parallel.dense = shard). HECATEC, RANKS, MPI_TESTS, TEXT, MPICC,
LIBRARIES and EMITTED_CFLAGS come from the environment.

HECATE_RELEASED=nan fills what is released with NaN. A program learns the same to the bit. One that leaves out
the gather of a unit, or releases one before it is read, ends with an error. Other values are refused."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS = 2
SETTINGS = ["parallel.dense=shard", f"cluster.devices={RANKS}", "parallel.microbatch=4"]
# Settings, and layers: a unit behind three starts among them.
MODELS = {"fp32": ([], 2), "bf16": (["train.precision=bf16"], 3), "everywhere": (["parallel.experts=replicate"], 2)}
SEEN = r"(the loss|the gradient of \S+) is not finite"


def faults(code):
    """Faults of each unit, by name, and the emitted code that has them."""
    for unit in sorted(set(re.findall(r"hrt_train_dense_bring\(m->dense, (\d+), ", code)), key=int):
        yield f"unit {unit} is not gathered", re.sub(rf"hrt_train_dense_bring\(m->dense, {unit}, [^;]*;", ";", code)
        yield (f"unit {unit} is released too early",
               re.sub(rf"hrt_train_dense_await(\(m->dense, {unit}, [^;]*;)", r"hrt_train_dense_await\1 hrt_train_dense_release\1", code))


def build(name, code):
    source = pathlib.Path(f"{name}.c")
    source.write_text(code)
    subprocess.run([os.environ["MPICC"], *os.environ["EMITTED_CFLAGS"].split(), "-fopenmp", "-O0", "-o", name, source,
                    f"-L{os.environ['LIBRARIES']}", "-lhecate_comm_mpi", "-lhecate_runtime", "-lhecate_tokenizer", "-lhecate_kernels", "-lpcre2-8",
                    "-lutf8proc", "-ljansson", "-ldeflate", "-lm"], check=True)


def train(name, code=0, released="nan", steps=3):
    """Its output and the file that it saves."""
    run = subprocess.run(["sh", os.environ["RANKS"], str(RANKS), f"./{name}", "train", "--data", os.environ["TEXT"], "--save", f"{name}.st",
                          "--steps", str(steps)], capture_output=True, text=True, timeout=120, env={**os.environ, "HECATE_RELEASED": released})
    if run.returncode != code:
        sys.exit(f"{name}: ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run.stdout + run.stderr, b"" if code else pathlib.Path(f"{name}.st").read_bytes()


def check(name, settings, layers):
    options = ["-D", f"L={layers}"] + [word for key in [*SETTINGS, *settings] for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-S", "-o", f"{name}-sound.c", *options, os.environ["MPI_TESTS"] + "/small.moe"], check=True)
    code = pathlib.Path(f"{name}-sound.c").read_text()
    build(name, code)
    if train(name)[1] != train(name, released="")[1]:
        sys.exit(f"{name}: HECATE_RELEASED=nan changes what is learned")
    planted = list(faults(code))
    if len(planted) < 8:
        sys.exit(f"{name} has too few units: {len(planted) / 2}")
    for what, changed in planted:
        build("planted", changed)
        said, _ = train("planted", code=1)
        if not re.search(SEEN, said):
            sys.exit(f"{name}: {what}: not noticed\n{said}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (settings, layers) in MODELS.items():
            check(name, settings, layers)
        said, _ = train("fp32", code=2, released="zero")
        if 'HECATE_RELEASED=zero: it can only be "nan"' not in said:
            sys.exit(f"HECATE_RELEASED=zero: {said}")


if __name__ == "__main__":
    main()
