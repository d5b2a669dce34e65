#!/bin/sh
# balance_layers.sh: the loss of `normalize = hf` is that of all layers together, as transformers computes it from the
# router outputs of all layers: computed from runs in which one layer alone has a loss.
#
# With two experts, aux = 2 c (f p + (1 - f)(1 - p)), f the share and p the mean score of the first. Loads
# give f and the loss of a layer alone then p; parameters stay as they are, the rate is 0.
# Environment: HECATEC; PYTHON; TEXT.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model() { # FIRST SECOND: the balance of the two layers.
    cat <<MODEL
dim V = 256, T = 32, D = 16, E = 2, F = 8
block linear(x[T, D]) -> [T, D] {
  param w[D, F], v[F, D]
  return silu(x @ w) @ v
}
moe first(x[T, D]) -> [T, D] {
  experts = E * linear
  router  { score = softmax, topk = 1, weight = scores }
  balance { $1 }
}
moe second(x[T, D]) -> [T, D] {
  experts = E * linear
  router  { score = softmax, topk = 1, weight = scores }
  balance { $2 }
}
model two_layers(ids[T]) -> [T, V] {
  param embed[V, D], head[D, V]
  x = embed[ids]
  x = x + first(rmsnorm(x))
  x = x + second(rmsnorm(x))
  return rmsnorm(x) @ head
}
data { format = bytes }
train {
  tokens = 128, group = iteration
  optimizer = adamw(lr = 0, decay = 0)
  precision = fp64
}
MODEL
}
model 'aux = 0.5' 'aux = 0' > a.moe
model 'aux = 0' 'aux = 0.5' > b.moe
model 'aux = 0.5, normalize = hf' 'aux = 0.5, normalize = hf' > joint.moe
for name in a b joint; do
    "$HECATEC" -o "$name" "$name.moe"
    "./$name" train --data "$TEXT" --steps 4 --seed 5 --log "$name.jsonl" --record-loads "$name.loads"
done
"./joint" train --data "$TEXT" --check-grad 4
"$PYTHON" - <<'PYTHON'
import json, struct
def aux(name):
    return [json.loads(line)["aux"] for line in open(name + ".jsonl")]
data = open("joint.loads", "rb").read()
_, steps, layers, devices, microbatches, experts = struct.unpack_from("<8s5I", data)
assert (layers, devices, microbatches, experts) == (2, 1, 1, 2)
counts = struct.unpack_from(f"<{steps * 4}H", data, 28)
for step, (a, b, joint) in enumerate(zip(aux("a"), aux("b"), aux("joint"))):
    f, p = [], []
    for layer, loss in enumerate((a, b)):
        one, two = counts[step * 4 + layer * 2 : step * 4 + layer * 2 + 2]
        f.append(one / (one + two))
        p.append((loss - (1 - f[-1])) / (2 * f[-1] - 1))
    F, P = sum(f) / 2, sum(p) / 2
    assert abs(joint - (F * P + (1 - F) * (1 - P))) < 1e-9, (step, joint, F, P)
    assert abs(joint - (a + b) / 2) > 1e-6, "these loads cannot tell layers from the model"
PYTHON
