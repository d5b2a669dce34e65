"""prose.py ROOT RECORD: the words of documents, comments and messages get plainer, never less plain.

Counts four habits: sentences whose subject is "what", "who" or "whatever"; sentences that begin with "Of"; words of ours
for which the field has one; lines of prose with more than 120 columns. RECORD (JSON) has a count per habit, for
documents, comments and messages: one that has grown fails.

  --write        records the counts as they are now; none may grow
  --list HABIT   prints every place of a habit
  --since REV    prints the places on lines that are new since REV, a revision of git
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tokenize

from folders import FOLDERS, PRODUCT

SLASHES = (".c", ".h", ".def", ".cu", ".cpp", ".y", ".l", ".js")
COLUMNS = 120

HEADLESS = re.compile(r"(?:^|[.:;!] |, (?:and |but |or |so )?)(?:[Ww]hat|[Ww]hatever|[Ww]hoever|Who|[;:] who)\b(?! if\b)")
OF_FRONT = re.compile(r"(?:^|[.:!?] )Of (?!course)")
PRIVATE = {
    "(?:is|are) (?:not )?apart": "separate device memory", "are said|is said|was said|said to|said of": "reported, given",
    "(?<!in )flight": "in flight", "lands?|landed": "completed", "wires?": "transport",
    "(?:a|the|over a|its) doubles? (?:of|for)|no double|doubles only": "fake", "picks": "top-k choices",
    "(?<!namespace )(?<!dot[ -])(?<!scalar )(?<!outer )products?(?! of exactness)": "GEMM",
    "computed again|computes? (?:it|them)? ?again": "recomputed", "signs? of life": "heartbeat",
    "what a teacher says|what the teacher says": "teacher entries", "experts choose tokens": "expert choice",
}
PRIVATE_WORDS = re.compile(r"\b(?:%s)\b" % "|".join(PRIVATE))
SEARCHED = {"headless": HEADLESS, "of-front": OF_FRONT, "private": PRIVATE_WORDS}
HABITS = (*SEARCHED, "long")

Line = collections.namedtuple("Line", "path number text columns")


def of_page(path, text):
    """The lines of prose of a page: neither code nor, for their length, tables and links."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        inside ^= fence
        if inside or fence or line.startswith("    "):
            continue
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "`", line)
        table = line.startswith("|")
        for cell in plain.strip("| ").split(" | ") if table else [plain]:
            yield Line(path, number, cell.strip().lstrip("#*-> 0123456789."), 0)
        yield Line(path, number, "", 0 if table else len(re.sub(r"\]\([^)]*\)", "]", line)))


def of_comments(path, text):
    if path.suffix == ".py":
        return
    mark = r"//(?!/)" if path.suffix in SLASHES else r"#(?!!)"
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r"(?:[^\"']|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')*?(?:^|\s)%s (.*)" % mark, line)
        command = path.suffix in (".test", ".moe") and found and re.match(r"[A-Z][\w-]*:", found.group(1))
        if found and not command:  # Those of lit and FileCheck: RUN, CHECK and the like.
            yield Line(path, number, re.sub(r"`[^`]*`|\[[^\]]*\]", "`", found.group(1)), len(line))


def of_python(path):
    with open(path, "rb") as file:
        for token in tokenize.tokenize(file.readline):
            docstring = token.type == tokenize.STRING and token.string.startswith('"""')
            if token.type != tokenize.COMMENT and not docstring:
                continue
            for offset, line in enumerate(token.string.splitlines()):
                columns = len(token.line.splitlines()[offset]) if docstring else len(token.line.rstrip())
                yield Line(path, token.start[0] + offset, line.strip('"# '), columns)


def of_messages(path, text):
    """Strings that people read: those with a space between words."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(//|#include)", line):
            continue
        for string in re.findall(r"\"((?:\\.|[^\"\\])*)\"", line.split(" // ")[0]):
            if re.search(r"[a-z] [a-z%'`]", string):
                yield Line(path, number, re.sub(r"`[^`]*`|\\n", "`", string).lstrip(), 0)


def lines(root):
    """(kind, line) of everything that is read."""
    files = [*root.glob("*.md"), *root.glob("*.sh"), *root.glob("CMakeLists.txt")]
    files += [file for top in FOLDERS for file in (root / top).rglob("*")]
    for path in sorted(files):
        relative = path.relative_to(root)
        if not path.is_file() or ".golden" in path.name or relative.parts[:2] == ("bench", "results"):
            continue
        if path.name in ("prose.py", "links_test.py"):  # They name the habits.
            continue
        if path.suffix == ".md":
            yield from (("documents", line) for line in of_page(relative, path.read_text()))
        elif path.suffix == ".py":
            yield from (("comments", line._replace(path=relative)) for line in of_python(path))
        elif path.suffix in (*SLASHES, ".sh", ".cmake", ".test", ".moe") or path.name == "CMakeLists.txt":
            text = path.read_text(errors="replace")
            yield from (("comments", line) for line in of_comments(relative, text))
            if relative.parts[0] in PRODUCT and path.suffix in SLASHES and path.name != "kernels.def":  # Arguments.
                yield from (("messages", line) for line in of_messages(relative, text))


def places(root):
    """(kind, habit, line, words) of every place."""
    for kind, line in lines(root):
        for habit, pattern in SEARCHED.items():
            for found in pattern.finditer(line.text):
                if habit != "headless" or not line.text[found.end():].split(".")[0].endswith("?"):
                    yield kind, habit, line, line.text[found.start():found.start() + 80]
        if line.columns > COLUMNS:
            yield kind, "long", line, f"{line.columns} columns"


def new_lines(root, revision):
    """The (path, number) of lines that are new since a revision."""
    text = subprocess.run(["git", "diff", "-U0", "--no-color", revision, "--", "."], cwd=root, check=True,
                          capture_output=True, text=True, errors="replace").stdout
    path, found = None, set()
    for line in text.splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if hunk:
            first = int(hunk.group(1))
            found |= {(path, number) for number in range(first, first + int(hunk.group(2) or 1))}
    return found


def compare(counts, record):
    faults = []
    for kind, habits in counts.items():
        for habit, count in habits.items():
            allowed = record.get(kind, {}).get(habit, 0)
            if count > allowed:
                faults.append(f"{kind}: {count} of {habit}, there were {allowed}"
                              f" (tests/prose.py . RECORD --since REVISION lists the new ones)")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", choices=HABITS)
    parser.add_argument("--since")
    options = parser.parse_args()
    new = new_lines(options.root, options.since) if options.since else None
    counts = {kind: dict.fromkeys(HABITS, 0) for kind in ("documents", "comments", "messages")}
    for kind, habit, line, words in places(options.root):
        counts[kind][habit] += 1
        if habit == options.list or (new is not None and (str(line.path), line.number) in new):
            print(f"{line.path}:{line.number}: {habit}: {words}")
    record = json.loads(options.record.read_text()) if options.record.exists() else counts
    faults = compare(counts, record)
    print("\n".join(faults), end="\n" if faults else "")
    if options.write and not faults:
        options.record.write_text(json.dumps(counts, indent=1) + "\n")
    if options.list or new is not None:
        return 0
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
