"""language_doc.py ROOT TOOL: docs/language.md tells the truth. TOOL is hec_check_tool.

Every ```moe example compiles without a complaint; a ```moe-error example gives exactly the ```text
behind it; every builtin function and every setting stands in a row of a table, with its default.
--write replaces the tables by what TOOL prints.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = "block ffn(x[T, D]) -> [T, D] {\n  param w1[D, F], w2[F, D]\n  return gelu(x @ w1) @ w2\n}\n"
MODEL = "model doc(ids[T]) -> [T, V] {\n  param embed[V, D]\n  return embed[ids] @ embed\n}\n"
SPARSE = MODEL.replace("embed[ids]", "rmsnorm(sparse(embed[ids]))")
DIMS = "dim V = 256, T = 128, D = 64\n"


def run(tool, *arguments, folder=None):
    return subprocess.run([tool, *arguments], cwd=folder, capture_output=True, text=True)


def cells(*texts):
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |\n"


def tables(tool):
    builtins = cells("call", "value") + cells("---", "---")
    for line in run(tool, "--builtins").stdout.splitlines():
        builtins += cells(f"`{line[:125].strip()}`", line[125:].strip())
    moe = cells("setting", "default", "meaning") + cells("---", "---", "---")
    settings = cells("setting", "default", "set", "meaning") + cells("---", "---", "---", "---")
    for line in run(tool, "--settings").stdout.splitlines():
        key, default, text = line[:38].strip(), *re.match(r"(\S*)\s+(.*)", line[39:]).groups()
        if key.startswith("moe: "):
            moe += cells(f"`{key[5:]}`", default, text)
        else:
            settings += cells(f"`{key}`", default, *re.match(r"(\S+)\s+(.*)", text).groups())
    return {"| call |": builtins, "| setting | default | meaning |": moe, "| setting | default | set |": settings}


def examples(tool, text):
    faults = 0
    blocks = re.findall(r"^```(moe|moe-error|text)\n(.*?)^```$", text, re.S | re.M)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.moe").write_text("dim V = 256, T = 4096, D = 64, F = 96, E = 4\n" + BLOCK +
                                          "moe sparse(x[T, D]) -> [T, D] { experts = E * ffn }\n" + SPARSE)
        for number, (kind, source) in enumerate(blocks):
            if kind == "text":
                continue
            if kind == "moe" and "model " not in source and "import" not in source:
                source += MODEL
            (folder / "doc.moe").write_text(source)
            result = run(tool, "doc.moe", folder=folder)
            expected = blocks[number + 1][1] if kind == "moe-error" else ""
            if result.stderr != expected:
                print(f"example:\n{source}prints:\n{result.stderr}expected:\n{expected}")
                faults += 1
    return faults + (len(blocks) < 5)


def main(root, tool, write):
    path = pathlib.Path(root) / "docs" / "language.md"
    text = path.read_text()
    wanted = tables(tool)
    found = re.findall(r"(?:^\|.*\n)+", text, re.M)
    faults = 0
    for head, table in wanted.items():
        theirs = [t for t in found if t.startswith(head)]
        ours = table if isinstance(table, list) else [table]
        if len(theirs) != len(ours):
            print(f"{path}: {len(theirs)} tables begin with {head}, not {len(ours)}")
            faults += 1
        for old, new in zip(theirs, ours):
            if old == new:
                continue
            faults += not write
            text = text.replace(old, new)
            print(f"{path}: the table that begins with {head} is out of date (--write renews it)")
    if write:
        path.write_text(text)
    return faults + examples(tool, text) > 0


sys.exit(main(sys.argv[1], sys.argv[2], "--write" in sys.argv))
