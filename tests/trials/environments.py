#!/usr/bin/env python3
"""Odd environments: variables, limits, closed descriptors, folders, names, and every option with odd values."""
import os
import re
import subprocess
import sys

import fixtures
import harness

VALUES = ["", " ", "0", "-1", "1", "2", "3.5", "1e9", "99999999999999999999", "100000", "x", "4,2", "4,2,1", "true", "FALSE", "none",
          "nan", "inf", "%s%n", "a b", "'", "/", ".", "/dev/null", "x" * 5000, "\u00e9\u4e2d", "\x01\x7f", "=", "-", "1s", "auto"]
VARIABLES = {
    "HECATE_COMM_TIMEOUT": VALUES, "HECATE_COMM_PATIENCE": VALUES, "HECATE_COMM_PROGRESS": ["poll", "thread", *VALUES],
    "HECATE_TOPOLOGY": VALUES, "HECATE_BLOCKING": VALUES, "HECATE_ISA": ["avx2", "portable", "avx512", "sse", *VALUES],
    "HECATE_NOTHING": VALUES, "HECATE_RELEASED": VALUES, "OMP_NUM_THREADS": VALUES, "OMP_THREAD_LIMIT": VALUES, "OMP_STACKSIZE": ["1B", "1T", "4k", *VALUES],
    "OMP_DYNAMIC": VALUES, "OMP_PLACES": ["cores", "{0}", *VALUES], "OMP_PROC_BIND": ["close", *VALUES],
    "OMP_SCHEDULE": ["static", "dynamic,1", *VALUES], "OMP_WAIT_POLICY": ["active", *VALUES], "OMP_DISPLAY_ENV": VALUES,
    "OMP_MAX_ACTIVE_LEVELS": VALUES, "OMP_NESTED": VALUES, "GOMP_SPINCOUNT": ["infinity", *VALUES], "GOMP_CPU_AFFINITY": VALUES,
    "GOMP_STACKSIZE": VALUES, "GOMP_DEBUG": VALUES, "LANG": ["de_DE.UTF-8", "tr_TR.UTF-8", *VALUES], "LC_ALL": ["C.UTF-8", *VALUES],
    "LC_NUMERIC": ["de_DE.UTF-8", *VALUES], "TMPDIR": ["/nowhere", "/dev/null", "a b", "/proc", *VALUES], "TMP": VALUES,
    "HOME": [None, "/nowhere", *VALUES], "PATH": [None, "/nowhere", "", ".", "/dev/null"], "PWD": VALUES, "SHELL": VALUES,
    "TERM": VALUES, "COLUMNS": VALUES, "CC": VALUES, "CFLAGS": VALUES, "TZ": VALUES, "NO_COLOR": VALUES, "USER": [None, *VALUES],
    "MALLOC_ARENA_MAX": VALUES, "MALLOC_PERTURB_": ["1", "255"], "LD_BIND_NOW": ["1"], "POSIXLY_CORRECT": ["1"],
    "PMI_RANK": VALUES, "PMI_SIZE": VALUES, "RANK": VALUES, "WORLD_SIZE": ["2", *VALUES], "SLURM_NTASKS": ["2", *VALUES],
    "CCACHE_DIR": ["/nowhere"], "OMPI_COMM_WORLD_SIZE": ["1", "x"], "MKL_NUM_THREADS": VALUES,
}
NUMBERS = ["0", "-1", "1", "2", "1e3", "1.5", "99999999999999999999", "-99999999999999999999", "nan", "inf", "1e400", "x", "", "0x10",
           "1 ", "+1", "1,2", "2147483648", "4294967296", "9223372036854775807", "1Ki", "1k", "007", "x" * 3000]
