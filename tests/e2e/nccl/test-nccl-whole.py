# SPDX-License-Identifier: Apache-2.0
"""NCCL's whole API under the tracer: test-nccl-whole.py BUILD_ROOT NCCL_API BY_HANDLE NCCL PROGRAM...

PROGRAMs test the stand-in: every way to make and end a communicator, registration, windows, user reductions,
groups, and all their misuse. What they assert holds under the tracer, too. BY_HANDLE loads and unloads the library
several times. No function of the table that leaves a record goes without one.
"""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROUNDS = 3  # by-handle.c


def recorded_functions(api):
    sys.path.insert(0, str(pathlib.Path(api).parent / "gen"))
    ops = importlib.import_module("parse").parse_files([api])
    return {op.name for op in ops if not {"pass", "record"} & {*op.attrs}}


def run(build, command, folder):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("RINGSCOPE", "NCCL", "LD_PRELOAD", "RANK", "WORLD_SIZE"))}
    env.update(LD_PRELOAD=f"{build}/tracer/libringscope.so", RINGSCOPE_DIR=str(folder),
               RINGSCOPE_EXPORT="none")
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=60)
    if done.returncode:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout[-4000:]}")


def counts(build, capture):
    sql = "SELECT name, COUNT(*) AS n FROM slices WHERE kind = 'call' AND name LIKE 'nccl%' GROUP BY name"
    done = subprocess.run([f"{build}/analyzer/ringscope", "query", str(capture), sql, "--format", "json"],
                          capture_output=True, text=True, check=True)
    return {row["name"]: row["n"] for row in json.loads(done.stdout)}


def main(build, api, by_handle, nccl, *programs):
    with tempfile.TemporaryDirectory() as work:
        again = pathlib.Path(work, "again")
        run(build, [by_handle, "again", nccl], again)
        capture, = again.glob("*.rsc")
        found = counts(build, capture)
        assert {found[f"nccl{name}"] for name in ("CommInitRankScalable", "AllReduce", "CommDestroy")} == {
            ROUNDS}, found
        seen = set(found)
        for program in programs:
            folder = pathlib.Path(work, pathlib.Path(program).name)
            run(build, [program], folder)
            for capture in folder.glob("*.rsc"):
                seen |= set(counts(build, capture))
    missing = recorded_functions(api) - seen
    assert not missing, missing
    print(f"{len(seen)} functions")


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
