"""every_message.py ROOT: each message of lang/ stands in some CHECK line of tests/lang.

Takes the string literals of the calls that report, turns each format into a pattern, and looks for
a line that matches. Prints the messages without a test.
"""
import pathlib
import re
import sys

REPORTS = re.compile(
    r"\b(?:hec_error|hec_warning|hec_note|hec_detail|hec_diag_report|hec_diag_detail|not_yet"
    r"|contradiction)\(|fault = ")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%[-+0-9.*]*(?:ll|z|l)?[a-zA-Z]")


def messages(text):
    """Yields (offset, alternatives): the literals of one call, adjacent ones joined."""
    for call in REPORTS.finditer(text):
        end = text.find(";\n", call.end())
        code = re.sub(r'"\s*\n\s*"', "", text[call.end():end])
        literals = [m for m in LITERAL.findall(code) if " " in m and not m.startswith(" ")]
        if literals:
            yield call.start(), literals


def pattern(literal):
    literal = literal.replace('\\"', '"').replace("\\\\", "\\")
    parts = [re.escape(part) for part in CONVERSION.split(literal)]
    return re.compile(".*".join(parts))


def main(root):
    tests = root / "tests" / "lang"
    checks = []
    for path in sorted(tests.glob("*.moe")) + sorted(tests.glob("*.test")):
        lines = path.read_text().splitlines()
        checks += [line for line in lines if re.match(r"\s*#\s*[A-Z]+(-[A-Z0-9]+)*:", line)]
    missing = 0
    for path in sorted((root / "lang").rglob("*.[cly]")):
        text = path.read_text()
        for offset, literals in messages(text):
            for literal in literals:
                found = any(pattern(literal).search(line) for line in checks)
                if not found and CONVERSION.sub("", literal).strip(" `"):
                    line = text.count("\n", 0, offset) + 1
                    print(f"{path.relative_to(root)}:{line}: no test of: {literal}")
                    missing += 1
    return missing > 0


sys.exit(main(pathlib.Path(sys.argv[1])))
