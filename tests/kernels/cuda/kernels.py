"""kernels.py [--renew] ROOT BUILD ARCHITECTURES GOLDEN NVCC [CUOBJDUMP NVDISASM]: compares nvcc's output for every CUDA
kernel with a table.

BUILD is the folder with the objects of ROOT/kernels' *.cu, and beside each one the output of ptxas (NAME.o.ptxas).
ARCHITECTURES, as sm_80,sm_90a, are those that the objects must have machine code for. Others of the table are not compared.
For every kernel and architecture GOLDEN has registers, bytes of static shared memory and, from the machine code,
how often some instructions stand in it: tensor cores' products of a warp (HMMA) and of a warpgroup (HGMMA), loads of
matrices (LDSM), asynchronous copies (LDGSTS), barriers (BAR). A kernel must not spill or use local memory, with any
version of nvcc; before products of warpgroups stands what they need (warpgroups.py), without ptxas's help.
Another version of nvcc than the table's may well choose other registers: then only that is checked, and said.
Without cuobjdump instructions are not counted. --renew writes GOLDEN; without cuobjdump it keeps old counts.
"""

import glob
import os
import re
import subprocess
import sys

from machine_code import read_code
from warpgroups import complaints, missing

INSTRUCTIONS = ("HMMA", "HGMMA", "LDSM", "LDGSTS", "BAR")
HEAD = "# kernel: architecture, registers, bytes of static shared memory; " + " ".join(INSTRUCTIONS)
UNKNOWN = " ".join("?" * len(INSTRUCTIONS))


def output_of(*command, text=None):
    return subprocess.run(command, check=True, input=text, capture_output=True, text=True).stdout


def plain_names(names):
    """Mangled name -> kernel with its template arguments."""
    names = sorted(set(names))
    demangled = output_of("c++filt", text="\n".join(names) + "\n").splitlines()
    plain = {}
    for name, text in zip(names, demangled):
        text = text.replace("(anonymous namespace)::", "")
        text = re.sub(r"\([\w:]+\)(?=-?\d)", "", text)  # Types of template arguments.
        plain[name] = re.sub(r"^void ", "", text.split("(")[0])
    return plain


def read_log(path):
    """Yields (mangled name, architecture, registers, shared memory, whether it uses local memory)."""
    name = architecture = None
    local = False
    with open(path, encoding="utf-8") as file:
        for line in file:
            if found := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
                name, architecture = found.groups()
                local = False
            elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", line):
                local = found.groups() != ("0", "0", "0")
            elif (found := re.search(r"Used (\d+) registers", line)) and name:
                shared = re.search(r"(\d+) bytes smem", line)
                yield name, architecture, int(found.group(1)), int(shared.group(1)) if shared else 0, local
                name = None


def count_instructions(lines):
    """How often each of INSTRUCTIONS stands there."""
    words = [line.word.split(".")[0] for line in lines]
    return " ".join(str(words.count(instruction)) for instruction in INSTRUCTIONS)


def read_kernels(root, build, tools):
    """(kernel, architecture) -> "registers shared" and its counts or None; and what is wrong with some."""
    kernels, faults = {}, []
    code = read_code(root, build, *tools) if tools else {}
    for path in sorted(glob.glob(os.path.join(build, "*", "*.ptxas"))):
        source = os.path.relpath(path, build).removesuffix(".o.ptxas")
        if not os.path.exists(os.path.join(root, "kernels", source)):
            continue  # From an earlier build.
        entries = list(read_log(path))
        with open(path, encoding="utf-8") as file:
            faults += [f"{source}: {complaint}" for complaint in complaints(file.read())]
        names = plain_names(name for name, *_ in entries)
        for name, architecture, registers, shared, uses_local in entries:
            key = f"{source} {names[name]}", architecture
            lines = code.get((source, name, architecture))
            count = count_instructions(lines) if lines else None
            kernels[key] = (f"{registers} {shared}", count)
            if uses_local:
                faults.append(f"{', '.join(key)}: uses local memory")
            faults += [f"{', '.join(key)}: {at:#x}: HGMMA without {what}" for at, what in missing(lines or [])]
    return kernels, faults


def read_golden(path):
    if not os.path.exists(path):
        return "", {}
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    kernels = {}
    for line in lines[2:]:
        kernel, values = line.rsplit(": ", 1)
        for value in values.split(", "):
            architecture, rest = value.split(" ", 1)
            kernels[kernel, architecture] = tuple(rest.split("; "))
    return lines[0], kernels


def write_golden(path, version, kernels, old):
    lines = {}
    for key in sorted(kernels, key=lambda key: (key[0], int(re.sub(r"\D", "", key[1])))):
        size, count = kernels[key]
        if count is None:
            count = old.get(key, ("", UNKNOWN))[1]
        lines.setdefault(key[0], []).append(f"{key[1]} {size}; {count}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{version}\n{HEAD}\n")
        for kernel, values in lines.items():
            file.write(f"{kernel}: {', '.join(values)}\n")


def refuse_loss(architectures, listed):
    """Ends where a new table would not have all that the old one lists."""
    if lost := listed - set(architectures.split(",")):
        sys.exit(f"the table would lose {', '.join(sorted(lost))}: configure with HECATE_CUDA_ARCHITECTURES as it was")


def of_architectures(kernels, architectures):
    return {key: values for key, values in kernels.items() if key[1] in architectures.split(",")}


def differences(kernels, golden):
    for key in sorted(kernels.keys() | golden.keys()):
        name = ", ".join(key)
        if key not in golden:
            yield f"{name}: not in the table"
        elif key not in kernels:
            yield f"{name}: in the table only"
        else:
            (size, count), (want_size, want_count) = kernels[key], golden[key]
            if size != want_size:
                yield f"{name}: registers and shared memory are {size}, the table says {want_size}"
            if count and want_count != UNKNOWN and count != want_count:
                yield f"{name}: {' '.join(INSTRUCTIONS)} are {count}, the table says {want_count}"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--renew"]
    renew = len(arguments) < len(sys.argv) - 1
    root, build, architectures, golden_path, nvcc = arguments[:5]
    version = "# nvcc " + re.search(r"V([\d.]+)", output_of(nvcc, "--version")).group(1)
    kernels, faults = read_kernels(root, build, arguments[5:])
    golden_version, golden = read_golden(golden_path)
    if renew:
        refuse_loss(architectures, {architecture for _, architecture in golden})
        write_golden(golden_path, version, kernels, golden)
    if not kernels:
        faults.append(f"{build}: no kernels")
    if version != golden_version and not renew:
        print(f"{version[2:]}, but the table is of {golden_version[2:]}: only spills are checked")
    elif not renew:
        faults += differences(kernels, of_architectures(golden, architectures))
    print("\n".join(faults), end="\n" if faults else "")
    if faults:
        print(f"{len(faults)} faults; where they are meant: cmake --build build --target renew_cuda_kernels")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
