"""cuda_vectors.py [--renew] EXAMPLES FOLDER GOLDEN NVCC NVDISASM: the loops that the compiler writes for target cuda,
in machine code of three architectures, beside a table as that of kernels (tests/kernels/cuda/loops.py).

Each example is compiled with its own widths, which whole vectors fit. No loop may use local memory. In the hot loop of
a kernel for neighbours every access to memory is of 16 bytes, but for numbers that all neighbours share. --renew
writes GOLDEN.

Environment: HECATEC; INCLUDE, the folder of the interface.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "kernels/cuda"))
import loops  # noqa: E402
import machine_code  # noqa: E402
from kernels import read_log  # noqa: E402

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
ALONE = ("cluster.nodes=1", "cluster.devices=1", "cluster.device.memory=100TB")
# Example, precision -> its loops are in the table.
PROGRAMS = {("qwen3-30b-a3b", "bf16"): True, ("tiny", "fp32"): True, ("deepseek-v3-like", "bf16"): False, ("gpt-oss-20b", "bf16"): False}


def compile_loops(source, cubin, architecture, nvcc):
    """A cubin, and ptxas's report of it beside it."""
    include = os.environ["INCLUDE"]
    number = architecture.removeprefix("sm_")
    done = subprocess.run([nvcc, "-x", "cu", "-std=c++17", "-O3", "-cubin", "-Xptxas", "-v", "-gencode",
                           f"arch=compute_{number},code={architecture}", "-I" + include, "-I" + include + "/hecate", "-o", cubin, source],
                          capture_output=True, text=True, timeout=200, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    with open(cubin + ".ptxas", "w", encoding="utf-8") as file:
        file.write(done.stderr)


def code_of(name, cubin, architecture, nvdisasm):
    """The code of its kernels, as of machine_code.read_code; and those that use local memory."""
    compiled = [entry for entry in read_log(cubin + ".ptxas") if "hkc_nothing" not in entry[0]]
    with open(cubin, "rb") as file:
        functions = [function for function in machine_code.functions_of(file.read()) if "hkc_nothing" not in function[0]]
    if len(compiled) != len(functions) or not compiled:
        sys.exit(f"{cubin}: {len(functions)} kernels, ptxas reports {len(compiled)}")
    lines = machine_code.lines_of(architecture, [code for _, code in functions], nvdisasm)
    code = {(name, kernel, architecture): found for (kernel, _), found in zip(functions, lines, strict=True)}
    return code, [f"{name} {architecture}: {kernel} uses local memory" for kernel, _, _, _, local in compiled if local]


def narrow_accesses(code):
    """The accesses of less than 16 bytes in hot loops of kernels for neighbours, of which some share a number."""
    for (name, kernel, architecture), lines in code.items():
        if not re.search(r"kernelILi[48]E", kernel):
            continue
        words = [word for word in loops.hot_loop([line for line in lines if line.word != "NOP"]) if re.match(r"(LDG|STG)\b", word)]
        wide = [word for word in words if ".128" in word]
        if not wide or any(word.startswith("STG") and word not in wide for word in words):
            yield f"{name} {architecture}: {kernel}: {' '.join(words)}"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--renew"]
    examples, folder, golden, nvcc, nvdisasm = arguments
    os.makedirs(folder, exist_ok=True)
    listed, faults, vectors = {}, [], 0
    for (example, precision), in_table in PROGRAMS.items():
        source = f"{folder}/{example}-{precision}.c"
        settings = [f"--set={setting}" for setting in (*ALONE, f"train.precision={precision}")]
        subprocess.run([*os.environ["HECATEC"].split(), "-w", "-S", "--target=cuda", *settings, "-o", source, f"{examples}/{example}.moe"], check=True)
        for architecture in ARCHITECTURES:
            cubin = f"{source}.{architecture}"
            compile_loops(source, cubin, architecture, nvcc)
            code, local = code_of(f"{example} {precision}", cubin, architecture, nvdisasm)
            faults += [*local, *narrow_accesses(code)]
            vectors += sum("kernelILi8E" in kernel or "kernelILi4E" in kernel for _, kernel, _ in code)
            listed.update(code if in_table else {})
    table = [loops.version_of(nvcc), loops.HEAD, *loops.lines_of(listed)]
    print("\n".join(faults + [f"{vectors} kernels for neighbours"]))
    if len(arguments) < len(sys.argv) - 1:
        pathlib.Path(golden).write_text("\n".join(table) + "\n", encoding="utf-8")
    sys.exit(bool(faults) or not vectors or loops.differences(table, golden, ",".join(ARCHITECTURES), "renew_cuda_loops") > 0)


if __name__ == "__main__":
    main()
