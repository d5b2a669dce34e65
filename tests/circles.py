"""circles.py ROOT FOLDER... --folders FOLDER... -- OBJECT...: nothing needs itself in a circle.

The first FOLDERs: no files below one need each other in a circle. Those after --folders (without any: those of
compiler and runtime): no folders below one do, where a folder needs another one if a file in it needs a file there;
files directly in FOLDER are a folder, too.

A file needs the files that define the symbols that its object file refers to, whichever header declares them, and the
headers that it includes, and that those include. Lists (*.def) need nobody and are needed freely. OBJECT are the object
files of libraries of FOLDERs: .../NAME.dir/host/dims.c.o of a library in codegen/ is codegen/host/dims.c.
"""

import os
import pathlib
import re
import subprocess
import sys

from folders import PRODUCT

SOURCES = (".c", ".h", ".cu", ".l", ".y")


def source_of(root, path):
    """The source file of an object file, relative to ROOT; None for a generated one."""
    before, _, inside = path.partition(".dir/")
    parts = before.split("/CMakeFiles/")[0].split("/")
    for start in range(len(parts)):  # The build folder mirrors ROOT from some level on.
        name = os.path.normpath(os.path.join(*parts[start:], inside[: -len(".o")].replace("__/", "../")))
        if os.path.isfile(os.path.join(root, name)):
            return name
    return None


def symbols_of(objects):
    """The symbols that each object file defines for others, and those that it refers to."""
    if not objects:
        return {}
    text = subprocess.run(["nm", "-A", "-P", "-g", *objects], check=True, capture_output=True, text=True)
    symbols = {path: (set(), set()) for path in objects}
    for line in text.stdout.splitlines():
        path, row = line.rsplit(": ", 1)
        symbol, kind = row.split()[:2]
        if kind not in "wv":
            symbols[path][kind == "U"].add(symbol)
    return symbols


def headers_of(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        found = re.findall(r'^#include "([^"]+)"', file.read(), re.MULTILINE)
    return {header for header in found if os.path.isfile(os.path.join(root, header))}


def needs_of(root, folders, objects):
    """File -> files that it needs -> why. Files of folders without an object are read, too: headers, *.cu."""
    symbols = {source_of(root, path): found for path, found in symbols_of(objects).items()}
    symbols.pop(None, None)
    owner = {symbol: name for name, (defined, _) in symbols.items() for symbol in defined}
    needs = {}
    for name, (_, used) in symbols.items():
        for symbol in used:
            if owner.get(symbol, name) != name:
                needs.setdefault(name, {})[owner[symbol]] = symbol + "()"
    found = {str(path.relative_to(root)) for folder in folders for path in pathlib.Path(root, folder).rglob("*")
             if path.suffix in SOURCES}
    left = sorted(found | set(symbols))
    seen = set(left)
    while left:
        name = left.pop()
        for header in headers_of(root, name):
            needs.setdefault(name, {})[header] = "#include"
            if header not in seen:
                seen.add(header)
                left.append(header)
    return needs


def circle_from(needs, start, folder):
    """A shortest way from START back to it inside FOLDER; None: there is none."""
    came = {start: None}
    left = [start]
    for name in left:
        for other in sorted(needs.get(name, {})):
            if other == start:
                way = [start]
                while name is not None:
                    way.insert(0, name)
                    name = came[name]
                return way
            if other not in came and other.startswith(folder + "/"):
                came[other] = name
                left.append(other)
    return None


def by_folder(needs, top):
    """Folder below TOP -> folders there that it needs -> the files and why."""
    folders = {}
    for name, others in needs.items():
        for other, why in others.items():
            a, b = os.path.dirname(name) + "/", os.path.dirname(other) + "/"
            if a != b and a.startswith(top + "/") and b.startswith(top + "/") and not other.endswith(".def"):
                folders.setdefault(a, {}).setdefault(b, f"{name} needs {other}: {why}")
    return folders


def folders_have_circles(needs, top):
    folders, told = by_folder(needs, top), set()
    for folder in sorted(folders):
        way = circle_from(folders, folder, top) if folder not in told else None
        if not way:
            continue
        told.update(way)
        print(f"{top}: folders that need each other in a circle:")
        for a, b in zip(way, way[1:]):
            print(f"  {a} needs {b}: {folders[a][b]}")
    return bool(told)


def main():
    root, *rest = sys.argv[1:]
    cut = rest.index("--")
    of_files, of_folders = rest[:cut], []
    if "--folders" in of_files:
        between = of_files.index("--folders")
        of_files, of_folders = of_files[:between], of_files[between + 1:] or PRODUCT
    needs = needs_of(root, [*of_files, *of_folders], rest[cut + 1:])
    failed = False
    for top in of_folders:
        if not any(name.startswith(top + "/") for name in needs):
            print(f"{top}: there is no file in it")
            failed = True
        failed |= folders_have_circles(needs, top)
    for folder in of_files:
        files = sorted(name for name in needs if name.startswith(folder + "/"))
        if not files:
            print(f"{folder}: no object file of it is given")
            failed = True
        told = set()
        for name in files:
            way = circle_from(needs, name, folder) if name not in told else None
            if not way:
                continue
            told.update(way)
            failed = True
            print(f"{folder}: files that need each other in a circle:")
            for a, b in zip(way, way[1:]):
                print(f"  {a} needs {b}: {needs[a][b]}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
