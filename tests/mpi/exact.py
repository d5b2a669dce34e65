"""exact.py [--cover pairs|product] [--seed S] [--slice I/N] [--only NAME=VALUE|VALUE] [--records FILE]
[--seconds N] ...: any number of ranks computes the same as one rank, with any movement between them. Each case is a
program of small.moe, compiled for its ranks, nodes and policy and run under mpirun on this machine:

  gradients  of steps 1, 2, 4 and 8 of a training whose learning rate is 0, so that all runs have the same
             parameters while plans, replicas and owners change: |g - g'| <= 2e-6 |g| + 1e-7 |all| / sqrt(n)
  losses     of a training, with loads and norms: 2e-6 relative up to the first token that goes to another
             expert than on one rank (rounding may exchange two of almost equal score: `free` is the number
             of steps before, `gap` how much of the better score they are apart: at most 1e-5), and 2e-5 all
             along a training that is sent where one rank chose (--route=ids:). fp64: 1e-12 both, gaps too.
             bf16: 5e-4, gaps 1e-3, because a parameter's last bit may decide which way its copy is rounded, by
             2^-8 of it; and 8 times as much as losses of one rank change when last bits of its first
             parameters do
             gradients = bf16: each rank rounds its share of a gradient, a node its sum, and the sum of all is
             rounded where it goes to all: three times 2^-8 of the shares, which are taken to be no longer in
             all than twice the gradient; losses and gaps as for bf16, times 8
  bits       the same training once more, with transfers that advance at other moments: equal files

Where rows are dropped by weight only gradients are compared: two weights that rounding exchanges drop
another row.

Prints a table. With --records cases that FILE has results of are not run again; --seconds ends after the
case that runs then: so the product, hours of it, is run in pieces, and with --seed each piece is a sample
of it. Exit code 0: every case that the compiler takes is exact; 1: one is not; 77: none was run."""
import argparse
import filecmp
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import compare
import cover
import records

HERE = pathlib.Path(__file__).resolve().parent
WHEN = dict(re.findall(r"^HPL_POLICY\((\w+), (\w+)", (HERE.parents[1] / "runtime/plan/policies.def").read_text(),
                       re.MULTILINE))
POLICIES = list(WHEN)
SEQUENCES = 16  # Over all ranks, of a step's iteration; with several microbatches, of that many.
POSITIONS = 16
CAPTURED = (0, 1, 3, 7)
WRAPPED = ("hrt_train_optimizer_step", "hk_router_f32", "hk_router_f64")
BENT = (1, 2)  # Seeds.
# Bounds of rounding: for gradients, losses under the same ids, losses of free routers, and the
# scores of a token that goes elsewhere.
BOUNDS = {"fp64": (1e-12, 1e-12, 1e-12, 1e-12), "fp32": (2e-6, 2e-5, 2e-6, 1e-5),
          "bf16": (2e-6, 5e-4, 5e-4, 1e-3)}
NARROW = (3 * 2 * 2**-8, 4e-3, 4e-3, 8e-3)  # For gradients in bf16.

# Every dimension's first value is what cases have that the others make no difference to.
DIMENSIONS = {
    "experts": ["ep", "replicate", *(policy for policy in POLICIES if policy != "ep")],
    "ranks": [2, 4, 8, 1],
    "nodes": [1, 2, 4],
    "dense": ["replicate", "states", "shard"],
    "gradients": ["fp32", "bf16"],
    "bucket": [1048576, 1024],
    "accumulation": [1, 3],
    "capacity": ["none", "position", "lowest"],
    "balance": ["layer", "batch", "sequence", "all_layers"],
    "weight_on": ["output", "input"],
    "group": [1, 4, "iteration"],  # Sequences.
    "microbatches": [1, 2, 4],  # That stand for one of one rank.
    "rows": ["direct", "node"],
    "waves": ["auto", 24],
    "precision": ["fp32", "fp64", "bf16"],
    "recompute": ["elementwise", "all", "cheap"],
    "logits": ["whole", 7],  # Tokens.
    "dispatch": ["quota", "even"],
    "calibrate": ["false", "true"],
    "rematerialize": ["false", "true"],
    "lifetime": ["iteration", "step"],
    "reshard": ["never", "every(5)"],
}
# The dimensions that one rank's program depends on.
OF_ONE = ("accumulation", "capacity", "balance", "weight_on", "group", "precision")
OF_MOVEMENT = ("dispatch", "calibrate", "rematerialize", "lifetime", "reshard")
# The dimensions that programs of one rank have not.
OF_RANKS = ("experts", "nodes", "dense", "gradients", "bucket", "rows", "waves", *OF_MOVEMENT)
# The dimensions of the product; the others take turns.
CORE = ("experts", "ranks", "nodes", "accumulation", "microbatches", "group", *OF_MOVEMENT)
# The dimensions that `valid` does not look at.
FREE = ("accumulation", "capacity", "balance", "weight_on", "recompute", "logits")
STAY = ("ep", "replicate")  # Policies that move nothing.


