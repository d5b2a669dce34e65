"""Families of trials: situations drawn at random, tried one by one, judged by rules.

A family is a script with a function situation(trial), which draws from trial.random, writes inputs, and runs commands. All of
it follows from (family, seed, index), so that one line repeats a failure. Judged without a word from the family: how
each command ended, its time, its messages, and the files it left behind. The rules are in rules.py.
"""
import argparse
import ctypes
import dataclasses
import fcntl
import fnmatch
import hashlib
import multiprocessing
import os
import pathlib
import random
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback

import rules

GRACE = 8.0  # Seconds for what a command leaves behind to end by itself, as the daemons of mpirun do.
SEEN = 1 << 20  # Bytes of an output that are read.
PR_SET_CHILD_SUBREAPER = 36
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


@dataclasses.dataclass
class Result:
    """The end of a command: exit status (negative: the signal), both outputs, seconds; late: it was ended by us, and so
    was `ended`."""
    argv: list
    status: int
    out: str
    err: str
    seconds: float
    late: bool
    ended: list
    env: dict

    def shown(self):
        changes = "".join(f"{name}={shlex.quote(str(value))} " for name, value in (self.env or {}).items())
        return f"$ {changes[:300]}{shlex.join(map(os.fsdecode, self.argv))}\n[{self.status}] {(self.out + self.err)[-3000:]}"


