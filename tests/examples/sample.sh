#!/bin/sh
# sample.sh OPTION... MODEL.moe: samples longer than the model's window are the same text whether forwards go on with
# the sequence or compute it anew, and the first kind of program is there.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passes=$("$HECATEC" --print-passes | sed -n 's/^default: //p')
"$HECATEC" -w "$@" -S -o "$dir/goes_on.c"
grep -q 'static void seek' "$dir/goes_on.c"
"$HECATEC" -w "$@" -o "$dir/goes_on"
"$HECATEC" -w "$@" "--passes=$(echo "$passes" | sed 's/cache-keys,//')" -o "$dir/anew"
"$dir/goes_on" train --data "$TEXT" --steps 3 --save "$dir/p.safetensors" > "$dir/log" 2>&1 || {
    cat "$dir/log"; exit 1; }
printf 'The \nA prompt that is longer than the window of the model\n' > "$dir/prompts"
for program in goes_on anew; do
    "$dir/$program" sample --load "$dir/p.safetensors" --tokens 100 --seed 3 --prompts "$dir/prompts" > "$dir/$program.txt"
done
test "$(wc -c < "$dir/anew.txt")" -gt 250
cmp "$dir/goes_on.txt" "$dir/anew.txt"
# Equal prompts of a file have different samples, the first of which is that of the prompt alone.
printf 'The \nThe \nThe \nThe \n' > "$dir/equal"
for prompts in "--prompt=The " "--prompts=$dir/equal"; do
    "$dir/goes_on" sample --load "$dir/p.safetensors" --tokens 12 --temperature 3 "$prompts" > "$dir/drawn${prompts%%=*}"
done
head -c "$(wc -c < "$dir/drawn--prompt")" "$dir/drawn--prompts" | cmp - "$dir/drawn--prompt"
test "$(grep -a -c '^The ' "$dir/drawn--prompts")" -eq 4
test "$(grep -a '^The ' "$dir/drawn--prompts" | sort | uniq | wc -l)" -eq 4
"$dir/goes_on" sample --load "$dir/p.safetensors" --tokens 12 --temperature 3 --prompt 'The ' --samples 4 | cmp - "$dir/drawn--prompts"
# The state is as before behind a sample: the same losses.
for program in goes_on anew; do
    "$dir/$program" eval --load "$dir/p.safetensors" --data "$TEXT" > "$dir/$program.loss"
done
cmp "$dir/goes_on.loss" "$dir/anew.loss"
