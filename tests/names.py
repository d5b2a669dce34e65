"""names.py ROOT -- OBJECT...: exported names of runtime/ begin with their folder.

A name that runtime/net/lanes.c defines for other files begins with hrt_net; names of runtime/plan begin with hpl_. Names
of runtime/base, on which everything stands, begin with hrt_ alone: hrt_fail. OBJECT: as circles.py takes them.
"""

import sys

import circles

PREFIX = {"base": "hrt", "plan": "hpl"}


def others_of(root, objects):
    """The number of files of runtime/ that export names, and pairs of a file and a name of another prefix."""
    files, others = 0, set()
    for path, (defined, _) in circles.symbols_of(objects).items():
        source = circles.source_of(root, path) or ""
        parts = source.split("/")
        if parts[0] != "runtime" or len(parts) < 3:
            continue
        files += 1
        prefix = PREFIX.get(parts[1], f"hrt_{parts[1]}")
        others.update((source, name) for name in defined if name.startswith(("hrt_", "hpl_"))
                      and name != prefix and not name.startswith(f"{prefix}_"))
    return files, others


def main():
    cut = sys.argv.index("--")
    files, others = others_of(sys.argv[1], sys.argv[cut + 1:])
    for source, name in sorted(others):
        print(f"{source}: {name} does not begin with the name of its folder")
    sys.exit(bool(others) or not files)


main()
