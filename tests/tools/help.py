"""help.py PROGRAM -- TOOL...: each tool, and each command of an emitted program, has a help: -h and --help.

It comes on standard output, with exit code 0, in lines of 104 columns at most.
A tool that lies beside the first and is not in the list fails the test: none is forgotten.
"""
import pathlib
import re
import subprocess
import sys


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def help_of(*command):
    told = []
    for option in "-h", "--help":
        done = subprocess.run([*command, option], capture_output=True, text=True, check=False, timeout=60)
        check(done.returncode == 0 and done.stderr == "", f"{command} {option} ends with {done.returncode}: {done.stderr}")
        told.append(done.stdout)
    check(told[0] == told[1] and told[0].startswith("usage: "), f"{command}: -h and --help are one: {told}")
    wide = [line for line in told[0].splitlines() if len(line) > 104]
    check(not wide, f"{command}: lines fit: {wide}")
    return told[0]


def main():
    program, tools = sys.argv[1], sys.argv[3:]
    for tool in tools:
        help_of(tool)
    there = {path.name for path in pathlib.Path(tools[0]).parent.iterdir() if re.fullmatch(r"hecate[-\w]*", path.name)}
    there -= {"hecate-opt", "hecate-interpret"}  # Tools of the tests; they are not installed.
    check(there <= {pathlib.Path(tool).name for tool in tools}, f"all tools are asked: {there}")
    commands = re.findall(r"^  (\w+) +\w", help_of(program).split("\ncommands\n")[1].split("\n\n")[0], re.MULTILINE)
    check({"train", "eval", "sample", "info"} <= set(commands), f"commands: {commands}")
    for command in commands:
        check(" -" in help_of(program, command), f"{command} lists its options")


if __name__ == "__main__":
    main()
