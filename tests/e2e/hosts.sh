# SPDX-License-Identifier: Apache-2.0
# hosts.sh - real hosts on one machine: namespaces for network, names, IPC, mounts and processes.
#
#   . hosts.sh
#   hosts_up COUNT RATE      RATE in tbf's words (100mbit): what every host can send; "" unlimited
#   hosts_mpirun SLOTS ...   Open MPI's mpirun on host 0, SLOTS ranks a host; the rest are its arguments
#   hosts_dir I              where the files that host I wrote under $HOSTS_RUN lie
#   HOSTS_BURST              tbf's burst, before hosts_up: fast links want more than its 64kb
#   hosts_down               called by the trap that hosts_up sets
#
# Ranks yield while they wait: the hosts share this machine's processors, which Open MPI can't know.
# Every host sees a $HOSTS_RUN of its own, an own /dev/shm and process numbers of its own, as hosts do
# that share no file system. Names are unique to the calling shell. Needs root, /bin/sh, iproute2.

hosts_up() {
    HOSTS_COUNT=$1
    HOSTS_RATE=$2
    HOSTS_ID=rs$$
    HOSTS_WORK=$(mktemp -d)
    HOSTS_RUN=$HOSTS_WORK/run
    mkdir "$HOSTS_RUN"
    trap hosts_down EXIT
    trap 'exit 130' INT TERM HUP
    ip netns add "$HOSTS_ID-sw"
    ip netns exec "$HOSTS_ID-sw" ip link add br0 type bridge
    ip netns exec "$HOSTS_ID-sw" ip link set br0 up
    i=0
    while [ "$i" -lt "$HOSTS_COUNT" ]; do
        hosts_add "$i"
        i=$((i + 1))
    done
    hosts_write_agent
}

hosts_name() {
    echo "$HOSTS_ID-$1"
}

hosts_dir() {
    echo "$HOSTS_WORK/host$1"
}

hosts_add() {
    name=$(hosts_name "$1")
    mkdir "$(hosts_dir "$1")"
    ip netns add "$name"
    ip netns exec "$HOSTS_ID-sw" ip link add "p$1" type veth peer name v0 netns "$name"
    ip netns exec "$HOSTS_ID-sw" ip link set "p$1" master br0 up
    ip netns exec "$name" ip addr add "10.77.0.$(($1 + 1))/24" dev v0
    ip netns exec "$name" ip link set v0 up
    ip netns exec "$name" ip link set lo up
    [ -z "$HOSTS_RATE" ] ||
        ip netns exec "$name" tc qdisc replace dev v0 root tbf rate "$HOSTS_RATE" burst "${HOSTS_BURST:-64kb}" latency 20ms
}

# The agent Open MPI starts its daemons with: drop options, take the host, run the rest there.
hosts_write_agent() {
    HOSTS_AGENT=$HOSTS_WORK/agent
    cat >"$HOSTS_AGENT" <<AGENT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec ip netns exec "\$host" unshare --uts --ipc --mount --pid --fork --mount-proc --kill-child \\
    /bin/sh -c 'hostname "\$0"; mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        mount --bind "$HOSTS_WORK/host\${0##*-}" "$HOSTS_RUN"; cd "$HOSTS_RUN"
        exec /bin/sh -c "\$1"' "\$host" "\$*"
AGENT
    chmod 700 "$HOSTS_AGENT"
}

# Shell words that read back as the arguments.
hosts_quote() {
    for word; do
        printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"
    done
}

hosts_mpirun() {
    slots=$1
    shift
    list=
    i=0
    while [ "$i" -lt "$HOSTS_COUNT" ]; do
        list=$list${list:+,}$(hosts_name "$i"):$slots
        i=$((i + 1))
    done
    "$HOSTS_AGENT" "$(hosts_name 0)" "exec mpirun.openmpi --allow-run-as-root --oversubscribe \
        -H $list -np $((HOSTS_COUNT * slots)) --mca plm_rsh_agent '$HOSTS_AGENT' \
        --mca btl tcp,vader,self --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca oob_tcp_if_include 10.77.0.0/24 --mca mpi_yield_when_idle 1 $(hosts_quote "$@")"
}

hosts_down() {
    status=$?
    trap - EXIT
    i=0
    while [ "$i" -lt "$HOSTS_COUNT" ]; do
        ip netns del "$(hosts_name "$i")" 2>/dev/null
        i=$((i + 1))
    done
    ip netns del "$HOSTS_ID-sw" 2>/dev/null
    rm -rf "$HOSTS_WORK"
    exit "$status"
}
