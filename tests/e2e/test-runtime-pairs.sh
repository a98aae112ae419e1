#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime's operations, each two of what they and the job may be together: see runtime-pairs-check.c.
#   test-runtime-pairs.sh MPI TRAIN_FOLDER RUNTIME_PAIRS_CHECK [all]
# RUNTIME_CHECK_SEED=... tries the same again. all: the full product.
set -eu
mpi=$1 train=$2 check=$3
shift 3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
: "${RUNTIME_CHECK_SEED:=$(date +%s)}"
export RUNTIME_CHECK_SEED
echo "seed: RUNTIME_CHECK_SEED=$RUNTIME_CHECK_SEED"

# MPICH's ranks wait without giving up the processor: of many more than processors each waits long
[ "$mpi" = mpich ] && most=4 || most=8
ranks=1
while [ $ranks -le $most ]; do
    on_hosts "$mpi" $ranks 1 "$train" "$check" "$@" </dev/null
    ranks=$((ranks + 1))
done
