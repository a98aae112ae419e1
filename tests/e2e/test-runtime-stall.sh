#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank never hands over what the others wait for: rank 0 says who and what, then the others' wait
# ends with an error that says so too.
#   test-runtime-stall.sh MPI TRAIN_FOLDER CHECK
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the "after" of the missing rank waits too, for the others
for missing in 0 2; do
    RT_STALL_WARNING_TIME=0.3 RT_STALL_SHUTDOWN_TIME=1.5 \
        on_hosts "$mpi" 3 2,1 "$train" "$check" "$missing" >"$work/out" 2>"$work/err" || {
        cat "$work/out" "$work/err"
        exit 1
    }
    for rank in 0 1 2; do
        [ "$rank" -ne "$missing" ] || continue
        grep -q "^rank $rank: timed out: tensor late has waited [0-9.]* s for rank $missing " "$work/out" ||
            { echo "rank $rank was not told"; cat "$work/out" "$work/err"; exit 1; }
    done
    grep -q "^rt: some ranks wait for tensors" "$work/err" &&
        grep -q "^  late: for [0-9.]* s for rank $missing\$" "$work/err" ||
        { echo "no warning"; cat "$work/out" "$work/err"; exit 1; }
done
