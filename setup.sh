#!/bin/sh
# setup.sh [LIST]: installs the Debian packages of packages.txt (or of LIST) that are missing. Asks for
# sudo only when something is missing and the user is not root. quickstart.sh and test.sh call it.
set -eu
cd "$(dirname "$0")"
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
