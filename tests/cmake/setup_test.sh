#!/bin/sh
# setup_test.sh SOURCE: which packages setup.sh installs, on distributions that are played by a folder of commands.
# It chooses the newest LLVM that there is, names packages that are lacking, and installs nothing where none is missing.
set -u
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() { echo "not so: $1" >&2 && cat said >&2 && exit 1; }
cp "$source/setup.sh" .
printf '%s\n' 'gcc # compiles' 'libmlir-@-dev' 'llvm-@-tools # lit' 'chromium' >packages.txt
mkdir bin
for tool in sh sed grep dirname id cat env; do ln -s "$(command -v $tool)" bin/$tool; done
cat >bin/dpkg-query <<'STUB'
#!/bin/sh
grep -qx "$4" ../here && echo "install ok installed"
STUB
cat >bin/apt-cache <<'STUB'
#!/bin/sh
grep -qx "$3" ../offered && echo "Package: $3"
STUB
cat >bin/apt-get <<'STUB'
#!/bin/sh
echo "$@" >>../asked
STUB
printf '#!/bin/sh\n[ "$1" = env ] && shift 2\n"$@"\n' >bin/sudo # Where the test is not root's.
chmod +x bin/dpkg-query bin/apt-cache bin/apt-get bin/sudo
mkdir project && mv setup.sh packages.txt project

# distribution INSTALLED OFFERED: the status of setup.sh there; its messages are in `said`, its requests in `asked`.
distribution() {
    printf '%s\n' $1 >here
    printf '%s\n' $2 >offered
    : >asked
    PATH="$work/bin" project/setup.sh >said 2>&1
}
asked_for() { [ "$(grep -c '^install' asked)" = 1 ] && grep -qx "install -y -qq --no-install-recommends $1" asked; }

every="gcc chromium libmlir-19-dev llvm-19-tools libmlir-20-dev llvm-20-tools libmlir-22-dev llvm-22-tools"
distribution "gcc" "$every" || fail "it installs"
asked_for "libmlir-22-dev llvm-22-tools chromium" || fail "the newest version: $(cat asked)"
distribution "gcc libmlir-20-dev" "$every" || fail "it installs"
asked_for "llvm-20-tools chromium" || fail "the version that is here: $(cat asked)"
distribution "gcc chromium libmlir-22-dev llvm-22-tools" "" || fail "nothing is missing"
[ ! -s asked ] || fail "nothing is missing, and it asks for $(cat asked)"
distribution "" "gcc libmlir-20-dev llvm-20-tools" || fail "what one package needs is no error"
asked_for "gcc libmlir-20-dev llvm-20-tools" || fail "what there is: $(cat asked)"
grep -q "lacks: chromium" said || fail "it names what is lacking"
distribution "gcc" "chromium libmlir-19-dev llvm-19-tools" && fail "there is no MLIR that does"
grep -q "no MLIR: neither libmlir-22-dev" said || fail "it says what is lacking"
rm bin/apt-get
distribution "gcc" "$every" && fail "there is no apt-get"
grep -q "no apt-get" said || fail "it says that"
echo "five distributions"
