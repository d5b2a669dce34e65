"""The simulations of bench/paper: models, clusters, policies, loads, and the lists of configurations."""
from dataclasses import dataclass

MODELS = {"gpt-moe-s": 12, "gpt-moe-l": 12, "bert-moe": 12, "bert-moe-deep": 24}  # Layers.
NAMES = {"gpt-moe-s": "GPT-MoE-S", "gpt-moe-l": "GPT-MoE-L", "bert-moe": "BERT-MoE", "bert-moe-deep": "BERT-MoE-Deep"}
TOKENS = {"gpt-moe-s": 8192, "gpt-moe-l": 8192, "bert-moe": 4096, "bert-moe-deep": 4096}  # In one step of a device.


@dataclass(frozen=True)
class Cluster:
    file: str
    nodes: int
    experts: int
    title: str

    @property
    def devices(self):
        return 8 * self.nodes


CLUSTERS = {"A16": Cluster("paper-a", 2, 32, "16 GPUs of A"), "A": Cluster("paper-a", 4, 64, "A"),
            "B": Cluster("paper-b", 4, 64, "B")}

REMATERIALIZED = ("parallel.placement.rematerialize=true",)
KEPT = ("parallel.placement.rematerialize=false",)
POLICIES = {  # Name on the page -> parallel.experts and further settings.
    "EP": ("ep", ()),
    "FasterMoE": ("fastermoe", ()),
    "SmartMoE": ("smartmoe", ()),
    "FlexMoE": ("flexmoe", ()),
    "FSSDP": ("hecate", KEPT),
    "FSSDP-RM": ("hecate", REMATERIALIZED),
    "quota": ("fssdp", KEPT),
    "quota-RM": ("fssdp", REMATERIALIZED),
}
RIVALS = ("EP", "FasterMoE", "SmartMoE", "FlexMoE", "FSSDP", "FSSDP-RM")
OTHERS = {"LAER": ("laer", ()), "UltraEP": ("ultraep", ()), "LLEP": ("llep", ()), "EPLB": ("eplb", ()),
          "FSDP": ("fsdp", ())}

# Stored iterations of four microbatches, the first and how many; plans are made from the two before them.
WINDOWS = {"early": (20, 2), "late": (60, 2), "long": (15, 25)}
LOADS = ("late", "early", "drawn")
STEPS = 7
FIT = {"skew": 1.248, "drift": 0.0135, "bias": 0.061}  # The recording's late window's, if it is missing.


@dataclass(frozen=True)
class Spec:
    """One simulation. `loads`: a name of LOADS, balanced, local or assumed; `plan`: whether choices are made from earlier loads."""
    model: str
    cluster: str
    policy: str
    loads: str
    sets: tuple = ()
    defines: tuple = ()
    steps: int = STEPS
    passes: str = ""

    @property
    def key(self):
        extra = ",".join([*self.sets, *self.defines, self.passes])
        return f"{self.model}/{self.cluster}/{self.policy}/{self.loads}/{self.steps}/{extra}"


def spec(model, cluster, name, loads, table=None, more=(), **rest):
    policy, sets = (table or POLICIES)[name]
    return Spec(model, cluster, policy, loads, tuple(sets) + tuple(more), **rest)


def main_specs(quick):
    models = ("gpt-moe-s", "bert-moe") if quick else MODELS
    clusters = ("A", "B") if quick else CLUSTERS
    loads = ("late",) if quick else LOADS
    for cluster in clusters:
        for model in models:
            for kind in ("balanced", "local"):
                yield spec(model, cluster, "EP", kind, steps=2)
            for name in POLICIES:
                for which in loads:
                    yield spec(model, cluster, name, which)


def other_specs(quick):
    for cluster in ("A", "B"):
        for name in OTHERS:
            for which in ("late",) if quick else ("late", "early"):
                yield spec("gpt-moe-s", cluster, name, which, OTHERS)


# Ablations, one change at a time: of the paper's FSSDP, and of quota.
PAPER_ABLATIONS = {
    "both": (),
    "materialization alone": ("parallel.placement.reshard=never",),
    "sharding alone": ("parallel.placement.memory=0", "parallel.placement.overlap=0"),
}
ABLATIONS = {
    "all of it": (),
    "rows split evenly, not by quotas": ("parallel.placement.dispatch=even",),
    "no calibration": ("parallel.placement.calibrate=false",),
    "always calibrated": ("parallel.placement.calibrate=true",),
    "one slot (m = 1)": ("parallel.placement.memory=1",),
    "nothing enters nodes (t = 0)": ("parallel.placement.overlap=0",),
    "even first owners (reshard = never)": ("parallel.placement.reshard=never",),
    "forecast = the last iteration": ("parallel.placement.forecast.iterations=1",),
}


def ablation_specs(quick):
    for cluster in ("B",) if quick else ("A", "B"):
        for more in PAPER_ABLATIONS.values():
            yield spec("gpt-moe-s", cluster, "FSSDP", "late", more=more)
        for more in ABLATIONS.values():
            yield spec("gpt-moe-s", cluster, "quota", "late", more=more)
        for name in ("FSSDP", "quota"):
            yield spec("gpt-moe-s", cluster, name, "late", passes="no overlap")


MICROBATCHES = (1, 2, 4, 8, 16)


def batch_sets(microbatch, cluster="B"):
    tokens = microbatch * 2048 * CLUSTERS[cluster].devices
    return (f"parallel.microbatch={microbatch}", f"train.tokens={tokens}")


def batch_specs(quick):
    for microbatch in MICROBATCHES[1:4] if quick else MICROBATCHES:
        for name in ("EP", "FSSDP", "quota"):
            yield spec("gpt-moe-s", "B", name, "late", more=batch_sets(microbatch))
        for kind in ("balanced", "local"):
            yield spec("gpt-moe-s", "B", "EP", kind, more=batch_sets(microbatch), steps=2)


GROWTH = ((4, 64), (16, 128), (64, 256), (128, 512))  # Nodes of 8, experts.


def growth_sets(nodes):
    return (f"cluster.nodes={nodes}", f"train.tokens={nodes * 8 * 8192}")


def growth_specs(quick):
    for nodes, experts in GROWTH[:2] if quick else GROWTH:
        for name in ("EP", "FSSDP", "quota"):
            yield spec("gpt-moe-s", "B", name, "assumed", more=growth_sets(nodes), defines=(f"E={experts}",), steps=3)


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
    for make in (main_specs, other_specs, ablation_specs, batch_specs, growth_specs, interval_specs):
        for each in make(quick):
            seen[each.key] = each
    return list(seen.values())
