#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compression in the runtime: allreduce, groups and reducescatter of float32 and float64 as float16
# and bfloat16, by NCCL, MPI and both, against exact results; Adasum of sums and averages; a
# network learns with compression as without.
#   test-runtime-wire.sh MPI TRAIN_FOLDER RUNTIME_WIRE_CHECK
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# RANKS HOSTS SETTINGS
while read -r ranks hosts settings; do
    # MPICH's ranks wait without giving up the processor: of many more than processors each waits long
    [ "$mpi" != mpich ] || [ "$ranks" -le 3 ] || continue
    echo "$ranks ranks on $hosts hosts, ${settings:-default settings}"
    (
        # shellcheck disable=SC2086,SC2163
        [ -z "$settings" ] || export $settings
        on_hosts "$mpi" "$ranks" "$hosts" "$train" "$check" </dev/null
    )
done <<END
1 1
2 1 RT_FUSION_THRESHOLD=0
3 2,1 RT_FUSION_THRESHOLD=3000
4 2
4 2 RT_ALLREDUCE=halving-doubling
2 1 RT_COMPRESSION=fp16 RUNTIME_CHECK_DEFAULT=1
END

status=0
RT_COMPRESSION=half on_hosts "$mpi" 1 1 "$train" "$check" >"$work/out" 2>&1 || status=$?
if [ "$status" -eq 0 ] || ! grep -q "RT_COMPRESSION is 'half', expected none, fp16 or bf16" "$work/out"; then
    echo "RT_COMPRESSION=half: status $status:"
    cat "$work/out"
    exit 1
fi

suffix=
[ "$mpi" = openmpi ] || suffix=-$mpi
for compression in none fp16 bf16; do
    RT_COMPRESSION=$compression on_hosts "$mpi" 2 1 "$train" "$train/mlp$suffix" --seed 5 >"$work/out"
    loss=$(sed -n 's/^step 19 loss //p' "$work/out")
    echo "loss with compression $compression: $loss"
    reference=${reference:-$loss}
    if ! grep -q "^parameters identical on 2 ranks" "$work/out" ||
        ! awk -v a="$loss" -v b="$reference" 'BEGIN { exit !(a > 0 && a - b < 0.01 && b - a < 0.01) }'; then
        cat "$work/out"
        exit 1
    fi
done
