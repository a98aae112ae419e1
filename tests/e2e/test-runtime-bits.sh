#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# RT_DETERMINISTIC=1: the same bits in every run, whatever the order in which tensors are handed over,
# and what is fused with what; of allreduces also however ranks are laid on hosts. RT_TABLE: its choice is what happens, as
# the bits show; one that is damaged, or not there, is refused on every rank.
#   test-runtime-bits.sh MPI TRAIN_FOLDER RUNTIME_BITS_CHECK RT_TUNE
set -eu
mpi=$1 train=$2 check=$3 tune=$4
[ "$mpi" = tcp ] && word=TCP || word=MPI # in the table
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: "${RUNTIME_BITS_SEED:=$(date +%s)}"
echo "seed: RUNTIME_BITS_SEED=$RUNTIME_BITS_SEED"

bits() { # RANKS HOSTS SETTING...: prints the hash of allreduces; both are in $work/out
    bits_ranks=$1 bits_hosts=$2
    shift 2
    (
        [ $# -eq 0 ] || export "$@"
        on_hosts "$mpi" "$bits_ranks" "$bits_hosts" "$train" "$check" "$RUNTIME_BITS_SEED" </dev/null
    ) >"$work/out" || { cat "$work/out" >&2; echo "$*: failed" >&2; exit 1; }
    sed -n 's/.*hash \([0-9a-f]*\),.*/\1/p' "$work/out"
}

expect() { # WHAT SAME|OTHER A B
    case $2 in same) [ "$3" = "$4" ] ;; other) [ "$3" != "$4" ] ;; esac && return
    echo "$1: $3 and $4, expected the $2 bits"
    exit 1
}

# MPICH's ranks wait without giving up the processor: of many more than processors each waits long
[ "$mpi" = mpich ] && ranks=2 || ranks=4
first=$(bits $ranks 2 RT_DETERMINISTIC=1)
both=$(grep -o 'hash .*, scattered [0-9a-f]*' "$work/out")
bits $ranks 2 RT_DETERMINISTIC=1 RT_FUSION_THRESHOLD=2000 RT_CYCLE_TIME=0 >/dev/null
expect "fused otherwise" same "$both" "$(grep -o 'hash .*, scattered [0-9a-f]*' "$work/out")"
while read -r hosts settings; do
    # shellcheck disable=SC2086
    expect "$hosts $settings" same "$first" "$(bits $ranks "$hosts" RT_DETERMINISTIC=1 $settings)"
done <<EOF
1 RT_FUSION_THRESHOLD=0
1,$((ranks - 1)) RT_FUSION_THRESHOLD=3000 RT_CYCLE_TIME=0.2
$ranks RT_CYCLE_TIME=4
EOF
if [ "$mpi" = mpich ]; then
    on_hosts "$mpi" 2 1 "$train" "$tune" --table "$work/table" --to 64 --rounds 1 </dev/null
    bits 2 1 RT_TABLE="$work/table" >/dev/null
    exit 0
fi

# what the numbers show where there is something to show
tree=$(bits 3 3 RT_ALLREDUCE=tree RT_FUSION_THRESHOLD=0)
ring=$(bits 3 3 RT_ALLREDUCE=ring RT_FUSION_THRESHOLD=0)
expect "tree and ring" other "$tree" "$ring"

on_hosts "$mpi" 3 3 "$train" "$tune" --table "$work/a/table" --to 4096 --rounds 1 </dev/null
on_hosts "$mpi" 3 1,2 "$train" "$tune" --table "$work/a/table" --to 65536 --rounds 1 </dev/null
cat "$work/a/table"
[ "$(grep -c '^topology' "$work/a/table")" -eq 2 ]
grep -q "^topology $word 1,1,1\$" "$work/a/table"
grep -q "^topology $word 1,2\$" "$work/a/table"
[ "$(ls "$work/a")" = table ]
bits 3 1,2 RT_TABLE="$work/a/table" >/dev/null
# the table is compared with what is quickest now: each size has a line, whatever comes out; those for
# which it was not measured are marked
grep -q "^measured 64 65536\$" "$work/a/table"
sed 's/^measured .*/measured 128 512/' "$work/a/table" >"$work/narrow"
cp "$work/narrow" "$work/checked"
status=0
on_hosts "$mpi" 3 1,2 "$train" "$tune" --table "$work/checked" --from 64 --to 1024 --rounds 2 --check \
    </dev/null >"$work/check" || status=$?
cat "$work/check"
[ "$status" -le 1 ] && cmp "$work/narrow" "$work/checked"
[ "$(grep -cE '^ +(128|256|512) +[a-z].* [0-9.]+$' "$work/check")" -eq 3 ]
grep -qE '^ +64 +[a-z].* [0-9.]+ below$' "$work/check"
grep -qE '^ +1024 +[a-z].* [0-9.]+ beyond$' "$work/check"
grep -q '^below, beyond: the table was measured from 128 to 512 bytes; --from 64 --to 1024 ' "$work/check"
case $status in 0) bar=met ;; 1) bar=MISSED ;; esac
grep -qE "^RATIO [0-9.]+ BAR <= 1.1 $bar: the table's choice over the quickest, at [0-9]+ bytes$" "$work/check"
bits 3 2,1 RT_TABLE="$work/a/table" >/dev/null # predicted

for name in tree ring; do
    sed "/^topology $word 1,1,1/,/^beyond/{/^up-to/d;s/^beyond.*/beyond $name/}" "$work/a/table" \
        >"$work/$name"
done
expect "a table of trees" same "$tree" "$(bits 3 3 RT_TABLE="$work/tree" RT_FUSION_THRESHOLD=0)"
expect "a table of rings" same "$ring" "$(bits 3 3 RT_TABLE="$work/ring" RT_FUSION_THRESHOLD=0)"

refused() { # SETTING MESSAGE
    (
        export "$1"
        on_hosts "$mpi" 2 2 "$train" "$check" 1 </dev/null
    ) >"$work/out" 2>&1 && { echo "$1: not refused"; exit 1; }
    # the launcher ends the other rank when one has left, sometimes before it could say so, too
    grep -q "$2" "$work/out" && return
    echo "$1: expected '$2':"
    cat "$work/out"
    exit 1
}
sed 's/^beyond.*/beyond wheel/' "$work/a/table" >"$work/damaged"
refused RT_TABLE="$work/damaged" "'wheel' is no algorithm, expected .*; remove the file, or let rt_tune"
refused RT_TABLE="$work/none" "can't open the table $work/none: No such file"
