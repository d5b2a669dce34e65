#!/bin/sh
# sanitize.sh EXAMPLE.moe [hecatec option...]: three steps of training and a sample (a model of masked
# tokens: an evaluation) under ASan and UBSan: the emitted C, the runtime and the kernels.
# Environment: HECATEC; CC; TEXT; EMITTED_CFLAGS; SANITIZED_LIBS.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HECATEC" -S -o "$work/program.c" "$@"
# shellcheck disable=SC2086 # Lists of flags.
"$CC" -std=gnu17 -O1 -g -fopenmp -fsanitize=address,undefined -fno-sanitize-recover=all \
    $EMITTED_CFLAGS -o "$work/program" "$work/program.c" $SANITIZED_LIBS
"$work/program" train --data "$TEXT" --val "$TEXT" --steps 3 --log "$work/log.jsonl" --save "$work/p.safetensors"
if "$work/program" info | grep -q 'train.objective = masked'; then
    "$work/program" eval --load "$work/p.safetensors" --data "$TEXT" --val "$TEXT" | grep -q 'masked tokens'
    status=0
    "$work/program" sample --load "$work/p.safetensors" 2> "$work/message" || status=$?
    test "$status" -eq 2
    grep -q 'fill in masked tokens' "$work/message"
else
    "$work/program" sample --load "$work/p.safetensors" --tokens 5 --prompt "The "
    printf 'The \r\n\nA\n' > "$work/prompts"
    "$work/program" sample --load "$work/p.safetensors" --tokens 1 --topp 0.5 --prompts "$work/prompts" > "$work/out"
    if grep -q "$(printf '\r')" "$work/out"; then exit 1; fi
    printf 'The \nA\0B\n' > "$work/prompts"
    status=0
    "$work/program" sample --load "$work/p.safetensors" --tokens 1 --prompts "$work/prompts" 2> "$work/message" > "$work/out" || status=$?
    test "$status" -eq 2
    grep -q 'prompts:2: the prompt has a NUL' "$work/message"
    "$work/program" eval --load "$work/p.safetensors" --data "$TEXT" --val "$TEXT" --sequences 8 > "$work/words"
    "$work/program" eval --load "$work/p.safetensors" --data "$TEXT" --val "$TEXT" --sequences 8 --json > "$work/json"
    python3 -c 'import json, sys
words, result = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
form = "loss {loss:.6f}, perplexity {perplexity:.4g}, {tokens} tokens"
assert form.format(**result) in words, (words, result)
assert not result["masked"] and not result["held_out"]' "$work/words" "$work/json"
fi
test "$(wc -l < "$work/log.jsonl")" -eq 3
