"""The changes of resume.py between a run and its resumption: the model, a second value of each setting, of lists of the
language and of functions, and changes of other kinds."""
MODEL = """
dim V = 64, T = 8, D = 8, H = 2, A = 4, E = 4, F = 12, P = 3, Q = 5, K = 3, U = 4
block attention(x[T, D], d[T]) -> [T, D] {
  param wq[D, H, A], wk[D, H, A], wv[D, H, A], wo[H, A, D], s[H]
  q = rope(x @ wq, theta = 10000)
  k = rope(x @ wk)
  return sdpa(q, k, x @ wv, causal = true, window = 6, documents = d) @ wo
}
block bits(x[T, D]) -> [T, D] {
  param wz[D, H, A]
  y = minimum(maximum(tanh(x), relu(x)), gelu_erf(x)) + sqrt(exp(x)) + sigmoid(gelu(x))
  y = y + mean(x, over = [D]) + sum(x) * softmax(x)
  z = x @ wz
  y = y + sum(exp(sum(z, over = [H]))) + sum(exp(mean(z, over = [H]))) + sum(sum(exp(softmax(z, over = [A]))))
  y = y + sum(sum(exp(rmsnorm(z, over = [A], gain = none)))) + sum(sum(exp(layernorm(z, over = [A], gain = none, bias = none))))
  return dropout(y, 0.1) + concat(slice(x, D = P), slice(x, D = Q, from = 1), D = [P, Q])
}
block recurrent(x[T, D], d[T]) -> [T, D] {
  param taps[D, K], we[D, H, A], wf[D, H, A], wg[D, H, U], wb[D, H], wc[D, H], wh[H, U, D]
  c = causal_conv(x, taps, documents = d)
  k = softmax(c @ wf)
  return delta_rule(tanh(c @ we), k, c @ wg, -sigmoid(x @ wc), sigmoid(x @ wb), documents = d) @ wh
}
block swiglu(x[T, D]) -> [T, D] {
  param w1[D, F], w3[D, F], w2[F, D]
  return (silu(x @ w1) * (x @ w3)) @ w2
}
moe sparse(x[T, D]) -> [T, D] {
  experts = E * swiglu
  shared = 1 * swiglu
  router { score = sigmoid, topk = 2, groups = 2, topk_groups = 1, scale = 1.5, jitter = 0.01 }
  balance { aux = 0.01, z = 0.001, bias = 0.001 }
}
model m(ids[T]) -> [T, V] {
  param embed[V, D], head[D, V]
  x = embed[ids]
  d = documents(ids, 5)
  repeat i < 2 {
    x = x + attention(rmsnorm(x), d)
    x = x + bits(layernorm(x))
    x = x + recurrent(tanh(x), d)
    x = x + sparse(rmsnorm(x))
  }
  loss far (weight = 0.3) = cross_entropy(far_norm: rmsnorm(x) @ head, targets = ahead(ids, 2))
  loss soft (weight = 0.2) = distill(soft_norm: rmsnorm(x) @ head, temperature = 2)
  return rmsnorm(x) @ head
}
train {
  steps = 6, tokens = 64, precision = fp64, optimizer = adamw(lr = 0.01), schedule = cosine(warmup = 2, final = 0.1)
  parameters "*norm*" { decay = 0.05, lr_scale = 0.5 }
}
parallel { microbatch = 4 }
"""

FAR = "  loss far (weight = 0.3) = cross_entropy(far_norm: rmsnorm(x) @ head, targets = ahead(ids, 2))\n"
SOFT = "  loss soft (weight = 0.2) = distill(soft_norm: rmsnorm(x) @ head, temperature = 2)\n"

