"""Shared by the tests of this folder: folders of tiny models, and running hecatec and programs."""
import json
import os
import pathlib
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import weights  # noqa: E402

HECATEC = os.environ["HECATEC"]
STORED = pathlib.Path(__file__).parent / "stored"
POSITIONS = 8


def load(family):
    return json.loads((STORED / f"{family}.json").read_text())


def tensors(case, dtype="BF16"):
    """All tensors, of one type, but for those of MXFP4."""
    out = {}
    for name, shape in case["tensors"].items():
        own = "U8" if weights.is_packed(name) else dtype
        out[name] = own, shape, weights.pack(own, weights.values(weights.source(name, case["tensors"]), shape, case["salt"]))
    return out


def run(*command, code=0, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=100, **options)
    if done.returncode != code:
        sys.exit(f"{command} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


def compile_folder(work, folder, precision, *flags):
    """The program of a folder, by way of its .moe file."""
    text, program = work / f"{folder.name}.moe", work / f"{folder.name}-{precision}"
    said = run(HECATEC, f"--from-hf={folder}", "-o", text)
    assert not said.stderr and not said.stdout, said
    run(HECATEC, "-O0", "--set", f"train.precision={precision}", *flags, text, "-o", program)
    return program


def logits(work, program, folder, tokens):
    """All logits of eval, as it wrote them, and as numbers."""
    file = work / "logits.safetensors"
    run(program, "eval", "--load", folder, "--val", tokens, "--logits", file)
    dtype, shape, data = weights.read_safetensors(file)["logits"]
    return data, struct.unpack(f"<{weights.size(shape)}{'d' if dtype == 'F64' else 'f'}", data)
