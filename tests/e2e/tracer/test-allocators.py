# SPDX-License-Identifier: Apache-2.0
"""Another allocator preloaded before and after the tracer: test-allocators.py BUILD_ROOT PROGRAM NCCL

jemalloc and tcmalloc, each in both orders, around without-mpi.c's ways and ranks of NCCL: output and status
are those with the allocator alone, and every call is recorded.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAMES = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")
# way of without-mpi.c: calls of each of its processes
WAYS = {"plain": [20], "close-all": [10020], "fork-both": [50, 50], "children": [20]}
SQL = "SELECT COUNT(*) AS x FROM slices WHERE name = '{}'"


def find(name):
    for config in ("/sbin/ldconfig", "ldconfig"):
        try:
            known = subprocess.run([config, "-p"], capture_output=True, text=True, check=True).stdout
        except FileNotFoundError:
            continue
        found = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", known, re.M)
        return found and found[1]
    return None


def run(command, work, preload, extra):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("RINGSCOPE", "NCCL", "RANK", "WORLD_SIZE"))}
    env.update(LD_PRELOAD=":".join(preload), RINGSCOPE_EXPORT="none", **extra)
    done = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, check=False,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


def count(build, capture, name):
    done = subprocess.run([f"{build}/analyzer/ringscope", "query", str(capture), SQL.format(name),
                           "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]["x"]


def check(build, program, nccl, allocator, work):
    library = f"{build}/tracer/libringscope.so"
    for order in ([allocator, library], [library, allocator]):
        for way, expected in {**WAYS, "nccl": None}.items():
            command = [program, way] if expected else [nccl, "all", "3"]
            plain = run(command, work, [allocator], {})
            assert plain[0] == 0, plain
            folder = pathlib.Path(tempfile.mkdtemp(dir=work))
            traced = run(command, work, order, {"RINGSCOPE_DIR": str(folder)})
            assert traced == plain, (order, way, plain, traced)
            name = "ncclGroupEnd" if expected else "ncclAllReduce"
            got = sorted(count(build, c, name) for c in folder.glob("*.rsc"))
            # 3 rounds on 3 devices: each a call and an execution
            assert got == sorted(expected or [18]), (order, way, got)
        print("ok", *map(os.path.basename, order), flush=True)


def main(build, program, nccl):
    found = [path for path in map(find, NAMES) if path]
    if len(found) < len(NAMES):
        print("jemalloc or tcmalloc is not installed")
        sys.exit(77)
    for allocator in found:
        with tempfile.TemporaryDirectory() as work:
            check(build, program, nccl, allocator, work)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
