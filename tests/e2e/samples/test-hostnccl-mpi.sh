#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hostnccl in processes of an MPI: test-hostnccl-mpi.sh openmpi|mpich PROGRAM
set -eu
case $1 in
openmpi)
    run="mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -np"
    if [ "$(id -u)" -eq 0 ]; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    fi
    ;;
mpich) run="mpiexec.mpich -n" ;;
esac
for ranks in 1 3; do
    timeout 60 $run $ranks "$2" | tee /dev/stderr | grep -qx "$ranks ranks: right"
done
