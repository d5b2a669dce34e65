"""inert.py FILE COPY: fails unless COPY, where no fault is chosen, is FILE, token by token: so that what finds a fault has
found no slip of its patch.

planted(N) may stand in these forms, of which the second column is what remains:

  if (!planted(N)) statement                   statement
  if (planted(N)) statement else other         other; without `else` nothing. Both may be blocks
  planted(N) && more ? a : b                   b
  x += planted(N);                             nothing
  a - planted(N)                               a
"""

import re
import sys

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\s+|([A-Za-z_]\w*|\d[\w.]*|\"(?:\\.|[^\"\\])*\"|.)", re.DOTALL)
OPENING, CLOSING = "([{", ")]}"


def tokens_of(text):
    return [token for token in TOKEN.findall(text) if token]


def behind(tokens, at, ends):
    """Behind the first token of `ends` from `at` on that no bracket encloses."""
    depth = 0
    for i in range(at, len(tokens)):
        if depth == 0 and tokens[i] in ends:
            return i + 1
        depth += (tokens[i] in OPENING) - (tokens[i] in CLOSING)
    raise ValueError("a bracket is open")


def behind_statement(tokens, at):
    if tokens[at] == "{":
        return behind(tokens, at + 1, "}")
    if tokens[at] in ("if", "for", "while"):
        at = behind_statement(tokens, behind(tokens, at + 2, ")"))
        return behind_statement(tokens, at + 1) if tokens[at] == "else" else at
    return behind(tokens, at, ";")


def without_braces(statement):
    return statement[1:-1] if statement[0] == "{" else statement


def without_if(tokens, at, absent):
    """`if (planted(N))`, or with `absent` `if (!planted(N))`, begins at `at`."""
    first = at + (8 if absent else 7)
    if absent:
        return tokens[:at] + tokens[first:]
    end = behind_statement(tokens, first)
    if tokens[end] != "else":
        return tokens[:at] + tokens[end:]
    other = behind_statement(tokens, end + 1)
    return tokens[:at] + without_braces(tokens[end + 1 : other]) + tokens[other:]


def without_first(tokens):
    """Without the first fault."""
    at = tokens.index("planted")
    end = at + 4  # planted ( N )
    if tokens[at - 2 : at] == ["if", "("] and tokens[end] == ")":
        return without_if(tokens, at - 2, False)
    if tokens[at - 3 : at] == ["if", "(", "!"] and tokens[end] == ")":
        return without_if(tokens, at - 3, True)
    if tokens[at - 1] == "=" and tokens[at - 2] in "+-" and tokens[end] == ";":
        return tokens[: at - 3] + tokens[end + 1 :]
    if tokens[at - 1] in "+-":
        return tokens[: at - 1] + tokens[end:]
    if tokens[at - 1] in ("=", "(", ":") and tokens[end] in "?&":
        question = behind(tokens, end, "?")
        depth = 1
        while depth:  # Questions within the one.
            question = behind(tokens, question, "?:")
            depth += 1 if tokens[question - 1] == "?" else -1
        return tokens[:at] + tokens[question:]
    raise ValueError(f"{' '.join(tokens[at - 3 : end + 3])}: not a form of planted()")


def main(original, copy):
    with open(original, encoding="utf-8") as file:
        want = tokens_of(file.read())
    with open(copy, encoding="utf-8") as file:
        tokens = tokens_of(file.read())
    while "planted" in tokens:
        tokens = without_first(tokens)
    if tokens != want:
        at = next((i for i, (a, b) in enumerate(zip(tokens, want)) if a != b), min(len(tokens), len(want)))
        sys.exit(f"{original}: its copy without a fault has\n  {' '.join(tokens[at - 8 : at + 8])}\nand not\n"
                 f"  {' '.join(want[at - 8 : at + 8])}")


if __name__ == "__main__":
    main(*sys.argv[1:])
