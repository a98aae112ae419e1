# SPDX-License-Identifier: Apache-2.0
"""Trouble around a traced program: test-trouble.py BUILD_ROOT PROGRAM

The run folder vanishes or can't be made, there is no memory for rings, a disk or /dev/shm has 1 MiB: the
program (without-mpi.c) ends as it would, one line tells, and what was written reads.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from without_mpi import ask, calls, environment, run, tool

UNCONVERTED = {"RINGSCOPE_EXPORT": "none"}

SMALL = """
mkdir small; mount -t tmpfs -o size=1m tmpfs {where}
LD_PRELOAD={build}/tracer/libringscope.so "{program}" {way}
status=$?
[ {where} = /dev/shm ] || cp -r small/run saved
exit $status"""


def traced(build, program, way, work, folder):
    return run([program, way], work, {**UNCONVERTED, "LD_PRELOAD": f"{build}/tracer/libringscope.so",
                                      "RINGSCOPE_DIR": str(folder)})


def rings(pid="*"):
    return set(pathlib.Path("/dev/shm").glob(f"ringscope-{os.getuid()}-{pid}-*"))


def one_line(text, *words):
    assert text.count("\n") == 1 and text.startswith("ringscope: "), text
    assert all(w in text for w in words), text


def check_folder(build, program, work):
    """No user, root either, can make a folder there."""
    for folder, why in (("/dev/null/run", "Not a directory"), ("/proc/run", "No such file")):
        done = traced(build, program, "plain", work, folder)
        assert (done.returncode, done.stdout) == (0, "at the end of plain\n"), done
        one_line(done.stderr, "nothing is recorded", folder, why)


def check_vanishing(build, program, work):
    folder = pathlib.Path(work, "vanishes")
    process = subprocess.Popen(
        [program, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=work, env=environment({**UNCONVERTED,
                                              "LD_PRELOAD": f"{build}/tracer/libringscope.so",
                                              "RINGSCOPE_DIR": str(folder)}))
    assert process.stdout.readline() == "at the end of stay\n"
    assert rings(process.pid)
    shutil.rmtree(folder)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), (process.returncode, out, err)
    one_line(err, "recording stopped", str(folder))
    assert not rings(process.pid) and not folder.exists()


def check_memory(build, program, work):
    done = traced(build, program, "no-memory", work, "no-memory")
    assert (done.returncode, done.stdout) == (0, "at the end of no-memory\n"), done
    one_line(done.stderr, "nothing is recorded", "Cannot allocate memory")
    assert not list(pathlib.Path(work).glob("no-memory/*"))
    done = traced(build, program, "thread-memory", work, "thread-memory")
    assert (done.returncode, done.stdout) == (0, "at the end of thread-memory\n"), done
    one_line(done.stderr, "some threads had no memory", "Cannot allocate memory")
    tool(build, "merge", pathlib.Path(work, "thread-memory"), "--quiet")
    assert calls(build, f"{work}/thread-memory") == 20
    report = json.loads(tool(build, "report", f"{work}/thread-memory", "--format", "json"))
    assert any("threads was off: some threads" in w["text"] for w in report["warnings"]), report


def check_small(build, program, work):
    """Of the run folder what didn't fit is saved from the rings; on /dev/shm the rings don't fit."""
    if os.getuid() != 0:
        print("no small file systems: needs root")
        return
    names = {"small": "close-all", "/dev/shm": "fork-both"}
    for where, way in names.items():
        plain = run([program, way], work, {})
        script = SMALL.format(where=where, build=build, program=program, way=way)
        done = run(["unshare", "--mount", "sh", "-uc", script], work,
                   {**UNCONVERTED, "RINGSCOPE_DIR": "small/run" if where == "small" else "on-small"})
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done
        assert done.stderr.count("\n") <= 1, done.stderr
        shutil.rmtree(f"{work}/small")
    saved, unsafe = f"{work}/saved", f"{work}/on-small"
    tool(build, "merge", saved, "--quiet")
    assert calls(build, saved) == 10020, calls(build, saved)
    tool(build, "merge", unsafe, "--quiet")
    assert calls(build, unsafe) == 50 + 50, calls(build, unsafe)
    said = ask(build, unsafe, "SELECT MAX(value) AS x FROM meta WHERE key LIKE '%/kill_safe'")
    assert said == "no: rings on /dev/shm: No space left on device", said


def main(build, program):
    with tempfile.TemporaryDirectory() as work:
        for check in (check_folder, check_vanishing, check_memory, check_small):
            start = time.monotonic()
            check(build, program, work)
            print("ok", check.__name__, f"{time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
