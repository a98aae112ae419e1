#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The quickstart: the report names what was drawn, a healthy run names nobody, the captures don't
# tell what was planted, and the files it speaks of are there.
#   test-quickstart.sh QUICKSTART BUILD_ROOT
set -eu
quickstart=$1 build=$2
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip openmpi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*:"
    cat "$work/out"
    exit 1
}

# The draw comes from the seed: three ranks, weak and strong faults.
for seed in 1 4 6; do
    "$quickstart" --build "$build" --run "$work/run" --seed $seed >"$work/out" 2>&1 ||
        fail "seed $seed: exit status $?"
    grep -q "^Planted (seed $seed): rank [0-3] computes [0-9]* ms more" "$work/out" ||
        fail "seed $seed: it doesn't say what it planted"
    for file in run.json run.sqlite; do
        [ -s "$work/run/$file" ] || fail "seed $seed: no $file"
    done
    [ "$(ls "$work"/run/*.rsc | wc -l)" -eq 4 ] || fail "seed $seed: not four captures"
done

if grep -qaE 'RT_FAULT|rt_fault|slow-rank|slow-link|mbps=|hosts=0-1|pacer' "$work"/run/*.rsc; then
    fail "a capture tells what was planted"
fi
# but the same search finds what is there
grep -qa NEGOTIATE_ALLREDUCE "$work"/run/*.rsc || fail "the captures hold no phases"

"$quickstart" --build "$build" --run "$work/run" --healthy >"$work/out" 2>&1 ||
    fail "healthy: exit status $?"

# The comparison is one: with another rank than that of the run it fails.
python3 - "$quickstart" >"$work/compare.py" <<'PY'
import re, sys
print(re.search(r"<<'PY'.*?\n(.*?)\nPY\n", open(sys.argv[1]).read(), re.S)[1])
PY
if python3 "$work/compare.py" "$work/run/report.json" "" 2 >"$work/out" 2>&1; then
    fail "a healthy run passes for a slow rank 2"
fi
