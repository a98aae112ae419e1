#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rt-run reaches a real host by the real ssh, with options of its own (port, identity, known hosts): a
# training on both hosts, its words and variables; a host that refuses the key, one that listens
# nowhere, one that is another than it was, one without a name; the ssh client is killed while ranks
# run. The server, dropbear, needs no service, account or file of this system.
#   test-rt-run-ssh.sh BUILD_ROOT
set -eu
[ "$(id -u)" -eq 0 ] || { echo "needs root: makes network namespaces"; exit 77; }
for program in ssh ssh-keygen dropbear dropbearkey; do
    command -v "$program" >/dev/null || { echo "needs $program (openssh-client, dropbear-bin)"; exit 77; }
done
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
run=$build/samples/runtime/run/rt-run
mlp="$build/samples/train/mlp-tcp --steps 10 --seed 5"
. "$here/hosts.sh"
hosts_up 2 ""
a=$(hosts_name 0) b=10.77.0.2
export RT_TABLE=none
unset SSH_AUTH_SOCK
server=
clean() {
    status=$?
    [ -z "$server" ] || kill -KILL "$server" # unshare takes no other
    (exit "$status")
    hosts_down
}
trap clean EXIT
cd "$HOSTS_WORK"

# The server's root has another home and shell, in its own mount namespace alone.
mkdir -m 700 home home/.ssh
sed "s|^root:.*|root:x:0:0::$PWD/home:/bin/sh|" /etc/passwd >passwd
for key in id other; do
    ssh-keygen -q -t ed25519 -N "" -C "" -f "$key"
done
for key in host another; do
    dropbearkey -t ed25519 -f "$key.key" >"$key.said" 2>/dev/null
done
cp id.pub home/.ssh/authorized_keys
chmod 600 home/.ssh/authorized_keys
sed -n "s/^ssh-ed25519 [^ ]*/[$b]:2222 &/p" host.said >known
sed -n "s/^ssh-ed25519 [^ ]*/[$b]:2222 &/p" another.said >known.another
"$HOSTS_AGENT" "$(hosts_name 1)" "mount --bind $PWD/passwd /etc/passwd; cd /
    exec dropbear -F -E -s -m -r $PWD/host.key -p $b:2222 -P $PWD/pid" 2>server &
server=$!

# ssh without the words of this machine's user
ssh="ssh -F none -x -o BatchMode=yes -o ConnectTimeout=20 -o GlobalKnownHostsFile=none"
ssh="$ssh -o IdentitiesOnly=yes -p 2222"
good="$ssh -o UserKnownHostsFile=$PWD/known -i $PWD/id"

fail() {
    echo "FAILED: $*; said:"
    cat out err server
    exit 1
}
# WANTED_STATUS RT-RUN'S..., on the first host
expect() {
    wanted=$1 status=0
    shift
    echo "rt-run $*"
    "$HOSTS_AGENT" "$a" "cd '$PWD' && exec '$run' --interface v0 $(hosts_quote "$@")" >out 2>err </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status, expected $wanted"
}
says() {
    grep -q -e "$1" err || fail "nothing says '$1'"
}
# processes of the second host's but for the server's main one and what has started it
nothing_stays() {
    tries=0
    while ip netns pids "$(hosts_name 1)" | while read -r pid; do
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "rt-run\|sleep" && echo "$pid"
    done | grep -q .; do
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || fail "left on the other host"
        sleep 0.01
    done
}

until [ -e pid ]; do kill -0 "$server" || fail "no server"; done

# A training; words and variables as they are; the status.
expect 0 -H "$a:2,$b:2" --ssh "$good" $mlp
grep -q "identical on 4 ranks" out || fail "no training"
export ODD="it's \"two\" \$words"
expect 7 -H "$a,$b" --ssh "$good" -x ODD sh -c '[ "$RT_RANK" = 0 ] && exit 0
printf "%s|%s|%s|%s" "$ODD" "$1" "$2" "${SSH_CONNECTION%% *}"; exit 7' x '*' "a  b"
[ "$(cat out)" = "$ODD|*|a  b|10.77.0.1" ] || fail "other words"
says "^rt-run: rank 1 ($b, process [0-9]*) ended with status 7"
# ... by a file of ssh's
printf 'Host other\n HostName %s\n Port 2222\n IdentityFile %s\n UserKnownHostsFile %s\n' \
    "$b" "$PWD/id" "$PWD/known" >config
expect 0 -H other:2 --ssh "ssh -F $PWD/config -o BatchMode=yes" $mlp
nothing_stays

# Who doesn't answer: ssh says why, rt-run says which host, and what it called.
not_started="^rt-run: host $b: rt-run could not be started there: ssh .* ended with status 255"
expect 1 -H "$a,$b" --ssh "$ssh -o UserKnownHostsFile=$PWD/known -i $PWD/other" true
says "Permission denied (publickey)" && says "$not_started"
expect 1 -H "$a,$b" --ssh "$(echo "$good" | sed 's/2222/2223/')" true
says "port 2223: Connection refused" && says "$not_started"
for known in /dev/null "$PWD/known.another"; do
    expect 1 -H "$a,$b" --ssh "$ssh -o UserKnownHostsFile=$known -i $PWD/id" true
    says "^Host key verification failed" && says "$not_started"
done
expect 1 -H "$a,nosuch.invalid" --ssh "$good" true
says "ssh: Could not resolve hostname nosuch.invalid"
says "^rt-run: host nosuch.invalid: rt-run could not be started there: ssh .* ended with status 255"

# ssh is killed: the other host's ranks are lost, and end there.
rm -f up.*
"$HOSTS_AGENT" "$a" "cd '$PWD' && exec '$run' --interface v0 -H $a,$b:2 --ssh '$good' sh -c '
    : >$PWD/up.\$RT_RANK; setsid sleep 600 & sleep 600'" >out 2>err </dev/null &
job=$! status=0
until [ -e up.0 ] && [ -e up.1 ] && [ -e up.2 ]; do kill -0 $job || fail "no ranks"; done
kill -KILL "$(ip netns pids "$a" | while read -r pid; do
    [ "$(cat "/proc/$pid/comm")" != ssh ] || echo "$pid"
done)"
wait $job || status=$?
[ "$status" -eq 1 ] || fail "status $status, expected 1"
says "^rt-run: lost host $b, and its ranks: its rt-run, or the connection to it, has ended"
nothing_stays
echo ok
