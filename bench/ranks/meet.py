"""meet.py TCP_LOOP NODES DEVICES_PER_NODE: how long ranks on this machine take to meet over TCP.

All ranks but the first are started and try to reach it; then the first one comes, whose time is printed. A topology
file makes nodes of the machine."""
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time


def started(program, rank, variables, **options):
    return subprocess.Popen([program, "0", "meet", "0"], stdin=subprocess.DEVNULL, text=True,
                            env={**variables, "HECATE_RANK": str(rank), "HECATE_LOCAL_RANK": str(rank)}, **options)


def main():
    program, nodes, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ranks = nodes * size
    with socket.socket() as probe, tempfile.NamedTemporaryFile("w") as topology:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        topology.write("".join(f"{node * size}-{node * size + size - 1}\n" for node in range(nodes)))
        topology.flush()
        variables = {**os.environ, "HECATE_RANKS": str(ranks), "HECATE_LOCAL_RANKS": str(ranks), "HECATE_COMM_JOIN": "400",
                     "HECATE_COMM_TIMEOUT": "300", "HECATE_ADDRESS": f"127.0.0.1:{port}", "HECATE_TOPOLOGY": topology.name}
        others = [started(program, rank, variables) for rank in range(1, ranks)]
        time.sleep(5)
        first = started(program, 0, variables, stdout=subprocess.PIPE)
        said = first.communicate(timeout=500)[0]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)  # No other one has been waited for.
        codes = {one.wait(timeout=100) for one in others} | {first.returncode}
    if codes != {0}:
        sys.exit(f"ranks ended with {codes}")
    print(f"{ranks} ranks, {nodes} x {size}: they meet in {re.search('([0-9.]+) s', said).group(1)} s; the first one "
          f"computes for {used.ru_utime + used.ru_stime:.2f} s, the end included")


if __name__ == "__main__":
    main()
