#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job, once: trains on 4 ranks of 2 logical hosts with a slow rank and a slow link planted,
# traces it, and lets the report find both. Needs Debian 12, and root or sudo where packages are
# missing; no GPU, no display.
#   samples/quickstart.sh                   installs, builds all programs but tests (build/), runs
#   samples/quickstart.sh --build DIR       with what is built there; installs and builds nothing
#   samples/quickstart.sh --run DIR         the run's files go there (build/quickstart-run), replacing
#                                           those of an earlier run
#   samples/quickstart.sh --seed N          the draw of an earlier run again
#   samples/quickstart.sh --healthy         plants nothing: neither may be found
# Exit status 1 where the report's first two findings are not what was planted.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
steps=30 hosts=2 ranks=4
build=
run=
seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
healthy=

fail() {
    echo "quickstart: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --build | --run | --seed) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case $1 in
    --build) build=$(cd "$2" && pwd) || fail "no folder $2" ;;
    --run) run=$2 ;;
    --seed) seed=$2 ;;
    --healthy) healthy=yes ;;
    -h | --help) sed -n '3,/^set/s/^# \{0,1\}//p' "$0" && exit ;;
    *) fail "unknown option $1; $0 --help lists them" ;;
    esac
    case $1 in
    --build | --run | --seed) shift ;;
    esac
    shift
done
case $seed in
'' | *[!0-9]*) fail "--seed $seed: expected a number" ;;
esac

# ---- the draw: everything that can differ, with one pair of hosts ----
state=$seed
draw() { # FROM TO, both included: sets drawn
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$(($1 + state / 65536 % ($2 - $1 + 1)))
}
draw 0 $((ranks - 1)) && slow_rank=$drawn
draw 15 40 && slow_ms=$drawn
draw 60 200 && slow_mbps=$drawn
draw 1 100000 && data_seed=$drawn
faults="slow-rank:rank=$slow_rank,ms=$slow_ms;slow-link:hosts=0-1,mbps=$slow_mbps"
[ -z "$healthy" ] || faults=

# ---- install and build ----
if [ -z "$build" ]; then
    build=$top/build
    "$top/tests/install-deps.sh" run
    echo "quickstart: building in $build, which may take minutes; log: $build/quickstart-build.log"
    "$top/tests/configure.sh" "$build" || fail "meson failed; what it said stands above"
    ninja -C "$build" programs >"$build/quickstart-build.log" 2>&1 || {
        tail -n 40 "$build/quickstart-build.log" >&2
        fail "the build failed; all of it stands in $build/quickstart-build.log"
    }
fi
ringscope=$build/analyzer/ringscope
train=$build/samples/train
for file in "$ringscope" "$build/tracer/libringscope.so" "$train/mlp"; do
    [ -e "$file" ] || fail "$file was not built"
done

# ---- run, traced by preload alone ----
run=${run:-$build/quickstart-run}
mkdir -p "$run"
run=$(cd "$run" && pwd)
rm -f "$run"/*.rsc "$run"/*.json "$run"/*.sqlite
as_root=
[ "$(id -u)" -ne 0 ] || as_root=--allow-run-as-root
echo "quickstart: training on $ranks ranks of $hosts logical hosts, under Open MPI, traced by preload"
# shellcheck disable=SC2086
RT_FAULT=$faults mpirun.openmpi $as_root --oversubscribe --bind-to none --mca pml ob1 \
    --mca btl tcp,self --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -np $ranks \
    "$top/samples/train/on-hosts" $hosts -- \
    env LD_PRELOAD="$build/tracer/libringscope.so" RINGSCOPE_DIR="$run" \
    "$train/mlp" --steps $steps --seed "$data_seed"

echo "quickstart: merging the ranks' captures"
"$ringscope" merge "$run"
"$ringscope" report "$run/run.sqlite"
"$ringscope" report "$run/run.sqlite" --format json >"$run/report.json"

# ---- what was planted, and was it found ----
echo
if [ -n "$healthy" ]; then
    echo "Planted: nothing (seed $seed)"
else
    echo "Planted (seed $seed): rank $slow_rank computes $slow_ms ms more each step; between host0" \
        "and host1 go $slow_mbps Mbit/s"
fi
status=0
python3 - "$run/report.json" "$healthy" "$slow_rank" <<'PY' || status=$?
import json
import sys

path, healthy, slow_rank = sys.argv[1:]
with open(path, encoding="utf-8") as f:
    findings = json.load(f)["findings"]
first = findings if healthy else findings[:2]
found = {f["kind"]: f for f in first if f["kind"] in ("straggler", "slow-link")}
for finding in first:
    print(f"Found:   {finding['title']}")
straggler, link = found.get("straggler"), found.get("slow-link")
if healthy:
    right = not found
else:
    right = (straggler is not None and straggler["ranks"] == [int(slow_rank)]
             and link is not None and sorted(link["hosts"]) == ["host0", "host1"])
print("The report is right." if right else "The report is WRONG.")
sys.exit(0 if right else 1)
PY
cat <<EOF

The whole run:        $run
for SQL tools:        $run/run.sqlite
for Chrome, Perfetto: $run/run.json (open chrome://tracing or ui.perfetto.dev, and load it)
the window:           $build/viewer/ringscope-viewer $run
EOF
[ -x "$build/viewer/ringscope-viewer" ] || echo "(the window was not built: GTK 3 is missing)"
exit $status
