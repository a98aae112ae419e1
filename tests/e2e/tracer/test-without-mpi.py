# SPDX-License-Identifier: Apache-2.0
"""Ways of a program without MPI: python3 test-without-mpi.py ways|shm|export BUILD_ROOT PROGRAM

Runs without-mpi.c in each of its ways without and with the tracer: output, error output and exit
status must be the same, the captures must hold every call of each process, and after a merge nothing
may be left on /dev/shm. `shm`: where there is no /dev/shm, or it can't be written (needs root). `export`: the tool that
converts the capture at the end never ends.
"""
import os
import pathlib
import shutil
import sys
import tempfile
import time

import without_mpi
from without_mpi import ask, calls, tool

# way: calls of each of its processes
WAYS = {
    "plain": [20], "close-all": [10 + 10000 + 10], "fork-both": [10 + 30 + 10, 50],
    "daemon": [10, 40 + 10], "children": [20], "kill": [20],
}
# These end without the tracer's knowledge: their rings are saved by `merge`.
UNHEARD = {"daemon": 1, "kill": 1}
THREADS, LEAST = 4, 1000  # of thread-exit

SHM_MISSING = """
mkdir dev; mount -t tmpfs tmpfs dev
for n in null zero urandom; do touch dev/$n; mount --bind /dev/$n dev/$n; done
mount --move dev /dev"""
SHM_READ_ONLY = "mount -t tmpfs -o ro tmpfs /dev/shm"


def run(command, work, extra):
    done = without_mpi.run(command, work, extra)
    return done.returncode, done.stdout, done.stderr


def process_of(capture):
    return capture.stem.rsplit("-", 1)[1]


def wait_for_end(capture):
    """A daemon outlives what was started."""
    limit = time.monotonic() + 30
    while pathlib.Path("/proc", process_of(capture)).exists():
        assert time.monotonic() < limit, capture
        time.sleep(0.01)


def rings(capture):
    return sorted(pathlib.Path("/dev/shm").glob(f"ringscope-{os.getuid()}-{process_of(capture)}-*"))


def traced(build, program, way, work, name):
    """The captures that a way leaves, after checking that its program did not notice."""
    plain = run([program, way], work, {})
    folder = pathlib.Path(work, name)
    seen = run([program, way], work, {"LD_PRELOAD": f"{build}/tracer/libringscope.so",
                                      "RINGSCOPE_DIR": name, "RINGSCOPE_EXPORT": "none"})
    assert seen == plain, (way, plain, seen)
    captures = sorted(folder.glob("*.rsc"))
    for capture in captures:
        wait_for_end(capture)
    left = sum(bool(rings(c)) for c in captures)
    assert left == UNHEARD.get(way, 0), (way, left)
    tool(build, "merge", folder, "--quiet")
    for capture in captures:
        assert not rings(capture), (way, rings(capture))
    return captures


def check_ways(build, program, work):
    for way, expected in WAYS.items():
        captures = traced(build, program, way, work, way)
        got = sorted(calls(build, c) for c in captures)
        assert got == sorted(expected), (way, got)
        print("ok", way, flush=True)


def check_exec_kill(build, program, work):
    """Its rings lost their names: the capture says so at once."""
    capture, = traced(build, program, "exec-kill", work, "exec-kill")
    assert calls(build, capture) == 10, calls(build, capture)
    said = ask(build, capture, "SELECT value AS x FROM meta WHERE key LIKE '%/kill_safe'")
    assert said == "no: an exec failed", said
    print("ok exec-kill", flush=True)


def check_signals(build, program, work):
    """They interrupt wrappers and the writing of rings; nothing is lost, and errno stays."""
    capture, = traced(build, program, "signals", work, "signals")
    assert calls(build, capture) >= 10 + 200 * 21 + 10, calls(build, capture)
    assert ask(build, capture, "SELECT incomplete + dropped_events AS x FROM run") == 0
    print("ok signals", flush=True)


def check_cancel(build, program, work):
    capture, = traced(build, program, "cancel", work, "cancel")
    made = int(pathlib.Path(work, "made").read_text())
    assert calls(build, capture) == 10 + made + 10, (made, calls(build, capture))
    print("ok cancel", flush=True)


def check_thread_exit(build, program, work):
    """A thread ends the process while others record: all that they had recorded is whole."""
    for i in range(10):
        capture, = traced(build, program, "thread-exit", work, f"thread-exit-{i}")
        assert calls(build, capture) >= 10 + THREADS * LEAST + 5, calls(build, capture)
        assert ask(build, capture, "SELECT incomplete + dropped_events AS x FROM run") == 0
    print("ok thread-exit", flush=True)


def check_without_shm(build, program, work):
    if os.getuid() != 0:
        print("needs root: mounts over /dev")
        sys.exit(77)
    for name, script, why in (("missing", SHM_MISSING, "No such file or directory"),
                              ("read-only", SHM_READ_ONLY, "Read-only file system")):
        inside = f'{script}\nLD_PRELOAD={build}/tracer/libringscope.so exec "{program}" plain'
        done = run(["unshare", "--mount", "sh", "-euc", inside], work,
                   {"RINGSCOPE_DIR": name, "RINGSCOPE_EXPORT": "none"})
        assert done == (0, "at the end of plain\n", ""), (name, done)
        capture, = pathlib.Path(work, name).glob("*.rsc")
        assert calls(build, capture) == 20, name
        said = ask(build, capture, "SELECT value AS x FROM meta WHERE key LIKE '%/kill_safe'")
        assert said == f"no: rings on /dev/shm: {why}", said
        print("ok /dev/shm", name, flush=True)


def check_export_without_end(build, program, work):
    """A tool beside the library that would hold the program's end up for ever."""
    library = shutil.copy(f"{build}/tracer/libringscope.so", work)
    tool_path = pathlib.Path(work, "ringscope")
    tool_path.write_text("#!/bin/sh\nexec sleep 600\n")
    tool_path.chmod(0o700)
    status, out, err = run([program, "plain"], work,
                           {"LD_PRELOAD": library, "RINGSCOPE_DIR": "slow"})
    assert (status, out) == (0, "at the end of plain\n"), (status, out)
    assert "ringscope: " in err and "`ringscope merge`" in err, err
    capture, = pathlib.Path(work, "slow").glob("*.rsc")
    assert calls(build, capture) == 20 and not rings(capture)
    print("ok export", flush=True)


def main(which, build, program):
    build, program = os.path.abspath(build), os.path.abspath(program)
    with tempfile.TemporaryDirectory() as work:
        if which == "shm":
            check_without_shm(build, program, work)
            return
        if which == "export":
            check_export_without_end(build, program, work)
            return
        check_ways(build, program, work)
        check_exec_kill(build, program, work)
        check_signals(build, program, work)
        check_cancel(build, program, work)
        check_thread_exit(build, program, work)


if __name__ == "__main__":
    main(*sys.argv[1:])
