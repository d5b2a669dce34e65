# room.py MEMORY PLAN: compares the room for replicas in a report of --explain=plan with the items of --explain=memory.
import re
import sys

UNIT = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def item_of(text, name):
    value, unit = re.search(rf"^ *([0-9.]+) (\w+)  {name}", text, re.M).groups()
    return float(value) * UNIT[unit]


memory, plan = (open(path).read() for path in sys.argv[1:3])
value, unit = re.search(r"of ([0-9.]+) (\w+) that are\s+left", plan).groups()
room = float(value) * UNIT[unit]
left = item_of(memory, "of a device") - item_of(memory, "together") + item_of(memory, "replicas")
if abs(room - left) > 0.2 * UNIT["GiB"]:  # Both reports round.
    sys.exit(f"--explain=plan has {room / 2**30:.2f} GiB of room, --explain=memory leaves {left / 2**30:.2f} GiB")
