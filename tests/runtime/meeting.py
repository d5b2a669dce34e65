"""meeting.py TCP_LOOP UNREACHABLE: ranks without MPI meet among strangers, and touch no file that is not theirs.

TCP_LOOP are ranks that talk for a while and end (ranks_loop.c); UNREACHABLE is preloaded where connections shall fail.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM, UNREACHABLE = (os.path.abspath(path) for path in sys.argv[1:])
TEXT = "I have written this for years.\n"


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Job:
    """Some ranks of a run, started one by one."""

    def __init__(self, ranks, port=None, **variables):
        self.begun = time.monotonic()
        self.ranks = ranks
        self.variables = {**os.environ, "HECATE_RANKS": str(ranks), "HECATE_COMM_JOIN": "20", **variables}
        if port:
            self.variables["HECATE_ADDRESS"] = f"127.0.0.1:{port}"
        self.process = {}

    def start(self, rank, **variables):
        self.process[rank] = subprocess.Popen([PROGRAM, "0", "9", "end"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                              env=dict(self.variables, HECATE_RANK=str(rank), HECATE_LOCAL_RANK=str(rank), **variables))
        return self.process[rank]

    def start_all(self):
        for rank in range(self.ranks):
            self.start(rank)
        return self

    def end(self):
        """All they said but that they talk, and their exit codes."""
        said = [line for one in self.process.values() for line in one.communicate(timeout=60)[0].splitlines()]
        self.took = time.monotonic() - self.begun
        return [line for line in said if not line.startswith("talking")], [one.returncode for one in self.process.values()]

    def meets(self, what):
        said, codes = self.end()
        check(not said and not any(codes), f"{what}: ranks meet: {codes} {said}")


def listening(process):
    """Addresses of the sockets that a process listens at: those of IPv4, as hexadecimal numbers and ports."""
    inodes = set()
    for name in os.listdir(f"/proc/{process.pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process.pid}/fd/{name}"))
        except OSError:
            continue
        inodes |= {found.group(1)} if found else set()
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.read().splitlines()[1:]]
    return [(row[1].split(":")[0], int(row[1].split(":")[1], 16)) for row in rows if row[9] in inodes and row[3] == "0A"]


def await_listening(process):
    for _ in range(1000):
        found = listening(process)
        if found:
            return found[0]
        check(process.poll() is None, "the rank goes on")
        time.sleep(0.01)
    sys.exit("not so: the rank listens")


# ---- the rendezvous file


def refused(path, text, **variables):
    job = Job(2, HECATE_RENDEZVOUS=path, **variables).start_all()
    said, codes = job.end()
    check(codes == [2, 2] and all(re.search(text, line) for line in said) and len(said) == 2, f"{path}: {codes} {said}")
    check(job.took < 10, f"{path}: nobody waits in vain: {job.took:.1f} s")


def files():
    with open("thesis", "w", encoding="utf-8") as file:
        file.write(TEXT)
    refused("thesis", "'thesis' is there and is no rendezvous file")
    check(open("thesis", encoding="utf-8").read() == TEXT, "the thesis is as it was")
    open("empty", "w", encoding="utf-8").close()
    refused("empty", "'empty' is there and is no rendezvous file")
    os.mkfifo("pipe")
    refused("pipe", "'pipe'.*it is not a regular file")
    os.mkdir("folder")
    refused("folder", "'folder'.*it is a directory")
    refused("/dev/null", "'/dev/null'.*it is not a regular file")
    check(all(os.path.exists(name) for name in ("empty", "pipe", "folder", "/dev/null")), "all of them are there")

    old = "hecate-rendezvous localhost 0 1 " + 64 * "0" + "\n"
    for mode, owner in ((0o622, None), (0o600, 12345)):
        with open("old", "w", encoding="ascii") as file:
            file.write(old)
        os.chmod("old", mode)
        if owner and os.geteuid() == 0:
            os.chown("old", owner, -1)
        elif owner:
            continue
        refused("old", "'old' belongs to another user" if owner else "'old' can be written by other users")
        check(open("old", encoding="ascii").read() == old, "what is another's is as it was")
        os.unlink("old")

    with open("old", "w", encoding="ascii") as file:
        file.write(old)
    os.chmod("old", 0o600)
    os.symlink("old", "link")
    Job(2, HECATE_RENDEZVOUS="link").start_all().meets("a file of a run before")
    check(not os.path.exists("old") and os.path.islink("link"), "the file is gone, and the link is not")
    another_run()


def another_run():
    """Rank 0 removes its own file alone."""
    job = Job(2, HECATE_RENDEZVOUS="shared")
    await_listening(job.start(0))
    while not os.path.exists("shared"):
        time.sleep(0.01)
    shutil.copy("shared", "copy")
    os.rename("copy", "shared")
    job.start(1)
    job.meets("a file that was replaced")
    check(os.path.exists("shared"), "what another run has put there stays")


# ---- strangers


class Strangers:
    """Connections that are held, and say a little or nothing."""

    def __init__(self, port, words=b""):
        self.port, self.words, self.held = port, words, []

    def connect(self, count):
        for _ in range(count):
            try:
                one = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                one.send(self.words)
            except OSError:
                return False
            self.held.append(one)
        return True

    def flood(self):
        """Connects until nobody listens any more, as fast as it goes; holds the newest."""
        while self.connect(1):
            if len(self.held) > 500:
                self.held.pop(0).close()

    def leave(self):
        for one in self.held:
            one.close()


def silent_at_mesh():
    """Twenty silent connections at the port of rank 1 while rank 2 is on its way."""
    job = Job(3, free_port(), HECATE_SECRET="s")
    await_listening(job.start(0))
    _, port = await_listening(job.start(1))
    strangers = Strangers(port)
    strangers.connect(20)
    began = time.monotonic()
    job.start(2)
    job.meets("silent strangers at rank 1")
    check(time.monotonic() - began < 10, "silent strangers keep nobody waiting")
    strangers.leave()


def flooded():
    """Strangers who keep connecting to rank 0, with hellos that do not end, put out no rank."""
    port = free_port()
    job = Job(3, port, HECATE_SECRET="s")
    await_listening(job.start(0))
    strangers = Strangers(port, b"hecate")
    strangers.connect(400)
    flood = threading.Thread(target=strangers.flood)
    flood.start()
    job.start(1)
    job.start(2)
    job.meets("half a hello of many strangers")
    flood.join()
    strangers.leave()


def cause_is_told():
    """A peer that has connected and is mute is not the same as one that has not come."""
    port = free_port()
    job = Job(3, port, HECATE_COMM_JOIN="2")
    await_listening(job.start(0))
    job.start(1)
    strangers = Strangers(port)
    strangers.connect(1)
    said, codes = job.end()
    check(codes == [1, 1] and len(said) == 1 and
          re.search(r"rank 2 has not come within 2 s .*; a connection from 127.0.0.1:\d+ said nothing that a rank says", said[0]), said)
    check(job.took < 6, f"in time: {job.took:.1f} s")
    strangers.leave()


def unreachable():
    """A link between two ranks that is down at the start is tried again, as long as ranks may take to meet."""
    preload = {"LD_PRELOAD": os.pathsep.join(filter(None, [UNREACHABLE, os.environ.get("LD_PRELOAD", "")])),
               "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
    for times, meets in ((7, True), (1000000, False)):
        port = free_port()
        job = Job(3, port, HECATE_COMM_JOIN="20" if meets else "5")
        job.start(0)
        job.start(1)
        job.start(2, **preload, UNREACHABLE_BUT=str(port), UNREACHABLE_TIMES=str(times))
        if meets:
            job.meets("a link that comes up late")
            continue
        said, codes = job.end()
        check(codes == [1, 1, 1] and len(said) == 1 and re.search(
            r"rank 2 cannot reach rank 1 \(process \d+ on .*\) at 127.0.0.1:\d+: No route to host \(tried for 5 s", said[0]), said)
        check(3 < job.took < 8, f"for as long as ranks may take, and no longer: {job.took:.1f} s")


def loopback():
    """Where all ranks are here, no other machine can ask."""
    jobs = (
        dict(HECATE_RANK="0", HECATE_RANKS="2", HECATE_LOCAL_RANKS="2", HECATE_RENDEZVOUS="meet"),
        dict(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2", MASTER_ADDR=socket.gethostname(), MASTER_PORT=str(free_port())),
        dict(SLURM_PROCID="0", SLURM_NTASKS="2", SLURM_LOCALID="0", SLURM_STEP_ID="0", SLURM_JOB_ID=str(os.getpid()),
             SLURM_STEP_NODELIST=socket.gethostname(), SLURM_STEP_NUM_NODES="1"),
    )
    for variables in jobs:
        with subprocess.Popen([PROGRAM, "0", "9", "end"], env=dict(os.environ, **variables), stderr=subprocess.DEVNULL) as one:
            try:
                address, _ = await_listening(one)
                check(address == "0100007F", f"{variables}: rank 0 listens at {address}")
            finally:
                one.terminate()
    Job(3, HECATE_RENDEZVOUS="meet3", HECATE_LOCAL_RANKS="3").start_all().meets("at the loopback")


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        files()
        loopback()
        silent_at_mesh()
        flooded()
        cause_is_told()
        unreachable()


if __name__ == "__main__":
    main()
