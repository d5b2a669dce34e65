"""cuda_units.py MODEL TEXT FOLDER: units of dense parameters (parallel.dense = shard) on two emulated devices come
before they are read, and stay until then: as tests/mpi/units.py says, with its faults.

Environment: as of cuda_ranks.py, which this is a part of.
"""

import os
import pathlib
import re
import subprocess
import sys

from cuda import EVALUATE, run, words
from cuda_ranks import QUIET, compile_for_devices, launch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mpi"))
import units  # noqa: E402


def train(program, text, released="nan"):
    """Status, output, and the file that it saves."""
    done = subprocess.run(launch(units.RANKS, program, "train", "--data", text, "--steps", "2", *EVALUATE, "--save", program + ".st"), capture_output=True,
                          text=True, timeout=300, check=False, env={**os.environ, **QUIET, "HECATE_RELEASED": released})
    return done.returncode, done.stdout + done.stderr, pathlib.Path(program + ".st").read_bytes() if done.returncode == 0 else b""


def build_host(code, sound, program):
    """A program whose host code is another; its kernels are those of `sound`."""
    pathlib.Path(program + ".c").write_text(code, encoding="utf-8")
    run(*words("CC"), "-std=gnu17", "-O1", *words("CFLAGS"), "-c", "-o", program + ".o", program + ".c")
    run(*words("CXX"), *words("CFLAGS"), "-o", program, program + ".o", sound + ".cu.o", *words("LIBRARIES"))


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    for precision in ("fp32", "bf16"):
        sound, planted = f"{folder}/{precision}", f"{folder}/planted"
        compile_for_devices([word for key in ("cluster.devices=2", "parallel.dense=shard", f"train.precision={precision}") for word in ("--set", key)],
                            model, sound)
        filled, plain = train(sound, text), train(sound, text, "")
        if filled[0] or filled[2] != plain[2]:
            sys.exit(f"{precision}: HECATE_RELEASED=nan changes what is learned, or status {filled[0]}\n{filled[1]}")
        found = 0
        for what, code in units.faults(pathlib.Path(sound + ".c").read_text(encoding="utf-8")):
            build_host(code, sound, planted)
            status, said, _ = train(planted, text)
            if status != 1 or not re.search(units.SEEN, said):
                sys.exit(f"{precision}: {what}: not noticed, status {status}\n{said}")
            found += 1
        if found < 8:
            sys.exit(f"{precision}: too few units: {found / 2}")


if __name__ == "__main__":
    main(*sys.argv[1:])
