# SPDX-License-Identifier: Apache-2.0
"""Ways to live and die under the tracer: python3 test-life.py BUILD_ROOT PROGRAM

Runs life.c in each of its ways without and with the tracer: output, error output and exit status
must be the same, the capture must hold every call, and nothing may be left on /dev/shm.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# way: MPI_Barrier calls that it makes
WAYS = {
    "plain": 20, "fork-idle": 20, "exec-child": 20, "exec-fails": 20, "chdir": 20,
    "close": 30 + 20000, "close-all": 20, "threads": 20 + 500, "atexit": 20, "_exit": 20,
    "handler": 20, "quick_exit": 20, "abort": 20, "exec-to-l": 20, "exec-to-lp": 20, "exec-to-le": 20,
    "exec-to-v": 20, "exec-to-vpe": 20, "exec-to-fd": 20, "exec-to-at": 20,
}
# This one is not ended in order by the tracer: what it left is recovered by `merge`.
KILLED = {"abort"}


def environment(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "LD_PRELOAD"))}
    env["OMPI_MCA_plm"] = "isolated"  # a singleton needs no remote shell
    env["OMPI_MCA_btl"] = "self"
    env["OMPI_MCA_orte_abort_print_stack"] = "0"
    env["OMPI_MCA_opal_signal"] = ""  # no stack traces with addresses on abort
    env.update(extra)
    return env


def run(program, way, work, extra):
    done = subprocess.run([program, way], env=environment(extra), cwd=work, capture_output=True,
                          text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def rings(capture):
    """The rings that the process of a capture (its path) has on /dev/shm: by the prefix that the
    capture names, as pids are used again."""
    named = capture.read_bytes().split(b"ring.prefix\0", 1)[1:]
    prefix = pathlib.Path(named[0].split(b"\0", 1)[0].decode()) if named else None
    return sorted(prefix.parent.glob(prefix.name + ".*")) if prefix else []


def query(build, run_path, sql):
    tool = [f"{build}/analyzer/ringscope", "query", str(run_path), sql, "--format", "json"]
    return json.loads(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)


def merge(build, folder):
    done = subprocess.run([f"{build}/analyzer/ringscope", "merge", str(folder), "--quiet"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done


def count(build, folder):
    sql = "SELECT COUNT(*) AS n FROM slices WHERE name = 'MPI_Barrier' AND NOT unfinished"
    return query(build, folder / "run.sqlite", sql)[0]["n"]


def check_way(build, program, way, work):
    plain = run(program, way, work, {})
    folder = pathlib.Path(work, "run-" + way)
    traced = run(program, way, work, {
        "LD_PRELOAD": f"{build}/tracer/libringscope.so",
        "RINGSCOPE_DIR": folder.name,  # relative: to where the program was when it began
    })
    assert traced[:2] == plain[:2], (way, plain, traced)
    if way != "abort":  # there Open MPI prints addresses
        assert traced[2] == plain[2], (way, plain[2], traced[2])
    captures = sorted(folder.glob("*.rsc"))
    assert len(captures) == 1, (way, captures)
    if way not in KILLED:
        stem = captures[0].stem
        names = sorted(p.name for p in folder.iterdir())
        exported = [] if way.startswith("exec-to") else [stem + ".json", stem + ".sqlite"]
        assert names == sorted([stem + ".rsc", *exported]), (way, names)
        assert not rings(captures[0]), (way, rings(captures[0]))
    merge(build, folder)
    assert count(build, folder) == WAYS[way], (way, count(build, folder))
    assert not rings(captures[0]), (way, rings(captures[0]))


def check_kill(build, program, work):
    folder = pathlib.Path(work, "run-kill")
    process = subprocess.Popen([program, "kill"], cwd=work, stdout=subprocess.PIPE, text=True,
                               env=environment({
                                   "LD_PRELOAD": f"{build}/tracer/libringscope.so",
                                   "RINGSCOPE_DIR": str(folder)}))
    assert "at the end of kill" in process.stdout.readline()
    time_limit = time.monotonic() + 30
    while not in_receive(build, folder):
        assert time.monotonic() < time_limit, "the receive never showed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    merge(build, folder)
    sql = "SELECT name, unfinished FROM slices WHERE unfinished"
    assert query(build, folder / "run.sqlite", sql) == [{"name": "MPI_Recv", "unfinished": 1}]
    assert count(build, folder) == 20
    assert not rings(next(folder.glob("*.rsc")))


def in_receive(build, folder):
    """Whether the living process's rings say that it has made all calls and is in the next."""
    captures = list(folder.glob("*.rsc"))
    first = [p for p in rings(captures[0]) if p.suffix == ".1"] if captures else []
    if not first:
        return False
    data = first[0].read_bytes()
    op = int.from_bytes(data[192:196], "little")  # struct rs_ring_thread.open.op
    name = pathlib.Path(build, "schemas/ops-numbers.h").read_text()
    return f"RS_OP_MPI_Recv = {op}," in name


def check_nothing(build, work):
    folder = pathlib.Path(work, "run-nothing")
    for command in (["true"], ["sh", "-c", "echo a; env >/dev/null; exit 3"], ["ls", "/"]):
        env = environment({})
        plain = subprocess.run(command, env=env, capture_output=True, check=False)
        env.update(LD_PRELOAD=f"{build}/tracer/libringscope.so", RINGSCOPE_DIR=str(folder))
        traced = subprocess.run(command, env=env, capture_output=True, check=False)
        assert (plain.returncode, plain.stdout, plain.stderr) == (
            traced.returncode, traced.stdout, traced.stderr), command
    assert not folder.exists()


def main(build, program):
    with tempfile.TemporaryDirectory() as work:
        for way in WAYS:
            check_way(build, program, way, work)
            print("ok", way, flush=True)
        check_kill(build, program, work)
        check_nothing(build, work)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
