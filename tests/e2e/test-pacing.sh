#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The planted slow link: sockets of that host pair are paced on both ends, to their share of the
# rate, and no others; what crosses it is no faster than the rate.
#   test-pacing.sh TRAIN_FOLDER PACING_CHECK
set -eu
train=$1 check=$2
. "$(dirname "$0")/logical-hosts.sh"
on_hosts_or_skip openmpi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*; the ranks said:"
    cat "$work/out"
    exit 1
}

run() { # FAULT HOSTS RANKS
    RT_FAULT=$1 on_hosts openmpi "$3" "$2" "$train" "$check" >"$work/out"
}

expect() { # RANK PACED RATE PLAIN
    grep -qx "rank $1 paced $2 at $3 plain $4" "$work/out" ||
        fail "expected of rank $1: paced $2 at $3 plain $4"
}

# 4 ranks on 2 hosts: each has 2 peers on the other; 100 Mbit/s are 12.5 MB/s, for 2 connections
run "slow-link:hosts=0-1,mbps=100" 2 4
plain=$(sed -n 's/^rank 0 paced.*plain //p' "$work/out") # the launcher's connections are among them
[ "$plain" -ge 1 ] || fail "rank 0 has no connection to rank 1"
for rank in 0 1 2 3; do
    expect $rank 2 6250000 "$plain"
done
rate=$(sed -n 's/^link //p' "$work/out")
[ "$rate" -le 7500000 ] || fail "the link carried $rate bytes/s"

# 3 hosts, the middle one out of it; all of the rate to one connection
run "slow-link:hosts=2-0,mbps=80,flows=1" 3 3
expect 0 1 10000000 "$plain"
expect 1 0 0 "$((plain + 1))"
expect 2 1 10000000 "$plain"

run "" 2 4
for rank in 0 1 2 3; do
    expect $rank 0 0 "$((plain + 2))"
done
