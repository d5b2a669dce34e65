"""files_of_change.py ROOT: docs tell the size of a change, and it stays small.

docs/ir.md lists the files that name the operation softcap, and no others. It lists files that name a norm and a pass,
too. Neither an operation nor a norm takes more than eight files by hand. docs/targets.md lists the files outside of
tests and docs that name target null, with their lines: its folder, and the list of targets."""
import pathlib
import re
import subprocess
import sys

from folders import FOLDERS, PRODUCT

MOST = 8
LIST = "codegen/targets/targets.def"


def table(text, heading, which=0):
    """The files in the first column of a table behind `heading`."""
    part = re.split(r"^##+ ", text.split(f"# {heading}\n")[1], flags=re.M)[0]
    rows = part.split("\n| --- |")[which + 1].split("\n\n")[0]
    return {path for row in re.findall(r"^\| (`[^|]*) \|", rows, re.M) for path in re.findall(r"`([^`]+)`", row)}


def names(where, words):
    """Whether the file, or one of the folder, has these words."""
    files = [where] if where.is_file() else sorted(where.glob("*use_bf16*")) if where.is_dir() else []
    return any(re.search(words, file.read_text()) for file in files)


def grep(root, words, *where):
    """The files that have these words, but for this one."""
    found = subprocess.run(["grep", "-rlIE", words, *where], cwd=root, capture_output=True, text=True).stdout.split()
    return {path for path in found if not path.endswith((pathlib.Path(__file__).name, ".pyc"))}


def faults_of_target(root):
    """Differences of the table in docs/targets.md and the files that name target null."""
    text = (root / "docs" / "targets.md").read_text().split("\n## A new target\n")[1]
    told = {path: int(lines) for path, lines in re.findall(r"^\| `([^`]+)` \| (\d+) \|", text, re.M)}
    found = grep(root, r'targets/null|(back_end|target)_null|[tT]arget[ =]null|HEC_TARGET\(null|[,=(] ?"null"',
                 *(folder for folder in PRODUCT if folder != "tools"))  # Which know no target, and write JSON.
    rows = len(re.findall(r"^HEC_TARGET\(null", (root / LIST).read_text(), re.M))
    lines = {path: rows if path == LIST else (root / path).read_text().count("\n") for path in found}
    faults = [f"names target null, and docs/targets.md does not tell: {path}" for path in sorted(found - set(told))]
    faults += [f"docs/targets.md tells {told[path]} lines, and it has {lines.get(path, 0)}: {path}"
               for path in sorted(told) if lines.get(path) != told[path]]
    return faults


def main(root):
    text = (root / "docs" / "ir.md").read_text()
    by_hand, norm = table(text, "A function of numbers"), table(text, "A norm")
    told = by_hand | table(text, "A function of numbers", 1)
    found = grep(root, "(softcap|Softcap|SOFTCAP)($|[^p])", *FOLDERS, "README.md", "ARCHITECTURE.md")
    faults = [f"names softcap, and docs/ir.md does not tell: {path}" for path in sorted(found - told)]
    faults += [f"docs/ir.md tells it, and it does not name softcap: {path}" for path in sorted(told - found)]
    for what, files in (("a function", by_hand), ("a norm", norm)):
        if not 0 < len(files) <= MOST:
            faults.append(f"{what} needs {len(files)} files, more than {MOST}")
    faults += [f"docs/ir.md tells it, and it does not name rmsnorm: {path}" for path in sorted(norm)
               if not names(root / path, "rmsnorm")]
    faults += [f"docs/ir.md tells it, and it does not name use-bf16: {path}"
               for path in sorted(table(text, "Adding a pass")) if not names(root / path, "use[-_]bf16")]
    faults += faults_of_target(root)
    print("\n".join(faults))
    return 1 if faults or not told else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
