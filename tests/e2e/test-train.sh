#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The training programs learn, end with the same parameters on all ranks and, whatever the library
# and the layout, in the same way; faults change nothing but time; a rank that dies ends the job.
#   test-train.sh TRAIN_FOLDER MPI...    the MPIs that the programs were built for
set -eu
train=$1
shift
. "$(dirname "$0")/logical-hosts.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

options="--seed 5 --size 0.2" # a fifth of the network, all of its shape

fail() {
    echo "$*; the program said:"
    cat "$work/out"
    exit 1
}

trained() { # RANKS: the last run ended well; prints its last loss
    grep -q "^parameters identical on $1 ranks" "$work/out" || fail "parameters differ"
    grep -q "NOT fallen" "$work/out" && fail "nothing was learnt"
    sed -n 's/^step 19 loss //p' "$work/out"
}

same_loss() { # A B: another order of sums may change the last digits
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 0.002 && b - a < 0.002) }' ||
        fail "loss $1, expected $2"
}

reference=
for mpi in "$@"; do
    on_hosts_or_skip "$mpi"
    suffix=
    [ "$mpi" = openmpi ] || suffix=-$mpi
    # to plain MPI logical hosts are nothing, and MPICH's ranks wait without giving way
    for run in "mlp 2" "mlp 1,3" "mpi-sgd 2"; do
        # shellcheck disable=SC2086
        on_hosts "$mpi" 4 "${run#* }" "$train" "$train/${run% *}$suffix" $options >"$work/out"
        loss=$(trained 4)
        reference=${reference:-$loss}
        same_loss "$loss" "$reference"
    done
done

mpi=$1
suffix=
[ "$mpi" = openmpi ] || suffix=-$mpi
RT_FAULT="slow-rank:rank=1,ms=2;slow-link:hosts=0-1,mbps=2000" \
    on_hosts "$mpi" 4 2 "$train" "$train/mlp$suffix" $options >"$work/out"
same_loss "$(trained 4)" "$reference"

# NCCL alone, started as torchrun would: rank 0 prints
mkdir "$work/id"
for rank in 1 2 3; do
    RANK=$rank WORLD_SIZE=4 NCCL_DDP_ID="$work/id/of-run" "$train/nccl-ddp" $options &
done
RANK=0 WORLD_SIZE=4 NCCL_DDP_ID="$work/id/of-run" "$train/nccl-ddp" $options >"$work/out"
wait
trained 4 >/dev/null

status=0
RT_FAULT="die:rank=2,step=3,signal=KILL" \
    on_hosts "$mpi" 4 2 "$train" "$train/mlp$suffix" $options >"$work/out" 2>&1 || status=$?
[ "$status" -ne 0 ] || fail "a killed rank went unnoticed"
grep -q "step 19" "$work/out" && fail "the job went on without rank 2"

status=0
RT_FAULT="slow-rnak:rank=2" on_hosts "$mpi" 1 1 "$train" "$train/mlp$suffix" >"$work/out" 2>&1 ||
    status=$?
[ "$status" -ne 0 ] && grep -q "unknown fault 'slow-rnak'" "$work/out" ||
    fail "an unknown fault was taken"
