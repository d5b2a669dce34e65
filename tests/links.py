"""links.py ROOT: relative links of documents lead somewhere, and so do the paths that they name.

A link's file exists and has a heading for its anchor. A path in `code` that begins with a folder of the project exists,
or is the name of a test of that folder. Comments that name docs/*.md name a page that exists. Prints each breach; exit
status 1 if there is any.
"""

import pathlib
import re
import sys

from folders import FOLDERS

COMMENTED = (".c", ".h", ".l", ".y", ".def", ".cu", ".cpp", ".py", ".sh", ".moe", ".cmake", ".txt")
LINK = re.compile(r"\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:%s)/[\w./-]*)`" % "|".join(FOLDERS))
GENERATED = {"ir/accessors.h", "bench/cluster/kills"}  # The latter is a test with a name of its own.
PLACEHOLDER = re.compile(r"\b(NAME|OP|RULE|FILE|DIR)(\b|_)")


def slug(heading):
    """The anchor that a heading gets: GitHub's."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_code(text):
    """The text with its blocks of code emptied, line by line."""
    lines, inside = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if fence or inside else line)
        inside ^= fence
    return "\n".join(lines)


def anchors(path):
    found = {}
    for heading in re.findall(r"^#+ (.*)", without_code(path.read_text()), re.M):
        name = slug(heading)
        found[name] = found.get(name, -1) + 1
    return {name if not n else f"{name}-{n}" for name, last in found.items() for n in range(last + 1)}


def exists(root, path):
    """Whether there is such a path, or a test of this name: of a file, or FILE/VARIANT."""
    for top in (root, root / "tests"):
        there = top / path
        if there.exists() or there.parent.is_file() or any(there.parent.glob(there.name + ".*")):
            return True
    return path in GENERATED


def faults_of_page(root, page):
    text = without_code(page.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        for path in PATH.findall(line):
            if not PLACEHOLDER.search(path) and not exists(root, path):
                yield number, f"`{path}` does not exist"
    for match in LINK.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        file, _, anchor = match.group(1).partition("#")
        if re.match(r"[a-z]+:", file):
            continue
        there = (page.parent / file).resolve() if file else page
        if not there.exists():
            yield number, f"the link {match.group(1)} leads to no file"
        elif anchor and anchor not in anchors(there):
            yield number, f"the link {match.group(1)} leads to no heading"


def faults_of_source(root, path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        for page in re.findall(r"\b(docs/[\w/-]+\.md)\b", line):
            if not (root / page).exists():
                yield number, f"{page} does not exist"


def main(root):
    pages = [*root.glob("*.md"), *(page for top in FOLDERS for page in (root / top).rglob("*.md"))]
    sources = [path for top in FOLDERS for path in (root / top).rglob("*")
               if path.suffix in COMMENTED and path.is_file() and path.name != "links_test.py"]
    faults = [f"{page.relative_to(root)}:{number}: {fault}" for page in sorted(pages)
              for number, fault in faults_of_page(root, page)]
    faults += [f"{path.relative_to(root)}:{number}: {fault}" for path in sorted(sources)
               for number, fault in faults_of_source(root, path)]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults or not pages else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