class Tools:
    """The programs under trial, and programs compiled from fixed models, once for all workers."""

    def __init__(self, options):
        self.bin = pathlib.Path(options.bin).resolve()
        self.hecatec = str(self.bin / "hecatec")
        self.replay = str(self.bin / "hecate-replay")
        self.memory = options.memory << 20
        self.patience = options.patience
        self.shared = pathlib.Path(options.work) / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)

    def made(self, name, make):
        """The path of shared/NAME, which make(path) writes if nobody has yet."""
        path = self.shared / name
        with open(self.shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                make(path)
        return path

    def program(self, name, text, *flags):
        """The program compiled from the model in `text`."""
        def make(path):
            source = self.shared / f"{name}.moe"
            source.write_text(text)
            command = [self.hecatec, "-w", "-O1", *flags, "-o", f"{path}.new", str(source)]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            os.rename(f"{path}.new", path)
        return str(self.made(name, make))


def descendants():
    """Processes below this one, whose orphans come to it (it is their subreaper)."""
    found, open_ = [], [os.getpid()]
    while open_:
        pid = open_.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as children:
                    below = [int(word) for word in children.read().split()]
                found += below
                open_ += below
        except OSError:
            continue
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as text:
            return text.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_all(grace):
    """Waits `grace` seconds for every process below this one, then kills. Returns the names of those that were killed."""
    limit = time.monotonic() + grace
    while left := [pid for pid in descendants() if alive(pid)]:
        if time.monotonic() > limit:
            break
        time.sleep(0.01)
        reap()
    names = []
    for pid in left:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                names.append(line.read().replace(b"\0", b" ").decode(errors="replace")[:100])
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    while any(alive(pid) for pid in descendants()):
        time.sleep(0.01)
    reap()
    return names


def print_of(path):
    """The properties of an input that may not change: kind, links and content."""
    if path.is_symlink():
        return "link", os.readlink(path)
    kind = stat.S_IFMT(path.stat().st_mode)
    if stat.S_ISREG(kind):
        if path.stat().st_size > 1 << 26:
            return kind, path.stat().st_size
        return kind, hashlib.sha256(path.read_bytes()).hexdigest()
    return kind, None


class Trial:
    """One situation, in a folder of its own."""

    def __init__(self, tools, family, seed, index, folder, verbose):
        self.tools, self.index, self.folder, self.verbose = tools, index, folder, verbose
        self.random = random.Random(f"{family}/{seed}/{index}")
        self.temporary = folder.parent / f"{folder.name}.tmp"
        self.outputs = folder.parent / f"{folder.name}.out"
        for made in (self.folder, self.temporary, self.outputs):
            made.mkdir()
        self.kept, self.allowed, self.failures, self.log = {}, [], [], []
        self.runs, self.messy = 0, False

    def write(self, name, data):
        """An input of the folder, whose bytes may not change."""
        path = self.folder / name
        if isinstance(data, str):
            data = data.encode()
        path.write_bytes(data)
        return self.protect(name)

    def protect(self, name):
        path = self.folder / name
        self.kept[path] = print_of(path)
        return str(name)

    def allow(self, *patterns):
        """Files that the commands may leave in the folder."""
        self.allowed += patterns

    def chance(self, probability):
        return self.random.random() < probability

    def fail(self, kind, text, result=None):
        self.failures.append((kind, text if result is None else f"{text}\n{result.shown()}"))

    def environment(self, changes):
        kept = ("PATH", "HOME", "USER", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        env |= {"LC_ALL": "C", "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
                "HECATE_COMM_TIMEOUT": "60", **MPI, **(changes or {})}
        return {name: value for name, value in env.items() if value is not None}

    def start(self, argv, *, env=None, cwd=None, stdin=None, setup=None, memory=None, executable=None, passed=()):
        """Starts a command in a session of its own. `setup` runs in the child."""
        memory = self.tools.memory if memory is None else memory

        def prepare():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            if setup:
                setup()

        self.runs += 1
        out = open(self.outputs / f"{self.runs}.out", "wb")
        err = open(self.outputs / f"{self.runs}.err", "wb")
        with out, err:
            process = subprocess.Popen(argv, executable=executable, env=self.environment(env), cwd=cwd or self.folder,
                                       stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=prepare,
                                       start_new_session=True, pass_fds=passed)
        process.number, process.begun, process.changes = self.runs, time.monotonic(), env
        return process

    def text(self, process, stream):
        with open(self.outputs / f"{process.number}.{stream}", "rb") as file:
            return file.read(SEEN).decode(errors="replace")

    def finish(self, process, limit=20.0, *, leaves_processes=False):
        """Waits for a command; all that it started is gone afterwards."""
        late, ended = False, []
        try:
            process.wait(limit * self.tools.patience)
        except subprocess.TimeoutExpired:
            late, ended = True, end_all(0)
            process.returncode = -signal.SIGKILL
        seconds = time.monotonic() - process.begun
        left = end_all(0 if late or leaves_processes else GRACE)
        result = Result(process.args, process.returncode, self.text(process, "out"), self.text(process, "err"), seconds, late, ended,
                        process.changes)
        if left and not late and not leaves_processes:
            self.fail("left", f"still running: {left}", result)
        self.log.append(result)
        if self.verbose:
            print(result.shown(), f"({seconds:.2f} s)")
        return result

    def run(self, argv, *, statuses=(0, 1, 2, 3), limit=20.0, judge=True, **start):
        """Runs a command to its end and judges it: `statuses` are those that may be."""
        result = self.finish(self.start(argv, **start), limit)
        if judge:
            for kind, text in rules.judge(result, statuses):
                self.fail(kind, text, result)
        return result

    def ranks(self, count, argv, **options):
        """The same as `count` ranks of mpirun."""
        return self.run(["mpirun", "--bind-to", "none", "-n", str(count), *argv], **options)

    def check_folder(self):
        """Inputs are as they were, and nothing else is there but what may be."""
        for path, before in self.kept.items():
            try:
                after = print_of(path)
            except OSError as error:
                after = str(error)
            if after != before:
                self.fail("destroyed", f"{path.name} was changed: {before} -> {after}")
        for name in sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")):
            if self.folder / name in self.kept or any(fnmatch.fnmatch(name, pattern) for pattern in self.allowed):
                continue
            self.fail("left", f"the folder has {name!r}, which nobody asked for")
        for name in os.listdir(self.temporary):
            if not self.messy and not name.startswith(("ompi.", "pmix", "openmpi-")):
                self.fail("left", f"TMPDIR has {name!r}")


def attempt(job):
    """One situation, in a worker. Returns (index, failures or None when it is too late, seconds, folder that is kept)."""
    family, situation, options, index = job
    begun = time.monotonic()
    if options.seconds and begun > options.begun + options.seconds:
        return index, None, 0, None
    folder = pathlib.Path(options.work) / str(index)
    trial = Trial(Tools(options), family, options.seed, index, folder, options.verbose)
    try:
        situation(trial)
        trial.check_folder()
    except Exception:  # pylint: disable=broad-except
        end_all(0)
        trial.fail("trial", traceback.format_exc())
    if trial.failures:
        return index, trial.failures, time.monotonic() - begun, str(folder)
    for made in (trial.folder, trial.temporary, trial.outputs):
        shutil.rmtree(made, ignore_errors=True)
    return index, [], time.monotonic() - begun, None


def worker():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def parse(family, text):
    build = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"
    parser = argparse.ArgumentParser(prog=f"{family}.py", description=text)
    parser.add_argument("--bin", default=os.environ.get("HECATE_BIN", str(build)), help="folder of hecatec")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, help="this situation alone, and what it runs")
    parser.add_argument("--first", type=int, default=0, help="the first of --count situations")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0, help="begin nothing new after this time; 0: no limit")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory", type=int, default=8192, help="MiB of address space per process; 0: no limit")
    parser.add_argument("--patience", type=float, default=1.0, help="factor of all time limits")
    parser.add_argument("--work", help="folder to work in (default: a new one)")
    parser.add_argument("--verbose", action="store_true", help="show every command")
    options = parser.parse_args()
    if options.index is not None:
        options.first, options.count, options.jobs, options.verbose = options.index, 1, 1, True
    options.begun = time.monotonic()
    options.work = options.work or tempfile.mkdtemp(prefix=f"trials-{family}-")
    return options


def main(situation, text):
    """Runs the family whose script this is. Exit status 1: something failed."""
    family = pathlib.Path(sys.argv[0]).stem
    options = parse(family, text)
    passed, failed, slowest = 0, 0, (0.0, 0)
    jobs = ((family, situation, options, index) for index in range(options.first, options.first + options.count))
    with multiprocessing.get_context("fork").Pool(options.jobs, worker) as pool:
        for index, failures, seconds, folder in pool.imap_unordered(attempt, jobs):
            if failures is None:
                continue
            slowest = max(slowest, (seconds, index))
            passed, failed = passed + (not failures), failed + bool(failures)
            for kind, what in failures:
                print(f"{family} {index}: {kind}: {what}")
            if failures:
                repeat = f"python3 {sys.argv[0]} --seed {options.seed} --index {index}"
                print(f"  repeat: {repeat}    (kept: {folder})", flush=True)
    if not failed:
        shutil.rmtree(options.work, ignore_errors=True)
    print(f"{family}: {passed} passed, {failed} failed; the slowest took {slowest[0]:.1f} s ({slowest[1]})")
    return 1 if failed else 0
