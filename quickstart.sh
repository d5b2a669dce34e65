#!/bin/sh
# quickstart.sh: from a fresh Debian 12 or 13 or Ubuntu 24.04 to a trained model.
# Installs what is missing, builds hecate, compiles examples/tiny.moe, trains it on fortune cookies and lets it speak.
# Arguments are for cmake: -DHECATE_CUDA=FOLDER.
set -eu
cd "$(dirname "$0")"
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "Installing what is missing (packages.txt)"
./setup.sh

say "Building hecate into build/ (what runs on processors; cmake --build build makes the rest)"
cmake -G Ninja -B build -S . "$@" > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
rm -f build-configure.log
cmake --build build --target hecate

say "Compiling examples/tiny.moe: hecatec examples/tiny.moe -o build/tiny"
build/bin/hecatec examples/tiny.moe -o build/tiny

# The collections without an extension are the texts; .dat and .u8 files are indices and links.
texts=$(find /usr/share/games/fortunes -maxdepth 1 -type f ! -name '*.*' | sort)
say "Training on $(echo "$texts" | wc -l) files of /usr/share/games/fortunes"
set --
for text in $texts; do set -- "$@" --data "$text"; done
build/tiny train "$@" --save build/tiny.safetensors --log build/tiny.jsonl --set log.loads=10

say "Sampling: build/tiny sample --load build/tiny.safetensors --prompt 'The '"
build/tiny sample --load build/tiny.safetensors --prompt 'The ' --tokens 400 --seed 1

build/bin/hecate-report build/tiny.jsonl -o build/tiny.html
say "What the run was like: $PWD/build/tiny.html"

say "Next"
cat <<TXT
  build/tiny info                              what was built: parameters, memory, settings
  build/tiny train --help                      every option of a training program
  build/bin/hecatec -S -o - examples/tiny.moe  the C that was emitted
  build/bin/hecatec --compile-to=graph examples/tiny.moe
  cmake --build build                          the rest: kernels for GPUs, tests
  README.md, docs/language.md, ARCHITECTURE.md
TXT
