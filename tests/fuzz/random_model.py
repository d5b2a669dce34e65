"""Random models whose layers stand beside one another: model(seed) is the text of one, always the same.

A body is a few assignments of random expressions. Values, and parameters, are shared between them; every
call has a label of its own. Denominators, roots and exponentials are such that values stay small, parameters
large enough for norms to have something to divide by."""
import pathlib
import random
import re
from pathlib import Path

SCORES = re.findall(r"^HK_SCORE(?:_OF_ALL)?\(\w+, (\w+)",
                    (pathlib.Path(__file__).resolve().parents[2] / "kernels" / "router" / "scores.def").read_text(), re.M)

FUNCTIONS = Path(__file__).resolve().parents[2] / "lang" / "builtins.def"
NORMS = dict(re.findall(r'^HEC_FUNCTION\((\w+), norm, "(.*)"', FUNCTIONS.read_text(), re.MULTILINE))

SHAPES = {"D": "T, D", "F": "T, F", "S": "T", "H": "T, H, A"}
WEIGHTS = {("D", "F"): "D, F", ("F", "D"): "F, D", ("D", "S"): "D",
           ("F", "S"): "F", ("D", "H"): "D, H, A", ("H", "D"): "H, A, D"}
# The same parameters with their dims in another order, by which operands are transposed; those of experts cannot be.
TURNED = {"D, F": "F, D", "F, D": "D, F", "D, H, A": "H, D, A", "H, A, D": "A, H, D"}
GAINS = {"D": ["D", "T, D", ""], "F": ["F", ""], "S": ["T", ""], "H": ["A", "H, A", "A, H", ""]}
UNARY = ["silu({})", "gelu({})", "gelu_erf({})", "sigmoid({})", "tanh({})", "relu({})", "-{}",
         "exp(tanh({}))", "{} * 0.5", "({} + 1)"]
BINARY = ["{} + {}", "{} + {}", "{} - {}", "{} * {}", "minimum({}, {})", "maximum({}, {})"]
TWICE = ["sqrt({1} * {1} + 1)", "{0} / ({1} * {1} + 1)", "{0} * silu({1}) - {1}"]
MOVED = ["fssdp", "ep", "replicate", "hecate", "fsdp", "flexmoe"]


class Body:
    """The statements of a block, of a model, or of its repeat."""

    def __init__(self, draw, known, prefix, tokens_alone=False):
        self.draw, self.known, self.prefix, self.tokens_alone = draw, known, prefix, tokens_alone
        self.params, self.names, self.lines = {}, 0, []
        self.values = {kind: [] for kind in SHAPES}
        self.given = {"x", "y", "l0"}  # Values that have other uses.

    def fresh(self, stem):
        self.names += 1
        return f"{self.prefix}{stem}{self.names}"

    def param(self, shape):
        """A parameter of this shape: a new one, or one that is used already."""
        if self.tokens_alone and "T" in shape.split(", "):
            shape = "D"
        if self.tokens_alone and shape == "A, H":
            shape = "H, A"
        same = [name for name, own in self.params.items() if own == shape]
        if same and self.draw.random() < 0.3:
            return self.draw.choice(same)
        name = self.fresh("p")
        self.params[name] = shape
        return name

    def product(self, kind, depth):
        start = self.draw.choice([pair[0] for pair in WEIGHTS if pair[1] == kind])
        if kind == "S" and self.draw.random() < 0.3:
            return f"mean({self.expression(start, depth - 1)})"
        shape = WEIGHTS[start, kind]
        if self.draw.random() < 0.2 and not (self.tokens_alone and kind == "H"):
            shape = TURNED.get(shape, shape)
        return f"({self.expression(start, depth - 1)} @ {self.param(shape)})"

    def leaf(self, kind):
        values = self.values[kind]
        return self.draw.choice(values) if values else self.product(kind, 1)

    def norm(self, kind, depth):
        name = self.draw.choice(list(NORMS))
        plain = ", gain = false" + (", bias = false" if "bias" in NORMS[name] else "")
        gain = plain if self.draw.random() < 0.3 else ""
        return f"{self.fresh('n')}: {name}({self.expression(kind, depth - 1)}{gain})"

    def heads(self, depth):
        value = self.leaf("H")
        if self.tokens_alone or self.draw.random() < 0.3:
            return f"{self.fresh('n')}: rmsnorm({value})"
        if self.draw.random() < 0.5:
            return f"rope({value})"
        window = self.draw.choice(["", ", window = 3", ", chunk = 3, cap = 2"])
        return f"sdpa({value}, {self.leaf('H')}, {self.leaf('H')}, causal = true{window})"

    def call(self, depth):
        calls = [name for name, alone in self.known.items() if alone or not self.tokens_alone]
        if not calls:
            return self.leaf("D")
        label = self.fresh("c")
        argument = self.expression("D", depth - 1)
        if self.draw.random() < 0.6:
            argument = f"{label}n: rmsnorm({argument})"
        return f"{label}: {self.draw.choice(calls).rstrip('!')}({argument})"

    def expression(self, kind, depth):
        if depth <= 0:
            return self.leaf(kind)
        way = self.draw.random()
        if way < 0.06:
            return self.leaf(kind)
        if way < 0.09 and not self.tokens_alone:
            return f"dropout({self.expression(kind, depth - 1)}, 0.3)"
        if way < 0.11:
            over = self.draw.choice(["", ", over = [H]", ", over = [H, A]"]) if kind == "H" else ""
            return f"softmax({self.expression(kind, depth - 1)}{over})" if kind != "S" else self.leaf(kind)
        if way < 0.18:
            return self.draw.choice(UNARY).format(f"({self.expression(kind, depth - 1)})")
        if way < 0.40:
            two = [self.expression(kind, depth - 1) for _ in range(2)]
            return "(" + self.draw.choice(BINARY).format(*two) + ")"
        if way < 0.45:
            two = [self.expression(kind, depth - 1), self.leaf(kind)]
            return "(" + self.draw.choice(TWICE).format(*two) + ")"
        if way < 0.52:
            shape = self.draw.choice(GAINS[kind])
            other = self.param(shape) if shape else self.product("S", 1)
            return f"({self.expression(kind, depth - 1)} {self.draw.choice('+*')} {other})"
        if kind == "H":
            return self.heads(depth)
        if way < 0.60 and kind in "DF":
            return self.norm(kind, depth)
        if way < 0.90 and kind == "D":
            return self.call(depth)
        return self.product(kind, depth)

    def assign(self, name, kind, depth):
        self.lines.append(f"{name} = {self.expression(kind, depth)}")
        if name not in self.values[kind]:
            self.values[kind].append(name)

    def result(self, depth):
        """An expression of kind D, to which all is added that no other one reads: every mixture has an effect."""
        parts, all_ = [self.expression("D", depth)], "\n".join(self.lines)
        for kind, names in self.values.items():
            for name in names:
                if name not in self.given and len(re.findall(rf"\b{name}\b", all_ + parts[0])) < 2:
                    shape = WEIGHTS.get((kind, "D"))
                    parts.append(f"({name} @ {self.param(shape)})" if shape else name)
        return " + ".join(parts)

    def text(self, indent="  "):
        own = [f"param {name}[{shape}] (init = normal(0.3))" for name, shape in self.params.items()]
        return "".join(f"{indent}{line}\n" for line in own + self.lines)


