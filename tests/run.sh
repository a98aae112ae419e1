#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, runs every suite. Last line: N passed, N failed, N skipped.
#
#   tests/run.sh          everything: what CI runs
#   tests/run.sh quick    one build with gcc, all suites
#
# Builds: build (gcc, all suites), build-clang and build-bare (every feature off): unit tests;
# build-sanitize (address and undefined behaviour): unit tests, fuzz corpora, and the runtime's
# operations over TCP; build-threads (thread sanitizer): rt_coll with ranks as threads of one process,
# and the runtime over TCP with four threads of each rank; no more is compiled there.
set -eu
cd "$(dirname "$0")/.."
case "${1:-all}" in
all | quick) what=${1:-all} ;;
-h | --help) sed -n '3,/^set/s/^# \{0,1\}//p' tests/run.sh; exit 0 ;;
*) echo "usage: tests/run.sh [quick]" >&2; exit 2 ;;
esac

tests/install-deps.sh test
logs=
targets=

# build FOLDER SUITES SETUP-OPTIONS... ($targets: what to compile; empty: everything)
build() {
    folder=$1
    suites=$2
    shift 2
    echo "== $folder"
    tests/configure.sh "$folder" --werror "$@"
    rm -f "$folder/meson-logs/testlog.json"
    # shellcheck disable=SC2086
    ninja -C "$folder" --quiet $targets
    # The summary judges the log; meson's own status would end this script at the first failure.
    # shellcheck disable=SC2086
    meson test -C "$folder" --no-rebuild --print-errorlogs $suites || echo "meson test: status $?"
    logs="$logs $folder/meson-logs/testlog.json"
}

build build "" -Dtest_clock=true
if [ "$what" = all ]; then
    CC=clang build build-clang "--suite unit"
    build build-bare "--suite unit" -Dmpi=disabled -Dcuda=disabled -Dviewer=disabled -Dstacks=disabled \
        -Dgloo=disabled
    CC=clang build build-sanitize "--suite unit --suite fuzz --suite sanitize" \
        -Db_sanitize=address,undefined -Db_lundef=false
    targets="tests/unit/samples/test-rt-coll-types tests/unit/samples/test-rt-coll-bits \
        tests/unit/samples/test-rt-coll-tcp tests/unit/samples/test-rt-links \
        tests/unit/samples/test-rt-table tests/e2e/runtime-threads-check-tcp \
        samples/runtime/run/rt-run"
    CC=clang build build-threads \
        "rt-coll-types rt-coll-bits rt-coll-tcp rt-links test-rt-table runtime-threads-tcp \
            --test-args threads" \
        -Db_sanitize=thread -Db_lundef=false -Dmpi=disabled -Dcuda=disabled -Dviewer=disabled \
        -Dstacks=disabled -Dgloo=disabled
fi
# shellcheck disable=SC2086
exec python3 tests/summary.py tests/expected-skips $logs
