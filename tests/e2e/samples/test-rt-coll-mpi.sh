#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rt_coll over MPI: test-rt-coll-mpi.sh openmpi|mpich PROGRAM
# RT_COLL_SEED=... tries the same combinations again. The full product:
#   mpirun --oversubscribe --mca mpi_yield_when_idle 1 -np 8 build/tests/e2e/samples/rt-coll-openmpi 1 all
set -eu
: "${RT_COLL_SEED:=$(date +%s)}"
echo "seed: RT_COLL_SEED=$RT_COLL_SEED"
# MPICH's ranks wait without giving up the processor: of more than processors each waits long
[ "$1" = mpich ] && most=2 || most=4
for ranks in 1 2 3 4; do
    cases=
    [ "$ranks" -ne "$most" ] || cases=pairs
    case $1 in
    openmpi)
        set -- "$1" "$2" mpirun.openmpi --oversubscribe -np $ranks
        if [ "$(id -u)" -eq 0 ]; then
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
        fi
        ;;
    mpich) set -- "$1" "$2" mpiexec.mpich -n $ranks ;;
    esac
    name=$1 program=$2
    shift 2
    timeout 100 "$@" "$program" "$RT_COLL_SEED" ${cases:+$cases} | tee /dev/stderr | grep -qx "$ranks ranks: right"
    set -- "$name" "$program"
done
