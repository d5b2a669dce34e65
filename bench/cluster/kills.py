"""Kills, stops and cuts off ranks of a training at random moments, and times how the job ends.

    kills.py --hecatec BIN [--nodes 1 2] [--kills 20] [--stops 2] [--cuts 2] [--alones 2] [--seed 1]
             [--experts ep] [--training] [--out FILE.md]

Kills: SIGKILL to a random rank, from before MPI is up to the middle of training; alones: the same, and
mpirun lets the others run on; stops: SIGSTOP; cuts: a node's cable is taken out. After each, all ranks
must have ended within 30 s, with exactly one line that names the lost rank (or node, where mpirun sees
first that it is gone), and a code other than 0. With --training all blows fall behind the first step.
Exits with 1 when one did not; 77 where the testbed cannot be set up. The model trains faster than it
computes, so most of its time is in collectives.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLUSTER = f"k{os.getpid() % 100000}"  # Others may run this, too.
RANKS, LIMIT = 4, 30
ENV = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", CLUSTER=CLUSTER,
           CLUSTER_TIMEOUT="90")
ENV.pop("HECATE_COMM_TIMEOUT", None)  # The default has to do.
NAMED = re.compile(r"process (rank \d+) with PID .* exited on signal"  # mpirun
                   r"|Remote daemon: .* on (node [\d.]+)"  # mpirun, of a node that is gone
                   r"|error: lost (rank \d+) \(process")  # a rank


def cluster(*arguments):
    command = [str(HERE / "cluster.sh"), *map(str, arguments)]
    done = subprocess.run(command, env=ENV, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        sys.exit(done.returncode)


def ranks_of(program):
    """Processes of `program` by rank; those that are only waited for do not count."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "exe") != str(program):
                continue
            if (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                continue
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        rank = [v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if rank:
            found[int(rank[0].split(b"=")[1])] = int(folder.name)
    return found


def compile_model(options, work):
    program = work / "small"
    subprocess.run([options.hecatec, ROOT / "tests" / "mpi" / "small.moe", "-o", program, "--set",
                    f"cluster.devices={RANKS}", "--set", "parallel.microbatch=4", "--set",
                    f"parallel.experts={options.experts}"], env=ENV, check=True)
    return program


def start(program, data, nodes, alone, said):
    train = [str(program), "train", "--data", data, "--steps", "1000000000"]
    env = dict(ENV, OMPI_MCA_orte_enable_recovery="1") if alone else ENV
    command = ([HERE / "cluster.sh", "run", "--", *train] if nodes == 2 else
               [ROOT / "tests" / "runtime" / "ranks.sh", str(RANKS), *train])
    if nodes == 1:
        env = dict(env, HECATE_COMM_TIMEOUT="20")  # ranks.sh has another default.
    return subprocess.Popen([str(part) for part in command], env=env, stdout=said, stderr=said,
                            start_new_session=True)


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def trains(said):
    return b"step 1/" in os.pread(said.fileno(), 1 << 16, 0)  # Leaves the writers' offset alone.


def strike(blow, program, rank):
    """Returns what may be named."""
    if blow == "cut":
        node = rank // 2
        cluster("cut", node)
        return {f"rank {2 * node}", f"rank {2 * node + 1}", f"node 10.77.0.{node + 1}"}
    # A process that executes itself anew, as programs do at their start, has no variables for a moment.
    wait_until(lambda: rank in ranks_of(program), 5)
    os.kill(ranks_of(program)[rank], signal.SIGSTOP if blow == "stop" else signal.SIGKILL)
    return {f"rank {rank}"}


def case(options, program, nodes, blow, chance):
    """One blow; returns its row of the table."""
    rank = chance.randrange(RANKS)
    # Ranks know each other once MPI is up; before that, only the launcher sees them.
    early = blow == "kill" or options.training
    moment = chance.uniform(0, 4) if early else chance.uniform(3, 5)
    with tempfile.TemporaryFile("w+") as said:
        job = start(program, options.data, nodes, blow == "alone", said)
        if not wait_until(lambda: len(ranks_of(program)) == RANKS, 60):
            said.seek(0)
            sys.exit(f"kills.py: the job does not start:\n{said.read()}")
        if options.training and not wait_until(lambda: trains(said), 60):
            sys.exit("kills.py: the job does not train")
        time.sleep(moment)
        expected, begin = strike(blow, program, rank), time.monotonic()
        ended = wait_until(lambda: not ranks_of(program), LIMIT)
        seconds = time.monotonic() - begin
        # Open MPI's recovery on several nodes does not come back: only ranks count then.
        returns = blow == "alone" or wait_until(lambda: job.poll() is not None, LIMIT - seconds)
        whole = time.monotonic() - begin
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGTERM)
        for process in ranks_of(program).values():
            os.kill(process, signal.SIGKILL)
        code = job.wait()
        if blow == "cut":
            cluster("mend", rank // 2)
        said.seek(0)
        named = ["".join(match) for match in NAMED.findall(said.read())]
    sound = ended and returns and len(named) == 1 and named[0] in expected and code != 0
    if blow == "alone":
        sound, whole = ended and len(named) == 1 and named[0] in expected, seconds
    return [nodes, blow, rank, f"{moment:.2f}", f"{seconds:.1f}", f"{whole:.1f}",
            ", ".join(named) or "nobody", code, "yes" if sound else "NO"]


def cases(options):
    for nodes in options.nodes:
        for blow in ("kill", "alone", "stop", "cut"):
            if nodes == 2 or blow != "cut":
                yield from [(nodes, blow)] * getattr(options, blow + "s")


def write(out, rows):
    head = ["nodes", "blow", "rank", "after s", "ranks ended s", "job ended s", "named", "code", "sound"]
    out.write("| " + " | ".join(head) + " |\n|" + " --- |" * len(head) + "\n")
    for row in rows:
        out.write("| " + " | ".join(map(str, row)) + " |\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hecatec", required=True)
    parser.add_argument("--data", default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--nodes", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    for blow, count in (("kill", 20), ("alone", 2), ("stop", 2), ("cut", 2)):
        parser.add_argument(f"--{blow}s", type=int, default=count)
    parser.add_argument("--experts", default="ep")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if 2 in options.nodes:
        cluster("up", 2, RANKS // 2, "1gbit")
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = compile_model(options, Path(folder))
            rows = [case(options, program, nodes, blow, chance) for nodes, blow in cases(options)]
    finally:
        if 2 in options.nodes:
            cluster("down")
    write(sys.stdout, rows)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as out:
            out.write(f"# Lost ranks\n\nReal: bench/cluster/kills.py, seed {options.seed}, experts = "
                      f"{options.experts}{', all blows while training' * options.training}, {RANKS} ranks of one node "
                      f"and of two nodes of the testbed (1 Gbit/s) on {os.cpu_count()} cores. kill: "
                      "SIGKILL; alone: the same, and mpirun lets the others run on (on two nodes it "
                      "then never returns: only ranks count); stop: SIGSTOP; cut: a node's cable is out. Sound: "
                      "all ended within 30 s, one line names the rank or the node.\n\n")
            write(out, rows)
    sys.exit(any(row[-1] != "yes" for row in rows))


if __name__ == "__main__":
    main()
