#!/usr/bin/env python3
"""Units of dense parameters that come and go (parallel.dense = shard). HECATEC, RANKS, MPI_TESTS, TEXT, MPICC,
LIBRARIES and EMITTED_CFLAGS come from the environment.

Programs learn the same to the bit as with parallel.dense = replicate. HECATE_RELEASED=nan fills a unit with NaN
when it is released. A program that leaves a gather out, or releases a unit too early, ends with an error.
Other values are refused."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS = 2
# One iteration in a step: then bits agree.
ONE = ["-w", "--set", f"cluster.devices={RANKS}", "--set", "parallel.microbatch=16"]
BF16 = ["-DL=3", "--set", "train.precision=bf16"]  # A unit behind three layers starts among them.
# Options; `odd` has matrices with odd numbers of rows, whose copies in panels have other places.
MODELS = {"fp32": [], "bf16": BF16, "odd": ["-DD=25", *BF16], "everywhere": ["--set", "parallel.experts=replicate", *BF16]}
PLANTED = ["fp32", "bf16", "everywhere"]
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


def emitted(dense, options):
    subprocess.run([os.environ["HECATEC"], *ONE, "--set", f"parallel.dense={dense}", *options, "-S", "-o", "emitted.c",
                    os.environ["MPI_TESTS"] + "/small.moe"], check=True)
    return pathlib.Path("emitted.c").read_text()


def check(name, options):
    code = emitted("shard", options)
    build(name, code)
    build("whole", emitted("replicate", options))
    _, saved = train(name)
    for other, released in ((name, ""), ("whole", "")):
        if train(other, released=released)[1] != saved:
            sys.exit(f"{name} learns something else than {other} without HECATE_RELEASED")
    planted = list(faults(code)) if name in PLANTED else []
    if name in PLANTED and len(planted) < 8:
        sys.exit(f"{name} has too few units: {len(planted) / 2}")
    for what, changed in planted:
        build("planted", changed)
        said, _ = train("planted", code=1)
        if not re.search(SEEN, said):
            sys.exit(f"{name}: {what}: not noticed\n{said}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, options in MODELS.items():
            check(name, options)
        said, _ = train("fp32", code=2, released="zero")
        if 'HECATE_RELEASED=zero: it can only be "nan"' not in said:
            sys.exit(f"HECATE_RELEASED=zero: {said}")


if __name__ == "__main__":
    main()
