# SPDX-License-Identifier: Apache-2.0
"""What tests of without-mpi.c share: the environment of a run, and questions to its captures."""
import json
import os
import subprocess


def environment(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "LD_PRELOAD"))}
    return {**env, **extra}


def run(command, work, extra):
    return subprocess.run(command, env=environment(extra), cwd=work, capture_output=True, text=True,
                          check=False, timeout=60)


def tool(build, *words):
    done = subprocess.run([f"{build}/analyzer/ringscope", *map(str, words)], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout


def ask(build, run_path, sql):
    """The column x of the answer's first row."""
    return json.loads(tool(build, "query", run_path, sql, "--format", "json"))[0]["x"]


def calls(build, run_path):
    return ask(build, run_path, "SELECT COUNT(*) AS x FROM slices WHERE name = 'ncclGroupEnd'")
