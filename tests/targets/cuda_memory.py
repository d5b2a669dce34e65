"""cuda_memory.py MODEL TEXT FOLDER: programs of target cuda on two ranks take the device memory that `info` announces.

They take it to 1 %, also with dense = shard, in fp32 and bf16.
Where experts get new owners, they take no more than that, and no less than 0.9 of it.
A device with 1.05 of it is enough.
Memory stands behind the experts that a rank owns, and behind no others. A program whose runtime forgets to take it for a
new expert, or gives it back too early, is stopped by the emulator, which names the address.

Environment: as of cuda_ranks.py, which this is a part of.
"""

import os
import re
import subprocess
import sys

from cuda import EVALUATE, run, words
from cuda_ranks import QUIET, compile_for_devices, launch

RANKS, STEPS = 2, 2
SIZES = ["-DD=32", "-DF=5456"]  # 4 experts of 2 MiB, a page, in each of 4 mixtures: 34 MB, of which a rank owns half.
WIDE = ["-DD=32", "-DF=10912"]  # The same of two pages, of which the first has a bias, which has no copy in bf16.
SETTINGS = ["cluster.devices=2", "parallel.placement.rematerialize=true"]
OWNERS = {"stay": ("parallel.placement.reshard=never", 0.99, 1.01),
          "change": ("parallel.placement.reshard=every(1)", 0.9, 1)}
UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3}
# A change of the runtime, which moves experts to new owners -> the report of the emulator.
FAULTS = {
    "an expert arrives where no memory stands": (
        "        if (way->paths.next[way->order[i]] == comm->rank)\n"
        "            touch_chunk(way, way->buffer, way->order[i]);\n", "",
        r"cross an allocation's end|where no memory stands|is not on the device|are not in one allocation"),
    "an expert's memory goes while it is sent": (
        "    hrt_net_lane_join(comm, hrt_net_lane_submit(comm, HRT_LANE_SAVE, &steps),\n"
        '                      "the experts\' new owners");\n', "    hrt_net_lane_submit(comm, HRT_LANE_SAVE, &steps);\n",
        r"where no memory stands|cross an allocation's end|are not in one allocation"),
    "an expert's memory stays with the old owner": (
        "        if (way->paths.owner[way->order[i]] == comm->rank)\n"
        "            hrt_params_chunk_leave(way->fssdp->state, way->buffer, way->set, way->order[i]);\n", "", None),
}


def bytes_of(number, unit):
    return float(number) * 1024 ** UNITS[unit]


def announced(program, ranks=RANKS):
    """Bytes of a device, without those that NCCL takes itself."""
    lines = run(*launch(ranks, program, "info"), **QUIET).split("memory of the device in training, of a rank\n")[1].split("  total")[0].splitlines()
    found = [re.fullmatch(r"  (.*\S) +([\d.]+) (B|KiB|MiB|GiB)", line) for line in lines]
    return sum(bytes_of(line[2], line[3]) for line in found if not line[1].startswith("messages"))


def explained(settings, model):
    """The same of the compiler's sum."""
    report = run(*words("HECATEC"), "-w", "--target=cuda", "--explain=memory", *settings, model)
    together, messages = (re.search(rf"^ *([\d.]+) (B|KiB|MiB|GiB)  {what}", report, re.M) for what in ("together", "messages"))
    return bytes_of(together[1], together[2]) - bytes_of(messages[1], messages[2])


def taken(program, text, folder, **environment):
    """The most that a rank had at a time, and the output; None where the job fails."""
    done = subprocess.run(launch(RANKS, program, "train", "--data", text, "--steps", str(STEPS), *EVALUATE, "--save", f"{folder}/saved.st"),
                          capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **QUIET, "SIMT_CALLS": "1", **environment})
    said = done.stdout + done.stderr
    most = [int(found) for found in re.findall(r"simt: .*; (\d+) bytes of the device", said)]
    return max(most) if done.returncode == 0 and len(most) == RANKS else None, said


def plant(change, to, program, folder):
    """The program with another change_owners.c of the runtime."""
    source = os.path.join(os.path.dirname(__file__), "../../runtime/experts/change_owners.c")
    with open(source, encoding="utf-8") as file:
        code = file.read()
    if code.count(change) != 1:
        sys.exit(f"{source} has no such place: {change}")
    changed = f"{folder}/changed.c"
    with open(changed, "w", encoding="utf-8") as file:
        file.write(code.replace(change, to))
    run(*words("CC"), "-std=gnu17", "-O1", *words("CFLAGS"), "-Wno-unused", "-c", "-o", f"{folder}/changed.o", changed)
    run(*words("CXX"), *words("CFLAGS"), "-o", f"{folder}/changed", program + ".o", program + ".cu.o", f"{folder}/changed.o", *words("LIBRARIES"))
    return f"{folder}/changed"


def check(what, settings, least, most, model, text, folder, sizes=SIZES):
    """Returns the bytes of a device that were announced and taken, and those of the saved file."""
    program = f"{folder}/{what}"
    options = [*sizes, *(word for setting in [*SETTINGS, *settings] for word in ("--set", setting))]
    compile_for_devices(options, model, program)
    told = announced(program)
    if abs(explained(options, model) - told) > 0.01 * told:
        sys.exit(f"owners {what}: --explain=memory has {explained(options, model):.0f} bytes of a device, info {told:.0f}")
    found, said = taken(program, text, folder, SIMT_MEMORY=str(int(1.05 * told) >> 10))
    if found is None or not least * told <= found <= most * told:
        sys.exit(f"owners {what}: info announces {told:.0f} bytes of a device, {found} were taken:\n{said}")
    print(f"owners {what}: announced {told / 1e6:.2f} MB, taken {found / 1e6:.2f} MB")
    with open(f"{folder}/saved.st", "rb") as file:
        return told, found, file.read()


def check_host(what, settings, share, *where, sizes=SIZES):
    """States on the host, in bf16 experts' parameters, too: a device takes as much less as announced."""
    told, device, saved = check(what, settings, *where, sizes=sizes)
    told_host, host, same = check(f"{what}-host", [*settings, "parallel.states=host"], *where, sizes=sizes)
    less, told_less = device - host, told - told_host
    if same != saved or host > share * device or abs(less - told_less) > 0.01 * told_less:
        sys.exit(f"owners {what}: with states on the host {less} bytes less are taken, {told_less:.0f} announced; "
                 f"files are {'equal' if same == saved else 'different'}")


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    for what, (setting, least, most) in OWNERS.items():
        check_host(what, [setting], 0.8, least, most, model, text, folder)
    setting, _, most = OWNERS["change"]  # Two pages of every chunk are a looser bound.
    check_host("bf16", [setting, "train.precision=bf16"], 0.7, 0.85, most, model, text, folder, sizes=WIDE)
    for precision in ("fp32", "bf16"):
        check(f"shard-{precision}", ["parallel.placement.reshard=never", "parallel.dense=shard", f"train.precision={precision}"], 0.99, 1.01, model, text,
              folder)
    told = announced(f"{folder}/change")
    for what, (change, to, report) in FAULTS.items():
        found, said = taken(plant(change, to, f"{folder}/change", folder), text, folder)
        seen = found is None and re.search(report, said) if report else found is None or found > told
        if not seen:
            sys.exit(f"not noticed: {what}: {found} bytes\n{said}")


if __name__ == "__main__":
    main(*sys.argv[1:])
