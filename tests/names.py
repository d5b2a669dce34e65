"""names.py ROOT RECORD [--write | --list] -- OBJECT...: exported names of runtime/ begin with their folder.

A name that runtime/net/lanes.c defines for other files begins with hrt_net; names of runtime/plan begin with hpl_. RECORD
(JSON) has the number of other names in each folder: one that has grown fails. --write records the numbers as they are
now, and none may grow; --list prints the names. OBJECT: as circles.py takes them.
"""

import json
import pathlib
import sys

import circles


def prefix_of(folder):
    return "hpl_" if folder == "plan" else f"hrt_{folder}"


def others_of(root, objects):
    """Folder of runtime/ -> its exported names that do not begin with it."""
    others = {}
    for path, (defined, _) in circles.symbols_of(objects).items():
        parts = (circles.source_of(root, path) or "").split("/")
        if parts[0] != "runtime" or len(parts) < 3:
            continue
        prefix = prefix_of(parts[1])
        wrong = {name for name in defined if name.startswith(("hrt_", "hpl_")) and name != prefix
                 and not name.startswith(prefix.rstrip("_") + "_")}
        others.setdefault(parts[1], set()).update(wrong)
    return others


def main():
    cut = sys.argv.index("--")
    root, record, *options = sys.argv[1:cut]
    others = others_of(root, sys.argv[cut + 1:])
    if "--list" in options:
        print("\n".join(f"{folder}: {name}" for folder in sorted(others) for name in sorted(others[folder])))
    before = json.loads(pathlib.Path(record).read_text()) if pathlib.Path(record).exists() else {}
    grown = [folder for folder, names in sorted(others.items()) if len(names) > before.get(folder, 0)]
    if "--write" in options and (not before or not grown):
        counts = {folder: len(names) for folder, names in sorted(others.items()) if names}
        pathlib.Path(record).write_text(json.dumps(counts, indent=1) + "\n")
        return
    for folder in grown:
        print(f"runtime/{folder}: {len(others[folder])} exported names do not begin with {prefix_of(folder)}, "
              f"there were {before.get(folder, 0)} (names.py --list shows them)")
    sys.exit(bool(grown) or not others)


main()
