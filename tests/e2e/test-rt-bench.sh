#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rt-bench's table reads as nccl-tests' does, its numbers belong together and its results are right.
#   test-rt-bench.sh MPI TRAIN_FOLDER RT_BENCH
set -eu
mpi=$1 train=$2 bench=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ranks=3 layout=1,2
run() { # COLLECTIVE [OPTION]...
    on_hosts "$mpi" "$ranks" "$layout" "$train" "$bench" "$@" >"$work/out" 2>"$work/err" || {
        cat "$work/out" "$work/err"
        exit 1
    }
}

# LINES FACTOR PARTS REDOP ROOT IN_PLACE: columns as nccl-tests has them, busbw = algbw x factor,
# size = count x 4 (x ranks)
table() {
    awk -v lines="$1" -v factor="$2" -v parts="$3" -v redop="$4" -v root="$5" -v in_place="$6" '
        function check(ok, what) { if (!ok) { print what ": " $0; bad = 1 } }
        function near(a, b, by) { return a - b <= by && b - a <= by }
        function way(at) {
            check(near($at ? $1 / $at / 1e3 : 0, $(at + 1), 0.006), "algbw")
            check(near($(at + 2), $(at + 1) * factor, 0.011), "busbw")
            check($(at + 3) == 0, "wrong")
        }
        /^#/ { heads += $2 == "size" && $NF == "#wrong"; devices += $2 == "Rank"
               ok += /^# Out of bounds values : 0 OK$/; average += /^# Avg bus bandwidth    : / ; next }
        { n++; check(NF == 13, "columns"); check($1 == $2 * 4 * parts, "size")
          check($3 == "float" && $4 == redop && $5 == root, "type, redop, root"); way(6)
          if (in_place) way(10); else check($10 == "N/A", "in place") }
        END { if (n != lines || heads != 1 || devices != 3 || ok != 1 || average != 1) bad = 1
              exit bad }' "$work/out" || {
        cat "$work/out"
        exit 1
    }
}

sizes="-b 0 -e 1M -i 524288 -n 2 -w 1"
# shellcheck disable=SC2086
{
    run allreduce $sizes && table 3 1.3333 1 sum -1 1
    run reducescatter $sizes -o max && table 3 0.6667 3 max -1 1
    run allgather $sizes && table 3 0.6667 3 none -1 0
    run alltoall $sizes && table 3 0.6667 3 none -1 0
    run broadcast $sizes -r 2 && table 3 1 1 none 2 1
}
lines() { # HOW_MANY
    [ "$(grep -vc '^#' "$work/out")" -eq "$1" ] || {
        cat "$work/out"
        exit 1
    }
}
run allreduce -b 4000 -e 4000 -n 1 -w 0 -d all
lines 12
run allreduce -b 4000 -e 4000 -n 1 -w 0 -d half -o all
lines 5
# long, between two hosts that are alike: piece by piece
ranks=4 layout=2
run allreduce -b 1200008 -e 1200008 -n 1 -w 0 -d all
lines 12
ranks=2
run allreduce -b 1200008 -e 1200008 -n 1 -w 0 -o avg
lines 1

status=0
"$bench" gather >"$work/out" 2>&1 || status=$?
[ "$status" -eq 2 ] && grep -q "allgather" "$work/out"
status=0
"$bench" allreduce -b 12Q >"$work/out" 2>&1 || status=$?
[ "$status" -eq 2 ] && grep -q -- "-b 12Q: expected bytes" "$work/out"