def block(draw, name, known, tokens_alone):
    body = Body(draw, known, "", tokens_alone)
    body.values["D"].append("x")
    for _ in range(draw.randrange(3)):
        kind = draw.choice("DDFH")
        body.assign(body.fresh("v"), kind, draw.randrange(1, 3))
    body.lines.append(f"return {body.result(draw.randrange(1, 4))}")
    return f"block {name}(x[T, D]) -> [T, D] {{\n{body.text()}}}\n"


def mixture(draw, name, bodies):
    experts = draw.choice(["E", "G"])
    lines = [f"experts = {experts} * {draw.choice(bodies)}"]
    if draw.random() < 0.3:
        lines.append(f"shared = {random.Random(lines[0]).choice([1, 1, 2])} * {draw.choice(bodies)}")
        if draw.random() < 0.5:
            lines.append("shared_gate = sigmoid")
    if draw.random() < 0.2:
        lines += ["capacity = 1", f"drop = {draw.choice(['position', 'lowest'])}"]
    score = draw.choice(SCORES)
    weight = draw.choice(["scores", "renormalized"] + ["softmax_of_topk"] * (score == "softmax"))
    groups = ", groups = 2" if experts == "E" and draw.random() < 0.2 else ""
    bias = draw.choice(["true", "false"])
    on = draw.choice(["output", "output", "input"])
    lines.append(f"router {{ score = {score}, topk = {draw.choice([1, 2, 2])}, weight = {weight}{groups}, bias = {bias}, "
                 f"weight_on = {on} }}")
    aux, z = draw.choice([0, 0.01]), draw.choice([0, 0.001])
    per = draw.choice(["layer", "sequence", "batch"])
    lines.append(f"balance {{ aux = {aux}, per = {per}, z = {z} }}")
    return f"moe {name}(x[T, D]) -> [T, D] {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


# In place of attention's last line, for some models: a convolution and the delta rule, whose keys have length 1.
ATTENTION = "  return sdpa(rope(x @ wq), rope(x @ wk), x @ wv, causal = true) @ wo\n"
RECURRENT = """  param conv[H, A, K] (init = normal(0.5)), wd[D, H] (init = normal(0.3)), wb[D, H] (init = normal(0.3))
  k = unit: rmsnorm(causal_conv(x @ wk, conv), gain = none) * 0.5
  return delta_rule(x @ wq, k, x @ wv, -softplus(x @ wd), sigmoid(x @ wb)) @ wo
"""

