"""exact.py [--cover pairs|product] [--slice I/N] [--only NAME=VALUE|VALUE] ...: what one rank computes, any
number of ranks computes, whatever moves between them. Each case is a program of small.moe, compiled
for its ranks, nodes and policy and run under mpirun on this machine:

  gradients  of steps 1, 2, 4 and 8 of a training whose learning rate is 0, so that all runs have the same
             parameters while plans, replicas and owners change: |g - g'| <= 2e-6 |g| + 1e-7 |all| / sqrt(n)
  losses     of a training, with loads and norms: 2e-6 relative up to the first token that goes to another
             expert than on one rank (rounding may exchange two of almost equal score: `free` is the number
             of steps before), and 2e-5 all along a training that is sent where one rank chose
             (--route=ids:). fp64: 1e-12 both; bf16: 5e-4, because a parameter's last bit may decide
             which way its copy is rounded, by 2^-8 of it
  bits       the same training once more, with transfers that advance at other moments: equal files

Where rows are dropped by weight only gradients are compared: two weights that rounding exchanges drop
another row.

Prints a table. Exit code 0: every case that the compiler takes is exact; 1: one is not; 77: none was run."""
import argparse
import filecmp
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import compare
import cover

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES = 16  # Of an iteration, over all ranks.
POSITIONS = 16
CAPTURED = (0, 1, 3, 7)

# Every dimension's first value is what cases have that the others make no difference to.
DIMENSIONS = {
    "experts": ["ep", "replicate", "fssdp", "hecate", "quota", "fsdp", "fastermoe", "smartmoe",
                "flexmoe", "laer", "llep", "ultraep", "eplb"],
    "ranks": [2, 4, 8],
    "nodes": [1, 2, 4],
    "dense": ["replicate", "shard"],
    "bucket": [1048576, 1024],
    "accumulation": [1, 3],
    "capacity": ["none", "position", "lowest"],
    "balance": ["layer", "batch"],
    "waves": ["auto", 24],
    "precision": ["fp32", "fp64", "bf16"],
    "dispatch": ["quota", "even"],
    "calibrate": ["false", "true"],
    "rematerialize": ["false", "true"],
    "reshard": ["never", "every(5)"],
}
# What one rank's program depends on.
OF_ONE = ("accumulation", "capacity", "balance", "precision")
OF_MOVEMENT = ("dispatch", "calibrate", "rematerialize", "reshard")
# Of the product; the other dimensions take turns.
CORE = ("experts", "ranks", "nodes", "accumulation", *OF_MOVEMENT)
STAY = ("ep", "replicate")  # Policies that move nothing.


def valid(case):
    if case["nodes"] > case["ranks"]:
        return False
    stays = case["experts"] in STAY
    return not stays or all(case[name] == DIMENSIONS[name][0] for name in OF_MOVEMENT)


def settings(case):
    """What the case's program is compiled with."""
    ranks = case.get("ranks", 1)
    chosen = {"parallel.microbatch": SEQUENCES // ranks, "train.precision": case["precision"]}
    if ranks > 1:
        nodes = case["nodes"]
        chosen |= {"cluster.nodes": nodes, "cluster.devices": ranks // nodes,
                   "parallel.experts": case["experts"], "parallel.dense": case["dense"],
                   "parallel.rows_max": case["waves"], "parallel.bucket": case["bucket"]}
        if case["experts"] not in STAY:
            chosen |= {f"parallel.placement.{name}": case[name] for name in OF_MOVEMENT}
        if case["experts"] == "laer":  # All copies are placed anew: slots for each expert.
            chosen["parallel.placement.memory"] = 5
    return [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]


class Failed(Exception):
    pass


def run(command, environment=None, limit=300):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=limit,
                          env=os.environ | (environment or {}))
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stdout}exit code {done.returncode}")
    return done.stdout


