#!/bin/sh
# sample_text.sh TOKENIZER OPTION... MODEL.moe: from a text to a text through a tokenizer: tokens of hecate-data, training, samples
# of a prompt, which end at a stop text, at a token that ends texts, or at their count.
set -eu
tokenizer=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$tokenizer" tokenizer.json
"$HECATEC" -w "$@" -o program
"$DATA" tokenize --end=none --input=text --tokenizer=tokenizer.json --out=tokens "$TEXT" > log 2>&1 || {
    cat log; exit 1; }
./program train --data "tokens/train/*.bin" --steps 60 --save p.safetensors --tokenizer tokenizer.json --sample 5 --prompt 'The ' > log 2>&1 || {
    cat log; exit 1; }
grep -q '^The .' log

sample() {
    ./program sample --load p.safetensors --seed 4 --tokens 40 "$@"
}
sample --tokenizer tokenizer.json --prompt 'The ' > all
test "$(head -c 4 all)" = 'The ' && test "$(wc -c < all)" -gt 50
if sample --prompt 'The ' 2> error; then exit 1; fi # Without a tokenizer prompts are ids.
grep -q "the prompt needs token ids below" error

# The drawn text does not depend on its stop. Cut where the text has an "e".
sample --tokenizer tokenizer.json --prompt 'The ' --stop e > short
python3 - << 'PYTHON'
whole = open("all", "rb").read()[4:]
assert b"e" in whole, whole
assert open("short", "rb").read() == b"The " + whole[: whole.index(b"e")] + b"\n"
PYTHON

# Where every token ends a text, nothing follows the prompt.
sample --prompt 1 > ids # Without a tokenizer: ids.
test "$(wc -w < ids)" -eq 41
echo "{\"eos_token_id\": [$(seq -s , 0 699)]}" > generation_config.json
sample --tokenizer tokenizer.json --prompt 'The ' > none
printf 'The \n' | cmp - none
echo '{"eos_token_id": [70000]}' > generation_config.json
if sample --tokenizer tokenizer.json 2> error; then exit 1; fi
grep -q "'generation_config.json': eos_token_id is no id below" error
