"""memory.py: under a router that sends every token to the first experts, which are on one rank, no rank takes
more memory than the program announces, MPI and libraries included. Run by itself below mpirun, it is the
launcher of one rank: memory.py rank FOLDER PROGRAM ARGUMENT..."""
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile

RANKS, POSITIONS, EXPERTS, TOPK, LAYERS, SEQUENCES, STEPS = 4, 256, 8, 2, 2, 16, 3
MODEL = """
dim V = 256, T = {T}, D = {D}, F = {F}, E = 8, L = 2, H = 4, A = 64
block attention(x[T, D]) -> [T, D] {{
  param wq[D, H, A], wk[D, H, A], wv[D, H, A], wo[H, A, D]
  return sdpa(x @ wq, x @ wk, x @ wv, causal = true) @ wo
}}
block ffn(x[T, D]) -> [T, D] {{
  param w1[D, F], w2[F, D]
  return gelu(x @ w1) @ w2
}}
moe sparse(x[T, D]) -> [T, D] {{ experts = E * ffn }}
model m(ids[T]) -> [T, V] {{
  param embed[V, D]
  x = embed[ids]
  repeat i < L {{
    x = x + attention(rmsnorm(x))
    x = x + sparse(rmsnorm(x))
  }}
  return rmsnorm(x) @ embed
}}
"""
UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def launch():
    """Leaves the peak in a file of its own: the output of ranks may come out mixed."""
    folder, *command = sys.argv[2:]
    status = subprocess.call(command, stdout=subprocess.DEVNULL)
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    pathlib.Path(folder, str(os.getpid())).write_text(str(taken))
    sys.exit(status)


def peak(program, ids, nodes):
    """The most memory that a rank of a training takes, on so many nodes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w") as topology:
        each = RANKS // nodes
        topology.write("".join(f"{first}-{first + each - 1}\n" for first in range(0, RANKS, each)))
        topology.flush()
        subprocess.run(
            ["sh", os.environ["RANKS"], str(RANKS), sys.executable, __file__, "rank", folder, program,
             "train", "--data", os.environ["TEXT"], "--steps", str(STEPS), f"--route=ids:{ids}"],
            check=True, stdout=subprocess.DEVNULL, env=os.environ | {"HECATE_TOPOLOGY": topology.name})
        peaks = [int(file.read_text()) for file in pathlib.Path(folder).iterdir()]
    assert len(peaks) == RANKS, f"{len(peaks)} of {RANKS} ranks said what they took"
    return max(peaks)


def announced(program):
    text = subprocess.run([program, "info"], check=True, stdout=subprocess.PIPE, text=True).stdout
    number, unit = re.search(r"^  total +([0-9.]+) (\w+)$", text, re.M).groups()
    return float(number) * UNIT[unit]


def write_ids(path, positions):
    """Every token to experts 0 and 1."""
    head = b"HROUTE1\n" + struct.pack("<3I", SEQUENCES * STEPS, positions, LAYERS)
    head += struct.pack("<2I", EXPERTS, TOPK) * LAYERS
    path.write_bytes(head + struct.pack("<2H", 0, 1) * (SEQUENCES * STEPS * LAYERS * positions))


def compile_model(folder, name, options, **sizes):
    source, program = folder / f"{name}.moe", folder / name
    source.write_text(MODEL.format(**sizes))
    subprocess.run(
        [os.environ["HECATEC"], "-w", "-O1", source, "-o", program,
         "--set", f"parallel.microbatch={SEQUENCES // RANKS}", *options], check=True)
    write_ids(folder / f"{name}.ids", sizes["T"])
    return program


def main():
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        exceeded = False
        for options in (["parallel.experts=ep"], ["parallel.experts=ep", "parallel.dense=states"],
                        ["parallel.experts=ep", "parallel.dense=shard"],
                        ["parallel.experts=fssdp"],
                        ["parallel.experts=fssdp", "parallel.placement.reshard=every(1)"],
                        ["parallel.experts=replicate"],
                        ["parallel.experts=ep", "parallel.rows=node", "cluster.nodes=2"],
                        ["parallel.experts=fssdp", "parallel.rows=node", "cluster.nodes=4"]):
            nodes = max(int(word[-1]) if word.startswith("cluster.nodes") else 1 for word in options)
            options = [*options, f"cluster.devices={RANKS // nodes}"]
            sets = [word for option in options for word in ("--set", option)]
            program = compile_model(folder, "model", sets, T=POSITIONS, D=256, F=1024)
            took, bound = peak(program, f"{program}.ids", nodes), announced(program)
            exceeded |= took > bound
            print(f"{' '.join(options)}: {took / 2**20:.1f} MiB of {bound / 2**20:.1f} MiB announced",
                  flush=True)
        sys.exit("more memory than announced" if exceeded else 0)


launch() if sys.argv[1:2] == ["rank"] else main()
