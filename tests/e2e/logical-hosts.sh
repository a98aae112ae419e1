# SPDX-License-Identifier: Apache-2.0
# logical-hosts.sh - runs ranks on logical hosts of this machine, Open MPI over loopback TCP.
#
#   . logical-hosts.sh
#   on_hosts MPI RANKS HOSTS TRAIN PROGRAM ...   MPI openmpi or mpich, or tcp: without one, by rt-run;
#                                                HOSTS as samples/train/on-hosts takes it, TRAIN the
#                                                build's samples/train
#   on_hosts_traced LIBRARY MPI ...              the same, with the tracer preloaded in the ranks alone
#
# Needs nothing but the MPI's launcher. Where that is missing on_hosts_or_skip MPI ends with 77.

# a table of this machine's user would choose other algorithms
: "${RT_TABLE:=none}"
export RT_TABLE

on_hosts_or_skip() {
    case $1 in
    openmpi) command -v mpirun.openmpi ;;
    mpich) command -v mpiexec.mpich ;;
    esac >/dev/null && return
    echo "skipped: no launcher of $1"
    exit 77
}

on_hosts() {
    on_hosts_traced "" "$@"
}

on_hosts_traced() {
    on_hosts_library=$1 on_hosts_mpi=$2 on_hosts_ranks=$3 on_hosts_layout=$4 on_hosts_train=$5
    shift 5
    [ -z "$on_hosts_library" ] || set -- env "LD_PRELOAD=$on_hosts_library" "$@"
    set -- "$on_hosts_train/on-hosts" "$on_hosts_layout" -- "$@"
    case $on_hosts_mpi in
    openmpi)
        on_hosts_root=
        [ "$(id -u)" -ne 0 ] || on_hosts_root=--allow-run-as-root
        # shellcheck disable=SC2086
        mpirun.openmpi $on_hosts_root --oversubscribe --bind-to none --mca pml ob1 \
            --mca btl tcp,self --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo \
            -np "$on_hosts_ranks" "$@"
        ;;
    # over shared memory: MPICH 4.0 with UCX over TCP sometimes waits for ever in MPI_Finalize
    mpich) mpiexec.mpich -n "$on_hosts_ranks" "$@" ;;
    tcp) RT_FABRIC=tcp "$on_hosts_train/../runtime/run/rt-run" -n "$on_hosts_ranks" -- "$@" ;;
    esac
}
