#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime's results against a serial sum, on 1 to 4 ranks and 1 to 3 hosts, also where hosts have
# unequal numbers of ranks, with fusion and without, by NCCL inside hosts and by MPI alone.
#   test-runtime.sh MPI TRAIN_FOLDER RUNTIME_CHECK
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# RANKS HOSTS SETTING
while read -r ranks hosts setting; do
    case $mpi,$setting in tcp,RUNTIME_CHECK_MPI=*) continue ;; esac
    echo "$ranks ranks on $hosts hosts, ${setting:-default settings}"
    export RUNTIME_CHECK_DIR="$work/marks"
    rm -rf "$RUNTIME_CHECK_DIR"
    mkdir "$RUNTIME_CHECK_DIR"
    (
        [ -z "$setting" ] || export "$setting"
        on_hosts "$mpi" "$ranks" "$hosts" "$train" "$check" </dev/null
    )
done <<EOF
1 1
2 1
2 2 RT_FUSION_THRESHOLD=0
3 2,1 RT_CACHE_CAPACITY=3
3 3 RT_FUSION_THRESHOLD=300
4 1 RT_FUSION_THRESHOLD=5000
4 2
4 2 RT_FUSION_THRESHOLD=0
4 2 RT_ALLREDUCE=ring
4 2 RT_ALLREDUCE=hierarchical:recursive-doubling
4 1,3 RT_ALLREDUCE=two-level-ring
4 1,3 RT_FUSION_THRESHOLD=300
4 2,1,1 RT_CYCLE_TIME=0.1
2 2 RUNTIME_CHECK_MPI=multiple
EOF

refused() { # SETTING MESSAGE
    status=0
    (
        export "$1"
        on_hosts "$mpi" 1 1 "$train" "$check" >"$work/out" 2>&1
    ) || status=$?
    [ "$status" -ne 0 ] && grep -q "$2" "$work/out" && return
    echo "$1: status $status, expected '$2':"
    cat "$work/out"
    exit 1
}
refused RT_CYCLE_TIME=fast "RT_CYCLE_TIME is 'fast', expected"
refused RT_CACHE_CAPACITY=1000001 "RT_CACHE_CAPACITY is '1000001', expected"
refused RT_ALLREDUCE=wheel "RT_ALLREDUCE is 'wheel', expected auto, hierarchical"
refused RT_HIERARCHICAL_ALLREDUCE=0 "use RT_ALLREDUCE"
[ "$mpi" = tcp ] || refused RUNTIME_CHECK_MPI=single "without MPI_THREAD_MULTIPLE"
