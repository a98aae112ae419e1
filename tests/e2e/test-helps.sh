#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every command's --help: status 0, says how to start it, with the launcher that this program wants;
# a wrong option ends it with 2, and the message begins with its name.
#   test-helps.sh BUILD_FOLDER
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
seen=0

wrong() {
    echo "FAILED: $*"
    cat "$work/out"
    failed=1
}

says() { # TEXT COMMAND...
    text=$1
    shift
    "$@" >"$work/out" 2>"$work/err" || wrong "$* ended with $?"
    [ ! -s "$work/err" ] || wrong "$* writes help to standard error"
    grep -q -e "$text" "$work/out" || wrong "$*: no '$text'"
}

refuses() { # PROGRAM ARGUMENT...
    status=0
    "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ "$status" -eq 2 ] || wrong "$* ended with $status"
    head -n 1 "$work/out" | grep -q "\(^\|/\)${1##*/}: " || wrong "$*: its name isn't first"
}

for program in "$build"/samples/train/* "$build"/samples/bench/* "$build"/samples/runtime/tune/* \
    "$build"/samples/runtime/run/* "$build"/samples/rt-cc "$build"/analyzer/ringscope; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    case ${program##*/} in
    *-mpich) launcher='mpiexec.mpich -n 4 ' ;;
    *-tcp) launcher='rt-run -n 4 ' ;;
    nccl-ddp) launcher='NCCL_DDP_ID=$(mktemp -u) mpirun -np 4 ' ;;
    rt-cc | rt-run | ringscope) launcher= ;;
    *) launcher='mpirun -np 4 ' ;;
    esac
    seen=$((seen + 1))
    says "$launcher.*${program##*/} " "$program" --help
    case ${program##*/} in
    rt-cc) ;; # options that it doesn't know are the compiler's
    *) refuses "$program" --no-such-option ;;
    esac
    case ${program##*/} in
    mlp* | lm* | mpi-sgd* | nccl-ddp | paced*) refuses "$program" --steps x ;;
    rt_tune*)
        refuses "$program" --rounds x
        refuses "$program" --check --rounds 1
        refuses "$program" --from 8 --to 4
        refuses "$program" --table=
        ;;
    rt-bench*)
        refuses "$program" allreduce -n x
        refuses "$program" allreduce -b 8 -e 64 -f 2x
        ;;
    esac
done
[ "$seen" -ge 5 ] || {
    echo "FAILED: $seen programs"
    failed=1
}
for command in run merge report export query status clean; do
    says "^  ringscope $command " "$build/analyzer/ringscope" "$command" --help
done
exit $failed
