#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Allreduce of 2+2 ranks on two hosts joined at a rate: bench-hosts.sh BENCH_HOSTS RATE [ROUNDS [SMALLEST]]
# RATE in tbf's words. Status as bench-hosts; 77 where no hosts can be made.
set -eu
bench=$(realpath "$1")
rate=$2
rounds=${3:-5}
[ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
command -v mpirun.openmpi >/dev/null || { echo "needs Open MPI"; exit 77; }
. "$(dirname "$0")/../e2e/hosts.sh"
HOSTS_BURST=512kb
hosts_up 2 "$rate"
echo "two hosts joined at $rate"
hosts_mpirun 2 "$bench" v0 "$rounds" ${4:+"$4"}
