#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rt-run on two real hosts, reached by a command in place of ssh that passes no environment on: ranks
# find each other by rank 0's name (which is its loopback's on its own host, as Debian has it), by
# interface, and by IPv6; arguments and variables arrive as they are; a rank's death, a lost host,
# hosts that can't be reached and a host without the interface are named; nothing stays on any host.
#   test-rt-run-hosts.sh BUILD_ROOT
set -eu
[ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
run=$build/samples/runtime/run/rt-run
mlp="$build/samples/train/mlp-tcp --steps 10 --seed 5"
. "$here/hosts.sh"

clean() {
    status=$?
    set +e
    rm -rf "/etc/netns/$a" "/etc/netns/$b"
    (exit "$status")
    hosts_down
}
hosts_up 2 ""
a=$(hosts_name 0) b=$(hosts_name 1)
trap clean EXIT
mkdir -p "/etc/netns/$a" "/etc/netns/$b"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$a" >"/etc/netns/$a/hosts"
printf '127.0.0.1 localhost\n10.77.0.1 %s\n127.0.1.1 %s\n' "$a" "$b" >"/etc/netns/$b/hosts"
for i in 0 1; do
    ip netns exec "$(hosts_name $i)" ip addr add "fd77::$((i + 1))/64" dev v0 nodad
done
printf '#!/bin/sh\nexec env -i PATH="$PATH" "%s" "$@"\n' "$HOSTS_AGENT" >"$HOSTS_WORK/ssh"
chmod +x "$HOSTS_WORK/ssh"
export RT_SSH="$HOSTS_WORK/ssh" RT_TABLE=none
cd "$HOSTS_WORK"

fail() {
    echo "FAILED: $*; said:"
    cat out err
    exit 1
}
# WANTED_STATUS RT-RUN'S...
expect() {
    wanted=$1 status=0
    shift
    echo "rt-run $*"
    "$run" "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status, expected $wanted"
}
says() {
    grep -q -e "$1" out err || fail "nothing says '$1'"
}
nothing_stays() {
    for host in "$a" "$b"; do
        tries=0
        while [ -n "$(ip netns pids "$host")" ]; do
            tries=$((tries + 1))
            [ "$tries" -lt 1000 ] || { ip netns pids "$host" | xargs ps -fp; fail "left on $host"; }
            sleep 0.01
        done
    done
}

# By name, interface, and address of IPv6: the same training as on one host.
expect 0 -n 4 "$build/samples/train/on-hosts" 2 -- $mlp
sum=$(sed -n 's/^parameters identical on 4 ranks, checksum \([0-9a-f]*\).*/\1/p' out)
[ -n "$sum" ] || fail "no checksum"
for how in "" "--interface v0" "--addr fd77::1" "--addr fd77::1 --interface v0"; do
    expect 0 -H "$a:2,$b:2" $how $mlp
    says "identical on 4 ranks, checksum $sum"
done
expect 0 -n 2 --addr ::1 $mlp
says "identical on 2 ranks"
# ... and under Open MPI on these hosts, to the bit
if command -v mpirun.openmpi >/dev/null && [ -x "$build/samples/train/mlp" ]; then
    RT_DETERMINISTIC=1 expect 0 -H "$a:2,$b:2" --interface v0 $mlp
    sum=$(sed -n 's/^parameters identical on 4 ranks, checksum \([0-9a-f]*\).*/\1/p' out)
    hosts_mpirun 2 -x RT_DETERMINISTIC=1 -x RT_TABLE=none "$build/samples/train/mlp" --steps 10 --seed 5 \
        >out 2>err || fail "status $? under Open MPI"
    says "identical on 4 ranks, checksum $sum"
fi
nothing_stays

# Words as they are; the variables that are named, and those of the runtime and the tracer.
odd="it's \"two\" \$words
and a line"
export ODD="$odd" NOT_NAMED=1 RT_CYCLE_TIME=7 RINGSCOPE_VERBOSE=0
expect 0 -H "$a,$b:2" -n 2 -x ODD -x "NEW=n w" sh -c '[ "$RT_RANK" = 1 ] || exit 0
printf "%s|" "$@" "$ODD" "$NEW" "${NOT_NAMED-}" "$RT_CYCLE_TIME" "$RINGSCOPE_VERBOSE"
echo "$RT_LOCAL_RANK $RT_LOCAL_SIZE $(hostname) $(pwd)"' x "$odd" '' '*'
printf '%s||*|%s|n w||7|0|0 1 %s %s\n' "$odd" "$odd" "$b" "$HOSTS_WORK" >wanted
cmp out wanted || fail "other words"
unset RT_CYCLE_TIME RINGSCOPE_VERBOSE

# Deaths.
expect 139 -H "$a:2,$b:2" --grace 0 sh -c '[ "$RT_RANK" = 3 ] && kill -SEGV $$; sleep 600'
says "^rt-run: rank 3 ($b, process [0-9]*) was killed by signal 11"
says "^rt-run: ends rank 0 1 2"
expect 127 -H "$a,$b" nosuch
[ "$(cat err)" = "rt-run: $a: no program nosuch" ] || [ "$(cat err)" = "rt-run: $b: no program nosuch" ] ||
    fail "not once"
nothing_stays

# rt-run is ended, or killed, with its ranks at work; one host's agent is.
agent_on() {
    for pid in $(ip netns pids "$1"); do
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qx "$run --agent " && echo "$pid"
    done
}
for what in TERM KILL agent; do
    rm -f up.*
    echo "to be ended: $what"
    "$run" -H "$a:2,$b:2" sh -c ': >"$1/up.$RT_RANK"; setsid sleep 600 & sleep 600' x "$HOSTS_WORK" \
        >out 2>err &
    pid=$! status=0
    until [ -e up.0 ] && [ -e up.1 ] && [ -e up.2 ] && [ -e up.3 ]; do kill -0 $pid; done
    case $what in
    TERM) kill $pid && wanted=143 ;;
    KILL) kill -KILL $pid && wanted=137 ;;
    agent) # its keeper may be gone with it before the signal is there
        agents=$(agent_on "$b") || true
        [ -n "$agents" ] || fail "no agent on $b"
        kill -KILL $agents || true
        wanted=1
        ;;
    esac
    wait $pid || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status, expected $wanted"
    nothing_stays
