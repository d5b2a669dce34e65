#!/bin/sh
# bare.sh RELEASE MIRROR [COMMAND...]: times README's two commands in a bare root of Debian or Ubuntu, without caches.
# RELEASE is bookworm, trixie or noble; MIRROR is the address of a mirror of its packages. COMMAND stands in place of the two commands, as './quickstart.sh'.
# The tree is that of git's index. The root is in TMPDIR and takes 12 GB.
# Ubuntu's signatures take its keyring (package ubuntu-archive-keyring), or the file that KEYRING names.
# Exit status: 0, 1 where a command fails, 77 without root, debootstrap or the keyring.
set -eu
usage() { sed -n 's/^# //p;/^set/q' "$0" >&2 && exit 2; }
[ $# -ge 2 ] || usage
release=$1 mirror=$2
case $release in
bookworm | trixie)
    components=main script=
    sources="deb $mirror $release main\ndeb $mirror-security $release-security main\n"
    keyring=${KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
    ;;
noble)
    components=main,universe script=/usr/share/debootstrap/scripts/gutsy
    sources="deb $mirror $release main universe\ndeb $mirror $release-updates main universe\n"
    keyring=${KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
    ;;
*) usage ;;
esac
shift 2
[ $# -gt 0 ] || set -- ./quickstart.sh ./test.sh
command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] || { echo "bare.sh: it takes root and debootstrap" && exit 77; }
[ -r "$keyring" ] || { echo "bare.sh: there is no keyring $keyring" && exit 77; }
cd "$(dirname "$0")/.."

root=$(mktemp -d)
chmod 755 "$root" # apt reads as another user.
leave() {
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root" "$root.log"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM
# shellcheck disable=SC2086 # No script is no word.
debootstrap --variant=minbase --components=$components --keyring="$keyring" "$release" "$root" "$mirror" $script >"$root.log" 2>&1 ||
    { echo "bare.sh: debootstrap: $(tail -n 3 "$root.log")" >&2 && exit 1; }
# shellcheck disable=SC2059 # It has line ends.
printf "$sources" >"$root/etc/apt/sources.list"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/hecate"
git ls-files -z | tar --null -T - -cf - | tar -C "$root/hecate" -xf -
mount -t proc proc "$root/proc"

failed=0
for command; do
    begin=$(date +%s)
    if chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CCACHE_DISABLE=1 OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "cd /hecate && $command" >"$root.log" 2>&1; then
        how="passed"
    else
        how="FAILED" failed=1
        tail -n 30 "$root.log"
    fi
    grep -E "^(Installing|Goes on)" "$root.log" | sed "s/^/$release: /" || true
    echo "$release: $command $how after $(($(date +%s) - begin)) s on $(nproc) cores"
done
exit $failed