# By key: the other value, at run time or when compiling ("c" before it); or why there is none.
SETTINGS = {
    "adapt.alpha": "via ADAPT", "adapt.base": "via ADAPT", "adapt.dropout": "via ADAPT", "adapt.experts": "via ADAPT",
    "adapt.of": "via ADAPT", "adapt.rank": "via ADAPT",
    "checkpoint.dir": "via FOLDER", "checkpoint.every": "2", "checkpoint.every_minutes": "5",
    "checkpoint.keep": "7", "checkpoint.keep_every": "2", "checkpoint.memory": "1000",
    "cluster.device": "c h100", "cluster.device.bandwidth": "c 100GB/s", "cluster.device.flops": "c 1TFLOPS",
    "cluster.device.measured": "c times", "cluster.device.memory": "c 40GiB", "cluster.devices": "via RANKS",
    "cluster.link.host.bandwidth": "c 50GB/s", "cluster.link.inter.bandwidth": "c 10GB/s", "cluster.link.inter.latency": "c 10us",
    "cluster.link.intra.bandwidth": "c 100GB/s", "cluster.link.intra.latency": "c 1us",
    "cluster.link.measured": "c links", "cluster.nodes": "via RANKS",
    "data.format": "via DATA", "data.held_out": "0.2", "data.order": "sequential", "data.teacher": "via DATA", "data.train": "via DATA",
    "data.val": "via DATA",
    "log.every": "3", "log.jsonl": "via LOG", "log.loads": "1", "names.hf.family": "one value", "names.hf.rules": "one value",
    "parallel.gradients": "via WIRE", "parallel.bucket": "c 4KiB", "parallel.dense": "c states", "parallel.experts": "c ep", "parallel.logits": "via LOGITS",
    "parallel.microbatch": "c 2", "parallel.placement.calibrate": "c true", "parallel.placement.dispatch": "c even",
    "parallel.placement.forecast": "c window(3)", "parallel.placement.forecast.iterations": "c 3",
    "parallel.placement.lifetime": "c step",
    "parallel.placement.memory": "c 1", "parallel.placement.overlap": "c 1", "parallel.placement.rematerialize": "c true",
    "parallel.placement.reshard": "c never", "parallel.placement.reshard.iterations": "c 3",
    "parallel.recompute": "c all", "parallel.rows": "c node", "parallel.rows_max": "c 64", "parallel.states": "c host",
    "train.epochs": "via EPOCHS", "train.eval_every": "2", "train.eval_steps": "1", "train.group": "c 2", "train.objective": "via MASKED",
    "train.objective.beta": "via MASKED", "train.objective.clip": "via MASKED", "train.objective.kl": "via MASKED", "train.objective.rate": "0.3", "train.objective.weight": "c 0.5", "train.optimizer": "muon",
    "train.optimizer.betas": "0.9,0.96", "train.optimizer.clip": "0.5", "train.optimizer.decay": "0.2",
    "train.optimizer.eps": "1e-5", "train.optimizer.lr": "0.0100000001", "train.optimizer.momentum": "0.8",
    "train.optimizer.norm_eps": "1e-5",
    "train.parameters": "via GROUPS", "train.parameters.decay": "via GROUPS", "train.parameters.frozen": "via GROUPS",
    "train.parameters.lr_scale": "via GROUPS", "train.parameters.optimizer": "via GROUPS",
    "train.patience": "via BEST", "train.precision": "c fp32", "train.precision.master": "one value", "train.precision.router": "via BF16",
    "train.schedule": "linear", "train.schedule.cycles": "2", "train.schedule.decay": "0.3", "train.schedule.final": "0.2",
    "train.schedule.pieces": "via PIECES",
    "train.schedule.warmup": "1", "train.seed": "2", "train.skip_max": "2", "train.steps": "7", "train.tokens": "32",
}

# By the word of a moe: a text of the model and its replacement.
MOE = {
    "experts": ("E = 4, F", "E = 8, F"), "shared": ("shared = 1 * swiglu", "shared = 2 * swiglu"),
    "shared_gate": ("  router {", "  shared_gate = sigmoid\n  router {"), "capacity": ("  router {", "  capacity = 1\n  router {"),
    "drop": ("  router {", "  capacity = 1\n  drop = position\n  router {"), "router.score": ("score = sigmoid", "score = softmax"),
    "router.topk": ("topk = 2,", "topk = 1,"), "router.groups": ("groups = 2, topk_groups = 1", "groups = 1"),
    "router.topk_groups": ("topk_groups = 1", "topk_groups = 2"),
    "router.group_score": ("scale = 1.5", "scale = 1.5, group_score = best"),
    "router.weight": ("scale = 1.5", "scale = 1.5, weight = scores"),
    "router.weight_on": ("scale = 1.5", "scale = 1.5, weight_on = input"), "router.scale": ("scale = 1.5", "scale = 1.25"),
    "router.bias": ("scale = 1.5", "scale = 1.5, bias = true"), "router.jitter": ("jitter = 0.01", "jitter = 0.02"),
    "balance.aux": ("aux = 0.01", "aux = 0.02"), "balance.per": ("aux = 0.01", "aux = 0.01, per = batch"),
    "balance.normalize": ("aux = 0.01", "aux = 0.01, normalize = hf"), "balance.z": ("z = 0.001", "z = 0.002"),
    "balance.bias": ("bias = 0.001", "bias = 0.002"),
}