KEYS = ["train.steps", "train.tokens", "train.seed", "train.optimizer.lr", "train.optimizer.betas", "train.optimizer.clip",
        "train.optimizer.eps", "train.optimizer.decay", "train.schedule", "train.schedule.warmup", "train.schedule.final",
        "train.eval_every", "train.eval_steps", "train.objective.rate", "log.every", "log.loads", "log.jsonl", "data.format",
        "data.train", "cluster.devices", "parallel.experts", "parallel.microbatch", "train.precision", "nothing", "", "train",
        "train.", ".", "train..steps", "a" * 3000, "parallel.placement.memory", "train.group", "parallel.rows_max", "cluster.nodes"]
PROGRAM = {
    "train": ["--data", "--val", "--format", "--steps", "--seed", "--log", "--load", "--save", "--sample", "--check-grad", "--route",
              "--record-ids", "--record-loads", "--profile", "--trace", "--pretend", "--prompt", "--temperature", "--topk",
              "--threads", "--set", "--help"],
    "eval": ["--data", "--val", "--format", "--load", "--sequences", "--threads", "--set", "--help"],
    "sample": ["--seed", "--load", "--prompt", "--tokens", "--temperature", "--topk", "--threads", "--set", "--help"],
    "info": ["--params", "--set", "--help"],
}
RIGHT = {"train": ["--data", "text", "--steps", "1"], "eval": ["--val", "text", "--load", "weights.st", "--sequences", "2"],
         "sample": ["--load", "weights.st", "--tokens", "2"], "info": []}
COMPILER = ["-o", "-S", "-c", "-fsyntax-only", "-D", "--set", "--target", "--compile-to", "--compile-from", "--passes", "--print-ir-after",
            "--time-passes", "--explain", "--profile", "--emit-plan", "--plan", "-v", "-###", "--save-temps", "-O0", "-O2", "-O9", "-g",
            "--march", "-fsanitize", "--cc", "--nvcc", "--error-limit", "--color", "-w", "-Werror", "--print-targets", "--print-stages",
            "--print-passes", "--print-builtins", "--version", "--help", "--nope", "-", "--", "-x"]
REPLAY = ["--policy", "--nodes", "--devices", "--speeds", "--slots", "--entries", "--chunk-bytes", "--window-bytes", "--slack",
          "--replica-rows", "--import-rows", "--forecast-age", "--window", "--period", "--calibrate", "--reserve", "--dispatch",
          "--reshard", "--costs", "--early", "--json", "--print", "--csv", "--svg", "--picture-layer", "--experts", "--layers",
          "--iterations", "--microbatches", "--rows", "--skew", "--drift", "--bias", "--seed", "--list-policies", "--help"]
WORDS = ["text", "model.moe", "weights.st", "loads", "nothing", "/", ".", "..", "/dev/null", "/dev/full", "a/b", "auto", "none", "graph",
         "fssdp", "all", "L=1", "T=0", "=", "x=y", "train.steps=2", "ids:loads", "zipf:1.5", "trace:loads", "balanced", "zipf:-1",
         "zipf:x", "model", "memory", "plan", "always", "never", "llmc", "bytes", "1,0,0", "0,0", "8,8,4", "text*", "[", "~", "$HOME",
         "*", "?" * 50, "inline", "inline,", "inline(", "a(b=c)", "cpu", "cuda", "native", "x86-64-v3", "address", "gcc", "gcc -O0"]
# The file behind it is replaced, as asked, where no input has that name.
OUTPUTS = re.compile(r"(--log|--save|--record-ids|--record-loads|--trace|--csv|--svg|--json|--emit-plan|-o|(--set=?)?log\.jsonl)=?")
# Flags that a trial would wait for, or that are right and large.
LONG = re.compile(r"--tune|--calibrate|^(?:1e3|\+?\d{4,}|1Ki|1k|inf)$")


def value(random):
    return random.choice(random.choice([NUMBERS, WORDS, VALUES]))


def setting(random):
    return f"{random.choice(KEYS)}={value(random)}"


