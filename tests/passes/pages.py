"""pages.py ROOT HECATEC: pages that list the passes list those of the default pipeline, in its order.

ARCHITECTURE.md and docs/ir.md have a table of stages, docs/fssdp.md a pipeline that leaves out one pass.
"""

import pathlib
import re
import subprocess
import sys

LEFT_OUT = "overlap"


def table(text, heading):
    """The names in the first column of the table behind a heading."""
    first = re.search(r"(?:^\|.*\n)+", text.split(f"\n## {heading}\n")[1], re.M).group()
    rows = re.findall(r"^\| ([^|]*) \|", first, re.M)
    return [name.strip("` ") for row in rows[2:] for name in row.split(",")]


def without_repeats(names):
    return list(dict.fromkeys(names))


def main(root, hecatec):
    printed = subprocess.run([hecatec, "--print-passes"], capture_output=True, text=True, check=True).stdout
    passes = re.search(r"^default: (.*)$", printed, re.M).group(1).split(",")
    architecture = table((root / "ARCHITECTURE.md").read_text(), "Stages, and what holds after each")
    ir = table((root / "docs" / "ir.md").read_text(), "The module, stage by stage")
    fssdp = (root / "docs" / "fssdp.md").read_text()
    command = re.search(r"hecatec --passes=([^ ]*?(?:\\\n[^ ]*)*) model\.moe", fssdp.replace("    ", "")).group(1)
    faults = 0
    for page, found, wanted in (
            ("ARCHITECTURE.md", architecture, ["check", "graph", *without_repeats(passes)]),
            ("docs/ir.md", ir, ["graph", *without_repeats(passes)]),
            ("docs/fssdp.md", command.replace("\\\n", "").split(","), [name for name in passes if name != LEFT_OUT])):
        if found != wanted:
            print(f"{page} lists {', '.join(found)}\nthe pipeline is {', '.join(wanted)}")
            faults += 1
    return faults > 0


sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
