"""cuda_examples.py FOLDER EXAMPLE...: every example compiles and links for a GPU without a warning, each for one of the
architectures in turn, the last one for all. Examples that target cuda cannot compile yet are set aside, with a message.

Environment: HECATEC, NVCC, CC.
"""

import os
import shlex
import subprocess
import sys

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
FLOATS = ("train.precision=fp32",)
ALONE = ("cluster.nodes=1", "cluster.devices=1")
ROOM = "--set=cluster.device.memory=100TB"  # Nothing has to be chosen so that an example fits.


def hecatec(example, *arguments):
    command = (*shlex.split(os.environ["HECATEC"]), ROOM, *arguments, example)
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def settings_of(example, source):
    """The fewest settings that target cuda accepts the example with."""
    for settings in ((), FLOATS, ALONE, FLOATS + ALONE):
        given = [f"--set={setting}" for setting in settings]
        done = hecatec(example, "--target=cuda", "-S", "-o", source, *given)
        if done.returncode == 0:
            return given
        if "not yet" not in done.stderr and "which target cuda does not" not in done.stderr:
            sys.exit(f"{example}: {done.stderr}")
    sys.exit(f"{example}: {done.stderr}")


def main(folder, *examples):
    os.makedirs(folder, exist_ok=True)
    program = folder + "/program"
    for number, example in enumerate(examples):
        given = settings_of(example, program + ".c")
        last = number == len(examples) - 1
        target = "cuda" if last else "cuda:" + ARCHITECTURES[number % len(ARCHITECTURES)]
        done = hecatec(example, f"--target={target}", "-o", program, "-O0", *given,
                       f"--nvcc={os.environ['NVCC']} -Werror all-warnings",
                       f"--cc={os.environ['CC']} -Wall -Wextra -Werror")
        print(os.path.basename(example), target, *given, flush=True)
        if done.returncode:
            sys.exit(done.stderr)
        os.remove(program)


if __name__ == "__main__":
    main(*sys.argv[1:])
