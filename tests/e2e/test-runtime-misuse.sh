#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a program does wrong with the runtime, and settings that don't fit: an answer on every rank, and
# no crash, no hang.
#   test-runtime-misuse.sh MPI TRAIN_FOLDER RUNTIME_MISUSE_CHECK
set -eu
mpi=$1 train=$2 check=$3
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip "$mpi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # RANKS CASE: output in $work/out
    echo "$mpi, $1 ranks: $2"
    on_hosts "$mpi" "$1" 1 "$train" "$check" "$2" </dev/null >"$work/out" 2>&1 && return
    cat "$work/out"
    exit 1
}
said() { # TIMES TEXT
    # MPICH's launcher may put two ranks' lines into one
    [ "$(grep -o "$2" "$work/out" | wc -l)" -eq "$1" ] && return
    echo "expected $1 times '$2':"
    cat "$work/out"
    exit 1
}

run 1 calls
run 2 calls
run 2 again

echo "no table" >"$work/table"
RT_TABLE="$work/table"
run 2 refused
said 2 "table:1: no table of this version"
said 0 "is gone"
RT_TABLE=none

export RT_ALLREDUCE=ring
RT_START_TIMEOUT=2
export RT_START_TIMEOUT
run 3 few
unset RT_START_TIMEOUT
unset RT_ALLREDUCE

# a setting that only some ranks have: rank 0's counts
cat >"$work/one-has-it" <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RT_RANK}}" -ne "$1" ] || export RT_ALLREDUCE=ring
shift
exec "$@"
END
chmod +x "$work/one-has-it"
for rank in 0 1; do
    on_hosts "$mpi" 2 1 "$train" "$work/one-has-it" "$rank" "$check" ranks >"$work/out" 2>&1
    said 2 "^2 ranks"
done

# started by another MPI's launcher
[ "$mpi" != tcp ] || exit 0
export OMPI_COMM_WORLD_SIZE=2 PMI_SIZE=2
"$check" ranks >"$work/out" 2>&1
unset OMPI_COMM_WORLD_SIZE PMI_SIZE
said 1 "this rank runs alone"
