#!/bin/sh
# bare.sh BUNDLE.tar.xz [MIRROR]: the bundle in a bare Debian root, which has Python and nothing else; as root, with
# debootstrap (from MIRROR, or its default). Every step has to end as absent, and none to count as passed. The run is
# killed at 20 random moments: it must keep finished parts, and the last run must go on to the end. Exit status: 0, 1 if
# it does not, 77 without debootstrap.
set -u
bundle=${1:?bare.sh BUNDLE.tar.xz [MIRROR]}
fail() { echo "bare.sh: $1" >&2 && exit 1; }
command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] || { echo "bare.sh: it takes root and debootstrap" && exit 77; }
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=python3 bookworm "$root" ${2:+"$2"} >"$root.log" 2>&1 || fail "debootstrap: $(tail -n 3 "$root.log")"
tar -C "$root" -xJf "$bundle" || fail "no bundle"
name=$(tar -tJf "$bundle" | sed -n '1s|/.*||p')
inside() { chroot "$root" "/$name/run.sh" "$@" >"$root/said" 2>&1; }
count() { awk -F'\t' -v word="$2" '$2 == word' "$root/$1/results.tsv" | wc -l; }

inside /out 300 || fail "$(grep -E "FAILED|timeout" "$root/out/results.tsv" | head -n 5)"
all=$(wc -l <"$root/out/results.tsv")
[ "$(count out absent)" = "$all" ] || fail "not all are absent: $(awk -F'\t' '$2 != "absent"' "$root/out/results.tsv")"

kept=0
for i in $(seq 20); do
    timeout -s KILL "$(awk -v seed="$i" 'BEGIN {srand(seed); print 0.2 + 2 * rand()}')" chroot "$root" "/$name/run.sh" /killed 300 >/dev/null 2>&1
    now=$(wc -l <"$root/killed/results.tsv" 2>/dev/null || echo 0)
    [ "$now" -ge "$kept" ] || fail "killed for the ${i}th time: $now of $kept results are left"
    [ ! -e "$root/killed/logs.tgz" ] || tar -tzf "$root/killed/logs.tgz" >/dev/null || fail "killed for the ${i}th time: half an archive"
    kept=$now
done
inside /killed 300 || fail "$(tail -n 3 "$root/said")"
[ "$(cut -f1 "$root/killed/results.tsv" | sort | uniq | wc -l)" = "$all" ] && [ "$(wc -l <"$root/killed/results.tsv")" = "$all" ] || fail "killed runs end otherwise"
echo "$all steps are absent; killed 20 times, it kept $kept of them and ended with all"
