#!/usr/bin/env python3
"""Patterns where Oniguruma, whose syntax tokenizer.json has, and PCRE2 differ: texts are cut as the library cuts them, or the pattern is
refused, with the byte where.

    patterns.py check CASES               against patterns.json; Python alone
    patterns.py compare CASES [COUNT]     the same and COUNT random patterns against the library `tokenizers`; 77 where it is missing
    patterns.py record                    writes patterns.json
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
HAN, END = r"[\p{Han}]+", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
# As Kimi-K2's.
KIMI = "|".join([HAN, rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{END}", rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{END}", r"\p{N}{1,3}",
                 r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
PATTERNS = [
    KIMI, r"[a-f[0-9]]+|.", r"[^a-f&&[b-z]]+", r"[a-z&&[^aeiou]&&[^xyz]]+", r"[[a-c][^a-x]]+", r"[\p{L}&&[^\p{Lu}\d]]+", r"(?i:[a-z&&[^k]]+)",
    r"[^[a-c]d]+", r"[^[^a-c]]+", r"[a&&b]|x", r"[a&b]+", r"[]a]+", r"[^]a]+", r"[a^]+", r"[a\]b[c\]]]+", r"[\[&&\]\[]+", r"[[:alpha:]]+", r"[[:digit:]x]+",
    r"[[:upper:][:space:]]+", r"[\s&&[^\n]]+", r"[\w]", r"[é-ü&&[^ö]]+",
    r"(?=(\d{3})+(?!\d))", r"(?<=\d)(?=(?:\d{3})+(?!\d))", r"", r"b*", r"(?=b)|bb", r"(?<=a)", r"\d*?", r"(?=日)", r"$", r"^", r"a$", r"^b", r"\Aa", r"\n\z",
    r"\v+", r"(?m:.)+", r"a.b", r".+", r"(?m)a.b", r"(?mi:A.b)", r"(?-i:a)", r"\d{,3}", r"\d{,}", r"a{,x}", r"1{2,}", r"a{2}", r"a{1,2}?b", r"a{2}?", r"a{2}+",
    r"\Qa\E+", r"[\Q]+", r"\u00e9+", r"\x{e9}", r"\xe9", r"(?i)ab|cd", r"x(?i)ab|cd", r"(?s:.)", r"(?u:a)", r"\p{^L}+", r"\P{L}+", r"\pL", r"\h+", r"\w", r"\bx",
    r"(?#a ( comment [)1+", r"(?<n>a+)b", r"(?P<n>a)", r"(a)\1", r"a++", r"(?>a+)", r"(?|a|b)", r"(*FAIL)|a", r"(?R)?a", r"a|", r"\R", r"\X", r"\K", r"\C", r"\cA", r"[",
    r"[a", r"[a&&]", r"[&&a]", r"(", r"(?", r"(?<", r"(?i", r"\p{L", r"\u12", r"{", r"}", r"a{", r"a{1", r"a{1,", r"{,2}", r"\e|\a|\t|\f", r"\/|\-|\.", r"a\ b", r"x(?i:AB|c)D?",
]
TEXTS = ["", "a", "1234567", "a 12345678 b", "1 12 123 1234", "It's Kimi's model, isn't it?", "日本語とEnglish mixed漢字here", "deadbeef42 xyz KLM",
         "HTTPServer2025 naïve don't", "a\nb\n\nab\r\n", "\n", "a]b[c^d&e&&f", "aabbab xAb XaB cd CD", "éèüö É", "aaa{,3}a{1}b{,x}{", "QaE\\ \x0b\x0b\x0c\u2028\x85 \t",
         "\u0663\u0664 Ⅷ ½", "abABc-d.e/f"]


def tokenizer(pattern, behavior="Isolated", invert=False):
    """One that shows where texts are cut: a piece begins with a space. The id of a byte is its number."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]}, "post_processor": None, "decoder": {**level},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": {letters[byte]: byte for byte in range(256)}, "merges": []}}


