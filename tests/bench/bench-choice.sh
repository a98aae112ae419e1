#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is the table that rt_tune writes right, at each size? rt_tune measures and writes it, then rt_tune --check
# compares it with what is quickest in a second measurement: bench-choice.sh RT_TUNE WHERE [LARGEST]
# WHERE: ranks on this host (2, 4), or the rate of a link between two hosts of 2 ranks (1gbit, 200mbit).
# Each rank is bound to a core, as mpirun does itself where there are enough of them: ranks that move change
# what the shortest sizes take by a fifth between one start and the next, and no table is right for both.
# Status: 0, 1 where the table's choice takes more than 1.1 of the quickest's time at some size, 2 where
# nothing was measured; 77 where no hosts can be made.
set -eu
tune=$(realpath "$1")
where=$2
largest=${3:-4194304}
command -v mpirun.openmpi >/dev/null || { echo "needs Open MPI"; exit 77; }
case $where in
*bit)
    [ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
    . "$(dirname "$0")/../e2e/hosts.sh"
    case $where in *gbit) HOSTS_BURST=512kb ;; *) HOSTS_BURST=128kb ;; esac
    hosts_up 2 "$where"
    table=$HOSTS_RUN/table
    run() { hosts_mpirun 2 --bind-to core:overload-allowed "$tune" --table "$table" --to "$largest" "$@"; }
    echo "2 hosts of 2 ranks, $where"
    ;;
*)
    table=$(mktemp -d)/table
    trap 'rm -rf "$(dirname "$table")"' EXIT
    [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run() {
        mpirun.openmpi --oversubscribe --bind-to core:overload-allowed --mca mpi_yield_when_idle 1 \
            -np "$where" "$tune" --table "$table" --to "$largest" "$@"
    }
    echo "1 host of $where ranks"
    ;;
esac
run || exit 2
run --check
