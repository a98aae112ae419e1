#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime's phases: as NVTX ranges on every rank, and in the timeline file of rank 0, which is
# whole whatever happens to the run, and whose troubles are none of the run's.
#   test-phases.sh MPI TRAIN_FOLDER RUNTIME_PHASES_CHECK PHASES_TOOL
set -eu
mpi=$1 train=$2 program=$3 tool=$4
here=$(dirname "$0")
. "$here/logical-hosts.sh"
on_hosts_or_skip "$mpi"
[ "$mpi" != tcp ] || export PHASES_BETWEEN=TCP
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {
    python3 "$here/check-phases.py" "$@"
}

run() { # RANKS HOSTS CASE...
    on_hosts_case_ranks=$1 on_hosts_case_hosts=$2
    shift 2
    on_hosts "$mpi" "$on_hosts_case_ranks" "$on_hosts_case_hosts" "$train" "$program" "$@" </dev/null
}

failed() {
    echo "failed; was said:"
    cat "$work/said"
    exit 1
}

said_once() { # TEXT
    [ "$(grep -c "$1" "$work/said")" -eq 1 ] && return
    echo "expected once: $1"
    failed
}

for ranks_hosts in "2 1" "4 2"; do
    ranks=${ranks_hosts% *} hosts=${ranks_hosts#* }
    (
        export NVTX_INJECTION64_PATH="$tool" RUNTIME_PHASES_LOG="$work/ranges-$ranks"
        export RT_TIMELINE="$work/all.json" RT_TIMELINE_MARK_CYCLES=1
        run "$ranks" "$hosts" all
    )
    check all "$ranks" "$hosts" "$work/all.json" "$work/ranges-$ranks"-*
done

# training programs hand gradients over while backward goes on
suffix=
[ "$mpi" = openmpi ] || suffix=-$mpi
for model in mlp lm; do
    (
        export NVTX_INJECTION64_PATH="$tool" RUNTIME_PHASES_LOG="$work/$model"
        on_hosts "$mpi" 2 1 "$train" "$train/$model$suffix" --steps 12 </dev/null >"$work/said" 2>&1
    ) || failed
done
check overlap 4 "$work/mlp"-* "$work/lm"-*

# several files of one run; one that has no place, from the start, and one that has no room from some
# time on: each is said once, and the results are right
(
    export RT_TIMELINE=/nonexistent/timeline.json
    run 2 1 files "$work/files" >"$work/said" 2>&1
) || failed
said_once "timeline /nonexistent/timeline.json: .*; it is not written"
said_once "timeline $work/files.full: File too large; no more of it is written"
check files 2 "$work/files.1" "$work/files.2"
check timeline 2 "$work/files.full"

# a rank that dies leaves a file that can be read
if (
    export RT_TIMELINE="$work/killed.json"
    run 2 1 killed "$work/killed.json" >"$work/said" 2>&1
); then
    echo "rank 0 killed itself, and the run ended well"
    exit 1
fi
check killed 2 "$work/killed.json"