def ours(cases, folder, texts, *how):
    """Ids of each text, or the message about the pattern."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(tokenizer(*how)))
    given = "".join((text.encode().hex() or "-") + "\n" for text in texts)
    done = subprocess.run([cases, "encode", path], input=given, text=True, capture_output=True, timeout=60)
    if done.returncode == 0:
        return [[int(word) for word in line.split(",")] if line != "-" else [] for line in done.stdout.splitlines()]
    assert done.returncode == 1 and "pre_tokenizer.pretokenizers[0]: " in done.stderr, done
    assert re.search(r", \d+ bytes into '", done.stderr), done.stderr
    return done.stderr


def theirs(texts, *how):
    """The same by the library; None: it refuses the pattern."""
    from tokenizers import Tokenizer
    try:
        made = Tokenizer.from_str(json.dumps(tokenizer(*how)))
    except Exception:
        return None
    return [encoding.ids for encoding in made.encode_batch(texts, add_special_tokens=False)]


def ways():
    for pattern in PATTERNS:
        yield pattern, "Isolated", False
    for pattern in (r"(?=(\d{3})+(?!\d))", r"b*", r"\d+", r"(?<=a)|b"):
        for behavior in BEHAVIORS:
            for invert in (False, True):
                yield pattern, behavior, invert


def show(ids):
    return bytes(ids).decode("utf-8", "replace")


def record():
    with open(HERE / "patterns.json", "w", encoding="ascii") as out:
        lines = [json.dumps([*how, ids if ids is None else [bytes(each).hex() for each in ids]]) for how in ways() for ids in [theirs(TEXTS, *how)]]
        out.write("[" + ",\n".join(lines) + "]\n")


REFUSED = {r"a{2}?", r"a{2}+", r"x(?i)ab|cd", r"(?s:.)", r"(?u:a)", r"\pL", r"\h+", r"\w", r"\bx", r"[\w]", r"(?P<n>a)", r"(?|a|b)", r"(*FAIL)|a", r"(?R)?a", r"\R", r"\X",
           r"\K", r"\C", r"\cA", r"[", r"[a", r"[a&&]", r"[&&a]", r"(", r"(?", r"(?<", r"(?i", r"\p{L", r"\u12", r"{,2}"}


def check(cases):
    stored, counts = json.loads((HERE / "patterns.json").read_text()), {}
    assert [tuple(entry[:3]) for entry in stored] == list(ways()), "record it again"
    with tempfile.TemporaryDirectory() as name:
        for pattern, behavior, invert, want in stored:
            got = ours(cases, pathlib.Path(name), TEXTS, pattern, behavior, invert)
            refused = isinstance(got, str)
            assert refused == (pattern in REFUSED) or want is None, (pattern, got)
            if not refused and want is not None:
                for text, mine, other in zip(TEXTS, got, want, strict=True):
                    assert bytes(mine).hex() == other, (pattern, behavior, invert, text, show(mine), show(bytes.fromhex(other)))
            verdict = "refused" if refused else "cut" if want is not None else "unknown there"
            counts[verdict] = counts.get(verdict, 0) + 1
    print(counts)
    return 0


# ---- random patterns

def random_class(draw, depth=0):
    parts = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.randrange(9)
        if kind < 4:
            parts.append(draw.choice("abcdexyzABC123 é日_,^-&"))
        elif kind < 6:
            parts.append(draw.choice(["a-f", "A-Z", "0-9", r"\d", r"\s", r"\p{L}", r"\p{Lu}", r"\P{N}", r"\p{Han}", "\\n", r"\]", r"\v", r"\x0b", "[:alpha:]"]))
        elif kind < 8 and depth < 3:
            parts.append(random_class(draw, depth + 1))
        elif parts and depth < 3:
            parts.append("&&" + random_class(draw, depth + 1))
    return "[" + draw.choice(["", "", "^"]) + "".join(parts) + "]"


def random_pattern(draw, depth=0):
    atoms = []
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(10)
        if kind < 3:
            atom = random_class(draw)
        elif kind < 6:
            atom = draw.choice(["a", "b", "x", "1", ".", r"\d", r"\s", "^", "$", r"\v", r"\n", r"\Q", "日", r"\p{Lu}", r"\S", ","])
        elif kind < 9 and depth < 3:
            atom = draw.choice(["(", "(?:", "(?=", "(?!", "(?i:", "(?m:", "(?<=a|", "(?>"]) + random_pattern(draw, depth + 1) + ")"
        else:
            atom = "|"
        if atom not in ("^", "$", "|") and not atom.startswith(("(?=", "(?!", "(?<")) and draw.random() < 0.4:
            atom += draw.choice(["*", "+", "?", "{2}", "{,2}", "{1,}", "*?", "+?", "{1,2}?", "++"])
        atoms.append(atom)
    return "".join(atoms)


def compare(cases, count):
    try:
        import tokenizers  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    draw, wrong, counts = random.Random(count), 0, {}
    every = list(ways()) + [(random_pattern(draw), draw.choice(BEHAVIORS), draw.random() < 0.2) for _ in range(count)]
    with tempfile.TemporaryDirectory() as name:
        for how in every:
            texts = TEXTS + ["".join(draw.choice("aabbxyzAB123 \n\x0bé日,^&-_Q") for _ in range(draw.randint(1, 25))) for _ in range(10)]
            want, got = theirs(texts, *how), ours(cases, pathlib.Path(name), texts, *how)
            verdict = "refused" if isinstance(got, str) else "unknown there" if want is None else "same" if got == want else "WRONG"
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == "WRONG":
                wrong += 1
                i = next(i for i in range(len(texts)) if got[i] != want[i])
                print("WRONG", how, repr(texts[i]), repr(show(got[i])), repr(show(want[i])), flush=True)
    print(counts)
    return wrong > 0


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record()
    elif sys.argv[1] == "check":
        sys.exit(check(sys.argv[2]))
    else:
        sys.exit(compare(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0))
