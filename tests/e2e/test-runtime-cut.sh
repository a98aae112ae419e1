#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two real hosts, 2 ranks on each, over TCP without MPI: the link between them that RT_INTERFACE names is
# cut without a word; the other one stays, and nobody may take it for the first. Every rank says after
# RT_HOST_TIMEOUT whom it misses, and ends with a status that isn't 0. And: ranks of one host that share
# the network but neither /dev/shm nor process numbers, as containers may, get on.
#   test-runtime-cut.sh RUNTIME_DEATH_CHECK MLP
set -eu
[ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
. "$(dirname "$0")/hosts.sh"
check=$(realpath "$1") mlp=$(realpath "$2")
pids=

clean() {
    status=$?
    set +e
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || :
    (exit "$status")
    hosts_down
}
hosts_up 2 ""
ip -n "$(hosts_name 0)" link add v1 type veth peer name v1 netns "$(hosts_name 1)"
for i in 0 1; do
    ip -n "$(hosts_name $i)" addr add "10.78.0.$((i + 1))/24" dev v1
    ip -n "$(hosts_name $i)" link set v1 up
done
trap clean EXIT

fail() {
    echo "$*; the ranks said:"
    tail -n +1 "$HOSTS_WORK"/out.*
    exit 1
}

# HOST RANK WORDS: one rank; its output in out.RANK
rank_on() {
    host=$1 rank=$2
    shift 2
    "$HOSTS_AGENT" "$(hosts_name "$host")" "exec env $settings RT_FABRIC=tcp RT_TABLE=none RT_SIZE=$size \
        RT_RANK=$rank RT_ADDR=10.78.0.1 RT_PORT=4000 RT_INTERFACE=v1 DEATH_DIR=$HOSTS_RUN $*" \
        >"$HOSTS_WORK/out.$rank" 2>&1 &
    pids="$pids $!"
}

# Nobody of the job dies by itself: the victim's number is none of its ranks.
echo "the link is cut"
settings="RT_HOST_TIMEOUT=2 RT_ALLREDUCE=ring" size=4 pids=
for rank in 0 1 2 3; do
    rank_on $((rank / 2)) $rank "$check" 9 kill 0 deaf
done
bytes() {
    ip netns exec "$(hosts_name 0)" cat /sys/class/net/v1/statistics/rx_bytes
}
until [ "$(bytes)" -gt 1000000 ]; do # they are at work
    for pid in $pids; do kill -0 "$pid" || fail "a rank has ended"; done
done
ip -n "$(hosts_name 1)" link set v1 down
start=$(date +%s%N)
for pid in $pids; do
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 1 ] || fail "a rank has status $status"
done
echo "all ended $((($(date +%s%N) - start) / 1000000)) ms after"
silent="is gone: no sign of life from its host for 2 s (RT_HOST_TIMEOUT): down, or cut off"
for rank in 0 1; do # of the two that it misses one is the first
    grep -q "^rt: rank $rank: rank [23] ($(hosts_name 1), process [0-9]*) $silent" "$HOSTS_WORK/out.$rank" ||
        fail "rank $rank misses nobody"
done
for rank in 2 3; do
    grep -q "^rt: rank $rank: rank 0 ($(hosts_name 0), process [0-9]*) $silent" "$HOSTS_WORK/out.$rank" ||
        fail "rank $rank does not miss rank 0"
done

echo "ranks of one host that share no memory"
settings="RT_ALLREDUCE=ring RT_HOST=one" size=2 pids=
for rank in 0 1; do
    rank_on 0 $rank "$mlp" --steps 5
done
for pid in $pids; do
    wait "$pid" || fail "a rank ended badly"
done
grep -q "identical on 2 ranks" "$HOSTS_WORK/out.0" || fail "no result"
