"""cuda.py MODEL TEXT FOLDER: programs of target cuda train, evaluate and sample on the emulator (tests/simt) as those of
target cpu do. Losses and norms agree to 1e-5, saved parameters to 1e-3 of the largest of each tensor; another schedule
gives the same bits, and the host never touches the device's memory.

Without the environment's CUDA_FLAGS the program is compiled as a user does it. Where there is no GPU it then has to say
so: that is status 77, of a test that is skipped.

Environment: HECATEC; for the emulator CC and CXX; CFLAGS for emitted programs; CUDA_FLAGS for what nvcc would compile;
LIBRARIES, in order, separated by blanks.
"""

import json
import os
import shlex
import struct
import subprocess
import sys


def words(name):
    return shlex.split(os.environ[name])


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=100, check=False,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive", **environment})
    if done.returncode == 1 and "this program is for a GPU (target cuda), and there is none" in done.stderr:
        print(done.stderr)
        sys.exit(77)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_for_device(model, program, *arguments):
    """For the emulator as hecatec does it, with g++ in place of nvcc."""
    if "CUDA_FLAGS" not in os.environ:
        target = "cuda" if os.path.exists("/dev/nvidia0") else "cuda:sm_80"  # One is enough to see it compiled.
        run(*words("HECATEC"), f"--target={target}", "-o", program, *arguments, model)
        return
    source, kernels, host = program + ".c", program + ".cu.o", program + ".o"
    run(*words("HECATEC"), "--target=cuda", "-S", "-o", source, *arguments, model)
    run(*words("CXX"), *words("CUDA_FLAGS"), "-x", "c++", "-c", "-o", kernels, source)
    run(*words("CC"), "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", *words("CFLAGS"), "-c", "-o", host, source)
    run(*words("CXX"), *words("CFLAGS"), "-o", program, host, kernels, *words("LIBRARIES"))


def train(program, text, saved, steps, **environment):
    log = saved + ".jsonl"
    if os.path.exists(log):
        os.remove(log)
    run(program, "train", "--data", text, "--steps", str(steps), "--save", saved, "--set",
        f"log.jsonl={log}", **environment)
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def tensors(path):
    """Name -> numbers of a safetensors file of float32."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin : 8 + size + end])
    return found


def compare(expected, actual, tolerance, what):
    size = max(map(abs, expected), default=0) or 1
    worst = max((abs(a - b) for a, b in zip(expected, actual)), default=0) / size
    if len(expected) != len(actual) or not worst <= tolerance:
        sys.exit(f"{what}: {worst:.1e} of the largest number apart")


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    cpu, cuda = folder + "/cpu", folder + "/cuda"
    run(*words("HECATEC"), "-o", cpu, model)
    compile_for_device(model, cuda)

    logs = [train(program, text, program + ".st", 3) for program in (cpu, cuda)]
    for a, b in zip(*logs, strict=True):
        for key in ("loss", "cross_entropy", "aux", "grad_norm"):
            compare([a[key]], [b[key]], 1e-5, f"step {a['step']}, {key}")
    saved = [tensors(program + ".st") for program in (cpu, cuda)]
    for name, numbers in saved[0].items():
        compare(numbers, saved[1][name], 1e-3, name)

    train(cuda, text, cuda + ".again", 3, SIMT_SEED="7")
    with open(cuda + ".st", "rb") as first, open(cuda + ".again", "rb") as second:
        if first.read() != second.read():
            sys.exit("another schedule gives other bits")
    train(cuda, text, cuda + ".apart", 1, SIMT_PROTECT="1")

    for command in (("eval", "--data", text, "--sequences", "4"), ("sample", "--temperature", "0", "--tokens", "8")):
        results = [run(program, command[0], "--load", cpu + ".st", *command[1:]) for program in (cpu, cuda)]
        if results[0] != results[1]:
            sys.exit(f"{command[0]}:\n{results[0]}{results[1]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