def valid(case):
    if case["nodes"] > case["ranks"]:
        return False
    if case["ranks"] == 1:  # Another microbatch is all that can differ.
        others = [name for name in OF_RANKS if name in case and case[name] != DIMENSIONS[name][0]]
        if case["microbatches"] == 1 or others:
            return False
    if case["gradients"] == "bf16" and case["precision"] == "fp64":
        return False
    sequences, left = divmod(SEQUENCES, case["microbatches"])
    if left or sequences % case["ranks"]:
        return False
    if case["group"] == "iteration" and case["microbatches"] > 1:
        return False  # Another iteration is another group.
    if case["group"] != "iteration" and sequences % case["group"]:
        return False
    if WHEN.get(case["experts"]) == "EXACT" and case["lifetime"] == "step":
        return False  # It plans in every iteration.
    if case["rows"] == "node" and (case["nodes"] == 1 or case["experts"] == "replicate"):
        return False  # None crosses.
    stays = case["experts"] in STAY
    return not stays or all(case[name] == DIMENSIONS[name][0] for name in OF_MOVEMENT)


def settings(case):
    """The settings of the case's program."""
    ranks = case.get("ranks", 1)
    microbatch = SEQUENCES // ranks // case.get("microbatches", 1)
    chosen = {"parallel.microbatch": microbatch, "train.precision": case["precision"],
              "parallel.recompute": case.get("recompute", DIMENSIONS["recompute"][0]),
              "parallel.logits": case.get("logits", DIMENSIONS["logits"][0])}
    if case["group"] != DIMENSIONS["group"][0]:  # It is the default.
        chosen["train.group"] = case["group"]
    if ranks > 1:
        nodes = case["nodes"]
        chosen |= {"cluster.nodes": nodes, "cluster.devices": ranks // nodes,
                   "parallel.experts": case["experts"], "parallel.dense": case["dense"],
                   "parallel.gradients": case["gradients"],
                   "parallel.rows": case["rows"], "parallel.rows_max": case["waves"],
                   "parallel.bucket": case["bucket"]}
        if case["experts"] not in STAY:
            chosen |= {f"parallel.placement.{name}": case[name] for name in OF_MOVEMENT}
        if case["experts"] == "laer":  # All copies are placed anew: slots for each expert.
            chosen["parallel.placement.memory"] = 5
    return [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]


