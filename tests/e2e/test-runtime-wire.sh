#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compression in the runtime: allreduce, groups and reducescatter of float32 and float64 as float16
# and bfloat16, by NCCL, MPI and both, against exact results; Adasum of sums and averages.
#   test-runtime-wire.sh MPI TRAIN_FOLDER RUNTIME_WIRE_CHECK
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# RANKS HOSTS SETTINGS
while read -r ranks hosts settings; do
    echo "$ranks ranks on $hosts hosts, ${settings:-default settings}"
    (
        # shellcheck disable=SC2086,SC2163
        [ -z "$settings" ] || export $settings
        on_hosts "$mpi" "$ranks" "$hosts" "$train" "$check" </dev/null
    )
done <<END
1 1
2 1 RT_FUSION_THRESHOLD=0
2 2 RT_FUSION_THRESHOLD=3000
3 2,1
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
