"""Random models: text that compiles, and facts about it."""
import dataclasses
import pathlib
import re
import struct
from pathlib import Path

SCORES = re.findall(r"^HK_SCORE(?:_OF_ALL)?\(\w+, (\w+)",
                    (pathlib.Path(__file__).resolve().parents[2] / "kernels" / "router" / "scores.def").read_text(), re.M)

TABLE = Path(__file__).resolve().parents[2] / "runtime" / "plan" / "policies.def"

WIDTHS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 32, 33, 48]
POLICIES = ["fssdp", "replicate", *(name for name in re.findall(r"^HPL_POLICY\((\w+)", TABLE.read_text(), re.MULTILINE) if name != "fssdp")]
FUNCTIONS = Path(__file__).resolve().parents[2] / "lang" / "builtins.def"
# With one operand, and of any size: neither exp nor sqrt.
ACTIVATIONS = [name for name in re.findall(r'^HEC_FUNCTION\((\w+), elementwise, "\w+\(x\)"', FUNCTIONS.read_text(),
                                           re.MULTILINE) if name not in ("exp", "sqrt")]
NORMS = re.findall(r"^HEC_FUNCTION\((\w+), norm", FUNCTIONS.read_text(), re.MULTILINE)
EXPERTS = ["swiglu", "plain", "biased", "alone"]
BLOCKS = """
block swiglu(x[T, D]) -> [T, D] {{
  param w1[D, F], w3[D, F], w2[F, D]
  return ({a}(x @ w1) * (x @ w3)) @ w2
}}
block plain(x[T, D]) -> [T, D] {{
  param w1[D, F], w2[F, D]
  return {b}(x @ w1) @ w2
}}
block biased(x[T, D]) -> [T, D] {{
  param w1[D, F], b1[F], w2[F, D], b2[D]
  return {c}(x @ w1 + b1) @ w2 + b2
}}
block alone(x[T, D]) -> [T, D] {{
  param g[D]
  return {d}(x) * g
}}
block attention(x[T, D]) -> [T, D] {{
  param wq[D, H, A], wk[D, G, A], wv[D, G, A], wo[H, A, D]
  q = {rope}(x @ wq)
  k = {rope}(x @ wk)
  return sdpa({q}, k, x @ wv, causal = {causal}{window}) @ wo
}}
"""


@dataclasses.dataclass
class Model:
    """A model's text. iteration: its statistics follow the microbatch, so only one program has its losses."""
    text: str
    vocabulary: int
    positions: int
    microbatch: int
    tokens: int
    ranks: int
    nodes: int
    precision: str
    masked: bool
    iteration: bool

    def data(self, random, tokens):
        """Token ids as an llm.c file."""
        head = struct.pack("<3i", 20240520, 1, tokens).ljust(1024, b"\0")
        mask = self.masked and self.vocabulary > 1
        return head + struct.pack(f"<{tokens}H", *(random.randrange(self.vocabulary - mask) for _ in range(tokens)))


def router(random, experts):
    """Sections router and balance that are allowed for `experts` experts."""
    groups = random.choice([g for g in (1, 1, 1, 2, 3, 4, 5, 8) if experts % g == 0])
    kept = random.randint(1, groups)
    score = random.choice(SCORES)
    weight = random.choice(["scores", "renormalized"] + ["softmax_of_topk"] * (score == "softmax"))
    lines = [f"score = {score}", f"topk = {random.randint(1, min(experts // groups * kept, 8))}",
             f"weight = {weight}"]
    if groups > 1:
        best = experts // groups < 2 or random.random() < 0.5
        lines += [f"groups = {groups}", f"topk_groups = {kept}", f"group_score = {'best' if best else 'two_best'}"]
    optional = [("scale", random.choice(["0.5", "2.5", "16"])), ("bias", "true"), ("weight_on", "input"), ("jitter", random.choice(["0.01", "0.3"]))]
    lines += [f"{name} = {value}" for name, value in optional if random.random() < 0.3]
    balance = []
    if random.random() < 0.7:
        balance += [f"aux = {random.choice(['0.01', '0.001', '1'])}",
                    f"per = {random.choice(['layer', 'sequence', 'batch'])}"]
    if random.random() < 0.3:
        balance.append(f"z = {random.choice(['0.001', '0.1'])}")
    if random.random() < 0.3 and weight != "softmax_of_topk":
        balance.append(f"bias = {random.choice(['0.001', '0.1'])}")
    return f"  router {{ {', '.join(lines)} }}\n  balance {{ {', '.join(balance)} }}\n"


