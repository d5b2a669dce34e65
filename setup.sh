#!/bin/sh
# setup.sh [LIST]: installs the Debian packages of packages.txt (or of LIST) that are missing. Asks for
# sudo only when something is missing and the user is not root. quickstart.sh and test.sh call it.
#
# setup.sh cuda: puts CUDA's compiler, headers and libraries into cuda/, where CMake finds them: 2 GB of NVIDIA's
# wheels. Only target cuda needs them, and nobody who has a toolkit in /usr/local/cuda.
set -eu
cd "$(dirname "$0")"
if [ "${1:-}" = cuda ]; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "setup.sh: python3 has no pip, which fetches CUDA (Debian: python3-pip)" >&2
        exit 1
    fi
    rm -rf cuda.part # A folder is whole or not there.
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --target cuda.part \
        -r kernels/cuda/requirements.txt
    rm -rf cuda
    mv cuda.part cuda
    echo "CUDA is in $PWD/cuda; cmake finds it when it runs again in an empty build folder"
    exit 0
fi
list=${1:-packages.txt}

missing=
for package in $(sed -e 's/#.*//' "$list"); do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
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
echo "Installing:$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086 # A list of names.
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
