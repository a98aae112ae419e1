#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training on any number of ranks is training on one: of the same global batch, the same loss within
# rounding; with a last batch that leaves ranks without rows, in several passes, on data files.
#   test-train-same.sh TRAIN_FOLDER MPI...    the MPIs that the programs were built for
set -eu
train=$1
shift
. "$(dirname "$0")/logical-hosts.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 300 images of 6 x 6: where the bright row is, and how bright, tells the label
python3 - "$work" <<'PY'
import gzip
import random
import struct
import sys

random.seed(1)
labels = bytes(random.randrange(10) for _ in range(300))
images = bytearray()
for label in labels:
    image = [random.randrange(60) for _ in range(36)]
    for k in range(6):
        image[6 * (label % 5) + k] = 250 if label < 5 else 140
    images += bytes(image)
with gzip.open(sys.argv[1] + "/train-images-idx3-ubyte.gz", "wb") as f:
    f.write(struct.pack(">4I", 0x803, 300, 6, 6) + images)
with open(sys.argv[1] + "/train-labels-idx1-ubyte", "wb") as f:
    f.write(struct.pack(">2I", 0x801, 300) + labels)
PY

run() { # RANKS HOSTS PROGRAM [OPTION]...
    ranks=$1 hosts=$2 program=$3
    shift 3
    suffix=
    [ "$mpi" = openmpi ] || suffix=-$mpi
    on_hosts "$mpi" "$ranks" "$hosts" "$train" "$train/$program$suffix" "$@" >"$work/out" 2>&1 || {
        cat "$work/out"
        exit 1
    }
    grep -q "^parameters identical on $ranks ranks" "$work/out"
}

same() { # RANKS ...: as the run whose losses are in $work/first
    run "$@"
    grep '^step' "$work/out" >"$work/next"
    paste -d ' ' "$work/first" "$work/next" | awk -v what="$*" '
        $2 != $6 || $4 - $8 > 0.0005 || $8 - $4 > 0.0005 { print what ": " $0; bad = 1 }
        END { exit bad || NR < 3 }'
}

lm="lm --items 50 --global-batch 12 --steps 12 --context 16 --width 24 --heads 2"
mlp="mlp --data $work --global-batch 26 --steps 14 --size 0.02 --rate 0.1"
mpi=$1
on_hosts_or_skip "$mpi"
# shellcheck disable=SC2086
{
    run 1 1 $lm
    grep '^step' "$work/out" >"$work/first"
    same 2 1 $lm
    same 3 1,2 $lm
    same 4 2 $lm --passes 2
    run 1 1 $mlp
    grep '^step' "$work/out" >"$work/first"
    same 3 1,2 $mlp --passes 2
    [ $# -lt 2 ] || {
        mpi=$2
        on_hosts_or_skip "$mpi"
        same 4 2 $mlp
    }
}
