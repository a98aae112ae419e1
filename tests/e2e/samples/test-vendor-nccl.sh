#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An unchanged NCCL program, compiled against the vendor's headers and linked to the vendor's
# libraries, runs with the stand-ins: test-vendor-nccl.sh STANDINS CC [CFLAGS...]
set -eu
standins=$1
shift
here=$(cd "$(dirname "$0")" && pwd)

library_dir() { # of $1, where the linker's cache or the usual places know it
    for f in $(ldconfig -p 2>/dev/null | sed -n "s/^[[:space:]]*$1 .*=> //p") \
        /usr/local/cuda*/lib64/"$1" /usr/local/cuda*/lib/"$1" /usr/lib/*/"$1"; do
        [ -e "$f" ] && dirname "$f" && return
    done
    return 1
}
nccl=$(library_dir libnccl.so) && cudart=$(library_dir libcudart.so) || {
    echo "no libnccl.so or libcudart.so of the vendor"
    exit 77
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include <nccl.h>\n' | "$@" -fsyntax-only -x c - 2>/dev/null || {
    echo "no nccl.h of the vendor"
    exit 77
}
"$@" -o "$work/program" "$here/vendor-nccl.c" -L"$nccl" -L"$cudart" -lnccl -lcudart \
    -Wl,-rpath-link,"$nccl:$cudart"

# what it is linked to is the vendor's: its versioned symbols must be found in the stand-in
readelf -V "$work/program" | grep -q 'libcudart.so.13' || {
    echo "linked to another CUDA runtime than 13:"
    readelf -d "$work/program" | grep NEEDED
    exit 77
}
readelf -d "$work/program" | grep -q 'libnccl.so.2'

LD_LIBRARY_PATH=$standins
export LD_LIBRARY_PATH
for rank in 0 1 2; do
    timeout 60 "$work/program" $rank 3 "$work/id" >"$work/out.$rank" 2>&1 &
    eval "pid$rank=$!"
done
status=0
for rank in 0 1 2; do
    eval "wait \$pid$rank" || status=1
    cat "$work/out.$rank"
    grep -q "^rank $rank of 3: right, NCCL 22809\$" "$work/out.$rank" || status=1
done
exit $status
