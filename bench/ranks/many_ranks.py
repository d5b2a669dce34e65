"""many_ranks.py MANY_RANKS [PLAN_TIME] [--check]: messages, memory and times of a rank of thousands, the tables of
docs/ranks.md.

MANY_RANKS counts messages, bytes and memory of one layer, each alone; the first table has them, and --check compares
it. Times differ from machine to machine: the second table has those of MANY_RANKS and PLAN_TIME, and is written alone.
Without PLAN_TIME it stays."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from page_table import renew  # noqa: E402

PAGE = ROOT / "docs" / "ranks.md"
COUNTED = "<!-- bench/ranks/many_ranks.py: counted -->\n", "<!-- end of what is counted -->\n"
TIMED = "<!-- bench/ranks/many_ranks.py: measured -->\n", "<!-- end of what is measured -->\n"
EXPERTS, SLOTS, ENTRIES = 256, 4, 8
CLUSTERS = ((128, 8), (512, 8))


def said(program, nodes, size):
    command = [program, EXPERTS, nodes, size, SLOTS, ENTRIES]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=500, check=False)
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def size_of(count):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def head(last):
    names = " | ".join(f"{nodes * size:,} ranks, {nodes} x {size}" for nodes, size in CLUSTERS)
    return f"| {last} | {names} |\n| --- " + "| ---: " * len(CLUSTERS) + "|\n"


def rows_of(table, found):
    return "".join(f"| {name} | " + " | ".join(cell(one) for one in found) + " |\n" for name, cell in table)


def counted(found):
    return head("a layer, each rank") + rows_of((
        ("counts: messages sent, in rounds", lambda one: f"{one['counts']['messages']}, {one['counts']['rounds']}"),
        ("if it told all others directly", lambda one: f"{one['ranks'] - 1:,}, 1"),
        ("counts: bytes sent, and received", lambda one: size_of(one["counts"]["bytes"])),
        ("of these to other nodes", lambda one: size_of(one["counts"]["across"])),
        ("words that are compared: messages, bytes", lambda one: f"{one['words']['messages']}, {size_of(one['words']['bytes'])}"),
        ("segments of chunks sent in a gathering: mean, most", lambda one: f"{one['gather']['mean']}, {one['gather']['most']}"),
        ("memory: counts of all ranks", lambda one: size_of(one["memory"]["counts"])),
        ("memory: those of the forecast's five iterations", lambda one: size_of(one["memory"]["window"])),
        ("memory: plans", lambda one: size_of(one["memory"]["plans"])),
        ("memory: the schedule of the gathering", lambda one: size_of(one["memory"]["schedule"])),
        ("loads in a checkpoint: a rank's file, all of them", lambda one: f"{size_of(one['checkpoint']['rank'])}, {size_of(one['checkpoint']['all'])}"),
        ("of all layers together: TCP connections from the start", lambda one: str(one["connections"])),
    ), found)


def planned(text):
    return {name: float(us) for name, us in re.findall(r"^(\w+) +median +([\d.]+) us", text, re.M)}


def timed(found, plans):
    for one, times in zip(found, plans):
        one["plan"] = times
    return head("a layer, each rank, ms") + rows_of((
        ("counts: its messages listed, all counts put in their place", lambda one: f"{one['counts']['us'] / 1e3:.2f}"),
        ("words: the same", lambda one: f"{one['words']['us'] / 1e3:.2f}"),
        *((name, lambda one, key=key: f"{one['plan'][key] / 1e3:.2f}") for name, key in (
            ("plan, from the forecast", "plan"), ("shares, from exact counts", "shares"),
            ("its part of all quotas", "part"), ("the schedule of the gathering", "schedule"), ("that of the sum", "mirror"))),
    ), found)


def main():
    parser = argparse.ArgumentParser(description="messages, memory and times of a rank of thousands")
    parser.add_argument("many_ranks")
    parser.add_argument("plan_time", nargs="?")
    parser.add_argument("--check", action="store_true", help="compare what is counted with the document, and change nothing")
    options = parser.parse_args()
    found = [json.loads(said(options.many_ranks, *cluster)) for cluster in CLUSTERS]
    renew(PAGE, *COUNTED, counted(found), options.check, f"{sys.argv[0]} {options.many_ranks}")
    if options.plan_time and not options.check:
        renew(PAGE, *TIMED, timed(found, [planned(said(options.plan_time, *cluster)) for cluster in CLUSTERS]), False, "")


if __name__ == "__main__":
    main()