class Bench:
    """A folder of programs, and what they left there."""

    def __init__(self, folder, steps):
        self.folder, self.steps, self.built = pathlib.Path(folder), steps, {}

    def source(self, case):
        capacity = case["capacity"]
        path = self.folder / f"{capacity}-{case['balance']}.moe"
        text = (HERE / "small.moe").read_text()
        text = text.replace("per = layer", f"per = {case['balance']}")
        if capacity != "none":
            text = text.replace("  experts =", f"  capacity = 0.9\n  drop = {capacity}\n  experts =")
        path.write_text(text)
        return path

    def accepts(self, case):
        """None, or what the compiler says that it cannot do yet."""
        try:
            run([os.environ["HECATEC"], "-w", "-fsyntax-only", *settings(case),
                 self.source(case)])
        except Failed as failed:
            if "not yet" not in str(failed):
                raise
            return str(failed)
        return None

    def build(self, case):
        options = settings(case)
        key = (case["capacity"], case["balance"], *options)
        if key in self.built:
            return self.built[key]
        program = self.folder / f"program{len(self.built)}"
        several = case.get("ranks", 1) > 1
        run([os.environ["HECATEC"], "-w", "-c", *options, self.source(case),
             "-o", f"{program}.o"])
        run([os.environ["MPICC" if several else "CC"], *os.environ["EMITTED_CFLAGS"].split(),
             "-fopenmp", "-Wl,--wrap=hrt_optimizer_step", "-o", program, f"{program}.o",
             HERE / "capture.c", f"-L{os.environ['LIBRARIES']}",
             *(["-lhecate_comm_mpi"] if several else []),
             "-lhecate_runtime", "-lhecate_kernels", "-ljansson", "-lm"])
        os.remove(f"{program}.o")
        self.built[key] = program
        return program

    def train(self, case, name, more, environment=None):
        """Trains; logs to NAME.log and saves to NAME.saved."""
        ranks = case.get("ranks", 1)
        tokens = case["accumulation"] * SEQUENCES * POSITIONS
        for end in ("log", "saved"):
            (self.folder / f"{name}.{end}").unlink(missing_ok=True)
        command = [self.build(case), "train", "--data", os.environ["TEXT"],
                   "--log", self.folder / f"{name}.log", "--save", self.folder / f"{name}.saved",
                   "--set", "log.loads=1", "--set", f"train.tokens={tokens}", *more]
        if ranks > 1:
            each = ranks // case["nodes"]
            topology = self.folder / "topology"
            topology.write_text("".join(f"{first}-{first + each - 1}\n"
                                        for first in range(0, ranks, each)))
            command = ["sh", os.environ["RANKS"], ranks, *command]
            environment = (environment or {}) | {"HECATE_TOPOLOGY": str(topology)}
        run(command, environment)

    def still(self, case, name, ids):
        """Gradients of a training that changes nothing."""
        more = ["--steps", CAPTURED[-1] + 1, "--set", "train.optimizer.lr=0", *ids]
        self.train(case, name, more, {"CAPTURE_GRADIENTS": str(self.folder / name)})

    def reference(self, case):
        """What one rank leaves: the prefix of its files."""
        case = {name: case[name] for name in OF_ONE}
        name = "one-" + "-".join(map(str, case.values()))
        if not (self.folder / f"{name}.saved").exists():
            self.still(case, f"{name}-still", ["--record-ids", self.folder / f"{name}-still.ids"])
            self.train(case, name, ["--steps", self.steps,
                                    "--record-ids", self.folder / f"{name}.ids"])
        return name

    def check_free(self, case, one, close):
        """Compares the training `first`, whose routers were free, up to the first token that went to
        another expert than on one rank; if there is one, a training with the ids of one rank. Returns
        the steps before it, or "all", and the worst loss."""
        at, bound = self.folder, min(close, 2e-6) if case["precision"] != "bf16" else close
        flip = compare.first_flip(f"{at}/{one}.ids", f"{at}/first.ids")
        if flip is None:
            return "all", compare.losses(bound, f"{at}/{one}.log", f"{at}/first.log")
        steps = flip // (SEQUENCES * case["accumulation"])
        worst = compare.losses(bound, f"{at}/{one}.log", f"{at}/first.log", steps)
        self.train(case, "replayed", ["--steps", self.steps, f"--route=ids:{at}/{one}.ids"])
        return steps, max(worst, compare.losses(close, f"{at}/{one}.log", f"{at}/replayed.log"))

    def check(self, case):
        """Returns the worst gradient, as a share of what is allowed, the worst loss, and how
        many steps it took until a token went to another expert."""
        one, at = self.reference(case), self.folder
        tight, close = {"fp64": (1e-12, 1e-12), "fp32": (2e-6, 2e-5), "bf16": (2e-6, 5e-4)}[case["precision"]]
        self.still(case, "still", [f"--route=ids:{at}/{one}-still.ids"])
        gradient = max(compare.gradients(tight, f"{at}/{one}-still.{step}", f"{at}/still.{step}")
                       for step in CAPTURED)
        loss = compare.losses(tight if case["capacity"] == "lowest" else close,
                              f"{at}/{one}-still.log", f"{at}/still.log")
        more = ["--steps", self.steps, "--record-ids", at / "first.ids"]
        self.train(case, "first", more)
        free, replayed = "-", 0
        if case["capacity"] != "lowest":
            free, replayed = self.check_free(case, one, close)
        self.train(case, "second", more, {"HECATE_COMM_PROGRESS": "poll"})
        if not filecmp.cmp(at / "first.saved", at / "second.saved", shallow=False):
            raise compare.Apart("two runs of the same ranks differ in bits")
        return gradient, max(loss, replayed), free


