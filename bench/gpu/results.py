"""results.py OUT FILE: turns what run.sh has left in OUT into a page: FILE, of bench/results. OUT has results.tsv and logs.tgz."""

import csv
import pathlib
import re
import sys
import tarfile

PARTS = {"right": r"(test|program|ranks|turns)-", "fast": r"(speed|steps|torch)-", "why": r"(kernels|counters|memcheck|racecheck|tune)"}


def logs_of(out):
    with tarfile.open(out / "logs.tgz") as archive:
        return {pathlib.Path(member.name).stem: archive.extractfile(member).read().decode(errors="replace") for member in archive if member.isfile()}


def table_of(rows):
    lines = ["| step | result | seconds | last line |", "| --- | --- | ---: | --- |"]
    return lines + [f"| {name} | {result} | {seconds} | {line.replace('|', '').strip()[:140]} |" for name, result, seconds, line in rows]


def section(name, text):
    """The tables of gpu_bench and of PyTorch as they are; of other steps the end."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    if rows:
        head = [line for line in text.splitlines() if line.startswith("measured")]
        if not rows[0].startswith("| kernel"):
            rows = ["| kernel | sizes | us | speed |", "| --- | --- | ---: | ---: |", *rows]
        return [*head, "", *rows]
    return ["```", *re.sub(r"/\S*/gpu-bundle/", "", text).rstrip().splitlines()[-48:], "```"]


def main(out, file):
    out = pathlib.Path(out)
    with open(out / "results.tsv", encoding="utf-8") as lines:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 4]
    logs = logs_of(out)
    page = ["# Target cuda on a GPU", "", "```", logs.get("device", "").strip(), "```", ""]
    for part, names in PARTS.items():
        of_part = [row for row in rows if re.match(names, row[0])]
        if not of_part:
            continue
        page += [f"## {part}", "", *table_of(of_part), ""]
        for name, result, *_ in of_part:
            if result == "passed" and re.match(r"(speed|kernels)-", name) or result in ("FAILED", "timeout"):
                page += [f"### {name}", "", *section(name, logs.get(name, "")), ""]
    pathlib.Path(file).write_text("\n".join(page))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
