#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ringscope run of a training without MPI, by rt-run: called as the program, and as the launcher on 2
# logical hosts with a slow rank. Ranks and hosts, steps and collectives stand in the report, which
# names that rank; nothing else is traced.
#   test-run-without-mpi.sh BUILD_ROOT
set -eu
build=$(cd "$1" && pwd)
tool=$build/analyzer/ringscope run=$build/samples/runtime/run/rt-run train=$build/samples/train
mlp="$train/mlp-tcp --steps 8 --size 0.1 --seed 3"
export RT_TABLE=none
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

traced() { # FOLDER RANKS ...: the arguments of ringscope run; writes FOLDER.json
    folder=$1 ranks=$2 status=0
    shift 2
    "$tool" run -o "$folder" "$@" </dev/null >out 2>&1 || status=$?
    [ "$status" -eq 0 ] && grep -q "identical on $ranks ranks" out &&
        [ "$(ls "$folder"/*.rsc | wc -l)" -eq "$ranks" ] || {
        echo "$folder: status $status, said:"
        cat out
        ls -l "$folder"
        exit 1
    }
    "$tool" report "$folder" --format json >"$folder.json"
}
# shellcheck disable=SC2086
{
    traced one 2 -- "$run" -n 2 $mlp
    export RT_FAULT=slow-rank:rank=3,ms=20
    traced two 4 -np 4 -H localhost:4 --mpirun "$run" -- "$train/on-hosts" 2 -- $mlp
}
python3 - <<'PY'
import json
one, two = (json.load(open(f"{name}.json")) for name in ("one", "two"))
for report, ranks, hosts, operations in ((one, 2, 1, {"allreduce", "broadcast"}),
                                         (two, 4, 2, {"reduce_scatter", "allgather"})):
    run = report["run"]
    assert (run["ranks"], run["hosts"], run["steps"]) == (ranks, hosts, 8), run
    assert not run["missing_ranks"] and not run["incomplete"] and not run["dropped_events"], run
    assert report["clock"]["trusted"], report["clock"]
    found = {c["operation"]: c["count"] for c in report["metrics"]["collectives"]}
    assert set(found) >= operations, found
assert two["run"]["host_names"] == ["host0", "host1"], two["run"]
first = two["findings"][0]
assert (first["kind"], first["ranks"]) == ("straggler", [3]), two["findings"]
PY
echo ok
