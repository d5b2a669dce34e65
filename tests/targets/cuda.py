"""cuda.py MODEL TEXT FOLDER [PRECISION]: programs of target cuda train, evaluate and sample on the emulator (tests/simt) as
those of target cpu do. Another schedule gives the same bits, and so does a step that is replayed; the host never touches the
device's memory.

In fp32 losses and norms agree to 1e-5, saved parameters to 1e-3 of the largest of each tensor. In bf16 both targets multiply
the same rounded operands, but cuda alone rounds values between GEMMs, by up to 2^-9. Tokens go where they went on
target cpu: rounding turns choices between experts that score alike. Losses agree to 2^-9
(they are means of tokens, whose errors are of either sign), norms of gradients, which squares and the way back make worse,
to 2^-7. AdamW moves every parameter by about lr in each step, in a direction that rounding can turn where a gradient is next
to 0: of each tensor the mean distance is at most a tenth of the way.

Without the environment's CUDA_FLAGS the program is compiled as a user does it. Where there is no GPU it then has to say
so: that is status 77, of a test that is skipped.

Environment: HECATEC; for the emulator CC and CXX; CFLAGS for emitted programs; CUDA_FLAGS for what nvcc would compile;
LIBRARIES, in order, separated by blanks; RANGES_LIBRARY, the fake of a profiler.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hf"))
import weights  # noqa: E402


# Losses and memory of an evaluation need one step's worth of tokens, not the ten of the default.
EVALUATE = ("--set", "train.eval_steps=1")


def words(name):
    return shlex.split(os.environ[name])


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False,
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


def read_log(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def train(program, text, saved, steps, *arguments, **environment):
    log = saved + ".jsonl"
    if os.path.exists(log):
        os.remove(log)
    run(program, "train", "--data", text, "--steps", str(steps), "--save", saved, *EVALUATE, "--set",
        f"log.jsonl={log}", *arguments, **environment)
    return read_log(log)


def compare(expected, actual, tolerance, what):
    size = max(map(abs, expected), default=0) or 1
    worst = max((abs(a - b) for a, b in zip(expected, actual)), default=0) / size
    if len(expected) != len(actual) or not worst <= tolerance:
        sys.exit(f"{what}: {worst:.1e} of the largest number apart")


def compare_means(expected, actual, tolerance, what):
    mean = sum(abs(a - b) for a, b in zip(expected, actual, strict=True)) / max(len(expected), 1)
    if not mean <= tolerance:
        sys.exit(f"{what}: {mean:.1e} apart")


def refuse_small_device(program, text):
    """Before the first step, with what needs how much; in the emulator, which can have a small device."""
    done = subprocess.run((program, "train", "--data", text), capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "SIMT_MEMORY": "33000"})
    said = r"not enough memory on GPU 0 \(sm_90\): .* are needed, .* of 32.2 MiB are free: parameters .*parallel.microbatch=N"
    if "CUDA_FLAGS" in os.environ and (done.returncode != 1 or not re.search(said, done.stderr)):
        sys.exit(f"a small device: status {done.returncode}\n{done.stderr}")


def use_library(program, text, expected):
    """With a table that gives all products to cuBLASLt the numbers are those of the own kernels, but for the order of sums."""
    if "hkc_library_open" not in os.environ.get("LIBRARIES", ""):
        return
    table = program + ".products"
    with open(table, "w", encoding="utf-8") as file:
        file.write("hecate-products 1 sm_90\n")
        for type_, form in ((type_, form) for type_ in ("f32", "bf16") for form in ("nn", "nt", "tn")):
            file.write(f"{type_} {form} m=32 n=16 k=16 own=2 cublaslt=1 cublaslt\n")
    for a, b in zip(expected, train(program, text, program + ".library", 3, HECATE_PRODUCTS=table), strict=True):
        for key in ("loss", "grad_norm"):
            compare([a[key]], [b[key]], 1e-5, f"by cuBLASLt, step {a['step']}, {key}")
    done = subprocess.run((program, "train", "--data", text), capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, "HECATE_PRODUCTS": "no/table"})
    if done.returncode != 2 or "HECATE_PRODUCTS: no/table: No such file" not in done.stderr:
        sys.exit(f"a table that is not there: status {done.returncode}\n{done.stderr}")


def calls_of(program, text, graphs, steps=3):
    """Operations of a run of some steps without an evaluation, calls that asked for them, and the saved file."""
    done = subprocess.run((program, "train", "--data", text, "--steps", str(steps), "--save", program + ".graphs", "--set", "train.eval_steps=0"),
                          timeout=300, check=False, capture_output=True, text=True, env={**os.environ, "SIMT_CALLS": "1", "HECATE_GRAPHS": graphs})
    said = re.search(r"^simt: (\d+) operations, asked for by (\d+) calls, ", done.stderr, re.M)
    if done.returncode or not said:
        sys.exit(f"HECATE_GRAPHS={graphs}: status {done.returncode}\n{done.stderr}")
    with open(program + ".graphs", "rb") as file:
        return int(said[1]), int(said[2]), file.read()


def replay_steps(program, text):
    """The first step of three is asked for kernel by kernel, the second recorded, the third replayed by a few calls: the same bits."""
    if "CUDA_FLAGS" not in os.environ:
        return
    operations, calls, saved = calls_of(program, text, "")
    each = calls_of(program, text, "off")
    before, calls_before, _ = calls_of(program, text, "", 1)
    step = (operations - before) / 2
    if each != (operations, operations, saved) or not calls - calls_before < step + step / 4:
        sys.exit(f"steps of {step} operations: 3 take {calls} calls, one {calls_before}, {each[:2]} without graphs; "
                 f"{'the same' if each[2] == saved else 'other'} bits")
    done = subprocess.run((program, "train", "--data", text), capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, "HECATE_GRAPHS": "on"})
    if done.returncode != 2 or "HECATE_GRAPHS=on: it can only be" not in done.stderr:
        sys.exit(f"HECATE_GRAPHS=on: status {done.returncode}\n{done.stderr}")


def show_ranges(program, text, folder):
    """Compares a profiler's ranges: lines of the model, each begun and ended, those of a function inside of the line
    that calls it."""
    library, seen = os.environ.get("RANGES_LIBRARY"), folder + "/ranges"
    if not library:
        return
    train(program, text, program + ".ranges", 1, NVTX_INJECTION64_PATH=library, RANGES=seen)
    with open(seen, encoding="utf-8") as file:
        ranges = file.read()
    if not re.search(r"^cuda.moe:35\n  cuda.moe:6\n  cuda.moe:7\n  cuda.moe:8\ncuda.moe:36\n  cuda.moe:16\n    cuda.moe:13\n", ranges, re.M) or \
            not ranges.endswith("\n0 open\n"):
        sys.exit(f"ranges of a step: {ranges}")


def compare_text(command, expected, actual, tolerance):
    """The same but for numbers, which may differ so much."""
    number = r"\d+\.\d+"
    texts = expected, actual
    if len({re.sub(number, "", text) if tolerance else text for text in texts}) > 1:
        sys.exit(f"{command}:\n{expected}{actual}")
    compare(*([float(found) for found in re.findall(number, text)] for text in texts), tolerance, command)


def main(model, text, folder, precision="fp32"):
    os.makedirs(folder, exist_ok=True)
    cpu, cuda = folder + "/cpu", folder + "/cuda"
    setting = ("--set", f"train.precision={precision}")
    run(*words("HECATEC"), *setting, "-o", cpu, model)
    compile_for_device(model, cuda, *setting)
    bf16 = precision == "bf16"

    ids = folder + "/ids"
    routes = (("--record-ids", ids), ("--route", f"ids:{ids}")) if bf16 else ((), ())
    logs = [train(program, text, program + ".st", 3, *route) for program, route in zip((cpu, cuda), routes)]
    for a, b in zip(*logs, strict=True):
        for key in ("loss", "cross_entropy", "aux"):
            compare([a[key]], [b[key]], 2**-9 if bf16 else 1e-5, f"step {a['step']}, {key}")
        compare([a["grad_norm"]], [b["grad_norm"]], 2**-7 if bf16 else 1e-5, f"step {a['step']}, norm")
    saved = [weights.read_numbers(program + ".st") for program in (cpu, cuda)]
    way = sum(step["lr"] for step in logs[0])
    for name, numbers in saved[0].items():
        if bf16:
            compare_means(numbers, saved[1][name], way / 10, name)
        else:
            compare(numbers, saved[1][name], 1e-3, name)

    named = r"device +GPU 0 of \d+: sm_\d+, \d+ multiprocessors; driver \d+\.\d, CUDA \d+\.\d(, cuBLASLt \d+\.\d+\.\d+)?\n"
    if not re.search(named, run(cuda, "info")):
        sys.exit("info does not name the device")
    refuse_small_device(cuda, text)
    train(cuda, text, cuda + ".again", 3, *routes[1], SIMT_SEED="7")
    with open(cuda + ".st", "rb") as first, open(cuda + ".again", "rb") as second:
        if first.read() != second.read():
            sys.exit("another schedule gives other bits")
    train(cuda, text, cuda + ".apart", 1, SIMT_PROTECT="1")

    if not bf16:
        use_library(cuda, text, logs[0])
        replay_steps(cuda, text)
    show_ranges(cuda, text, folder)
    for command in (("eval", "--data", text, "--sequences", "4"), ("sample", "--temperature", "0", "--tokens", "8")):
        results = [run(program, command[0], "--load", cpu + ".st", *command[1:]) for program in (cpu, cuda)]
        compare_text(command[0], *results, 2**-9 if bf16 else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
