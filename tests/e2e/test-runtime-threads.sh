#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 4 threads of each rank hand tensors over at the same time, in an order that is drawn on each rank.
#   test-runtime-threads.sh MPI TRAIN_FOLDER RUNTIME_THREADS_CHECK [SEED]
set -eu
mpi=$1 train=$2 check=$3 seed=${4:-$(date +%s)}
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
case $seed in *[!0-9]*) seed=$(date +%s) ;; esac # tests/run.sh gives all tests of a build one word

# RANKS HOSTS SETTING
while read -r ranks hosts setting; do
    echo "$ranks ranks on $hosts hosts, ${setting:-default settings}, seed $seed"
    (
        [ -z "$setting" ] || export "$setting"
        on_hosts "$mpi" "$ranks" "$hosts" "$train" "$check" "$seed" </dev/null
    )
done <<END
1 1
3 2,1
4 2 RT_FUSION_THRESHOLD=300
2 1 RT_CACHE_CAPACITY=7
END
