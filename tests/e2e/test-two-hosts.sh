#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two real hosts behind a link of 100 Mbit/s, 2 ranks on each, run folders that they don't share:
# after collecting and merging them the report names that link, and its bandwidth within 20 %.
#   test-two-hosts.sh BUILD_ROOT
set -eu
[ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
command -v mpirun.openmpi >/dev/null || { echo "needs Open MPI"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
tool=$build/analyzer/ringscope
. "$here/hosts.sh"

hosts_up 2 100mbit
hosts_mpirun 2 -x LD_PRELOAD="$build/tracer/libringscope.so" -x RINGSCOPE_DIR="$HOSTS_RUN/trace" \
    "$build/samples/train/mlp" --steps 12
for i in 0 1; do
    [ "$(ls "$(hosts_dir $i)"/trace/*.rsc | wc -l)" -eq 2 ] || {
        echo "host $i did not leave two captures:"
        ls -l "$(hosts_dir $i)" "$(hosts_dir $i)/trace"
        exit 1
    }
done

collected=$HOSTS_WORK/collected
mkdir "$collected"
cp "$(hosts_dir 0)"/trace/*.rsc "$(hosts_dir 1)"/trace/*.rsc "$collected"
"$tool" merge "$collected"
"$tool" report "$collected"
"$tool" report "$collected/run.sqlite" --format json >"$HOSTS_WORK/report.json"
python3 - "$HOSTS_WORK/report.json" "$(hosts_name 0)" "$(hosts_name 1)" 100e6 <<'PY'
import json, sys
path, a, b, limit = sys.argv[1:]
report = json.load(open(path))
limit = float(limit) / 8
assert report["run"]["ranks"] == 4 and report["run"]["hosts"] == 2, report["run"]
assert report["clock"]["trusted"], report["clock"]
assert report["clock"]["uncertainty_ns"] > 0, report["clock"]
links = [f for f in report["findings"] if f["kind"] == "slow-link"]
assert links and set(links[0]["hosts"]) == {a, b}, report["findings"]
assert links[0]["cost_s"] > 0
for src, dst in ((a, b), (b, a)):
    link, = [l for l in report["metrics"]["links"] if l["src_host"] == src and l["dst_host"] == dst]
    share = link["bandwidth_bytes_per_s"] / limit
    print(f"{src} -> {dst}: {share:.3f} of the limit")
    assert 0.8 < share < 1.2, link
PY