def bounds(case):
    return NARROW if case.get("gradients") == "bf16" else BOUNDS[case["precision"]]


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
    """A folder of programs, and their files."""

    def __init__(self, folder, steps):
        self.folder, self.steps, self.built = pathlib.Path(folder), steps, {}

    def source(self, case):
        capacity = case["capacity"]
        path = self.folder / f"{capacity}-{case['balance']}-{case['weight_on']}.moe"
        text = (HERE / "small.moe").read_text()
        text = text.replace("per = layer", f"per = {case['balance']}")
        text = text.replace("router  {", f"router  {{ weight_on = {case['weight_on']},")
        if capacity != "none":
            text = text.replace("  experts =", f"  capacity = 0.9\n  drop = {capacity}\n  experts =")
        path.write_text(text)
        return path

    def accepts(self, case):
        """None, or the compiler's "not yet"."""
        try:
            run([os.environ["HECATEC"], "-w", "-fsyntax-only", *settings(case),
                 self.source(case)])
        except Failed as failed:
            if "not yet" not in str(failed):
                raise
            return str(failed)
        return None

    def capture(self):
        """capture.c, compiled once for all programs."""
        path = self.folder / "capture.o"
        if not path.exists():
            run([os.environ["CC"], *os.environ["EMITTED_CFLAGS"].split(), "-fopenmp", "-c",
                 HERE / "capture.c", "-o", path])
        return path

    def build(self, case):
        options = settings(case)
        key = (case["capacity"], case["balance"], case["weight_on"], *options)
        if key in self.built:
            return self.built[key]
        program = self.folder / f"program{len(self.built)}"
        several = case.get("ranks", 1) > 1
        run([os.environ["HECATEC"], "-w", "-O1", "-c", *options, self.source(case),
             "-o", f"{program}.o"])
        run([os.environ["MPICC" if several else "CC"], *os.environ["EMITTED_CFLAGS"].split(),
             "-fopenmp", *(f"-Wl,--wrap={name}" for name in WRAPPED), "-o", program, f"{program}.o",
             self.capture(), f"-L{os.environ['LIBRARIES']}",
             *(["-lhecate_comm_mpi"] if several else []),
             "-lhecate_runtime", "-lhecate_tokenizer", "-lhecate_kernels", "-lpcre2-8", "-lutf8proc", "-ljansson", "-ldeflate", "-lm"])
        os.remove(f"{program}.o")
        self.built[key] = program
        return program

    def forget(self):
        """Removes the programs: those of the whole product would fill the machine's memory."""
        for program in self.built.values():
            program.unlink(missing_ok=True)
        self.built.clear()

    def train(self, case, name, more, environment=None):
        """Trains; logs to NAME.log and saves to NAME.saved."""
        ranks = case.get("ranks", 1)
        tokens = case["accumulation"] * SEQUENCES * POSITIONS
        for end in ("log", "saved"):
            (self.folder / f"{name}.{end}").unlink(missing_ok=True)
        command = [self.build(case), "train", "--data", os.environ["TEXT"],
                   "--log", self.folder / f"{name}.log", "--save", self.folder / f"{name}.saved",
                   "--set", "log.loads=1", "--set", "train.eval_steps=1", "--set", f"train.tokens={tokens}", *more]
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
        """Runs the case on one rank; returns the prefix of its files."""
        case = {name: case[name] for name in OF_ONE}
        name = "one-" + "-".join(map(str, case.values()))
        path, bent = self.folder / name, BENT if case["precision"] == "bf16" else ()
        last = f"{name}-bent{bent[-1]}" if bent else name
        if (self.folder / f"{last}.saved").exists():
            return name
        self.still(case, f"{name}-still", ["--record-ids", f"{path}-still.ids"])
        self.train(case, name, ["--steps", self.steps, "--record-ids", f"{path}.ids"],
                   {"CAPTURE_GAPS": f"{path}.gaps"})
        for seed in bent:
            compare.bend(f"{path}-still.saved", f"{path}-bent", seed)
            self.train(case, f"{name}-bent{seed}", ["--steps", self.steps, "--load", f"{path}-bent",
                                                    f"--route=ids:{path}.ids"])
        return name

    def losses(self, case, bound, one, other, first=None):
        bent = [f"{self.folder}/{one}-bent{seed}.log" for seed in BENT]
        return compare.losses(bound, f"{self.folder}/{one}.log", f"{self.folder}/{other}.log", first,
                              bent if case["precision"] == "bf16" else ())

    def check_free(self, case, one):
        """Compares the training `first`, whose routers were free, up to the first token that went to
        another expert than on one rank; if there is one, whether two scores were as good as equal, and
        a training with the ids of one rank. Returns the steps before it, or "all", that gap and the
        worst loss."""
        at, (_, close, free, tie) = self.folder, bounds(case)
        ids = [compare.Routing(f"{at}/{name}.ids") for name in (one, "first")]
        flip = compare.first_flip(*ids)
        if flip is None:
            return "all", 0, self.losses(case, free, one, "first")
        sequences = SEQUENCES * case["accumulation"]
        steps = flip // sequences
        worst = self.losses(case, free, one, "first", steps)
        gap, place = compare.flip_gap(*ids, compare.doubles(f"{at}/{one}.gaps"), steps, sequences, SEQUENCES)
        if not gap <= tie:
            raise compare.Apart(f"step {steps + 1}, {place}: another expert, though scores are {gap:.3g} apart")
        self.train(case, "replayed", ["--steps", self.steps, f"--route=ids:{at}/{one}.ids"])
        return steps, gap, max(worst, self.losses(case, close, one, "replayed"))

    def check(self, case):
        """Returns what was found: the worst gradient, as a share of what is allowed, the worst loss,
        how many steps it took until a token went to another expert, and how close that choice was."""
        one, at = self.reference(case), self.folder
        tight, close, _, _ = bounds(case)
        self.still(case, "still", [f"--route=ids:{at}/{one}-still.ids"])
        gradient = max(compare.gradients(tight, f"{at}/{one}-still.{step}", f"{at}/still.{step}")
                       for step in CAPTURED)
        loss = compare.losses(tight if case["capacity"] == "lowest" else close,
                              f"{at}/{one}-still.log", f"{at}/still.log")
        more = ["--steps", self.steps, "--record-ids", at / "first.ids"]
        self.train(case, "first", more)
        free, gap, trained = "-", 0, 0
        if case["capacity"] != "lowest":
            free, gap, trained = self.check_free(case, one)
        self.train(case, "second", more, {"HECATE_COMM_PROGRESS": "poll"})
        if not filecmp.cmp(at / "first.saved", at / "second.saved", shallow=False):
            raise compare.Apart("two runs of the same ranks differ in bits")
        return {"gradient": gradient, "loss": max(loss, trained), "free": free, "gap": gap}


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
    parser.add_argument("--seed", type=int, help="cases in an order drawn with it")
    parser.add_argument("--slice", default="1/1", help="I/N: every N-th case, from the I-th on")
    parser.add_argument("--only", action="append", default=[], metavar="NAME=VALUE|VALUE")
    parser.add_argument("--steps", type=int, default=12, help="of the trainings whose losses count")
    parser.add_argument("--folder", help="keep programs and files there")
    parser.add_argument("--records", help="results, added to what the file has")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after them")
    parser.add_argument("--list", action="store_true", help="print the cases, run none")
    return parser.parse_args()


