"""cuda_limits.py EXAMPLES TEXT FOLDER: with 1.2 times the device memory that `info` announces, four emulated ranks
train 20 steps in which experts get new owners, and save. The bits are those of devices with all the memory there is.

Two ranks, with 1.2 times of theirs, go on from the checkpoint of step 10: losses agree to 1e-6 with those of four.
A device with half of what is announced is refused before the first step.
With dense = shard the same holds, and four ranks learn the same bits.

Environment: as of cuda_ranks.py, which this is a part of.
"""

import os
import re
import shutil
import subprocess
import sys

from cuda import compare
from cuda_memory import announced
from cuda_models import MODELS
from cuda_ranks import QUIET, compile_for_devices, launch, train

STEPS, HALF = 20, 10
# Both ways to keep dense parameters have one plan, so that they have the same bits.
OWNERS = ["parallel.experts=fssdp", "parallel.placement.reshard=every(4)", "parallel.placement.rematerialize=true",
          "parallel.placement.overlap=2", "parallel.placement.memory=1", "parallel.placement.calibrate=true"]
# Name -> the example, options; `frozen` is the model of cuda.py with all experts of a mixture frozen.
SUBJECTS = {"gpt-moe-s": MODELS["gpt-moe-s"][2], "deepseek-v3-like": MODELS["deepseek-v3-like"][2], "frozen": ()}


def model_of(name, examples, folder):
    if name != "frozen":
        return f"{examples}/{name}.moe"
    with open(os.path.join(os.path.dirname(__file__), "cuda.moe"), encoding="utf-8") as file:
        text = file.read()
    if text.count('"*.second.experts.*1"') != 1:
        sys.exit("cuda.moe freezes other parameters")
    with open(f"{folder}/frozen.moe", "w", encoding="utf-8") as file:
        file.write(text.replace('"*.second.experts.*1"', '"*.second.experts.*"'))
    return f"{folder}/frozen.moe"


def compile_for(ranks, name, dense, model, folder):
    """The program, and bytes of a device that it announces."""
    own = [word for word in SUBJECTS[name] if not word.startswith(("--set=cluster.", "--set=train.precision"))]
    dims = {word[2:].split("=")[0]: word.split("=")[1] for word in own if word.startswith("-D")}
    settings = [f"cluster.nodes={ranks // 2}", "cluster.devices=2", "parallel.microbatch=1", "train.precision=fp32",
                f"train.tokens={4 * int(dims.get('T', 8))}", f"parallel.dense={dense}", *OWNERS]
    program = f"{folder}/{name}-{dense}-{ranks}"
    compile_for_devices(["-w", *own, *(f"--set={setting}" for setting in settings)], model, program)
    return program, announced(program, ranks)


def check(name, dense, model, text, folder):
    """Returns the file that four ranks save."""
    four, room = compile_for(4, name, dense, model, folder)
    two, less = compile_for(2, name, dense, model, folder)
    limit, other = ({"SIMT_MEMORY": str(int(1.2 * bytes_) >> 10), "HECATE_RELEASED": "nan"} for bytes_ in (room, less))
    checkpoints = four + "-checkpoints"
    shutil.rmtree(checkpoints, ignore_errors=True)
    keep = ("--checkpoint", checkpoints, "--set", f"checkpoint.every={HALF}")
    expected = train(4, four, text, four + "-free", STEPS)
    train(4, four, text, four + "-limited", STEPS, *keep, **limit)
    with open(four + "-free.st", "rb") as free, open(four + "-limited.st", "rb") as limited:
        saved = free.read()
        if saved != limited.read():
            sys.exit(f"{name}: with 1.2 times the memory that is announced other parameters are saved")
    shutil.rmtree(f"{checkpoints}/step-{STEPS}")
    resumed = train(2, two, text, two, STEPS, f"--resume={checkpoints}", "--resume-changed", **other)
    if [step["step"] for step in resumed] != list(range(HALF + 1, STEPS + 1)):
        sys.exit(f"{name}: two ranks go on with steps {[step['step'] for step in resumed]}")
    worst = 0.0
    for a, b in zip(expected[HALF:], resumed, strict=True):
        compare([a["loss"]], [b["loss"]], 1e-6, f"{name}, step {a['step']}")
        worst = max(worst, abs(a["loss"] - b["loss"]) / abs(a["loss"]))
    done = subprocess.run(launch(4, four, "train", "--data", text, "--steps", "1"), capture_output=True, text=True, timeout=300,
                          check=False, env={**os.environ, **QUIET, "SIMT_MEMORY": str(int(0.5 * room) >> 10)})
    if done.returncode != 1 or not re.search("not enough memory on GPU", done.stderr):
        sys.exit(f"{name}: half the memory: status {done.returncode}\n{done.stderr}")
    print(f"{name}, {dense}: 1.2 times {room / 1e6:.2f} MB on four ranks, of {less / 1e6:.2f} MB on two; losses differ by {worst:.1e}", flush=True)
    return saved


def main(examples, text, folder):
    os.makedirs(folder, exist_ok=True)
    for name in SUBJECTS:
        model = model_of(name, examples, folder)
        if check(name, "replicate", model, text, folder) != check(name, "shard", model, text, folder):
            sys.exit(f"{name}: dense = shard learns something else")


if __name__ == "__main__":
    main(*sys.argv[1:])
