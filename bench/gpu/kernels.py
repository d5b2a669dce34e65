"""kernels.py PROGRAM-FOLDER: where the time of a step goes, kernel by kernel: two steps under ncu, which measures one kernel after the other, without
CUDA graphs. Prints calls, milliseconds and share of each kernel; the longest first. Status 77: there is no ncu here."""

import collections
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

STEPS = 2


def short(name):
    """The kernel's name without types of its parameters: product::rows_kernel<product::wgmma_async, 0, 1>."""
    return re.sub(r"\(.*", "", name.replace("(int)", "").replace("(product::gathers)", "").replace("(product::major)", ""))[:90]


def main(place):
    if not shutil.which("ncu"):
        print("there is no ncu", file=sys.stderr)
        return 77
    place = pathlib.Path(place).resolve()
    case = json.loads((place / "case.json").read_text())
    options = [option.replace("$HERE", str(place)) for option in case["options"]]
    command = ["ncu", "--csv", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", str(place / "program"), "train", "--data",
               str(place.parent.parent / "data/text"), "--steps", str(STEPS), *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env={**os.environ, "HECATE_GRAPHS": "off"})
    lines = done.stdout.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        sys.exit(f"ncu: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3, "nsecond": 1e-6, "usecond": 1e-3, "msecond": 1, "second": 1e3}
    calls, ms = collections.Counter(), collections.Counter()
    for row in csv.DictReader(lines[head:]):
        if row.get("Metric Name") == "gpu__time_duration.sum":
            calls[short(row["Kernel Name"])] += 1
            ms[short(row["Kernel Name"])] += float(row["Metric Value"].replace(",", "")) * unit[row["Metric Unit"]]
    total = sum(ms.values())
    for name, time in ms.most_common(45):
        print(f"{calls[name] / STEPS:8.1f} {time / STEPS:9.3f} ms {100 * time / total:5.1f} %  {name}")
    print(f"{sum(calls.values()) / STEPS:.0f} kernels a step, {total / STEPS:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
