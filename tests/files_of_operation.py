"""files_of_operation.py ROOT: docs/ir.md tells every file that names the operation softcap, and only those; what
it tells of a pass is there, too."""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("files", "lang", "ir", "passes", "codegen", "kernels", "runtime", "tests", "docs", "examples")
MOST = 8


def table(text, heading):
    """The files in the first column of the table behind `heading`."""
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    return {path for row in re.findall(r"^\| (`[^|]*) \|", part, re.M) for path in re.findall(r"`([^`]+)`", row)}


def main(root):
    text = (root / "docs" / "ir.md").read_text()
    told = table(text, "Adding an operation")
    itself = pathlib.Path(__file__).name
    found = subprocess.run(["grep", "-rliI", "softcap", *FOLDERS, "README.md", "ARCHITECTURE.md"], cwd=root,
                           capture_output=True, text=True).stdout.split()
    found = {path for path in found if not path.endswith((itself, ".pyc"))}
    faults = [f"names softcap, and docs/ir.md does not tell: {path}" for path in sorted(found - told)]
    faults += [f"docs/ir.md tells it, and it does not name softcap: {path}" for path in sorted(told - found)]
    if len(told) > MOST:
        faults.append(f"an operation needs {len(told)} files, more than {MOST}")
    for path in sorted(table(text, "Adding a pass")):
        where = root / path
        words = "use[-_]bf16"
        named = [where] if where.is_file() else sorted(where.glob("*use_bf16*")) if where.is_dir() else []
        if not any(re.search(words, file.read_text()) for file in named):
            faults.append(f"docs/ir.md tells it, and it does not name use-bf16: {path}")
    print("\n".join(faults))
    return 1 if faults or not told else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