# By function, and "function.argument". Functions of numbers, which have no arguments but those, are not here: one is added.
FUNCTIONS = {
    "sum": ("sum(x) *", "2 * sum(x) *"),
    "sum.over": ("exp(sum(z, over = [H]))", "exp(sum(z, over = [A]))"), "mean": ("mean(x, over = [D])", "sum(x, over = [D])"), "mean.over": ("mean(z, over = [H])", "mean(z, over = [A])"),
    "softmax": ("softmax(x)", "sigmoid(x)"), "softmax.over": ("softmax(z, over = [A])", "softmax(z, over = [H, A])"),
    "rmsnorm": ("sparse(rmsnorm(x))", "sparse(layernorm(x))"), "rmsnorm.eps": ("sparse(rmsnorm(x))", "sparse(rmsnorm(x, eps = 1e-3))"),
    "rmsnorm.over": ("rmsnorm(z, over = [A]", "rmsnorm(z, over = [H, A]"), "rmsnorm.gain": ("sparse(rmsnorm(x))", "sparse(rmsnorm(x, gain = none))"),
    "layernorm": ("bits(layernorm(x))", "bits(rmsnorm(x))"), "layernorm.eps": ("bits(layernorm(x))", "bits(layernorm(x, eps = 1e-3))"),
    "layernorm.over": ("layernorm(z, over = [A]", "layernorm(z, over = [H, A]"), "layernorm.gain": ("bits(layernorm(x))", "bits(layernorm(x, gain = none))"),
    "layernorm.bias": ("bits(layernorm(x))", "bits(layernorm(x, bias = none))"), "dropout": ("dropout(y, 0.1)", "dropout(y, 0.2)"),
    "slice": ("D = Q, from = 1", "D = Q, from = 2"), "slice.A": ("slice(x, D = P)", "slice(tanh(x), D = P)"),
    "slice.from": ("D = Q, from = 1", "D = Q, from = 3"),
    "concat": ("concat(slice(x, D = P), slice(x, D = Q, from = 1), D = [P, Q])", "concat(slice(x, D = Q), slice(x, D = P), D = [Q, P])"),
    "concat.A": ("concat(slice(x, D = P), slice(x, D = Q, from = 1), D = [P, Q])", "x"),
    "rope": ("rope(x @ wk)", "x @ wk"), "rope.theta": ("theta = 10000", "theta = 20000"),
    "rope.scaling": ("theta = 10000)", "theta = 10000, scaling = linear(2))"),
    "rope.interleaved": ("rope(x @ wk)", "rope(x @ wk, interleaved = true)"), "sdpa": ("x @ wv, causal", "2 * x @ wv, causal"),
    "sdpa.causal": ("causal = true, window = 6", "causal = false"), "sdpa.window": ("window = 6", "window = 3"),
    "sdpa.chunk": ("window = 6", "chunk = 4"), "sdpa.scale": ("window = 6", "window = 6, scale = 0.3"),
    "sdpa.cap": ("window = 6", "window = 6, cap = 5"), "sdpa.sinks": ("window = 6", "window = 6, sinks = s"),
    "sdpa.documents": (", documents = d)", ")"), "documents": ("documents(ids, 5)", "documents(ids, 6)"),
    "causal_conv": ("causal_conv(x, taps, documents = d)", "x * mean(taps, over = [K])"),
    "causal_conv.documents": ("taps, documents = d", "taps"), "delta_rule": ("-sigmoid(x @ wc)", "-2 * sigmoid(x @ wc)"),
    "delta_rule.scale": ("sigmoid(x @ wb), documents", "sigmoid(x @ wb), scale = 0.3, documents"),
    "delta_rule.documents": ("sigmoid(x @ wb), documents = d", "sigmoid(x @ wb)"),
    "ahead": ("ahead(ids, 2)", "ahead(ids, 3)"), "cross_entropy": (FAR, ""),
    "cross_entropy.targets": ("targets = ahead(ids, 2)", "targets = ahead(ids, 4)"), "distill": ("soft (weight = 0.2)", "soft (weight = 0.3)"),
    "distill.temperature": ("temperature = 2", "temperature = 3"),
}

