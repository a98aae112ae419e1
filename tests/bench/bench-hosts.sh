#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Allreduce of 2+2 ranks on two hosts joined at a rate: bench-hosts.sh BENCH_HOSTS RATE [ROUNDS [SMALLEST]]
# RATE is such as 1gbit or 200mbit. Status as bench-hosts; 77 where no hosts can be made.
set -eu
bench=$(realpath "$1")
rate=$2
rounds=${3:-5}
[ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
command -v mpirun.openmpi >/dev/null || { echo "needs Open MPI"; exit 77; }
. "$(dirname "$0")/../e2e/hosts.sh"
# some 4 ms of the link: a limit that is seldom looked at must not slow it, and one that gives much at
# once makes a link look quicker than it is
case $rate in *gbit) HOSTS_BURST=512kb ;; *) HOSTS_BURST=128kb ;; esac
hosts_up 2 "$rate"
echo "two hosts joined at $rate"
hosts_mpirun 2 "$bench" v0 "$rate" "$rounds" ${4:+"$4"}
