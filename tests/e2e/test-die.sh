#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank is killed in step 9: its capture reads, with all the steps that it finished, and the report
# names that rank first.
#   test-die.sh BUILD_ROOT
set -eu
build=$1
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip openmpi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*"
    cat "$work/out"
    ls -l "$work/run"
    exit 1
}

mkdir "$work/run"
status=0
RT_FAULT="die:rank=3,step=9,signal=KILL" RINGSCOPE_DIR="$work/run" \
    on_hosts_traced "$build/tracer/libringscope.so" openmpi 4 2 "$build/samples/train" \
    "$build/samples/train/mlp" --steps 1000 >"$work/out" 2>&1 || status=$?
[ "$status" -ne 0 ] || fail "the killed rank went unnoticed"

ringscope=$build/analyzer/ringscope
"$ringscope" merge "$work/run" >"$work/out" 2>&1 || fail "merge: exit status $?"
"$ringscope" report "$work/run/run.sqlite" --format json >"$work/report.json" 2>"$work/out" ||
    fail "report: exit status $?"
# ranges are recorded when they end: the one the rank died before is not among them
"$ringscope" query "$work/run/run.sqlite" --format csv "
    SELECT r.rank, r.ending = 1, count(*) FROM events e
    JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
    JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id
    WHERE n.text = 'step' AND e.end_ns > e.start_ns AND e.flags & 2 = 0
    GROUP BY r.rank" >"$work/steps.csv" 2>"$work/out" || fail "query: exit status $?"
python3 - "$work/report.json" "$work/steps.csv" <<'PY' || fail "report and steps: see above"
import csv, json, sys
report = json.load(open(sys.argv[1]))
rows = [list(map(int, row)) for row in csv.reader(open(sys.argv[2])) if row and row[0].isdigit()]
print(report["run"], rows)
assert report["run"]["ranks"] == 4 and report["run"]["incomplete"], "the run is not incomplete"
steps = {rank: (ended, count) for rank, ended, count in rows}
assert steps[3] == (0, 9), f"rank 3 finished steps 0 to 8, then died: {steps[3]}"
first = report["findings"][0]
print(first)
assert (first["kind"], first["ranks"]) == ("missing-rank", [3]), "who died is not the first finding"
# rank 3 ended step 8, so they had begun it: they hear of the death before they end it, or in step 9
for rank in range(3):
    assert steps[rank][1] in (8, 9, 10), f"rank {rank} can't have gone on: {steps[rank]}"
PY
