# SPDX-License-Identifier: Apache-2.0
"""A program with the address sanitizer under `ringscope run`: test-sanitized.py PROGRAM RINGSCOPE

gcc's sanitizer ends a program where its library isn't first of those preloaded: it is. What it finds in the
program it still finds, and of the tracer it says nothing.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def run(command, env):
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


def check(program, ringscope, way, found, preloaded, work):
    folder = pathlib.Path(work, f"{way}-{bool(preloaded)}")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "LD_PRELOAD"))}
    plain = run([program, way], env)
    if preloaded:  # by the user; ringscope itself leaks at its end, as programs do
        env.update(LD_PRELOAD=preloaded, ASAN_OPTIONS="detect_leaks=0")
    traced = run([ringscope, "run", "-o", str(folder), "--", program, way], env)
    assert (traced.returncode, traced.stdout) == (plain.returncode, plain.stdout), (plain, traced)
    assert (found in traced.stderr) and (found in plain.stderr), traced.stderr
    assert "libringscope" not in traced.stderr, traced.stderr
    sql = "SELECT COUNT(*) AS x FROM slices WHERE name = 'ncclGroupEnd'"
    said = run([ringscope, "query", str(folder), sql, "--format", "json"], env={})
    assert json.loads(said.stdout)[0]["x"] == 20, said


def main(program, ringscope):
    needed = run(["ldd", program], None).stdout
    asan = [line.split()[2] for line in needed.splitlines() if "libasan.so" in line]
    with tempfile.TemporaryDirectory() as work:
        check(program, ringscope, "fine", "", None, work)
        check(program, ringscope, "overflow", "heap-buffer-overflow", None, work)
        check(program, ringscope, "leak", "detected memory leaks", None, work)
        if asan:
            check(program, ringscope, "fine", "", asan[0], work)
        else:
            print("the sanitizer is in the program: no order to keep")
    print("ok")


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
