#!/bin/sh
# setup.sh [LIST]: installs the packages of packages.txt (or of LIST) that are missing.
# Names those that the distribution lacks. Asks for sudo only when something is missing and the user is not root.
# quickstart.sh and test.sh call it.
#
# setup.sh cuda: puts CUDA's compiler, headers and libraries into cuda/, where CMake finds them: 2 GB of NVIDIA's
# wheels. Only target cuda needs them, and nobody who has a toolkit in /usr/local/cuda.
#
# setup.sh cuda-tools: puts cuobjdump and nvdisasm, 5 MB, into cuda-tools/, where there is an nvcc and its folder lacks one of
# them: tests read machine code with them. test.sh calls it.
set -eu
cd "$(dirname "$0")"

# fetch FOLDER PINS: NVIDIA's wheels of the file PINS, into FOLDER.
fetch() {
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "setup.sh: python3 has no pip, which fetches CUDA (Debian: python3-pip)" >&2
        exit 1
    fi
    rm -rf "$1.part" # A folder is whole or not there.
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$1.part" -r "$2"
    rm -rf "$1"
    mv "$1.part" "$1"
    echo "$1 is in $PWD/$1; cmake finds it when it runs again in an empty build folder"
}

case ${1:-} in
cuda)
    fetch cuda kernels/cuda/requirements.txt
    exit 0
    ;;
cuda-tools)
    for folder in "${CUDA_HOME:+$CUDA_HOME/bin}" cuda/nvidia/cu*/bin /usr/local/cuda/bin \
        "$(dirname "$(command -v nvcc || true)")"; do
        if [ -x "$folder/nvcc" ]; then
            if [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ]; then exit 0; fi
            set -- cuda-tools/nvidia/cu*/bin/nvdisasm
            [ -x "$1" ] || fetch cuda-tools kernels/cuda/requirements-tools.txt
            exit 0
        fi
    done
    exit 0
    ;;
esac
list=${1:-packages.txt}

is_here() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null || true)" = "install ok installed" ]; }
is_offered() { [ -n "$(apt-cache show --no-all-versions "$1" 2>/dev/null)" ]; }

# llvm_for TEST: the newest version of LLVM whose MLIR passes it.
llvm_for() {
    for version in 22 21 20; do
        if "$1" "libmlir-$version-dev"; then
            echo "$version"
            return
        fi
    done
}

# missing_of LLVM: the packages of the list that are not installed.
missing_of() {
    for package in $(sed -e 's/#.*//' -e "s/@/$1/" "$list"); do is_here "$package" || printf ' %s' "$package"; done
}

for tool in dpkg-query apt-get apt-cache; do
    if ! command -v $tool >/dev/null; then
        echo "setup.sh: there is no $tool: this is neither Debian nor Ubuntu. Install what $list names by hand" >&2
        exit 1
    fi
done
llvm=$(llvm_for is_here)
missing=$(missing_of "$llvm")
if [ -z "$missing" ]; then
    exit 0
fi

sudo=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: these packages are missing, and there is no sudo to install them:$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
$sudo apt-get update -qq
if [ -z "$llvm" ] && grep -q '^[^#]*@' "$list"; then
    llvm=$(llvm_for is_offered)
    if [ -z "$llvm" ]; then
        echo "setup.sh: this distribution has no MLIR: neither libmlir-22-dev nor libmlir-21-dev nor libmlir-20-dev" >&2
        exit 1
    fi
    missing=$(missing_of "$llvm")
fi
lacking=
for package in $missing; do is_offered "$package" || lacking="$lacking $package"; done
if [ -n "$lacking" ]; then
    echo "Goes on without what this distribution lacks:$lacking (packages.txt says what needs it)"
    missing=$(for package in $missing; do is_offered "$package" && printf ' %s' "$package"; done || true)
fi
if [ -z "$missing" ]; then
    exit 0
fi
echo "Installing:$missing"
# shellcheck disable=SC2086 # A list of names.
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
