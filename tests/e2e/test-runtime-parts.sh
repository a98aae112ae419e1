#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime's allgather, alltoall, reducescatter, groups and join against a serial reference, on 1
# to 5 ranks and 1 to 3 hosts, by NCCL, MPI and both.
#   test-runtime-parts.sh MPI TRAIN_FOLDER RUNTIME_PARTS_CHECK
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"

# RANKS HOSTS SETTING
while read -r ranks hosts setting; do
    # MPICH's ranks wait without giving up the processor: of many more than processors each waits long
    [ "$mpi" != mpich ] || [ "$ranks" -le 4 ] || continue
    echo "$ranks ranks on $hosts hosts, ${setting:-default settings}"
    (
        [ -z "$setting" ] || export "$setting"
        on_hosts "$mpi" "$ranks" "$hosts" "$train" "$check" </dev/null
    )
done <<END
1 1
2 1
2 2 RT_FUSION_THRESHOLD=0
3 1 RT_FUSION_THRESHOLD=300
3 2,1 RT_CACHE_CAPACITY=0
4 2 RT_ALLREDUCE=ring
4 2
5 3,2 RT_FUSION_THRESHOLD=5000
END