def chosen_cases(options, dimensions):
    if options.cover == "pairs":
        cases = list(cover.pairs(dimensions, valid, FREE))
    else:
        cases = list(cover.turns(dimensions, valid, CORE))
    if options.seed is not None:
        random.Random(options.seed).shuffle(cases)
    index, parts = map(int, options.slice.split("/"))
    return cases[index - 1 :: parts]


def run_case(bench, case, done):
    """Checks it, adds what was found to `done` and returns the end of its row."""
    start = time.monotonic()
    try:
        found = bench.check(case)
        end = "{gradient:9.3f}  {loss:6.0e}  {free:>4}  {gap:5.0e}".format(**found)
    except (compare.Apart, Failed, subprocess.TimeoutExpired) as error:
        found = {"error": str(error)}
        end = f"NOT EXACT: {error}"
    bench.forget()
    seconds = time.monotonic() - start
    done.add(case, **found, seconds=round(seconds, 1))
    return f"{end}  {seconds:7.1f}"


def main():
    options, start = arguments(), time.monotonic()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # Files are synced as they are saved.
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        bench = Bench(options.folder or folder, options.steps)
        bench.folder.mkdir(exist_ok=True)
        dimensions = taken(bench, chosen_dimensions(options.only))
        if not all(dimensions.values()):
            sys.exit(77)
        cases, done = chosen_cases(options, dimensions), records.Records(options.records)
        print(f"{len(cases)} cases; real: mpirun on this machine, "
              f"{len(os.sched_getaffinity(0))} cores")
        shown = [name for name in dimensions if len(dimensions[name]) > 1]
        print("  ".join(shown + ["gradients", "losses", "free", "gap", "seconds"]))
        for case in cases:
            row = "  ".join(str(case[name]).ljust(len(name)) for name in shown)
            if options.list:
                print(row)
                continue
            if time.monotonic() - start > options.seconds:
                break
            if not done.has(case):
                print(f"{row}  {run_case(bench, case, done)}", flush=True)
        if not options.list:
            print(*done.summary(len(cases)), sep="\n")
        sys.exit(1 if done.failed() else 0)


if __name__ == "__main__":
    main()
