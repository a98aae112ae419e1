#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `ringscope clean`, with a /dev/shm of its own: what killed processes left is saved where their
# captures are; where those were moved it stays until --all; living and young ones are left alone.
#   test-clean.sh BUILD_ROOT PROGRAM
set -eu
[ "$(id -u)" -eq 0 ] || { echo "needs root: mounts over /dev/shm"; exit 77; }
if [ "${CLEAN_INSIDE:-}" != 1 ]; then
    CLEAN_INSIDE=1 exec unshare --mount "$0" "$@"
fi
mount -t tmpfs tmpfs /dev/shm
build=$(cd "$1" && pwd)
program=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset RINGSCOPE_RUN_ID LD_PRELOAD
fail() { echo "FAILED: $*"; cat said; ls -l /dev/shm; exit 1; }
rings() { ls /dev/shm | grep -c '^ringscope-' || true; }
clean() { "$build/analyzer/ringscope" clean "$@" >said 2>&1 || fail "clean: status $?"; }
die() { # FOLDER: one process is killed, half an hour ago
    LD_PRELOAD=$build/tracer/libringscope.so RINGSCOPE_DIR=$1 "$program" kill >out || true
    touch -d "30 minutes ago" "$1"/*.rsc /dev/shm/ringscope-*
}

clean
grep -q "rings on this host: 0; freed: 0 " said || fail "nothing there"

# A living one, whatever its age; strangers in the folder.
mkfifo wait
LD_PRELOAD=$build/tracer/libringscope.so RINGSCOPE_DIR=living "$program" stay <wait >living-out &
exec 3>wait
while ! grep -q "at the end of stay" living-out; do sleep 0.05; done
touch -d "30 minutes ago" living/*.rsc /dev/shm/ringscope-*
living=$(rings)
touch "/dev/shm/ringscope-0-x-1.0" /dev/shm/ringscope-1-999999-1.0 /dev/shm/ringscope-0-999999-1.0x
ln -s /etc/passwd /dev/shm/ringscope-0-999999-1.1
clean --all
grep -q "rings on this host: 0; " said || fail "living: more than the dead"
rm /dev/shm/ringscope-0-x-1.0 /dev/shm/ringscope-1-999999-1.0 /dev/shm/ringscope-0-999999-1.*
[ "$(rings)" = "$living" ] || fail "living: rings are gone"

# Saved where its capture is.
die there
[ "$(rings)" -gt "$living" ] || fail "a killed process leaves no rings"
clean
grep -q "^saved: $work/there/.*events: [0-9]" said || fail "not saved"
[ "$(rings)" = "$living" ] || fail "saved: rings are still there"
calls=$("$build/analyzer/ringscope" query there --format csv \
    "SELECT COUNT(*) FROM slices WHERE name = 'ncclGroupEnd'" 2>&1 | tail -n 1)
[ "$calls" = 20 ] || fail "saved: $calls calls of 20"

# Young: may be alive where this host's process ids are not known.
die young
touch young/*.rsc
clean --all
grep -q "^left: $work/young/.*last 10 minutes" said || fail "young: not left"
touch -d "30 minutes ago" young/*.rsc
clean

# Moved: its folder's merge still finds them, and --all removes them.
die moved
mv moved elsewhere
clean
grep -q "^left: $work/moved/.*--all" said || fail "moved: not left"
[ "$(rings)" -gt "$living" ] || fail "moved: rings are gone"
clean --all
grep -q "^removed: $work/moved/.*" said || fail "moved: not removed"
[ "$(rings)" = "$living" ] || fail "moved: rings stay"

exec 3>&-
wait
[ "$(rings)" = 0 ] || fail "the living one did not end in order"
