"""loops.py [--renew] ROOT BUILD ARCHITECTURES GOLDEN NVCC CUOBJDUMP NVDISASM: compares the instructions of a warp in the hot
loop of every CUDA kernel, and the share of the device's peak that they allow, with a table. ARCHITECTURES: see kernels.py.

A loop is what a backward branch closes; the hot one is, of those without a loop inside, the one with most products of
tensor cores, then with most multiply-adds and accesses to memory. A kernel without loops counts whole. Every
instruction counts once, but for those that copy rows value by value where they do not lie aligned. In clocks of a
multiprocessor, a warp's instruction takes: any, 1/4 to issue; a product of 16 x 8 x 16 its part of the peak, 2 on sm_80,
1 on sm_90a and 1/2 on sm_100, whose peak is that of products which no kernel here issues; one of a warpgroup its multiply-adds
/ 2048 / 4; shared memory 1 for 128 bytes. The largest sum bounds the loop:

  tensor N   N % of the peak of tensor cores         fma N   N % of the peak of multiply-adds in float
  copy N     N % of the memory's bandwidth, 13, 20 and 29 bytes a clock (A100, H200, B200): issue allows it if enough is under way
"""

import re
import sys

from machine_code import read_code
from kernels import output_of, plain_names, refuse_loss

HEAD = "# kernel: architecture loads stores mma fma all, share"
BYTES = {"sm_80": 13, "sm_90a": 20, "sm_100": 29}
WARP_PRODUCT = {"sm_80": 2, "sm_90a": 1, "sm_100": 0.5}


def bytes_of(instruction):
    """The bytes of a warp's access."""
    if instruction.startswith("LDSM"):
        return 32 * 4 * (4 if ".4" in instruction else 2 if ".2" in instruction else 1)
    for suffix, size in ((".128", 16), (".64", 8), (".U16", 2), (".S16", 2), (".16", 2), (".U8", 1), (".S8", 1)):
        if suffix in instruction:
            return 32 * size
    return 32 * 4


def shape_of(instruction):
    m, n, k = (int(size) for size in re.search(r"\.(\d+)x(\d+)x(\d+)", instruction).groups())
    return m, n, k


def is_any(*names):
    return lambda instruction: instruction.split(".")[0] in names


KINDS = {
    "loads": is_any("LDG", "LDS", "LDSM", "LDGSTS", "LD"),
    "stores": is_any("STG", "STS", "ST"),
    "mma": is_any("HMMA", "HGMMA"),
    "fma": is_any("FFMA", "FFMA2"),
}


def count(body):
    return {kind: sum(map(test, body)) for kind, test in KINDS.items()} | {"all": len(body)}


def shared_clocks(instruction):
    name = instruction.split(".")[0]
    if name == "HGMMA":  # Both operands, read for the four warps.
        m, n, k = shape_of(instruction)
        return (m + n) * k * 2 / 128 / 4
    return bytes_of(instruction) / 128 if name in ("LDS", "STS", "LDSM", "LDGSTS") else 0


def product_clocks(instruction, architecture):
    if instruction.startswith("HGMMA"):
        m, n, k = shape_of(instruction)
        return m * n * k / 2048 / 4
    return WARP_PRODUCT[architecture] if instruction.startswith("HMMA") else 0


def share(body, architecture):
    counts = count(body)
    bound = max(len(body) / 4, sum(map(shared_clocks, body)))
    memory = [i for i in body if is_any("LDG", "STG", "LD", "ST")(i)]
    if counts["mma"]:
        clocks = sum(product_clocks(i, architecture) for i in body)
        return f"tensor {100 * clocks / max(clocks, bound):.0f}"
    if memory:
        moved = sum(map(bytes_of, memory))
        return f"copy {min(100, 100 * moved / bound / BYTES[architecture]):.0f}"
    return f"fma {100 * counts['fma'] / 4 / bound:.0f}" if counts["fma"] else "-"


def aligned_way(code):
    """Without the blocks that copy value by value, where the others copy asynchronously."""
    if not any(line.word.startswith("LDGSTS") for line in code):
        return code
    targets = {line.to for line in code}
    blocks = [[]]
    for line in code:
        if line.address in targets:
            blocks.append([])
        blocks[-1].append(line)
        if line.word.startswith("BRA"):
            blocks.append([])
    plain = is_any("LDG", "STS")
    return [line for block in blocks if not any(plain(line.word) for line in block) for line in block]


def hot_loop(code):
    """The instructions of a kernel's hot loop."""
    loops = [(line.to, line.address) for line in code if 0 <= line.to < line.address]
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    bodies = [[line for line in code if begin <= line.address <= end] for begin, end in inner] or [code]
    bodies = [[line.word for line in aligned_way(body)] for body in bodies]

    def heat(body):
        counts = count(body)
        return counts["mma"], counts["fma"] + counts["loads"] + counts["stores"]

    return max(bodies, key=heat)


def lines_of(code):
    """The table's lines, by source and kernel."""
    names = plain_names(name for _, name, _ in code)
    lines = {}
    for (source, name, architecture), instructions in code.items():
        body = hot_loop([line for line in instructions if line.word != "NOP"])
        if architecture not in BYTES or len(body) < 10 and not any(count(body)[kind] for kind in KINDS):
            continue  # Empty: of another architecture.
        numbers = " ".join(map(str, count(body).values()))
        lines.setdefault((source, names[name]), {})[architecture] = f"{numbers}, {share(body, architecture)}"
    for (source, name), values in sorted(lines.items()):
        yield f"{source} {name}: " + "; ".join(f"{a} {values[a]}" for a in BYTES if a in values)


def of_architectures(line, architectures):
    """A line of the table without what it has of other architectures; None, if nothing is left."""
    if line.startswith("#"):
        return line
    kernel, values = line.rsplit(": ", 1)
    kept = [value for value in values.split("; ") if value.split(" ")[0] in architectures.split(",")]
    return f"{kernel}: {'; '.join(kept)}" if kept else None


def differences(table, golden, architectures, renew="renew_cuda_kernels"):
    """Prints how lines of some architectures differ from those of a file, and how often they do."""
    with open(golden, encoding="utf-8") as file:
        want = file.read().splitlines()
    if want[0] != table[0]:
        print(f"{table[0][2:]}, but the table is of {want[0][2:]}: nothing is checked")
        return 0
    want = [line for line in (of_architectures(line, architectures) for line in want) if line]
    faults = [f"only here: {line}" for line in table if line not in want]
    faults += [f"only in the table: {line}" for line in want if line not in table]
    print("\n".join(faults + [f"where that is meant: cmake --build build --target {renew}"] * bool(faults)))
    return len(faults)


def version_of(nvcc):
    """The first line of a table."""
    return "# nvcc " + re.search(r"V([\d.]+)", output_of(nvcc, "--version")).group(1)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--renew"]
    root, build, architectures, golden, nvcc, *tools = arguments
    table = [version_of(nvcc), HEAD, *lines_of(read_code(root, build, *tools))]
    if len(arguments) < len(sys.argv) - 1:
        refuse_loss(architectures, set(BYTES))
        with open(golden, "w", encoding="utf-8") as file:
            file.write("\n".join(table) + "\n")
        return
    sys.exit(bool(differences(table, golden, architectures)))


if __name__ == "__main__":
    main()
