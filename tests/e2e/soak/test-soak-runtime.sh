#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random operations through the runtime on 4 ranks of 2 logical hosts.
#   test-soak-runtime.sh MPI TRAIN SOAK [SECONDS [SEED]]
set -eu
# shellcheck source=../logical-hosts.sh
. "$(dirname "$0")/../logical-hosts.sh"
on_hosts_or_skip "$1"
seed=${5:-$(date +%s)}
echo "runtime: 4 ranks on 2 hosts, ${4:-5} s, seed $seed"
on_hosts "$1" 4 2 "$2" "$3" --seconds "${4:-5}" --seed "$seed"
