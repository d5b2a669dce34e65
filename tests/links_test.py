"""links_test.py: links.py and prose.py catch faults that are planted in a small project, and nothing else."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PAGE = """# A page

It links [to itself](#a-page), to [another](docs/other.md#its-part-1) and to [the web](https://example.org/x).
It names `docs/other.md`, `kernels/NAME/NAME.h` and the test `lang/words`.

```
[no](link.md) and `docs/nothing.md`
Of code nothing is counted, what it says is its own affair.
```
"""
OTHER = "# Other\n\n## Its part\n\n## Its part\n"
SOURCE = "// A comment: see docs/other.md.\nint one = 1; // Adds one.\nconst char *text = \"cannot open it\";\n"
LINKS = (  # What stands where, and what is then said of it.
    ("README.md", "[a](docs/none.md)", "README.md:10: the link docs/none.md leads to no file"),
    ("README.md", "[a](docs/other.md#none)", "README.md:10: the link docs/other.md#none leads to no heading"),
    ("docs/other.md", "[a](#a-page)", "docs/other.md:6: the link #a-page leads to no heading"),
    ("README.md", "`docs/none.c`", "README.md:10: `docs/none.c` does not exist"),
    ("lang/one.c", "// docs/none.md", "lang/one.c:4: docs/none.md does not exist"),
)
HABITS = (
    ("README.md", "What it does is good.", "documents: 1 of headless, there were 0"),
    ("README.md", "It does. Of these three are good.", "documents: 1 of of-front, there were 0"),
    ("README.md", "It is a matter of signs of life.", "documents: 1 of private, there were 0"),
    ("README.md", "word " * 24 + "end", "documents: 1 of long, there were 0"),
    ("lang/one.c", "// Whatever comes.", "comments: 1 of headless, there were 0"),
    ("lang/one.c", "int two; // Of all.", "comments: 1 of of-front, there were 0"),
    ("lang/one.c", "// " + "word " * 24, "comments: 1 of long, there were 0"),
    ("tests/one.py", '"""It works. What it does is good."""', "comments: 1 of headless, there were 0"),
    ("lang/one.c", 'const char *why = "it lands there";', "messages: 1 of private, there were 0"),
)
NOT_COUNTED = (
    ("README.md", "    Of code."), ("README.md", "| a table | " + "word " * 30 + "|"), ("README.md", "What is that?"),
    ("README.md", "A message in flight has `picks`. Of course."), ("tests/one.py", 'print("Of all")'),
    ("lang/one.c", 'const char *key = "picks";'),
)


def project(folder):
    for name, text in (("README.md", PAGE), ("docs/other.md", OTHER), ("lang/one.c", SOURCE), ("tests/one.py", ""),
                       ("tests/lang/words.test", "")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(script, *arguments):
    return subprocess.run([sys.executable, HERE / script, *arguments], capture_output=True, text=True)


def faults_of(folder, script, arguments, plants):
    """Plants one fault at a time; an expected text of None: nothing is reported."""
    for name, text, expected in (("README.md", "", None), *plants):
        project(folder)
        path = folder / name
        path.write_text(path.read_text() + text + "\n")
        result = run(script, folder, *arguments)
        wanted = "" if expected is None else expected
        if result.returncode != (expected is not None) or not result.stdout.startswith(wanted) or result.stderr:
            yield f"{script}: {name} with {text!r}: {result.stdout}{result.stderr}expected: {wanted}"


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "project"
        record = pathlib.Path(temporary) / "record.json"
        record.write_text("{}")
        faults = [*faults_of(folder, "links.py", [], LINKS),
                  *faults_of(folder, "prose.py", [record], [*HABITS, *((*plant, None) for plant in NOT_COUNTED)])]
    print("\n".join(faults))
    return 1 if faults else 0


sys.exit(main())
