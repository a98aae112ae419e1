#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/configure.sh on build folders in every state, in a small project: test-configure.sh SCRIPT
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MESONINTROSPECT MESON_BUILD_ROOT MESON_SOURCE_ROOT
mkdir -p "$work/tree/tests"
cp "$1" "$work/tree/tests/configure.sh"
cd "$work/tree"
echo "project('small')" >meson.build
printf "option('%s', type: 'string', value: 'default')\n" one two >meson_options.txt
fail() { echo "FAILED: $*"; cat "$work/said"; exit 1; }

state=fresh
configure() { # OPTIONS...
    tests/configure.sh build "$@" >"$work/said" 2>&1 || fail "$state: exit status $?"
    [ -f build/build.ninja ] || fail "$state: no build.ninja"
    ninja -C build >"$work/said" 2>&1 || fail "$state: can't be built"
}
expect() { # OPTION VALUE
    meson introspect --buildoptions build >"$work/options.json"
    python3 - "$work/options.json" "$@" <<'PY' || fail "$state: $1 is not $2"
import json, sys
path, option, value = sys.argv[1:]
sys.exit({o["name"]: str(o["value"]) for o in json.load(open(path))}[option] != value)
PY
}

configure
expect werror False
state="set up by others"
configure --werror -Done=wanted
expect werror True
expect one wanted
state="asked for nothing"
configure
expect one wanted
state="asked for another option"
touch build/a-run
configure -Dtwo=wanted
expect one wanted
expect two wanted

state="without build.ninja"
rm build/build.ninja
configure
expect one wanted
state="killed during the first setup"
rm build/build.ninja build/meson-private/*
configure -Done=wanted
expect one wanted
for file in coredata.dat cmd_line.txt build.dat; do
    for text in "" "no such thing"; do
        state="$file holds '$text'"
        printf '%s' "$text" >"build/meson-private/$file"
        configure -Done=wanted --werror
        expect one wanted
        expect werror True
    done
done
state="coredata.dat and cmd_line.txt are gone wrong"
echo x | tee build/meson-private/coredata.dat >build/meson-private/cmd_line.txt
configure -Done=wanted
expect one wanted
[ -e build/a-run ] || fail "what else was in the folder is gone"

state="copied with its tree"
cp -r "$work/tree" "$work/copy"
cd "$work/copy"
rm -rf "$work/tree"
configure
expect one wanted

# A fault of the tree is shown, and costs no options.
echo "no_such_function()" >>meson.build
if tests/configure.sh build >"$work/said" 2>&1; then fail "a broken tree passes"; fi
grep -q no_such_function "$work/said" || fail "a broken tree is not shown"
echo "project('small')" >meson.build
state="after a broken tree"
configure
expect one wanted
