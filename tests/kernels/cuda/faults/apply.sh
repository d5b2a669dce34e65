#!/bin/sh
# apply.sh ROOT PATCH COPY: writes COPY, the file of ROOT that PATCH names, with the faults of PATCH. Where PATCH does not
# fit, because a line beside a fault has changed, says so, exits with 1 and writes COPY without any: nothing is found then.
set -u
root=$1
patch=$2
copy=$3
file=$(sed -n 's|^--- a/||p' "$patch")
mkdir -p "$(dirname "$copy")"
said=$(patch -s -F0 -r - -o "$copy" "$root/$file" "$patch" 2>&1) && exit 0
printf '%s no longer applies to %s:\n%s\n' "$patch" "$file" "$said" >&2
cp "$root/$file" "$copy"
exit 1
