#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that was stopped and goes on from its checkpoint ends as one that wasn't, to the bit: losses
# and checkpoint. What can't be resumed from is said; a checkpoint that can't be written leaves the
# old one, and the run goes on and fails.
#   test-train-resume.sh TRAIN_FOLDER MPI
set -eu
train=$1 mpi=$2
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
suffix=
[ "$mpi" = openmpi ] || suffix=-$mpi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RT_DETERMINISTIC=1

fail() {
    echo "$*; the program said:"
    cat "$work/out"
    exit 1
}

run() { # PROGRAM [OPTION]...: on 3 ranks of 2 hosts
    program=$1
    shift
    on_hosts "$mpi" 3 1,2 "$train" "$train/$program$suffix" "$@" >"$work/out" 2>&1
}

resumes() { # PROGRAM STOP_AT [OPTION]...: 14 steps
    what=$1 stop=$2
    shift 2
    run "$what" --steps 14 --checkpoint "$work/whole" "$@" || fail "$what fails"
    grep '^step\|^param' "$work/out" >"$work/whole.out"
    run "$what" --steps "$stop" --checkpoint "$work/parts" "$@" || fail "$what fails"
    run "$what" --steps 14 --checkpoint "$work/parts" --resume "$@" || fail "$what doesn't resume"
    grep '^step\|^param' "$work/out" >"$work/parts.out"
    grep -q '^step 9 ' "$work/parts.out" || fail "it didn't go on after step $stop"
    grep -q '^step 0 ' "$work/parts.out" && fail "it began anew"
    grep -v '^step 0 ' "$work/whole.out" | cmp - "$work/parts.out" || fail "other losses"
    cmp "$work/whole" "$work/parts" || fail "other parameters"
}

# the 5th of 5 steps of an epoch leaves two ranks without rows: once in the part that is resumed
resumes lm 7 --items 50 --global-batch 12 --context 16 --width 24 --heads 2
resumes mlp 3 --size 0.02 --batch 4 --passes 2 --scale-rate --warm-up 9

refused() { # TEXT [OPTION]...
    text=$1
    shift
    status=0
    run mlp --size 0.02 --batch 4 --passes 2 --resume "$@" || status=$?
    [ "$status" -ne 0 ] && grep -q "$text" "$work/out" || fail "expected: $text"
}
refused "can't be opened" --checkpoint "$work/none"
cp "$work/whole" "$work/damaged"
printf x | dd of="$work/damaged" bs=1 seek=5000 conv=notrunc 2>/dev/null
refused "$work/damaged: damaged" --checkpoint "$work/damaged"

status=0
mkdir "$work/whole.new"
run mlp --size 0.02 --batch 4 --passes 2 --steps 4 --checkpoint "$work/whole" || status=$?
[ "$status" -ne 0 ] && grep -q "whole.new: can't be created" "$work/out" || fail "not said"
grep -q "^parameters identical" "$work/out" || fail "it didn't go on"
cmp "$work/whole" "$work/parts" || fail "the old checkpoint is gone"
