#!/bin/sh
# jitter.sh MODEL.moe: a router's jitter changes training; microbatches and threads do not change the
# jitter; evaluation has none.
# Environment: HECATEC; PYTHON; TEXT.
set -eu
model=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

sed 's/jitter = 0.01/jitter = 0.2/; s/per = layer/per = sequence/' "$model" > noisy.moe
sed 's/, jitter = 0.01//; s/per = layer/per = sequence/' "$model" > plain.moe
set -- -D V=256 --set train.precision=fp64 --set train.tokens=96
"$HECATEC" -o one "$@" --set parallel.microbatch=1 noisy.moe
"$HECATEC" -o four "$@" --set parallel.microbatch=4 noisy.moe
"$HECATEC" -o plain "$@" --set parallel.microbatch=4 plain.moe
./one train --data "$TEXT" --val "$TEXT" --set train.eval_every=3 --set train.eval_steps=1 --steps 3 \
    --threads 1 --log one.jsonl --save noisy.safetensors
./four train --data "$TEXT" --val "$TEXT" --steps 3 --threads 2 --log four.jsonl
./plain train --data "$TEXT" --val "$TEXT" --steps 3 --threads 2 --log plain.jsonl
"$PYTHON" - <<'PY'
import json
read = lambda path: [json.loads(line) for line in open(path)]
one, four, plain = read("one.jsonl"), read("four.jsonl"), read("plain.jsonl")
for key in "loss", "grad_norm":
    assert all(abs(a[key] - b[key]) < 1e-9 for a, b in zip(one, four)), "microbatches change the jitter"
assert all(abs(a["loss"] - b["loss"]) > 1e-7 for a, b in zip(one, plain)), "jitter changes nothing"
PY
for program in one plain; do
    ./$program eval --data "$TEXT" --val "$TEXT" --sequences 8 --load noisy.safetensors > $program.eval
done
cmp one.eval plain.eval
"$PYTHON" - <<'PY'
import json
last = [json.loads(line) for line in open("one.jsonl")][-1]
text = open("one.eval").read()
assert f"validation loss {last['val_loss']:.6f}," in text, f"{last['val_loss']} in training, {text}"
PY
