#!/bin/sh
# balance_batch.sh: the loss of `balance.per = batch` over the iterations of a step is what its formula
# says, computed from runs that know nothing of it: one iteration a step, one loss for each layer.
#
# With two experts, aux = 2 c (f p + (1 - f)(1 - p)), f the share and p the mean score of the first. Loads
# give f and the loss of an iteration alone then p; parameters stay as they are, the rate is 0.
# Environment: HECATEC; PYTHON; TEXT.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > model.moe <<'MODEL'
dim V = 256, T = 33, D = 16, E = 2, F = 8
block linear(x[T, D]) -> [T, D] {
  param w[D, F], v[F, D]
  return relu(x @ w) @ v
}
moe sparse(x[T, D]) -> [T, D] {
  experts = E * linear
  router  { score = softmax, topk = 1, weight = scores }
  balance { aux = 0.5, per = layer }
}
model one_layer(ids[T]) -> [T, V] {
  param embed[V, D], head[D, V]
  x = embed[ids]
  x = x + sparse(rmsnorm(x))
  return rmsnorm(x) @ head
}
data { format = bytes, order = random }
train {
  optimizer = adamw(lr = 0, decay = 0)
  precision = fp64
  schedule  = constant
}
MODEL
sed 's/per = layer/per = batch/' model.moe > batch.moe
train() { # NAME MODEL SEQUENCES STEPS
    "$HECATEC" -o "$1" --set parallel.microbatch=1 --set train.tokens=$(($3 * 33)) "$2"
    "./$1" train --data "$TEXT" --steps "$4" --seed 5 --log "$1.jsonl" --record-loads "$1.loads"
}
train alone model.moe 1 12
train whole batch.moe 4 3
"$PYTHON" "$here/balance_batch.py" alone whole