# The targets of "via" in the tables above, and further features: name, replacements in the model, settings and
# arguments of the compiler, arguments of the run, words that a refusal names (None: nothing is refused).
BOTH = ["--teacher", "teacher", "--teacher", "val.teacher"]
OTHERS = [
    ("nothing", [], [], [], None),
    ("-- other layers", [("i < 2", "i < 1")], [], [], "layers|forward"),
    ("-- a dim", [("T = 8", "T = 4")], [], [], "the dims: T"),
    ("-- the name", [("model m(", "model other(")], [], [], None),
    ("-- weight of a loss", [("far (weight = 0.3)", "far (weight = 3)")], [], [], "far"),
    ("-- begins of parameters", [("s[H]", "s[H](init = normal(0.5))")], [], [], None),
    ("-- decay of a parameter", [("s[H]", "s[H](decay = true)")], [], [], "attention.s: decay was false there and is true"),
    ("--route", [], [], ["--route", "balanced"], "--route was model there and is balanced here"),
    ("--seed", [], [], ["--seed", "3"], "train.seed"),
    ("GROUPS frozen", [("decay = 0.05, lr_scale = 0.5", "frozen = true")], [], [], "train.parameters"),
    ("GROUPS decay", [("decay = 0.05", "decay = 0.06")], [], [], "train.parameters"),
    ("GROUPS lr_scale", [("lr_scale = 0.5", "lr_scale = 0.6")], [], [], "train.parameters"),
    ("GROUPS optimizer", [('  parameters "*n', '  parameters "*router" { optimizer = adamw }\n  parameters "*n')], [], [], "train.parameters"),
    ("GROUPS pattern", [('"*norm*"', '"*norm"')], [], [], "train.parameters"),
    ("GROUPS one more", [('  parameters "*n', '  parameters "head" { lr_scale = 2 }\n  parameters "*n')], [], [], "train.parameters"),
    ("ADAPT", [], ["--set", "adapt.of=*.wq"], [], "attention.wq|adapt"),
    ("ADAPT base", [], ["--set", "adapt.base=mxfp4"], [], "adapt.base"),
    ("DATA val", [], [], ["--val", "val", *BOTH], r"data.held_out was 0.05 there and is 0 \(auto, with --val\) here"),
    ("DATA val, held out", [], [], ["--val", "val", *BOTH, "--set", "data.held_out=0.05"], None),
    ("DATA train", [], [], ["--data", "val", "--teacher", "val.teacher"], "training file"),
    ("DATA teacher", [], [], ["--teacher", "other.teacher"], "teacher's file 1"),
    ("MASKED", [(FAR, ""), (SOFT, ""), ("causal = true, window = 6", "causal = false"), ("precision = fp64", "precision = fp64, objective = masked"),
                ("  d = documents(ids, 5)\n", ""), (", documents = d", ""), ("attention(x[T, D], d[T])", "attention(x[T, D])"),
                ("attention(rmsnorm(x), d)", "attention(rmsnorm(x))"), ("    x = x + recurrent(tanh(x), d)\n", "")], [], [], "train.objective"),
    ("LOGITS", [(SOFT, "")], ["--set", "parallel.logits=4"], [], "soft"),
    ("DATA format", [], [], ["--data", "text.bin", "--teacher", "bin.teacher", "--set", "data.format=llmc"], "data.format"),
    ("BEST", [], [], ["--set", "train.patience=9", "--set", "train.eval_every=2"], None),
    ("EPOCHS", [], [], ["--epochs", "9"], "train.steps"),
    ("PIECES", [], [], ["--set", "train.schedule=pieces", "--set", "train.schedule.pieces=[warmup(2), cosine(to = 0.2)]"], "train.schedule"),
    ("FOLDER", [], [], ["--checkpoint", "ck2"], None),
    ("LOG", [], [], ["--log", "log2"], None),
]

# Runs of two ranks: name, arguments of the compiler, ranks that go on.
RANKS = [
    ("RANKS nothing", [], 2),
    ("RANKS cluster.devices", ["--set", "cluster.devices=1"], 1),
    ("RANKS cluster.nodes", ["--set", "cluster.devices=1", "--set", "cluster.nodes=2"], 2),
]
