#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program that samples/README.md shows is compiled by rt-cc, as C and as C++, for each MPI and
# without, and runs, with a planted fault too; rt-cc refuses what it can't do.
#   test-own-program.sh README RT_CC HOSTNCCL TRAIN_FOLDER MPI...
set -eu
readme=$1 rt_cc=$2 hostnccl=$3 train=$4
shift 4
. "$(dirname "$0")/logical-hosts.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    [ ! -e "$work/out" ] || cat "$work/out"
    exit 1
}

expect() { # STATUS TEXT COMMAND...
    status=$1 text=$2 got=0
    shift 2
    "$@" >"$work/out" 2>&1 || got=$?
    [ "$got" -eq "$status" ] || fail "$* ended with $got, not $status"
    grep -q -e "$text" "$work/out" || fail "$*: no '$text'"
}

sed -n '/^```c$/,/^```$/p' "$readme" | sed '/^```/d' >"$work/own.c"
grep -q rt_init "$work/own.c" || fail "no program in $readme"

for mpi in "$@" tcp; do
    kind=$mpi
    [ "$mpi" != tcp ] || kind=none
    "$rt_cc" --mpi "$kind" -std=c11 -Wall -Wextra -Werror "$work/own.c" -o "$work/own"
    # 2.5 times what ten halvings leave of it
    expect 0 '^4 ranks: 2.4976$' on_hosts "$mpi" 4 2 "$train" "$work/own"
done
expect 0 '^2 ranks' on_hosts tcp 2 1 "$train" "$work/own"
export RT_FAULT=slow-rank:rank=1,ms=1
expect 0 '^2 ranks' on_hosts tcp 2 1 "$train" "$work/own"
RT_FAULT=slow-link:hosts=0-1,mbps=9
expect 2 slow-link on_hosts tcp 2 1 "$train" "$work/own"
unset RT_FAULT

# a name that is none of the runtime's is said once, those that are aren't
unknown=RT_STALL_SHUTDOWN
expect 0 "rt: $unknown is no setting" on_hosts tcp 2 1 "$train" \
    env "$unknown=5" RT_STALL_SHUTDOWN_TIME=5 "$work/own"
[ "$(grep -c 'is no setting' "$work/out")" -eq 1 ] || fail "not once"
# one that plants no faults refuses them
sed '/rt_faults/d; /RT_FAULT/d; /message/d; s/rt-fault.h/errno.h/' "$work/own.c" >"$work/plain.c"
"$rt_cc" --mpi none "$work/plain.c" -o "$work/plain"
expect 0 '^2 ranks' on_hosts tcp 2 1 "$train" "$work/plain"
expect 1 'plants no faults' on_hosts tcp 2 1 "$train" \
    env RT_FAULT=slow-rank:rank=1,ms=1 "$work/plain"
expect 1 rt-run env RT_RANK=0 RT_SIZE=2 "$work/own"

# C++ has the same headers, and nothing but declarations in them
cat >"$work/cxx.cc" <<'CXX'
#include <nccl.h>
#include <ringscope.h>
#include <rt-fault.h>
#include <rt-train.h>
#include <stdio.h>
int main()
{
    rt_rate rate = {1, 4, 0};
    rt_options options = {};
    rt_faults faults;
    char message[RT_FAULT_MESSAGE_BYTES];
    ncclUniqueId id;
    options.compression = RT_COMPRESSION_BF16;
    if (rt_faults_parse(&faults, nullptr, message, sizeof message) || rt_rate_at(&rate, 1) != 4 ||
        rt_barrier_async(&options) >= 0 || rt_type_bytes(RT_FLOAT64) != 8 ||
        ncclGetUniqueId(&id) != ncclSuccess)
        return 1;
    puts("C++");
    return 0;
}
CXX
if command -v c++ >/dev/null; then
    CC=c++ "$rt_cc" -c -Wall -Wextra -Werror "$work/cxx.cc" -o "$work/cxx.o"
    CC=c++ "$rt_cc" --mpi none "$work/cxx.o" -o "$work/cxx"
    expect 0 'C++' "$work/cxx"
fi

cat >"$work/nccl.c" <<'C'
#include <nccl.h>
#include <stdio.h>
int main(void)
{
    int version = 0, devices = 0;
    ncclUniqueId id;
    if (cudaGetDeviceCount(&devices) || ncclGetVersion(&version) || ncclGetUniqueId(&id))
        return 1;
    printf("NCCL %d, %d devices\n", version, devices);
    return 0;
}
C
"$rt_cc" --mpi none "$work/nccl.c" -o "$work/nccl"
expect 0 '^NCCL 22809, 3 devices' env HOSTNCCL_DEVICES=3 "$work/nccl"
# one that was linked without a path finds it by the environment
cc "$work/nccl.c" -I"$(dirname "$readme")/hostnccl/include" -L"$hostnccl" -lnccl -lcudart \
    -o "$work/nccl"
expect 0 '^NCCL 22809, 3 devices' env HOSTNCCL_DEVICES=3 LD_LIBRARY_PATH="$hostnccl" "$work/nccl"

expect 0 '^ *rt-cc \[--mpi' "$rt_cc" --help
expect 0 ' -lnccl ' "$rt_cc" --show "$work/own.c" -o own
expect 2 'which file' "$rt_cc"
expect 2 'openmpi, mpich or none' "$rt_cc" --mpi lam "$work/own.c"
expect 2 'needs a value' "$rt_cc" --mpi
expect 2 'before the files' "$rt_cc" "$work/own.c" --mpi none
