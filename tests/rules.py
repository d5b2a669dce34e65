"""rules.py ROOT: rules of the house that a script can see. Prints each breach; exit status 1 if there is any.

Files are shorter than 600 lines and functions than 70, so that they can be read at once. A name of a header
is used by a file that does not define it, or by one of its macros: else it is private or dead.
"""

import os
import re
import subprocess
import sys

from folders import FOLDERS

FILE_LINES = 600
FUNCTION_LINES = 70
NAME = re.compile(r"\b(?:hec|hf|hpl|hrt)_\w+")


def sources(root):
    """Path -> text of the C files and headers that people write."""
    texts = {}
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if not name.endswith((".c", ".h", ".l", ".y", ".def", ".cu", ".cpp")) or ".golden." in name:
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts[os.path.relpath(path, root)] = file.read()
    return texts


def unlisted(root):
    """Folders with files of the repository that tests do not read (folders.py)."""
    done = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=False)
    tops = {path.split("/")[0] for path in done.stdout.split("\n") if "/" in path}
    return sorted(top for top in tops - set(FOLDERS) if not top.startswith("."))


def long_functions(text):
    """(line, lines) of every function that is too long."""
    start, signature = None, False  # The line with the opening brace; whether it is to come.
    for number, line in enumerate(text.splitlines(), 1):
        begins = re.match(r"[A-Za-z_]", line) and not re.match(r"(struct|enum|union|namespace)\b[^()]*\{$", line)
        if (begins or signature) and re.search(r"[^=] \{$", line):
            start, signature = number, False
        elif begins or signature:
            signature = not re.search(r"[;{}]\s*(//.*)?$", line)
        elif line == "}" and start:
            if number - start >= FUNCTION_LINES:
                yield start, number - start + 1
            start = None
        elif line.startswith("}"):
            start = None


def declared(text):
    """The functions that a header declares."""
    text = re.sub(r"//.*|/\*.*?\*/", "", text)
    text = re.sub(r"^ *#(?:.*\\\n)*.*", "", text, flags=re.MULTILINE)
    for statement in re.split(r"[;{}]", text):
        if "typedef" in statement or "static" in statement.split():
            continue
        found = re.match(r"[\w\s*]*?\b(\w+)\(", statement.strip())
        if found and NAME.fullmatch(found.group(1)):
            yield found.group(1)


def main():
    texts = sources(sys.argv[1])
    users = {}
    for path, text in texts.items():
        if path.endswith(".h"):  # A header uses names only in its macros and inline functions.
            macros = re.findall(r"^#define(?:.*\\\n)*.*", text, re.MULTILINE)
            bodies = re.findall(r"^static inline .*?^}", text, re.MULTILINE | re.DOTALL)
            text = "\n".join(macros + bodies)
        for name in set(NAME.findall(text)):
            users.setdefault(name, set()).add(path)
    breaches = [f"{top}/: tests/folders.py does not list it" for top in unlisted(sys.argv[1])]
    for path, text in sorted(texts.items()):
        lines = text.count("\n")
        if lines >= FILE_LINES:
            breaches.append(f"{path}: {lines} lines, {FILE_LINES} are too many")
        if path.endswith((".c", ".cu", ".cpp")):
            for start, lines in long_functions(text):
                breaches.append(f"{path}:{start}: a function of {lines} lines, {FUNCTION_LINES} are too many")
        if path.endswith(".h") and not path.startswith("tests/"):
            for name in declared(text):
                if len(users.get(name, set())) < 2:
                    breaches.append(f"{path}: {name}() is used by no other file")
    print("\n".join(breaches), end="\n" if breaches else "")
    sys.exit(bool(breaches))


main()
