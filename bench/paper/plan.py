"""The simulations of bench/paper: models, clusters, policies, loads, and the lists of configurations."""
import re
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODELS = {"gpt-moe-s": 12, "gpt-moe-l": 12, "bert-moe": 12, "bert-moe-deep": 24}  # Layers.
NAMES = {"gpt-moe-s": "GPT-MoE-S", "gpt-moe-l": "GPT-MoE-L", "bert-moe": "BERT-MoE", "bert-moe-deep": "BERT-MoE-Deep"}
# Tokens of a device in one iteration.
TOKENS = {"gpt-moe-s": 8192, "gpt-moe-l": 8192, "bert-moe": 4096, "bert-moe-deep": 4096}
TOPK = 2


def dim(model, name):
    """A dim of an example, as its text states it."""
    return int(re.search(rf"\b{name} = (\d+)", (EXAMPLES / f"{model}.moe").read_text())[1])


def hidden(model):
    """The width of an expert of these models."""
    return 2 * dim(model, "D")


@dataclass(frozen=True)
class Cluster:
    file: str
    nodes: int
    experts: int
    title: str
    network: float  # Bytes a second that a node sends, and receives.

    @property
    def devices(self):
        return 8 * self.nodes


CLUSTERS = {"A16": Cluster("paper-a", 2, 32, "16 GPUs of A", 12.5e9), "A": Cluster("paper-a", 4, 64, "A", 12.5e9),
            "B": Cluster("paper-b", 4, 64, "B", 50e9)}

POLICIES = {  # Name on the page -> parallel.experts and further settings.
    "EP": ("ep", ()),
    "EP in nodes": ("edp", ()),
    "FasterMoE": ("fastermoe", ()),
    "SmartMoE": ("smartmoe", ()),
    "FlexMoE": ("flexmoe", ()),
    "EPLB": ("eplb", ()),
    "UltraEP": ("ultraep", ()),
    "LLEP": ("llep", ()),
    "LAER": ("laer", ()),
    "FSDP": ("fsdp", ()),
    "FSSDP": ("hecate", ()),
    "quota": ("fssdp", ()),
}
RIVALS = tuple(name for name in POLICIES if name not in ("FSSDP", "quota"))
# Links that cost nothing but latency.
FREE = ("cluster.link.intra.bandwidth=1e6GB/s", "cluster.link.inter.bandwidth=1e6GB/s")
REMATERIALIZE = {"kept": "false", "re-materialized": "true"}

IMBALANCES = ("1.1", "1.3", "2", "4")  # Rows of expert parallelism's fullest device, over the mean.
LOADS = (*IMBALANCES, "recorded")
# Stored iterations of four microbatches, the first and how many; plans are made from the two before them.
WINDOWS = {"recorded": (60, 2), "long": (15, 25)}
STEPS = 7
FIT = {"skew": 1.248, "drift": 0.0135, "bias": 0.061}  # The recording's late window's, if it is missing.


@dataclass(frozen=True)
class Spec:
    """One simulation. `loads`: a name of LOADS, long, balanced, local or assumed; `iterations` of a step; `even`:
    owners are even at first."""
    model: str
    cluster: str
    policy: str
    loads: str
    sets: tuple = ()
    defines: tuple = ()
    steps: int = STEPS
    passes: str = ""
    iterations: int = 1
    even: bool = False

    @property
    def key(self):
        extra = ",".join([*self.sets, *self.defines, self.passes, str(self.iterations), str(self.even)])
        return f"{self.model}/{self.cluster}/{self.policy}/{self.loads}/{self.steps}/{extra}"


def spec(model, cluster, name, loads, more=(), **rest):
    policy, sets = POLICIES[name]
    return Spec(model, cluster, policy, loads, tuple(sets) + tuple(more), **rest)


def free(model, cluster, loads, **rest):
    return spec(model, cluster, "EP", loads, more=FREE, **rest)


def local(model, cluster, **rest):
    """The step in which every token's experts are where it is, and all are loaded alike."""
    return spec(model, cluster, "EP", "local", steps=2, **rest)


def main_specs(quick):
    models = ("gpt-moe-s", "bert-moe") if quick else MODELS
    for cluster in ("A", "B"):
        for model in models:
            yield local(model, cluster)
            for which in ("1.3", "2") if quick else LOADS:
                yield free(model, cluster, which)
                for name in POLICIES:
                    yield spec(model, cluster, name, which)


