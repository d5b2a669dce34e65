"""The instructions that must stand before the GEMMs of warpgroups (HGMMA), on every way through a kernel's machine
code.

Registers: WARPGROUP.ARRIVE, behind the last wait for products (WARPGROUP.DEPBAR). Shared memory, which they read by another path
than it is written: behind the last wait for copies (DEPBAR) or store (STS) first FENCE.VIEW.ASYNC, then a barrier (BAR).

Run by itself: warpgroups.py NVCC NVDISASM ROOT FAULT... compiles fences.cu with each planted fault of
faults/cuda/product_wgmma.h.patch, 0 for none, and fails unless every fault but 0 is found, in machine code or in ptxas's words.
"""

import re
import subprocess
import sys
import tempfile

from machine_code import functions_of, lines_of

ARRIVED, FENCED, SHARED = 1, 2, 4  # SHARED: a barrier has followed the fence.


def after(state, word):
    """The state behind an instruction, from the state before it."""
    if word.startswith("WARPGROUP.DEPBAR"):
        return state & ~ARRIVED
    if word.startswith("WARPGROUP.ARRIVE"):
        return state | ARRIVED
    if word.startswith("FENCE.VIEW.ASYNC"):
        return state | FENCED
    if word.startswith("BAR."):
        return state | SHARED if state & FENCED else state & ~SHARED
    if word.split(".")[0] in ("DEPBAR", "STS"):
        return state & ~FENCED
    return state


def ways_from(lines, i, at):
    """The instructions that may follow the i-th one."""
    line = lines[i]
    if line.word.startswith("BRA") and line.to in at:
        yield at[line.to]
        if line.sure:
            return
    if line.word.startswith("EXIT") and line.sure:
        return
    if i + 1 < len(lines):
        yield i + 1


def missing(lines):
    """Yields (address, the missing instructions) of GEMMs; a state is what all ways there have in common."""
    if not any(line.word.startswith("HGMMA") for line in lines):
        return
    at = {line.address: i for i, line in enumerate(lines)}
    known, left = {0: 0}, [0]
    while left:
        i = left.pop()
        state = after(known[i], lines[i].word)
        for following in ways_from(lines, i, at):
            met = known.get(following, state) & state
            if known.get(following) != met:
                known[following] = met
                left.append(following)
    for i, line in enumerate(lines):
        if line.word.startswith("HGMMA") and i in known:
            if not known[i] & ARRIVED:
                yield line.address, "WARPGROUP.ARRIVE behind the last wait"
            if not known[i] & SHARED:
                yield line.address, "FENCE.VIEW.ASYNC and a barrier behind the last copies"


def complaints(text):
    """ptxas's complaints about GEMMs of warpgroups: that it had to mend them, or waits for each."""
    return re.findall(r"^.*\(C75\d\d\).*$", text, re.MULTILINE)


def faults_of(nvcc, nvdisasm, root, fault):
    """Yields what is wrong with the kernels of fences.cu."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file, tempfile.TemporaryDirectory() as copies:
        faults = f"{root}/tests/kernels/cuda/faults"
        subprocess.run([f"{faults}/apply.sh", root, f"{faults}/cuda/product_wgmma.h.patch",
                        f"{copies}/kernels/cuda/product_wgmma.h"], check=True)
        command = [nvcc, "-std=c++17", "-O3", f"-I{copies}", f"-I{root}", f"-Dplanted(fault)=((fault)=={fault})", "-gencode",
                   "arch=compute_90a,code=sm_90a", "-cubin", "-o", file.name, f"{root}/tests/kernels/cuda/fences.cu"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        yield from complaints(done.stdout + done.stderr)
        with open(file.name, "rb") as cubin:
            codes = [code for _, code in functions_of(cubin.read())]
    for lines in lines_of("sm_90a", codes, nvdisasm):
        for address, what in missing(lines):
            yield f"{address:#x}: HGMMA without {what}"


def main(nvcc, nvdisasm, root, *faults):
    for fault in faults:
        found = list(faults_of(nvcc, nvdisasm, root, fault))
        print(f"fault {fault}:", *(found[:2] or ["nothing is found"]), sep="\n  ")
        if bool(found) != (fault != "0"):
            sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
