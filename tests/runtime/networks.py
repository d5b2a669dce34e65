"""networks.py TCP_LOOP: ranks that have a network each (network namespaces on one switch), whose links are cut.

A comparison of what meeting.py and links_test.c do by other means with the kernel's own behaviour; ends with 77 where namespaces
cannot be made.
"""
import os
import re
import signal
import subprocess
import sys
import time

PROGRAM = os.path.abspath(sys.argv[1])
RANKS, NAME = 3, f"hecate{os.getpid()}"
PORT = 29640


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


def address(rank):
    return f"10.77.0.{rank + 1}"


def network(rank):
    return f"{NAME}-{rank}"


def switch():
    return f"{NAME}-s"


def connect_all():
    """A switch, and a network for each rank. False: not here."""
    commands = [("netns", "add", switch()), ("-n", switch(), "link", "add", "br0", "type", "bridge"), ("-n", switch(), "link", "set", "br0", "up")]
    for rank in range(RANKS):
        commands += [
            ("netns", "add", network(rank)),
            ("link", "add", f"v{rank}", "netns", network(rank), "type", "veth", "peer", "name", f"p{rank}", "netns", switch()),
            ("-n", switch(), "link", "set", f"p{rank}", "master", "br0"), ("-n", switch(), "link", "set", f"p{rank}", "up"),
            ("-n", network(rank), "addr", "add", f"{address(rank)}/24", "dev", f"v{rank}"),
            ("-n", network(rank), "link", "set", f"v{rank}", "up"), ("-n", network(rank), "link", "set", "lo", "up")]
    return all(ip(*command).returncode == 0 for command in commands)


def disconnect_all():
    for name in [switch(), *(network(rank) for rank in range(RANKS))]:
        ip("netns", "del", name)


def cut(a, b, how, action="add"):
    """Both ways: `how` is blackhole (what is sent is lost) or unreachable (EHOSTUNREACH)."""
    for one, other in ((a, b), (b, a)):
        done = ip("-n", network(one), "route", action, how, address(other))
        check(done.returncode == 0, f"a route: {done.stderr}")


def start(arguments, **variables):
    environment = {**os.environ, "HECATE_RANKS": str(RANKS), "HECATE_ADDRESS": f"{address(0)}:{PORT}", "HECATE_SECRET": "s", **variables}
    return [subprocess.Popen(["ip", "netns", "exec", network(rank), PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env={**environment, "HECATE_RANK": str(rank), "HECATE_LOCAL_RANK": "0"}) for rank in range(RANKS)]


def end(ranks, seconds=60):
    said = [line for one in ranks for line in one.communicate(timeout=seconds)[1].splitlines()]
    return said, [one.returncode for one in ranks]


def down_at_the_start():
    cut(1, 2, "unreachable")
    ranks = start(("0", "9", "end"))
    time.sleep(4)
    cut(1, 2, "unreachable", "del")
    said, codes = end(ranks)
    check(not said and codes == [0, 0, 0], f"a link that comes up after 4 s: {codes} {said}")
    for how, why in (("unreachable", "No route to host"), ("blackhole", "Invalid argument")):
        cut(1, 2, how)
        began = time.monotonic()
        said, codes = end(start(("0", "9", "end"), HECATE_COMM_JOIN="6"))
        took = time.monotonic() - began
        cut(1, 2, how, "del")
        check(codes == [1, 1, 1] and len(said) == 1 and re.search(f"rank 2 cannot reach rank 1 .* at {address(1)}:.*: {why}", said[0]), said)
        check(4 < took < 8, f"{how}: as long as ranks may take to meet, and no longer: {took:.1f} s")


def cut_while_they_talk():
    for a, b, lost in ((0, 2, 2), (1, 2, 1), (0, 1, 0)):
        ranks = start(("9", "9", "0"), HECATE_COMM_TIMEOUT="4")
        for one in ranks[:1]:
            check(one.stdout.readline().startswith("talking"), "ranks talk")
        time.sleep(0.5)
        cut(a, b, "blackhole")
        said, codes = end(ranks)
        cut(a, b, "blackhole", "del")
        check(codes == [1, 1, 1] and len(said) == 1 and f"lost rank {lost} (process" in said[0], f"{a}-{b}: {codes} {said}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Networks are removed all the same.
    try:
        made = connect_all()
    except FileNotFoundError:
        made = False
    try:
        if not made:
            print("no network namespaces here")
            sys.exit(77)
        down_at_the_start()
        cut_while_they_talk()
    finally:
        disconnect_all()


if __name__ == "__main__":
    main()
