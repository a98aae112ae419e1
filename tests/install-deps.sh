#!/bin/sh
# Installs from Debian what Ringscope needs, if it is missing: install-deps.sh [run|test]
#   run   what building, running the main job and looking at its result take (default)
#   test  that, and what the test suites take
# Needs root or sudo only where something is missing; touches nothing else.
set -eu

run="gcc meson ninja-build pkg-config python3 libsqlite3-dev libcjson-dev libglib2.0-dev
libgtk-3-dev libdw-dev openmpi-bin libopenmpi-dev zlib1g-dev libzstd-dev
libopenblas0-serial"
test="clang libclang-rt-14-dev libcmocka-dev mpich libmpich-dev iproute2 procps xvfb xauth xdotool
gfortran imagemagick x11-utils python3-jsonschema sqlite3 binutils g++
libgloo-dev openssh-client dropbear-bin libjemalloc2 libtcmalloc-minimal4"

case "${1:-run}" in
run) want=$run ;;
test) want="$run $test" ;;
*) echo "usage: $0 [run|test]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install-deps: not a Debian system: install these yourself: $want" >&2
    exit 0
fi

missing=
for p in $want; do
    case "$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null)" in
    *"ok installed") ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "install-deps: needs root or sudo to install:$missing" >&2
        exit 1
    }
    as_root=sudo
fi
echo "install-deps: installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
