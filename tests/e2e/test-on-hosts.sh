#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on-hosts: which host each rank gets under every launcher, and what it refuses.
#   test-on-hosts.sh ON_HOSTS
set -eu
on_hosts=$1
failed=0

say='echo "$RT_HOST $RINGSCOPE_HOST $RT_HOST_RANKS $*"'

expect() { # WANTED VARIABLES.. -- HOSTS..
    wanted=$1
    shift
    got=$(env -i PATH="$PATH" "$@" 2>&1) || true
    [ "$got" = "$wanted" ] || {
        echo "$*: '$got', expected '$wanted'"
        failed=1
    }
}

layout() { # HOSTS SIZE HOST_OF_RANK_0 ...
    hosts=$1 size=$2 rank=0
    shift 2
    for host in "$@"; do
        count=$(echo "$*" | tr ' ' '\n' | grep -cx "$host")
        expect "host$host host$host $count a b" OMPI_COMM_WORLD_RANK=$rank \
            OMPI_COMM_WORLD_SIZE="$size" "$on_hosts" "$hosts" -- sh -c "$say" x a b
        rank=$((rank + 1))
    done
}

layout 2 4 0 0 1 1
layout 1 3 0 0 0
layout 3 4 0 0 1 2
layout 4 4 0 1 2 3
layout 3,1 4 0 0 0 1
layout 1,0,2 3 0 2 2

expect "host1 host1 2 " PMI_RANK=3 PMI_SIZE=4 "$on_hosts" 2 sh -c "$say"
expect "host1 host1 1 " SLURM_PROCID=1 SLURM_NTASKS=2 "$on_hosts" 2 sh -c "$say"
expect "host0 host0 2 " RANK=1 WORLD_SIZE=4 "$on_hosts" 2 sh -c "$say"
# Open MPI's own variables before those that a batch system leaves in the environment
expect "host1 host1 1 " SLURM_PROCID=0 SLURM_NTASKS=1 OMPI_COMM_WORLD_RANK=1 \
    OMPI_COMM_WORLD_SIZE=2 "$on_hosts" 2 sh -c "$say"
# torchrun is a task of srun's, or mpirun's, on each host: its workers' rank is its own
expect "host1 host1 2 " SLURM_PROCID=0 SLURM_NTASKS=2 TORCHELASTIC_RUN_ID=none RANK=3 WORLD_SIZE=4 \
    "$on_hosts" 2 sh -c "$say"
expect "host1 host1 2 " OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none RANK=3 \
    WORLD_SIZE=4 "$on_hosts" 2 sh -c "$say"
# rt-run is started by another launcher, or in its batch job
expect "host1 host1 1 " SLURM_PROCID=0 SLURM_NTASKS=1 OMPI_COMM_WORLD_RANK=0 \
    OMPI_COMM_WORLD_SIZE=1 RT_RANK=1 RT_SIZE=2 "$on_hosts" 2 sh -c "$say"

refused() { # PART_OF_MESSAGE VARIABLES.. ON_HOSTS ..
    part=$1 status=0
    shift
    got=$(env -i PATH="$PATH" "$@" 2>&1) || status=$?
    case $status,$got in
    2,*"$part"*) ;;
    *) echo "$*: status $status, '$got', expected 2, '$part'" && failed=1 ;;
    esac
}

refused "usage:" RANK=0 "$on_hosts" 2
refused "no program" RANK=0 "$on_hosts" 2 --
refused "no launcher" "$on_hosts" 2 true
refused "expected numbers" RANK=0 WORLD_SIZE=2 "$on_hosts" two true
refused "expected numbers" RANK=0 "$on_hosts" 2 true
refused "HOSTS is 0" RANK=0 WORLD_SIZE=2 "$on_hosts" 0 true
refused "rank 3 has no place" RANK=3 WORLD_SIZE=4 "$on_hosts" 2,1 true
exit $failed