def moe(random, name, count, size):
    """One moe, whose `count` experts are so many."""
    text = f"moe {name}(x[T, D]) -> [T, D] {{\n  experts = {count} * {random.choice(EXPERTS)}\n"
    if random.random() < 0.3:
        text += f"  shared = 1 * swiglu(F = {random.choice(WIDTHS)})\n"
        text += "  shared_gate = sigmoid\n" if random.random() < 0.5 else ""
    if random.random() < 0.3:
        text += f"  capacity = {random.choice(['0.3', '1', '1.25', '4'])}\n  drop = {random.choice(['lowest', 'position'])}\n"
    return text + router(random, size) + "}\n"


def body(random, moes, layers, alternating):
    """Statements that make logits out of ids."""
    norm = random.choice([*NORMS, "rmsnorm"])
    def mixer():
        return random.choice([f"attention({norm}(x))", "attention(rmsnorm(x, gain = none))", "attention(x)"])
    def feed():
        return random.choice([f"{name}({norm}(x))" for name in moes] * 3 + ["plain(x)", f"swiglu({norm}(x), F = F2)"])
    lines = ["x = embed[ids]" + random.choice(["", " + position", " * 4"])]
    if random.random() < 0.2:
        lines.append(f"x = x + first: {feed()}")
    inside = [f"x = x + {mixer()}"] if random.random() < 0.7 else []
    inside.append(f"x = x + {feed()}")
    if alternating:
        inside = [f"if i % 2 == 0 {{ x = x + a: {feed()} }} else {{ x = x + b: {feed()} }}"]
    lines.append(f"repeat i < {layers} {{\n    " + "\n    ".join(inside) + "\n  }")
    if random.random() < 0.3:
        lines.append(f"x = x + last: {feed()}")
    lines.append(random.choice(["return rmsnorm(x) @ embed", "return x @ head", "return rmsnorm(x) @ head"]))
    return lines


def settings(random, model):
    """Sections train, parallel and cluster."""
    train = [f"steps = {random.randint(2, 5)}", f"tokens = {model.tokens}", f"precision = {model.precision}",
             f"seed = {random.randrange(1 << 31)}"]
    if model.iteration:
        train.append("group = iteration")
    elif random.random() < 0.3:
        train.append(f"group = {random.choice([n for n in (1, 2, 3) if model.microbatch % n == 0])}")
    optimizer = [("lr", random.choice(["1e-3", "1e-4", "0"])), ("betas", "[0.5, 0.9]"), ("decay", "0"), ("clip", "none"),
                 ("eps", "1e-6")]
    chosen = ", ".join(f"{name} = {value}" for name, value in optimizer if random.random() < 0.4)
    train.append(f"optimizer = adamw({chosen})" if chosen else "optimizer = adamw")
    train.append("schedule = " + random.choice(["constant", "cosine(warmup = 2, final = 0)", "linear(warmup = 1)"]))
    if model.masked:
        train.append(f"objective = masked({random.choice(['0.15', '0.5', '0.01'])})")
    parallel = [f"microbatch = {model.microbatch}", f"experts = {random.choice(POLICIES[:2] * 4 + POLICIES)}"]
    if random.random() < 0.4:
        parallel.append(f"recompute = {random.choice(['none', 'cheap', 'all', 'all'])}")
    if random.random() < 0.3:
        parallel.append(f"dense = {random.choice(['replicate', 'states', 'shard'])}")
    if random.random() < 0.3:
        parallel.append(f"bucket = {random.choice([1, 64, 1024, 1 << 20])}")
    if random.random() < 0.2:
        parallel.append(f"rows_max = {random.choice([1, 7, 64, 100000])}")
    if random.random() < 0.4:
        placement = [("overlap", random.randint(0, 3)), ("memory", random.randint(1, 4)), ("calibrate", "true"),
                     ("rematerialize", random.choice(["true", "false"])), ("dispatch", random.choice(["quota", "even"])),
                     ("forecast", f"window({random.randint(1, 8)})"),
                     ("reshard", random.choice(["never", "every(1)", "every(2)"]))]
        kept = [f"{name} = {value}" for name, value in placement if random.random() < 0.4]
        parallel.append(f"placement {{ {', '.join(kept)} }}")
    return "\n".join(f"{name} {{\n  " + "\n  ".join(lines) + "\n}" for name, lines in (("train", train), ("parallel", parallel)))