HEAD = """dim V = 256, T = 8, D = 8, F = 12, H = 2, A = 4, E = 4, G = 3, K = 3, L = {layers}
block attention(x[T, D]) -> [T, D] {{
  param wq[D, H, A] (init = normal(0.3)), wk[D, H, A] (init = normal(0.3))
  param wv[D, H, A] (init = normal(0.3)), wo[H, A, D] (init = normal(0.3))
  return sdpa(rope(x @ wq), rope(x @ wk), x @ wv, causal = true) @ wo
}}
block swiglu(x[T, D]) -> [T, D] {{
  param w1[D, F] (init = normal(0.3)), w3[D, F] (init = normal(0.3)), w2[F, D] (init = normal(0.3))
  return (silu(x @ w1) * (x @ w3)) @ w2
}}
block biased(x[T, D]) -> [T, D] {{
  param w1[D, F] (init = normal(0.3)), b1[F] (init = normal(0.3)), w2[F, D] (init = normal(0.3)), b2[D]
  return gelu(x @ w1 + b1) @ w2 + b2
}}
"""


def repeat(draw, known, body):
    """A loop that carries x and, sometimes, another value."""
    inner = Body(draw, known, "l")
    inner.params, carried = {}, ["x"] + (["y"] if draw.random() < 0.4 else [])
    inner.values["D"] += carried
    inner.values["D"] += [name for name in body.values["D"] if name not in carried][:1]
    outer = [name for name, shape in body.params.items() if shape == "D"]
    if outer:  # One parameter of all layers.
        inner.lines.append(f"l0 = x * {outer[0]}")
        inner.values["D"].append("l0")
    for _ in range(draw.randrange(4)):
        inner.assign(inner.fresh("v"), draw.choice("DDDFH"), draw.randrange(1, 4))
    if draw.random() < 0.25:
        inner.lines.append(f"repeat j < {draw.choice([1, 2, 3])} {{ x = x + {inner.result(2)} }}")
    for name in carried:
        value = inner.result(2) if name == "x" else inner.expression("D", draw.randrange(2, 4))
        inner.lines.append(f"{name} = {name} + {value}")
    lines = [] if "y" not in carried else [f"y = {body.expression('D', 2)}"]
    body.lines += [*lines, "repeat i < L {", *("  " + line for line in inner.text("").splitlines()), "}"]
    body.values["D"] += [name for name in carried if name not in body.values["D"]]


def model(seed, teacher=False):
    """`teacher`: half of the models have a loss against one."""
    draw = random.Random(seed)
    parts, known, bodies = [HEAD.format(layers=draw.choice([1, 2, 3]))], {}, ["swiglu", "biased"]
    if random.Random(f"recurrent {seed}").random() < 0.3:
        parts[0] = parts[0].replace(ATTENTION, RECURRENT)
    known.update(attention=False, swiglu=True, biased=True)
    for i in range(draw.randrange(3)):
        alone = draw.random() < 0.5
        parts.append(block(draw, f"block{i}", dict(known), alone))
        known[f"block{i}"] = alone
        if alone:
            bodies.append(f"block{i}")
    for i in range(draw.choice([0, 1, 1, 1, 2, 2])):
        parts.append(mixture(draw, f"sparse{i}", bodies))
        known[f"sparse{i}"] = known[f"sparse{i}!"] = False
    body = Body(draw, known, "")
    body.params["embed"] = "V, D"
    body.lines.append("x = embed[ids]")
    body.values["D"].append("x")
    for _ in range(draw.randrange(3)):
        body.assign(body.fresh("v"), draw.choice("DDFH"), draw.randrange(1, 3))
    for _ in range(draw.choice([0, 1, 1, 1, 2])):
        repeat(draw, known, body)
    for _ in range(draw.randrange(2)):
        body.assign(body.fresh("v"), "D", draw.randrange(1, 4))
    for i in range(random.Random(f"losses {seed}").choice([0, 0, 1, 2])):  # On known values, and on tokens ahead.
        body.lines.append(f"loss other{i} (weight = 0.{i + 3}) = cross_entropy(other{i}: rmsnorm(x + embed[ahead(ids, {i + 1})]) @ embed, "
                          f"targets = ahead(ids, {i + 2}))")
    also = " + y" if "y" in body.values["D"] else ""
    body.lines.append(f"logits = (last: rmsnorm(x{also} + {body.result(2)})) @ embed")
    if teacher and random.Random(f"teacher {seed}").random() < 0.5:
        body.lines.append("loss soft (weight = 0.6) = distill(logits, temperature = 1.5)")
    body.lines.append("return logits")
    text = body.text()
    if "causal = true" in text and random.Random(f"documents {seed}").random() < 0.3:
        text = text.replace("x = embed[ids]\n", "x = embed[ids]\n  d = documents(ids, 101)\n", 1)
        text = text.replace("causal = true", "causal = true, documents = d")
    parts.append(f"model m(ids[T]) -> [T, V] {{\n{text}}}\n")
    return "".join(parts)
