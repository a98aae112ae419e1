#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime without MPI: 4 ranks on 2 logical hosts train over TCP, as under an MPI where PEER, the
# same program with MPI, is given; ranks that are missing, a wrong interface and a wrong address are
# told on every rank that is there, with a status that isn't 0.
#   test-runtime-tcp.sh RT_RUN TRAIN_FOLDER [MPI PEER]
set -eu
run=$1 train=$2 mpi=${3:-} peer=${4:-}
. "$(dirname "$0")/logical-hosts.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*; the ranks said:"
    cat "$work/out"
    exit 1
}

# SIZE OPTIONS...: trains after $before, and sets status
job() {
    size=$1 status=0
    shift
    "$run" -n "$size" --tag-output --grace 60 "$@" "$train/on-hosts" 2 -- \
        sh -c "${before:-:}"' && exec "$@"' x "$train/mlp-tcp" --steps 20 --seed 5 \
        >"$work/out" 2>&1 || status=$?
}

all_said() { # RANKS TEXT
    [ "$status" -ne 0 ] || fail "the status is 0"
    n=$(grep -e "$2" "$work/out" | sed 's/>.*//' | sort -u | wc -l)
    [ "$n" -eq "$1" ] || fail "$n ranks of $1 say '$2'"
}

job 4
[ "$status" -eq 0 ] || fail "status $status"
sum=$(sed -n 's/.*parameters identical on 4 ranks, checksum \([0-9a-f]*\).*/\1/p' "$work/out")
[ -n "$sum" ] || fail "no checksum"
if [ -n "$mpi" ]; then
    on_hosts_or_skip "$mpi"
    on_hosts "$mpi" 4 2 "$train" "$peer" --steps 20 --seed 5 >"$work/out.mpi"
    grep -q "checksum $sum" "$work/out.mpi" || fail "other parameters than under $mpi"
fi

before='[ $RT_RANK -lt 2 ] || exit 0' && job 4 --start-timeout 2
all_said 2 "missing: rank 2 3"
before= && job 2 --addr 127.0.0.1 --interface nosuch0
all_said 2 "RT_INTERFACE is 'nosuch0'"
job 2 --interface nosuch0
all_said 1 "^rt-run: RT_INTERFACE is 'nosuch0'"
before='[ $RT_RANK = 0 ] || export RT_INTERFACE=nosuch0' && job 2
all_said 2 "RT_INTERFACE is 'nosuch0'"
before='[ $RT_RANK = 0 ] || exit 0; unset RT_LISTEN_FD; export RT_ADDR=192.0.2.1' && job 2
all_said 1 "is no address of this host"