done
says "^rt-run: lost host $b, and its ranks"

# Hosts that aren't reached, in each of the ways; one that greets first.
expect 1 -H "$a,$b" --ssh "sh -c 'exit 255'" true
says "^rt-run: host $a: rt-run could not be started there: .* status 255$"
says "^rt-run: host $b: rt-run could not be started there"
expect 1 -H "$a" --ssh "sh -c 'exit 127'" true
says "it has to be where it is here, at $run"
expect 1 -H "$a,$b" --start-timeout 1 --ssh "sh -c 'exec sleep 600'" true
says "^rt-run: host $a: no answer within 1 s"
says "^rt-run: host $b: no answer within 1 s"
printf '#!/bin/sh\necho "welcome to $1"\nexec "$RT_SSH" "$@"\n' >greets
chmod +x greets
expect 0 -H "$a,$b" --ssh ./greets echo works
[ "$(sort -u out)" = works ] && grep -qx "welcome to $b" err || fail "a greeting"

# One host has no such interface; every rank is told.
expect 1 -H "$a" --interface nosuch0 $mlp
says "^rt-run: RT_INTERFACE is 'nosuch0', which has no address here; this host has: lo v0"
ip netns exec "$b" ip link set v0 down
ip netns exec "$b" ip link set v0 name v9
ip netns exec "$b" ip link set v9 up
expect 1 -H "$a:2,$b:2" --interface v0 --tag-output $mlp
says "RT_INTERFACE is 'v0', which has no address"
[ "$(grep -c "RT_INTERFACE is 'v0'" err)" -ge 4 ] || fail "not every rank is told"
# Rank 0's address is another host's.
expect 1 -H "$a,$b" --addr 10.77.0.2 $mlp
says "^rt-run: $a: rank 0 can't wait for the others: RT_ADDR, 10.77.0.2, is no address of this host"
nothing_stays
echo ok
