#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ringscope run: environment for the target alone, through mpirun of either kind, its status kept,
# the merge at the end. usage: test-run-command.sh RINGSCOPE CAPTURE
# The tool is copied beside an empty tracer, so that this needs none: the program leaves a capture
# itself, as a traced one would.
set -eu
tool=$1 capture=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$tool" "$dir/ringscope"
: >"$dir/libringscope.so"
cd "$dir"
fail() { echo "FAILED: $*"; exit 1; }

cat >program <<'EOF'
#!/bin/sh
printf '%s\n' "$RINGSCOPE_DIR|$RINGSCOPE_EXPORT|${RINGSCOPE_TRACE:-}|$LD_PRELOAD|$*" >"$OUT"
[ -z "${CAPTURE:-}" ] || cp "$CAPTURE" "$RINGSCOPE_DIR/alpha-500.rsc"
exit "${STATUS:-0}"
EOF
chmod +x program

# Arguments, status and environment; the run is merged.
status=0
OUT=$dir/seen CAPTURE=$capture STATUS=41 ./ringscope run -o out --trace mpi,nvtx -- \
    ./program -np "two words" 2>messages || status=$?
[ "$status" = 41 ] || fail "status $status, not the program's"
[ "$(cat seen)" = "$dir/out|none|mpi,nvtx|$dir/libringscope.so|-np two words" ] ||
    fail "the program saw: $(cat seen)"
[ -s out/run.json ] && [ -s out/run.sqlite ] || fail "not merged: $(cat messages)"
grep -q "ringscope report $dir/out" messages || fail "does not say what is next"
[ "$(stat -c %a out)" = 700 ] || fail "the folder is open to others"

# A program that leaves nothing: said, and no folder stays.
OUT=$dir/seen ./ringscope run -- ./program 2>messages || fail "status of a good program"
grep -q "nothing was recorded: the program called no MPI, NCCL or Gloo" messages || fail "$(cat messages)"
OUT=$dir/seen RINGSCOPE_TRACE=nccl ./ringscope run -- ./program 2>messages || fail "status"
grep -q "called nothing of what was to be recorded (nccl)" messages || fail "$(cat messages)"
[ -z "$(ls -d ringscope-program-* 2>/dev/null)" ] || fail "an empty folder stays"

# A launcher of each kind: the ranks get the environment, the launcher itself does not.
for kind in "mpirun (Open MPI) 4" "rt-run (Ringscope) 0.1" "HYDRA build details:"; do
    cat >mpirun <<EOF
#!/bin/sh
[ "\$1" != --version ] || { echo "$kind"; exit 0; }
[ -z "\${LD_PRELOAD:-}" ] || exit 9
for a in "\$@"; do printf '%s\n' "\$a"; done >line
EOF
    chmod +x mpirun
    OUT=$dir/seen ./ringscope run -o m -np 3 -H a:2,b:1 --mpirun ./mpirun -- ./program x \
        2>messages || fail "$kind: $(cat messages)"
    if [ "${kind#HYDRA}" != "$kind" ]; then
        want="-np 3 -hosts a:2,b:1 -genv RINGSCOPE_DIR $dir/m -genv RINGSCOPE_RUN_ID ID"
        want="$want -genv RINGSCOPE_EXPORT none -genv LD_PRELOAD $dir/libringscope.so ./program x"
    else
        want="-np 3 -H a:2,b:1 -x RINGSCOPE_DIR=$dir/m -x RINGSCOPE_RUN_ID=ID"
        want="$want -x RINGSCOPE_EXPORT=none -x LD_PRELOAD=$dir/libringscope.so ./program x"
    fi
    got=$(tr '\n' ' ' <line | sed 's/\(RUN_ID[ =]\)[0-9-]*/\1ID/; s/ $//')
    [ "$got" = "$want" ] || fail "$kind: $got"
done

# The launcher gets options of its own, beside its name; a name with a space in it is one name.
mkdir "with space"
cp mpirun "with space/mpirun"
for mpirun in './mpirun --map-by "no de"' "with space/mpirun"; do
    ./ringscope run -o m -np 3 --mpirun "$mpirun" -- ./program 2>messages || fail "$(cat messages)"
    case $mpirun in
    *map-by*) want="--map-by|no de|-np|3|-genv|" ;;
    *) want="-np|3|-genv|" ;;
    esac
    got=$(tr '\n' '|' <line)
    [ "${got#"$want"}" != "$got" ] || fail "$mpirun: $got"
done

# Who ends badly and leaves nothing is named, even where captures of an earlier run lie; a launcher
# that refuses to start gets a hint for its options.
for kind in "Open MPI" "HYDRA" "rt-run (Ringscope)"; do
    printf '#!/bin/sh\n[ "$1" != --version ] || { echo "%s"; exit 0; }\nexit 7\n' "$kind" >mpirun
    status=0
    ./ringscope run -o out -np 3 --mpirun "./mpirun -v" -- ./program 2>messages || status=$?
    [ "$status" = 7 ] || fail "status $status, not the launcher's"
    grep -q "nothing was recorded: ./mpirun ended with status 7" messages || fail "$(cat messages)"
    grep -q "called no MPI" messages && fail "blames the program: $(cat messages)"
    want='-np 3 --mpirun "./mpirun -v .*OPTIONS" -- '
    [ "$kind" != "Open MPI" ] || want='-np 3 --mpirun "./mpirun -v .*--oversubscribe" -- '
    grep -q -e "$want" messages || fail "$kind: no hint: $(cat messages)"
done
status=0
./ringscope run -- sh -c 'kill -SEGV $$' 2>messages || status=$?
[ "$status" = 139 ] || fail "status $status, not that of a segmentation fault"
grep -q "sh ended with status 139 (128 + signal 11" messages || fail "$(cat messages)"
./ringscope run -- sh -c 'exit 255' 2>messages && fail "255 became 0"
grep -q "sh ended with status 255, perhaps" messages || fail "$(cat messages)"

# Wrong usage: 2, in one line.
for wrong in "run" "run --trace tea -- ./program" "run -H a:2 -- ./program" \
    "run -np 0 -- ./program" "run -np -1 -- ./program" "run -np two -- ./program" \
    "run -np 4x -- ./program" "run -np 4294967297 -- ./program" "run --mpirun mpirun -- ./program" \
    "run -- ./no-such-program" "run -np 2 --mpirun ./no-such-mpirun -- ./program" \
    "merge" "merge no-such-folder" "merge $dir/program" "view" "no-such-command"; do
    status=0
    # shellcheck disable=SC2086
    ./ringscope $wrong >answer 2>&1 || status=$?
    [ "$status" = 2 ] || fail "'$wrong' gives $status"
    [ "$(wc -l <answer)" = 1 ] || fail "'$wrong' says: $(cat answer)"
done
echo ok
