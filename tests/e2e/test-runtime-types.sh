#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All element types and reductions through the runtime, in pairs with lengths, scales and places,
# against a serial reference: on 1 to 8 ranks, by every algorithm, by NCCL, MPI and both.
#   test-runtime-types.sh MPI TRAIN_FOLDER RUNTIME_CHECK
# RUNTIME_CHECK_SEED=... tries the same combinations again.
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
: "${RUNTIME_CHECK_SEED:=$(date +%s)}"
export RUNTIME_CHECK_SEED
echo "seed: RUNTIME_CHECK_SEED=$RUNTIME_CHECK_SEED"

# RANKS HOSTS SETTINGS
while read -r ranks hosts settings; do
    # MPICH's ranks wait without giving up the processor: of many more than processors each waits long
    [ "$mpi" != mpich ] || [ "$ranks" -le 4 ] || continue
    echo "$ranks ranks on $hosts hosts, ${settings:-default settings}"
    (
        # shellcheck disable=SC2086,SC2163
        [ -z "$settings" ] || export $settings
        on_hosts "$mpi" "$ranks" "$hosts" "$train" "$check" types </dev/null
    )
done <<EOF
1 1 RT_FUSION_THRESHOLD=4096
2 2 RT_ALLREDUCE=tree
3 3 RT_ALLREDUCE=halving-doubling RT_FUSION_THRESHOLD=1000
4 2 RT_ALLREDUCE=hierarchical:tree RT_FUSION_THRESHOLD=4096
5 2,3 RT_ALLREDUCE=hierarchical:recursive-doubling RT_FUSION_THRESHOLD=4096
6 3 RT_ALLREDUCE=two-level-ring RT_FUSION_THRESHOLD=0
3 3 RT_ALLREDUCE=double-tree RT_FUSION_THRESHOLD=4096
7 1,2,4 RT_ALLREDUCE=hierarchical:halving-doubling RT_FUSION_THRESHOLD=4096
8 4 RT_ALLREDUCE=halving-doubling RT_FUSION_THRESHOLD=16384
8 2 RT_FUSION_THRESHOLD=4096
EOF
