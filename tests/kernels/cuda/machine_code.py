"""The machine code of the CUDA kernels, taken apart once for all tests that read it.

nvdisasm takes 0.4 s to begin, and there are a hundred cubins: so the code of all kernels for an architecture is put in a
row and taken apart by one call, which is three times as fast. The result is kept in the folder of the objects.
"""

import collections
import concurrent.futures
import glob
import os
import re
import shutil
import struct
import subprocess
import tempfile

KEPT = "machine_code"  # A folder in that of the objects.

# An instruction: where it branches to, or -1; whether it does so, or ends a thread, on no condition.
Line = collections.namedtuple("Line", "address word to sure")


def functions_of(cubin):
    """Yields (mangled name, code) of an ELF file of 64 bits, little endian."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    for name_at, _, _, _, begin, length in headers:
        at = headers[names][4] + name_at
        name = cubin[at : cubin.index(b"\0", at)].decode()
        if name.startswith(".text."):
            yield name.removeprefix(".text."), cubin[begin : begin + length]


def read_functions(root, build, cuobjdump):
    """Architecture -> [(source, mangled name, code)]."""
    functions = {}
    for source in sorted(glob.glob(os.path.join(root, "kernels", "*", "*.cu"))):
        source = os.path.relpath(source, os.path.join(root, "kernels"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.abspath(os.path.join(build, source + ".o"))
            subprocess.run([cuobjdump, "-xelf", "all", path], check=True, capture_output=True, cwd=folder)
            for name in sorted(os.listdir(folder)):
                architecture = re.search(r"\.(sm_\w+)\.cubin$", name).group(1)
                with open(os.path.join(folder, name), "rb") as file:
                    found = functions_of(file.read())
                functions.setdefault(architecture, []).extend((source, *function) for function in found)
    return functions


def instructions_of(architecture, codes, nvdisasm):
    """Yields the lines of all codes in a row, by addresses in it; of what never does a thing OFF is the instruction."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(codes))
        file.flush()
        command = [nvdisasm, "--no-dataflow", "--binary", architecture.replace("sm_", "SM"), file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in re.finditer(r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?\w+\s+)?([\w.]+)(.*);", text, re.MULTILINE):
        address, when, word, operands = line.groups()
        branches = word == "BRA" or word.startswith("BRA.")
        to = re.search(r"0x([0-9a-f]+)", operands) if branches else None
        sure = not when and not re.search(r"\bU?P\d", operands)
        word = "OFF" if when and when.strip() == "@!PT" else word
        yield Line(int(address, 16), word, int(to.group(1), 16) if to else -1, sure)


def lines_of(architecture, codes, nvdisasm):
    """Yields the lines of each code, by addresses in it."""
    instructions = instructions_of(architecture, codes, nvdisasm)
    line = next(instructions, None)
    begin = 0
    for code in codes:
        end, lines = begin + len(code), []
        while line and line.address < end:
            to = line.to - begin if line.to >= 0 else -1
            lines.append(line._replace(address=line.address - begin, to=to))
            line = next(instructions, None)
        yield lines
        begin = end


def write_code(path, architecture, functions, nvdisasm):
    codes = [code for *_, code in functions]
    with open(path, "w", encoding="utf-8") as file:
        for (source, name, _), lines in zip(functions, lines_of(architecture, codes, nvdisasm)):
            print("@", source, name, 0, file=file)
            for line in lines:
                print(line.address, line.word, line.to, int(line.sure), file=file)


def read_code(root, build, cuobjdump, nvdisasm):
    """(source, mangled name, architecture) -> lines of all kernels."""
    kept = os.path.join(build, KEPT)
    newest = max(map(os.path.getmtime, [*glob.glob(os.path.join(build, "*", "*.cu.o")), __file__]))
    if not os.path.exists(kept) or os.path.getmtime(kept) < newest:
        functions = read_functions(root, build, cuobjdump)
        part = kept + ".part"  # A folder is whole or not there.
        for folder in part, kept:
            shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(part)
        paths = [os.path.join(part, architecture) for architecture in functions]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(write_code, paths, functions.keys(), functions.values(), [nvdisasm] * len(paths)))
        os.rename(part, kept)
    code = {}
    for architecture in os.listdir(kept):
        with open(os.path.join(kept, architecture), encoding="utf-8") as file:
            for line in file:
                first, second, third, sure = line.split()
                if first == "@":
                    lines = code[second, third, architecture] = []
                else:
                    lines.append(Line(int(first), second, int(third), sure == "1"))
    return code
