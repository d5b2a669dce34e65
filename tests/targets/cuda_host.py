"""cuda_host.py EXAMPLE TEXT FOLDER: programs of target cuda take memory of the host that does not grow with the model.

Every command takes the same for a small and a large model, but for the staging buffer, which `info` lists, and lists of
tensors. The test notices a runtime that copies all values to the host.

Environment: as of cuda.py, which this is a part of.
"""

import os
import re
import shutil
import subprocess
import sys

from cuda import compile_for_device, run, words

SMALL = ("-DV=256", "-DD=64", "-DH=2", "-DG=1", "-DA=32", "-DL=2", "-DF=256", "-DT=16", "--set=data.format=bytes", "--set=cluster.nodes=1", "--set=cluster.devices=1",
         "--set=train.tokens=16", "--set=parallel.microbatch=1", "--set=parallel.logits=1", "--set=checkpoint.memory=2Mi")
SIZES = (8, 64)  # Experts: 3 MiB of parameters, and 24 MiB.
NEAR = 2 << 20  # Lists of tensors: there are eight times as many.
WRAPPED = ("malloc", "calloc", "realloc", "free", "aligned_alloc", "mmap", "munmap", "cudaMallocHost", "cudaFreeHost")
# A file of the runtime, and a change in it: before it looks at values, a program copies them all.
FAULT = ("runtime/params/slice.c", "    struct hrt_staging *staging = buffer->staging;\n    if (!staging) return",
         "    struct hrt_staging *staging = buffer->staging;\n    static char *all;\n"
         "    const size_t whole = (size_t)(buffer->placement->program->param_elements * element_of(buffer, slice->tensor.param));\n"
         "    if (!all) all = memset(malloc(whole), 1, whole);\n    if (!staging) return")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def taken(*command):
    """The most memory of the host that a command had at a time."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    said = re.search(r"^host: (\d+) bytes at most$", done.stderr, re.M)
    if done.returncode or not said:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return int(said[1])


def staging(program):
    found = re.search(r"staging buffer +([\d.]+) (\w+)$", run(program, "info"), re.M)
    if not found:
        sys.exit(f"info lists no staging buffer:\n{run(program, 'info')}")
    return float(found[1]) * UNITS[found[2]]


def link(program, objects):
    run(*words("CXX"), *words("CFLAGS"), *(f"-Wl,--wrap={name}" for name in WRAPPED), "-o", program, *objects, *words("LIBRARIES"))


def compile_object(source, target):
    run(*words("CC"), "-std=gnu17", "-O1", *words("CFLAGS"), f"-I{root()}", "-c", "-o", target, source)
    return target


def root():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def plant(program, objects, folder):
    """The same program with another runtime."""
    path, change, to = FAULT
    with open(f"{root()}/{path}", encoding="utf-8") as file:
        code = file.read()
    if code.count(change) != 1:
        sys.exit(f"{path} has no such place: {change}")
    with open(f"{folder}/fault.c", "w", encoding="utf-8") as file:
        file.write(code.replace(change, to))
    link(program, [*objects, compile_object(f"{folder}/fault.c", f"{folder}/fault.o")])


def measure(program, text, folder):
    """Memory of the host for each command."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    saved, checkpoints, exported = f"{folder}/saved.st", f"{folder}/ck", f"{folder}/hf"
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        file.write('{"model_type": "gpt_oss", "torch_dtype": "float32"}')
    train = (program, "train", "--data", text, "--set", "train.eval_steps=0", "--checkpoint", checkpoints, "--set", "checkpoint.every=1")
    evaluate = (program, "eval", "--data", text, "--sequences", "1", "--load")
    return {
        "train and save": taken(*train, "--steps", "2", "--save", saved),
        "resume": taken(*train, "--steps", "3", "--resume", "--resume-changed"),
        "load": taken(*evaluate, saved),
        "export": taken(program, "export", "--load", saved, "--like", folder, "--to", exported),
        "load what was exported": taken(*evaluate, exported),
    }


def main(example, text, folder):
    os.makedirs(folder, exist_ok=True)
    counter = compile_object(os.path.join(root(), "tests/targets/host_memory.c"), f"{folder}/host_memory.o")
    found = []
    for size in SIZES:
        program = f"{folder}/{size}"
        compile_for_device(example, program, "-w", *SMALL, f"-DE={size}", "--set=train.precision=fp32")
        objects = [program + ".o", program + ".cu.o", counter]
        link(program, objects)
        found.append((staging(program), measure(program, text, f"{folder}/files")))
    (less, small), (more, large) = found
    if not less < more:
        sys.exit(f"staging buffers of {less} and {more} bytes")
    grown = {command: large[command] - small[command] - (more - less) for command in small}
    if max(grown.values()) > NEAR:
        sys.exit(f"memory of the host grows with the model: {grown}, {found}")
    print(f"memory of the host: {large}; with a staging buffer of {more:.0f} bytes; more than of a small model: {grown}")
    plant(program, objects, folder)
    copied = measure(program, text, f"{folder}/files")
    if any(copied[command] <= large[command] + NEAR for command in copied):
        sys.exit(f"copies of all values are not noticed: {copied}, {large}")


if __name__ == "__main__":
    main(*sys.argv[1:])