def taken(bench, dimensions):
    """The dimensions without the values that the compiler does not know or says "not yet" to."""
    kept = {}
    for name, values in dimensions.items():
        kept[name] = []
        for value in values:
            case = {other: all_[0] for other, all_ in DIMENSIONS.items()} | {"ranks": 2}
            if name in OF_MOVEMENT:
                case["experts"] = kept["experts"][-1]
            case[name] = value
            if case["nodes"] > case["ranks"]:
                case["ranks"] = case["nodes"]
            refused = bench.accepts(case)
            if refused:
                print(f"not yet: {name} = {value}")
            else:
                kept[name].append(value)
    return kept


def chosen_dimensions(only):
    dimensions = {name: list(values) for name, values in DIMENSIONS.items()}
    for text in only:
        name, _, values = text.partition("=")
        known = dimensions.get(name)
        picked = [value for value in known or [] if str(value) in values.split("|")]
        if not picked:
            sys.exit(f"--only {text}: known are " + (f"{name} = {known}" if known
                                                     else ", ".join(dimensions)))
        dimensions[name] = picked
    return dimensions


def arguments():
    parser = argparse.ArgumentParser(description="exactness of programs of several ranks")
    parser.add_argument("--cover", choices=["pairs", "product"], default="pairs")
    parser.add_argument("--slice", default="1/1", help="I/N: every N-th case, from the I-th on")
    parser.add_argument("--only", action="append", default=[], metavar="NAME=VALUE|VALUE")
    parser.add_argument("--steps", type=int, default=12, help="of the trainings whose losses count")
    parser.add_argument("--folder", help="keep programs and files there")
    parser.add_argument("--list", action="store_true", help="print the cases, run none")
    return parser.parse_args()


def main():
    options = arguments()
    index, parts = map(int, options.slice.split("/"))
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # Files are synced as they are saved.
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        bench = Bench(options.folder or folder, options.steps)
        bench.folder.mkdir(exist_ok=True)
        dimensions = taken(bench, chosen_dimensions(options.only))
        if not all(dimensions.values()):
            sys.exit(77)
        if options.cover == "pairs":
            cases = list(cover.pairs(dimensions, valid))
        else:
            cases = list(cover.turns(dimensions, valid, CORE))
        cases = cases[index - 1 :: parts]
        print(f"{len(cases)} cases; real: mpirun on this machine, "
              f"{len(os.sched_getaffinity(0))} cores")
        shown = [name for name in dimensions if len(dimensions[name]) > 1]
        print("  ".join(shown + ["gradients", "losses", "free", "seconds"]))
        failed = 0
        for case in cases:
            row = "  ".join(str(case[name]).ljust(len(name)) for name in shown)
            if options.list:
                print(row)
                continue
            start = time.monotonic()
            try:
                gradient, loss, free = bench.check(case)
                end = f"{gradient:9.3f}  {loss:.0e}  {free:>4}"
            except (compare.Apart, Failed, subprocess.TimeoutExpired) as error:
                failed += 1
                end = f"NOT EXACT: {error}"
            print(f"{row}  {end}  {time.monotonic() - start:7.1f}", flush=True)
        if not options.list:
            print(f"{len(cases) - failed} of {len(cases)} cases are exact")
        sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