def options(random, known, most=3):
    """Some options with odd values, in all ways to write them."""
    words = []
    for _ in range(random.randint(1, most)):
        name = random.choice(known)
        given = setting(random) if name == "--set" and random.random() < 0.9 else value(random)
        words += random.choice([[name, given], [f"{name}={given}"], [name], [name, given, name, given], [name + given]])
    if random.random() < 0.15:
        words.insert(random.randrange(len(words) + 1), value(random))
    # Neither a program that runs for long, nor a value that a system call cannot take.
    return [word.replace("\0", "") for word in words]


def bounded(words):
    """Whether it ends soon: steps, tokens and drawn loads that are right and large take their time."""
    long = ("--steps", "--tokens", "--sample", "--check-grad", "--sequences", "train.steps", "train.tokens", "train.eval_steps",
            "--iterations", "--layers", "--experts", "--rows", "--microbatches", "--devices", "--nodes", "--threads", "--entries")
    for i, word in enumerate(words):
        name, _, given = word.removeprefix("--set=").partition("=")
        given = given or (words[i + 1] if i + 1 < len(words) else "")
        if name.startswith(long) and (LONG.search(given) or LONG.search(re.sub("^[-a-z.]+", "", name))):
            return False
    return not any(word.startswith(("--tune", "--calibrate")) for word in words)


def commands(trial):
    """A command that is right: (words, ranks)."""
    tools, random = trial.tools, trial.random
    command = random.choice(["train", "train", "eval", "sample", "info", "hecatec", "cc", "replay", "ranks"])
    if command == "hecatec":
        return [tools.hecatec, "-w", "-S", "-o", "m.c", "model.moe"], 1
    if command == "cc":
        return [tools.hecatec, "-w", "-O0", "-o", "m", "model.moe"], 1
    if command == "replay":
        return [tools.replay, "loads", "--policy=fssdp,ep", "--nodes=1", "--devices=1"], 1
    if command == "ranks" and random.random() < 0.5:
        return [fixtures.two(tools), "train", *RIGHT["train"]], 2
    command = "train" if command == "ranks" else command
    return [fixtures.one(tools), command, *RIGHT[command], *(["--save", "saved", "--log", "log"] if command == "train" else [])], 1


def start(trial, words, ranks, **how):
    """Runs it; a rank takes its changes along."""
    if ranks == 1:
        return trial.run(words, statuses=how.pop("statuses", (0, 1, 2, 3)), **how)
    # mpirun keeps a rank's variables, but its own limits and descriptors, and needs a PATH and HOME itself.
    env = how.pop("env", None) or {}
    passed = [f"{name}={text}" for name, text in env.items() if text is not None]
    unset = [word for name, text in env.items() if text is None for word in ("-u", name)]
    return trial.ranks(ranks, ["/usr/bin/env", *unset, *passed, *words], limit=60, statuses=how.pop("statuses", (0, 1, 2, 3)), **how)


def variables(trial):
    words, ranks = commands(trial)
    names = trial.random.sample(sorted(VARIABLES), trial.random.choice([1, 1, 1, 2, 5]))
    start(trial, words, ranks, env={name: trial.random.choice(VARIABLES[name]) for name in names})


LIMITS = {
    "nofile": [0, 1, 2, 3, 4, 5, 8, 12, 20], "fsize": [100, 4096, 20000, 100000], "stack": [100 << 10, 200 << 10, 1 << 20],
    "data": [8 << 20, 30 << 20, 100 << 20], "as": [16 << 20, 24 << 20, 40 << 20, 70 << 20, 100 << 20, 200 << 20, 400 << 20],
    "nproc": [0, 1], "memlock": [0], "sigpending": [0], "msgqueue": [0], "cpu": [5],
}


def limits(trial):
    words, ranks = commands(trial)
    if ranks > 1:
        words = [fixtures.one(trial.tools), "train", *RIGHT["train"], "--save", "saved"]
    chosen = trial.random.choice(list(LIMITS))
    threads = trial.random.choice(["1", "2", "16"])
    # 127: the loader has no memory or descriptor for a library.
    trial.run(["prlimit", f"--{chosen}={trial.random.choice(LIMITS[chosen])}", *words], env={"OMP_NUM_THREADS": threads},
              statuses=(0, 1, 2, 3, 127), memory=0)


