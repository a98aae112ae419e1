#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime without MPI: 4 ranks on 2 logical hosts train over TCP, as under an MPI where PEER, the
# same program with MPI, is given; ranks that are missing, a port in use, a wrong interface and a wrong
# address are told on every rank that is there, with a status that isn't 0.
#   test-runtime-tcp.sh TRAIN_FOLDER [MPI PEER]
set -eu
train=$1 mpi=${2:-} peer=${3:-}
. "$(dirname "$0")/logical-hosts.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=$(python3 -c 'import os; print(20000 + os.getpid() % 12000)')
echo "port $port"

fail() {
    echo "$*; the ranks said:"
    cat "$work"/out.*
    exit 1
}

# SIZE RANKS: starts these ranks of a job of SIZE, and sets bad to how many ended badly
job() {
    size=$1 bad=0 pids=
    shift
    rm -f "$work"/out.*
    for rank in "$@"; do
        env RT_FABRIC=tcp RT_RANK="$rank" RT_SIZE="$size" RANK="$rank" WORLD_SIZE="$size" \
            RT_ADDR="${addr:-127.0.0.1}" RT_PORT="$port" RT_START_TIMEOUT="${timeout:-30}" \
            "$train/on-hosts" 2 -- "$train/mlp-tcp" --steps 20 --seed 5 >"$work/out.$rank" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || bad=$((bad + 1))
    done
}

all_said() { # RANKS TEXT
    n=$1
    [ "$bad" -eq "$n" ] || fail "$bad of $n ranks ended badly"
    [ "$(grep -l -e "$2" "$work"/out.* | wc -l)" -eq "$n" ] || fail "not all say '$2'"
}

job 4 0 1 2 3
[ "$bad" -eq 0 ] || fail "$bad ranks ended badly"
sum=$(sed -n 's/^parameters identical on 4 ranks, checksum \([0-9a-f]*\).*/\1/p' "$work/out.0")
[ -n "$sum" ] || fail "no checksum"
if [ -n "$mpi" ]; then
    on_hosts_or_skip "$mpi"
    on_hosts "$mpi" 4 2 "$train" "$peer" --steps 20 --seed 5 >"$work/out.mpi"
    grep -q "checksum $sum" "$work/out.mpi" || fail "other parameters than under $mpi"
fi

timeout=2 && job 4 0 1
all_said 2 "missing: rank 2 3"
export RT_INTERFACE=nosuch0 && timeout=20 && job 2 0 1
all_said 2 "RT_INTERFACE is 'nosuch0'"
unset RT_INTERFACE
addr=192.0.2.1 timeout=2 && job 2 0
all_said 1 "is no address of this host"
addr=127.0.0.1
python3 - "$port" "$work/listens" <<'PY' &
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
open(sys.argv[2], "w").close()
s.settimeout(30)
c = s.accept()[0]
c.recv(1)
c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)
s.accept()
PY
stranger=$!
until [ -e "$work/listens" ]; do kill -0 "$stranger"; done
job 2 0 1
kill "$stranger"
all_said 2 "set another RT_PORT"