def small_specs(quick):
    for model in () if quick else MODELS:
        for which in ("1.3", "2"):
            for name in ("EP", "FSSDP", "quota"):
                yield spec(model, "A16", name, which)


ITERATIONS = (2, 4, 8)


def step_specs(quick):
    for cluster in ("A", "B"):
        for iterations in ITERATIONS[1:2] if quick else ITERATIONS:
            yield local("gpt-moe-s", cluster, iterations=iterations)
            yield free("gpt-moe-s", cluster, "2", iterations=iterations)
            for name in POLICIES:
                yield spec("gpt-moe-s", cluster, name, "2", iterations=iterations)


def memory_specs(quick):
    for model in ("gpt-moe-s",) if quick else MODELS:
        for name in ("FSSDP", "quota"):
            for flag in REMATERIALIZE.values():
                yield spec(model, "B", name, "2", more=(f"parallel.placement.rematerialize={flag}",))


# Ablations, one change at a time: settings, and whether owners are even at first.
PAPER_ABLATIONS = {
    "both": ((), False),
    "materialization alone: owners stay even": (("parallel.placement.reshard=never",), True),
    "sharding alone: no replicas": (("parallel.placement.memory=0", "parallel.placement.overlap=0"), False),
}
ABLATIONS = {
    "all of it": ((), False),
    "rows split evenly, not by quotas": (("parallel.placement.dispatch=even",), False),
    "no calibration": (("parallel.placement.calibrate=false",), False),
    "always calibrated": (("parallel.placement.calibrate=true",), False),
    "one slot (m = 1)": (("parallel.placement.memory=1",), False),
    "nothing enters nodes (t = 0)": (("parallel.placement.overlap=0",), False),
    "first owners stay": (("parallel.placement.reshard=never",), False),
    "owners stay even": (("parallel.placement.reshard=never",), True),
    "forecast = the last iteration": (("parallel.placement.forecast.iterations=1",), False),
}
WITHOUT_OVERLAP = "no transfer behind computation"


def ablation_specs(quick):
    for cluster in ("B",) if quick else ("A", "B"):
        for name, changes in (("FSSDP", PAPER_ABLATIONS), ("quota", ABLATIONS)):
            for more, even in changes.values():
                yield spec("gpt-moe-s", cluster, name, "2", more=more, even=even)
            yield spec("gpt-moe-s", cluster, name, "2", passes="no overlap")


SEQUENCES = (1, 2, 4, 8, 16)


def batch_sets(sequences, cluster="B"):
    return (f"parallel.microbatch={sequences}", f"train.tokens={sequences * dim('gpt-moe-s', 'T') * CLUSTERS[cluster].devices}")


def batch_specs(quick):
    for sequences in SEQUENCES[1:4] if quick else SEQUENCES:
        yield local("gpt-moe-s", "B", more=batch_sets(sequences))
        for name in ("EP", "LAER", "FSSDP", "quota"):
            yield spec("gpt-moe-s", "B", name, "2", more=batch_sets(sequences))


GROWTH = ((4, 8, 64), (16, 8, 128), (64, 8, 256), (128, 8, 512))  # Nodes, their devices, experts.
DOMAINS = ((36, 8, 288), (4, 72, 288))
SHOWN = ("EP", "LAER", "FSDP", "FSSDP", "quota")


def growth_spec(name, nodes, devices, experts):
    more = (f"cluster.nodes={nodes}", f"cluster.devices={devices}", f"train.tokens={nodes * devices * 8192}")
    return spec("gpt-moe-s", "B", name, "assumed", more=more, defines=(f"E={experts}",), steps=3)


def growth_specs(quick):
    for each in GROWTH[:2] if quick else (*GROWTH, *DOMAINS):
        for name in SHOWN:
            yield growth_spec(name, *each)


INTERVALS = (10, 25, 50, 90)  # The recording's long part has 100 iterations.


def interval_specs(quick):
    if not quick:
        yield spec("gpt-moe-s", "B", "EP", "long")
    for every in INTERVALS:
        for name in ("SmartMoE", "FlexMoE", "FSSDP", "quota"):
            if not quick:
                yield spec("gpt-moe-s", "B", name, "long", more=(f"parallel.placement.reshard.iterations={every}",))


def all_specs(quick):
    seen = {}
    for make in (main_specs, small_specs, step_specs, memory_specs, ablation_specs, batch_specs, growth_specs, interval_specs):
        for each in make(quick):
            seen[each.key] = each
    return list(seen.values())
