"""files_of_operation.py ROOT: docs/ir.md tells every file that names the operation softcap, and only those; the
files that it names for a norm and a pass are there, too. Neither an operation nor a norm takes more than eight files by
hand."""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("files", "lang", "ir", "passes", "codegen", "kernels", "runtime", "tools", "tests", "docs", "examples")
MOST = 8


def table(text, heading, which=0):
    """The files in the first column of a table behind `heading`."""
    part = re.split(r"^##+ ", text.split(f"# {heading}\n")[1], flags=re.M)[0]
    rows = part.split("\n| --- |")[which + 1].split("\n\n")[0]
    return {path for row in re.findall(r"^\| (`[^|]*) \|", rows, re.M) for path in re.findall(r"`([^`]+)`", row)}


def names(where, words):
    """Whether the file, or one of the folder, has these words."""
    files = [where] if where.is_file() else sorted(where.glob("*use_bf16*")) if where.is_dir() else []
    return any(re.search(words, file.read_text()) for file in files)


def main(root):
    text = (root / "docs" / "ir.md").read_text()
    by_hand, norm = table(text, "A function of numbers"), table(text, "A norm")
    told = by_hand | table(text, "A function of numbers", 1)
    itself = pathlib.Path(__file__).name
    found = subprocess.run(["grep", "-rliIE", "softcap($|[^p])", *FOLDERS, "README.md", "ARCHITECTURE.md"], cwd=root,
                           capture_output=True, text=True).stdout.split()
    found = {path for path in found if not path.endswith((itself, ".pyc"))}
    faults = [f"names softcap, and docs/ir.md does not tell: {path}" for path in sorted(found - told)]
    faults += [f"docs/ir.md tells it, and it does not name softcap: {path}" for path in sorted(told - found)]
    for what, files in (("a function", by_hand), ("a norm", norm)):
        if not 0 < len(files) <= MOST:
            faults.append(f"{what} needs {len(files)} files, more than {MOST}")
    faults += [f"docs/ir.md tells it, and it does not name rmsnorm: {path}" for path in sorted(norm)
               if not names(root / path, "rmsnorm")]
    faults += [f"docs/ir.md tells it, and it does not name use-bf16: {path}"
               for path in sorted(table(text, "Adding a pass")) if not names(root / path, "use[-_]bf16")]
    print("\n".join(faults))
    return 1 if faults or not told else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
