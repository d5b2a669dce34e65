"""networks.py TCP_LOOP [MPI_LOOP]: ranks that have a network each (network namespaces on one switch), whose links are cut.

A comparison of what meeting.py and links_test.c do by other means with the kernel's own behaviour; ends with 77 where namespaces
cannot be made.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
MPI_PROGRAM = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
RANKS_PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "ranks.md")
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
        for process in ip("netns", "pids", name).stdout.split():  # Such as a daemon whose mpirun is not reached any more.
            os.kill(int(process), signal.SIGKILL)
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
        check(4 < took < 9, f"{how}: as long as ranks may take to meet, and no longer: {took:.1f} s")


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


def plug(rank, state):
    check(ip("-n", switch(), "link", "set", f"p{rank}", state).returncode == 0, "a plug")


def under_mpirun():
    """With the flags that docs/ranks.md recommends mpirun bears an outage that its ranks bear, and ends with them."""
    with open(RANKS_PAGE, encoding="utf-8") as page:
        flags = re.search(r"mpirun (--mca oob_tcp_keepalive.*?) \.\.\.", page.read()).group(1).split()
    with tempfile.TemporaryDirectory() as work:
        agent = os.path.join(work, "agent")
        with open(agent, "w", encoding="utf-8") as file:  # In place of ssh: HOST COMMAND...
            file.write(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1 && shift
exec ip netns exec {NAME}-$((${{host##*.}} - 1)) unshare -u sh -c "hostname ${{host##*.}}; $*"
""")
        os.chmod(agent, 0o755)
        command = ["ip", "netns", "exec", network(0), "unshare", "-u", "sh", "-c", 'hostname 1; exec "$@"', "-", "mpirun", "--oversubscribe",
                   "--bind-to", "none", "-H", f"{address(0)}:1,{address(1)}:1", "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1",
                   "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                   *flags, MPI_PROGRAM, "9", "9", "0"]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
        with open(os.path.join(work, "said"), "w+", encoding="utf-8") as said:
            with subprocess.Popen(command, stdout=said, stderr=said, env=environment) as run:
                try:
                    bear_and_end(run, said)
                finally:
                    run.kill()


def bear_and_end(run, said):
    def words():
        said.seek(0)
        return said.read()
    for _ in range(600):
        if "talking" in words() or run.poll() is not None:
            break
        time.sleep(0.1)
    check("talking" in words(), f"ranks of mpirun talk: {words()}")
    plug(1, "down")
    time.sleep(12)
    plug(1, "up")
    time.sleep(15)
    check(run.poll() is None, f"an outage of 12 s is borne: {words()}")
    plug(1, "down")
    began = time.monotonic()
    try:
        run.wait(60)
    except subprocess.TimeoutExpired:
        sys.exit(f"not so: mpirun ends with its ranks: {words()}")
    check(run.returncode != 0 and 15 < time.monotonic() - began < 40, f"as they do: {time.monotonic() - began:.0f} s")


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
        if MPI_PROGRAM:
            under_mpirun()
    finally:
        disconnect_all()


if __name__ == "__main__":
    main()
