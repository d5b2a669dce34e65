#!/bin/sh
# configure_test.sh SOURCE: configures hecate where lld is missing, where ccache cannot write its files and with
# NDEBUG among the flags. Warnings must stop none of these builds, and asserts stay on in all.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "configure_test.sh: $1" >&2
    cat "$work/log" >&2
    exit 1
}

mkdir "$work/bin"
for folder in /bin /usr/bin /usr/local/bin; do
    ln -sf "$folder"/* "$work/bin"
done
rm -f "$work/bin/ld.lld" "$work/bin/lld"

configure() { # NAME OPTION...
    name=$1
    shift
    env PATH="$work/bin" HOME=/proc/none XDG_CACHE_HOME=/proc/none CCACHE_DIR=/proc/none \
        cmake -G Ninja -B "$work/$name" -S "$source" "$@" >"$work/log" 2>&1 || fail "$name cannot be configured"
    if grep -q -e -Werror "$work/$name/compile_commands.json"; then
        fail "$name: warnings are errors"
    fi
    if grep -e -DNDEBUG "$work/$name/compile_commands.json" | grep -v -q -e '-DNDEBUG.*-UNDEBUG'; then
        fail "$name: asserts are off"
    fi
}

configure small -DCMAKE_BUILD_TYPE=MinSizeRel
grep -q 'Linking without lld' "$work/log" || fail 'it does not say that lld is missing'
if grep -q 'fuse-ld=lld' "$work/small/build.ninja"; then
    fail 'it links with lld, which is not there'
fi
if [ -e "$work/bin/ccache" ]; then
    grep -q 'Building without ccache.*/proc/none' "$work/log" || fail 'it does not say why ccache is left out'
fi

# A suspicion of gcc 12 at -O3 stops no build.
configure fast -DCMAKE_BUILD_TYPE=Release
ninja -C "$work/fast" codegen/CMakeFiles/hecate_codegen.dir/base/output.c.o >"$work/log" 2>&1 || fail 'it does not compile'
if grep -q 'warning:' "$work/log"; then
    fail 'codegen/base/output.c: warnings'
fi
