#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run folder on a disk that is full: the program ends as it would, and its events wait in memory
# until `merge` finds room for them. A full /dev/shm: recording goes on, and says it is not kill-safe.
#   test-full-disk.sh BUILD_ROOT PROGRAM
set -eu
[ "$(id -u)" -eq 0 ] || { echo "needs root: mounts small file systems"; exit 77; }
build=$(cd "$1" && pwd)
program=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir small
export OMPI_MCA_plm=isolated OMPI_MCA_btl=self build program

unshare --mount sh -euc '
    mount -t tmpfs -o size=64k tmpfs small
    LD_PRELOAD=$build/tracer/libringscope.so RINGSCOPE_DIR=small/run "$program" close >out
    grep -q "at the end of close" out
    "$build/analyzer/ringscope" report small/run | tr -s " \n" " " | grep -q "found no room"
    cp -r small/run saved
    mount -t tmpfs -o size=64k tmpfs /dev/shm
    LD_PRELOAD=$build/tracer/libringscope.so RINGSCOPE_DIR=unsafe "$program" threads >out
    grep -q "at the end of threads" out'

calls() { # RUN
    "$build/analyzer/ringscope" query "$1" --format csv \
        "SELECT COUNT(*) FROM slices WHERE name = 'MPI_Barrier'" | tail -n 1
}
"$build/analyzer/ringscope" merge saved --quiet
[ "$(calls saved)" = 20030 ] || { echo "full disk: $(calls saved) calls of 20030"; exit 1; }
[ "$(calls unsafe)" = 520 ] || { echo "full /dev/shm: $(calls unsafe) calls of 520"; exit 1; }
"$build/analyzer/ringscope" query unsafe "SELECT value FROM meta WHERE key LIKE '%kill_safe'" |
    grep -q "no: " || { echo "a capture without rings on tmpfs does not say so"; exit 1; }
