#!/bin/sh
# Installs what is missing, builds, runs every suite. Last line: N passed, N failed, N skipped.
set -eu
cd "$(dirname "$0")/.."
tests/install-deps.sh test
[ -d build ] || meson setup build --werror
ninja -C build
status=0
meson test -C build --no-rebuild --print-errorlogs || status=$?
exec python3 tests/summary.py build/meson-logs/testlog.json tests/expected-skips "$status"