def descriptors(trial):
    words, _ = commands(trial)
    if "two" in words[0]:
        words = [fixtures.one(trial.tools), "train", *RIGHT["train"], "--save", "saved", "--log", "log", "--trace", "trace"]
    closed = trial.random.sample([0, 1, 2], trial.random.randint(1, 3))
    result = trial.start(words, setup=lambda: [os.close(number) for number in closed])
    result = trial.finish(result)
    if result.status not in (0, 1, 2, 3):
        trial.fail("crash" if result.status < 0 or result.status > 100 else "status", f"descriptors {closed} closed", result)
    log = trial.folder / "log"
    if log.exists() and any(not line.startswith(b"{") for line in log.read_bytes().splitlines()):
        trial.fail("wrong", f"descriptors {closed} closed: the log holds what belongs to standard output", result)
    saved = trial.folder / "saved"
    if saved.exists() and saved.read_bytes()[8:9] != b"{":
        trial.fail("wrong", f"descriptors {closed} closed: the saved file is none", result)
    for name, start_ in (("m.c", b"/"), ("trace", b"{")):
        if (trial.folder / name).exists() and not (trial.folder / name).read_bytes().lstrip().startswith((start_, b"#", b"[")):
            trial.fail("wrong", f"descriptors {closed} closed: {name} is broken", result)


def folders(trial):
    """A working folder that is gone, or may not be written."""
    words, _ = commands(trial)
    here = trial.folder / "here"
    here.mkdir()
    for name in ("text", "model.moe", "weights.st", "loads"):
        os.link(trial.folder / name, here / name)
    kind = trial.random.choice(["gone", "locked", "long"])
    if kind == "gone":
        def leave():
            subprocess.run(["rm", "-r", str(here)], check=True)
        words = [str(trial.folder / word) if (trial.folder / word).is_file() else word for word in words]
        trial.run(words, cwd=here, setup=leave)
    elif kind == "locked":
        here.chmod(0o555)
        if os.geteuid() == 0:  # Permissions count for root, too, without these.
            words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *words]
        trial.run(words, cwd=here)
    else:
        deep = here
        for _ in range(16):
            deep = deep / ("d" * 200)
        deep.mkdir(parents=True)
        words = [str(trial.folder / word) if (trial.folder / word).is_file() else word for word in words]
        trial.run(words, cwd=deep)
    subprocess.run(["rm", "-rf", str(here)], check=True)


NAMES = ["a b", "'", '"', "a\nb", "\u00e9\u4e2d\U0001f600", "$(touch owned)", "`touch owned`", ";touch owned", "-x", "--save", "x" * 250, "a\\b",
         "%s%s%n", "*", "[a]", "a,b", "a=b", "a:b", "#", "&", "|", "\x01\x1b[31m", b"\xff\xfe", "..a", "~", "{a}", "a.c", "a.o", "a\tb", "?"]


def paths(trial):
    """Files with odd names, in folders with odd names."""
    random, tools = trial.random, trial.tools
    folder = trial.folder / os.fsdecode(random.choice(NAMES))
    folder.mkdir()
    name = os.fsdecode(random.choice(NAMES))
    prefix = random.choice([f"{folder}/", "./"]) if not name.startswith("-") or random.random() < 0.5 else ""
    trial.allow("*")
    def put(suffix, source):
        target = folder / (name + suffix)
        target.write_bytes((trial.folder / source).read_bytes())
        trial.protect(target.relative_to(trial.folder))
        return prefix + name + suffix
    chosen = random.randrange(5)
    if chosen == 0:
        words = [tools.hecatec, "-w", "-O0", "-o", random.choice([prefix + name, "m"]), put(".moe", "model.moe")]
    elif chosen == 1:
        words = [tools.hecatec, "-w", "--save-temps", "-S", "-o", prefix + name + ".c", put(".moe", "model.moe")]
    elif chosen == 2:
        words = [fixtures.one(tools), "train", *RIGHT["train"][2:], "--data", put("", "text"), "--load", put(".w", "weights.st"),
                 "--save", prefix + name + "s", "--log", prefix + name + "l"]
    elif chosen == 3:
        words = [tools.replay, put("", "loads"), "--policy=fssdp", "--devices=1", "--nodes=1", f"--json={prefix}{name}j"]
    else:
        program = folder / name
        os.link(fixtures.one(tools), program)
        words = [str(program), "train", "--data", str(trial.folder / "text"), "--steps", "1"]
    trial.run(words, cwd=folder)
    if any("owned" == path.name for path in trial.folder.rglob("*")):
        trial.fail("wrong", "a name was run as a command")