def draw(random, ranks=1):
    """A model that is right, for so many ranks."""
    heads = random.choice([1, 2, 3, 4, 6])
    rope = random.random() < 0.5
    sizes = {"V": random.choice([2, 3, 17, 64, 256, 257]), "T": random.choice([2, 3, 5, 8, 16, 17, 33]),
             "D": random.choice(WIDTHS), "F": random.choice(WIDTHS), "F2": random.choice(WIDTHS),
             "H": heads, "G": random.choice([g for g in (1, 2, 3, 6) if heads % g == 0]),
             "A": random.choice([2, 4, 8, 16] if rope else WIDTHS[:9]),
             "E": random.choice([1, 2, 3, 4, 5, 8, 12, 17]), "N": random.choice([1, 2, 3, 6, 16])}
    masked = random.random() < 0.15 and sizes["T"] > 2 and sizes["V"] > 2
    microbatch, iterations = random.choice([1, 1, 2, 3]), random.choice([1, 1, 2, 3])
    model = Model("", sizes["V"], sizes["T"], microbatch, sizes["T"] * microbatch * iterations * ranks, ranks,
                  random.choice([1, ranks]), random.choice(["fp32", "fp32", "fp64", "bf16"]), masked, random.random() < 0.1)
    window = f", window = {random.randint(1, 20)}" if random.random() < 0.2 and not masked else ""
    names = random.choice([["sparse"], ["sparse"], ["sparse", "other"]])
    lines = body(random, names, random.choice([1, 1, 2, 3, 4]), random.random() < 0.2)
    used = "\n".join(lines)
    params = ["embed[V, D]"] + ["position[T, D]"] * ("+ position" in used) + ["head[D, V]"] * ("@ head" in used)
    activations = dict(zip("abcd", (random.choice(ACTIVATIONS) for _ in range(4))))
    blocks = BLOCKS.format(**activations, rope="rope" if rope else "", q=random.choice(["q", "q", "rmsnorm(q)"]),
                           causal="false" if masked else "true", window=window)
    model.text = "dim " + ", ".join(f"{name} = {size}" for name, size in sizes.items()) + "\n" + blocks
    for name, count in zip(names, "EN"):
        model.text += moe(random, name, count, sizes[count])
    model.text += f"model m(ids[T]) -> [T, V] {{\n  param {', '.join(params)}\n  " + "\n  ".join(lines) + "\n}\n"
    model.text += "data { format = llmc }\n" + settings(random, model) + "\n"
    return model


def cluster(model):
    """Flags of hecatec that compile it for its ranks."""
    return ["--set", f"cluster.nodes={model.nodes}", "--set", f"cluster.devices={model.ranks // model.nodes}"]
