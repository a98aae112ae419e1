#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a build folder ready for ninja, whatever state it is in: configure.sh FOLDER [MESON-OPTIONS]
#   none there, or half made      it is set up
#   set up, by whoever            the options given here are set, its others stay; what was installed
#                                 since is looked for again
#   broken                        what meson keeps in it is made anew, all else in it stays
# Silent, unless meson fails: then its output, and exit status 1.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: configure.sh FOLDER [MESON-OPTIONS]}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
log=$folder/configure.log
kept=$folder/meson-private.broken

cd "$top"
if [ -e "$folder/meson-private/coredata.dat" ]; then
    ! meson setup --reconfigure "$folder" "$@" >"$log" 2>&1 || exit 0
    rm -rf "$kept"
    mv "$folder/meson-private" "$kept"
fi
rm -f "$folder/build.ninja"
if ! meson setup "$folder" "$@" >"$log" 2>&1; then
    # It was not the folder's fault, which keeps its options then.
    [ ! -e "$kept" ] || { rm -rf "$folder/meson-private" && mv "$kept" "$folder/meson-private"; }
    cat "$log"
    exit 1
fi
[ ! -e "$kept" ] || echo "$folder was broken and is set up anew, with meson's default options${*:+ and $*}"
rm -rf "$kept"
