"""facts.py HECATEC FOLDER MODEL [FLAG ...]: attributes alone define a program, not names or locations.

For every stage: the IR without its locations, and the IR with every symbol renamed, give C that differs from the
model's own in comments, strings, names and temporaries of expressions alone: every call has the same operands, at the
same places of the arena. Parentheses and braces do not count."""
import pathlib
import re
import subprocess
import sys

TOKEN = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d[\w.+]*|\+[+=]|\S')
OURS = re.compile(r"(hk|hrt|HK|HRT|omp)_\w+|pragma|omp|parallel|simd|for|if|else|return|const|static|void|struct|float|double|"
                  r"int\w*_t|int|offsetof|sizeof|true|false|NULL|include")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def without_locations(text):
    text = re.sub(r"^#loc.*\n", "", text, flags=re.M)
    return re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", text)


def renamed(text):
    """Symbols begin with r_, all of them: entries, whose names are given, stay."""
    kept = {"forward", "backward"}
    names = set(re.findall(r'sym_name = "([^"]*)"', text)) | set(re.findall(r"@([\w.]+)", text))
    names -= kept | set(re.findall(r"^module @([\w.]+)", text, flags=re.M))
    text = re.sub(r"@([\w.]+)", lambda m: "@" + ("r_" if m[1] in names else "") + m[1], text)
    text = re.sub(r'(sym_name|unit) = "([^"]*)"', lambda m: f'{m[1]} = "{"r_" if m[2] in names else ""}{m[2]}"', text)
    return re.sub(r"params = \[[^]]*\]", lambda m: m[0].replace('["', '["r_').replace(', "', ', "r_'), text)


def tokens(text):
    text = re.sub(r"^ *(hk_line\(|struct hk_lines ).*\n", "", text, flags=re.M)  # As comments are.
    return [t for t in TOKEN.findall(text) if not t.startswith("//")]


def statements(text):
    """Lists of tokens, each up to and with its `;`, `{` or `}`; the structs that hold the model are left out."""
    parts, part = [], []
    for token in tokens(re.sub(r"^struct \w+ \{.*?^\};", "", text, flags=re.M | re.S)):
        part.append(token)
        if token in ";{}":
            parts.append(part)
            part = []
    return parts


def joined(part):
    """Member accesses m->a.b as one token."""
    out = []
    for token in part:
        if out and out[-1] == "m-" and token == ">":
            out[-1] = "m->"
        elif out and out[-1] == "m" and token == "-":
            out[-1] = "m-"
        elif out and out[-1].startswith("m->") and (token == "." or out[-1][-1] in ">."):
            out[-1] += token
        else:
            out.append(token)
    return out


def resolved(text):
    """The statements with members and pointers to them replaced by where these lie, and without what only names them."""
    parts = [joined(part) for part in statements(text)]
    place = {part[0]: " ".join(part[2:-1]) for part in parts if part[0].startswith("m->") and part[1:5] == ["=", "(", "void", "*"]}
    local, out = {}, []
    for part in parts:
        if part[0] in place and part[1] == "=":
            continue
        if "=" in part and part[part.index("=") - 2:part.index("=") - 1] == ["*"] and part[part.index("=") + 1].startswith("m->"):
            value = part[part.index("=") + 1:-1]
            local[part[part.index("=") - 1]] = [place.get(token, token) for token in value]
            continue
        # Whether an expression has temporaries depends on how long its names are.
        scalar = part[2] if part[0] == "const" and part[1] in ("float", "double") and part[3] == "=" else None
        part = part[4:-1] if scalar else part
        part = [word for token, before in zip(part, ["", *part]) if token not in "(){}"
                for word in ([token] if before == "." else local.get(token, [place.get(token, token)]))]
        if scalar:
            local[scalar] = part
        elif "+=" in part:  # Printed where both have one name. A loop's `j++` may stand before it.
            at, start = part.index("+="), part.index("++") + 1 if "++" in part else 0
            out += [*part[:at], "=", *part[start:at], "+", *part[at + 1:]]
        else:
            out += part
    return out


def difference(one, other):
    a, b = resolved(one), resolved(other)
    there, back = {}, {}
    for i, (x, y) in enumerate(zip(a, b)):
        near = f"{' '.join(a[max(i - 8, 0):i + 3])} / {' '.join(b[max(i - 8, 0):i + 3])}"
        if x.startswith("m->") and y.startswith("m->"):
            if (there.setdefault(x, y), back.setdefault(y, x)) != (y, x):
                return f"{x} is {there[x]} and {y}: {near}"
            continue
        word = re.fullmatch(r"[A-Za-z_]\w*", x) and re.fullmatch(r"[A-Za-z_]\w*", y)
        if x != y and not (word and not OURS.fullmatch(x) and not OURS.fullmatch(y)) and not (x[0] == y[0] == '"'):
            return near
    return None if len(a) == len(b) else f"{len(a)} and {len(b)} tokens"


def main():
    hecatec, folder, model, *flags = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / "stage.mlir")
    own = run(hecatec, "-S", "-o", "-", *flags, model)
    used = re.search(r'hecate.passes = "([^"]*)"', run(hecatec, "--compile-to=place-buffers", "-o", "-", *flags, model))[1]
    seen, stages = {}, ["graph"]
    for name in used.split(","):
        seen[name] = seen.get(name, 0) + 1
        stages.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    for stage in stages:
        text = run(hecatec, f"--compile-to={stage}", "-o", "-", *flags, model)
        for what, change in (("without locations", without_locations), ("with other symbols", renamed)):
            (folder / "stage.mlir").write_text(change(text))
            found = difference(own, run(hecatec, f"--compile-from={stage}", "-S", "-o", "-", path))
            if found:
                sys.exit(f"{model} {' '.join(flags)}, {stage} {what}: {found}")
    print(f"{len(stages)} stages are the same without locations and with other symbols")


main()
