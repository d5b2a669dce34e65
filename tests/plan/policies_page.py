"""policies_page.py ROOT: the table of docs/planner.md has every policy, and how programs move its experts, as
policies.def has it."""
import pathlib
import re
import sys


def main(root):
    listed = (root / "runtime/plan/policies.def").read_text()
    rows = dict(re.findall(r'^HPL_POLICY\((\w+),[^"]*"([^"]*)"', listed, re.M))
    page = (root / "docs/planner.md").read_text().split("### Rivals as they are\n")[1].split("\n### ")[0]
    told = {name: cells[-1] for cells in (row.strip("| ").split(" | ") for row in re.findall(r"^\|.*\|$", page, re.M))
            for name in cells[0].split(", ")}
    faults = [f"docs/planner.md says of programs of {name} \"{told.get(name)}\", policies.def \"{programs or 'as charged'}\""
              for name, programs in rows.items() if told.get(name) != (programs or "as charged")]
    print("\n".join(faults))
    return 1 if faults or not rows else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
