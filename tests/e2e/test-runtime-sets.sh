#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process sets: drawn sets and operations against a serial sum, what is refused, sets added and removed
# over and over; by MPI or over TCP, and by NCCL inside hosts.
#   test-runtime-sets.sh MPI TRAIN_FOLDER RUNTIME_SETS_CHECK [SEED]
set -eu
mpi=$1 train=$2 check=$3 seed=${4:-$(date +%s)}
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
echo "seed $seed"

# what a thread keeps of freed memory counts as in use, and would look like a leak
export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
# RANKS HOSTS SETTINGS; without warnings of stalls rank 0 is woken by nobody where a set of other hosts'
# ranks has something
while read -r ranks hosts settings; do
    echo "$ranks ranks on $hosts hosts, ${settings:-default settings}"
    # shellcheck disable=SC2086
    on_hosts "$mpi" "$ranks" "$hosts" "$train" env $settings "$check" "$seed" </dev/null
done <<EOF
4 1 RT_CYCLE_TIME=0.2
4 2,1,1 RT_CYCLE_TIME=0.2 RT_CACHE_CAPACITY=7 RT_STALL_WARNING_TIME=0
3 1,2 RT_ALLREDUCE=ring RT_FUSION_THRESHOLD=2000 RT_CYCLE_TIME=0.2
EOF
