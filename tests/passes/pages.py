"""pages.py ROOT HECATEC [--write]: pages that list the passes list those of the default pipeline, in its order.

ARCHITECTURE.md and docs/ir.md have a table of stages, docs/fssdp.md a pipeline that leaves out one pass.
The rows of docs/ir.md are those of passes/passes.def; --write renews them.
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


def rows_of(root):
    """The rows of docs/ir.md, by passes.def."""
    text = (root / "passes" / "passes.def").read_text()
    rows = re.findall(r'^HEC_PASS\(\w+, "([^"]*)", "[^"]*",\n +"(.*?)"\)$', text, re.M | re.S)
    joined = [(name, re.sub(r'"\n +"', "", leaves)) for name, leaves in rows]
    return "".join(f"| `{name}` | {leaves} |\n" for name, leaves in joined)


def renew_ir(root, write):
    """Whether docs/ir.md has the rows, or has them now."""
    page = root / "docs" / "ir.md"
    head, found, tail = re.split(r"(^\| `check-shapes` \|.*\n(?:\|.*\n)+)", page.read_text(), maxsplit=1, flags=re.M)
    wanted = rows_of(root)
    if found == wanted:
        return True
    if write:
        page.write_text(head + wanted + tail)
    print("the rows of docs/ir.md are not those of passes/passes.def (--write renews them)")
    return write


def main(root, hecatec, write):
    printed = subprocess.run([hecatec, "--print-passes"], capture_output=True, text=True, check=True).stdout
    passes = re.search(r"^default: (.*)$", printed, re.M).group(1).split(",")
    architecture = table((root / "ARCHITECTURE.md").read_text(), "Stages and their invariants")
    ir = table((root / "docs" / "ir.md").read_text(), "The module, stage by stage")
    fssdp = (root / "docs" / "fssdp.md").read_text()
    command = re.search(r"hecatec --passes=([^ ]*?(?:\\\n[^ ]*)*) model\.moe", fssdp.replace("    ", "")).group(1)
    faults = not renew_ir(root, write)
    for page, found, wanted in (
            ("ARCHITECTURE.md", architecture, ["check", "graph", *without_repeats(passes)]),
            ("docs/ir.md", ir, ["graph", *without_repeats(passes)]),
            ("docs/fssdp.md", command.replace("\\\n", "").split(","), [name for name in passes if name != LEFT_OUT])):
        if found != wanted:
            print(f"{page} lists {', '.join(found)}\nthe pipeline is {', '.join(wanted)}")
            faults += 1
    return faults > 0


sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], "--write" in sys.argv))