def called(trial):
    """A program called by an odd name, or with very many arguments."""
    random = trial.random
    words, _ = commands(trial)
    executable = words[0]
    if random.random() < 0.6:
        words[0] = random.choice(["", "-", "/", "x" * 100000, "a b", "\u00e9", "%n%s", "../m", "m/"])
        trial.run(words, executable=executable)
    else:
        extra = random.choice([["--set", "train.steps=1"], ["--data", "text"], ["x"], ["-"], [""], ["-D", "L=1"]])
        words = [executable, *words[1:], *(extra * random.choice([10, 1000, 5000]))]
        trial.run(words)


def forget_outputs(trial, words, inputs):
    """Files that the drawn options name as outputs need not stay as they were."""
    for before, word in zip(["", *words], words):
        for name in [word] if OUTPUTS.fullmatch(before) else [OUTPUTS.sub("", word, count=1)] if OUTPUTS.match(word) else []:
            if name not in inputs:
                trial.kept.pop(trial.folder / name, None)


def options_of(trial):
    """Every option of every program with odd values."""
    random, tools = trial.random, trial.tools
    while True:
        chosen = random.choice(["train", "train", "eval", "sample", "info", "hecatec", "hecatec", "hecatec", "replay", "replay"])
        if chosen == "hecatec":
            words = [*random.choice([["-S", "-o", "m.c"], ["-S", "-o", "-"], ["-fsyntax-only"]]), "model.moe", *options(random, COMPILER)]
            words = [word for word in words if word not in ("-g",)]
            words.insert(0, tools.hecatec)
        elif chosen == "replay":
            begin = random.choice([["loads", "--policy=fssdp", "--nodes=1", "--devices=2"], ["loads"], ["--synthesize=drawn"], []])
            words = [tools.replay, *begin, *options(random, REPLAY)]
        else:
            words = [fixtures.one(tools), chosen, *RIGHT[chosen], *options(random, PROGRAM[chosen])]
            if random.random() < 0.05:
                words = [words[0], *options(random, PROGRAM[chosen])]
        if bounded(words):
            break
    trial.allow("*")
    trial.messy = True  # A folder of temporaries may be asked for.
    forget_outputs(trial, words, {"hecatec": ["model.moe"], "replay": ["loads"]}.get(chosen, RIGHT.get(chosen, [])))
    trial.run(words)


def situation(trial):
    tools = trial.tools
    trial.write("model.moe", fixtures.MODEL)
    trial.write("text", fixtures.TEXT[:3000])
    trial.write("weights.st", fixtures.recorded(tools, "--save", "weights.st"))
    trial.write("loads", fixtures.recorded(tools, "--record-loads", "loads"))
    trial.allow("m.c", "m", "saved", "log", "trace", "m.*", "a b", "a b/*")
    kinds = [variables] * 7 + [limits] * 3 + [descriptors] * 2 + [folders] + [paths] * 3 + [called] * 2 + [options_of] * 10
    trial.random.choice(kinds)(trial)


if __name__ == "__main__":
    sys.exit(harness.main(situation, __doc__))
