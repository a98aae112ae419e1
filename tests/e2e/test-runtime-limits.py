# SPDX-License-Identifier: Apache-2.0
"""Odd arguments, odd names, many names: the runtime answers, and stays as it is.

    test-runtime-limits.py MPI TRAIN_FOLDER ARGUMENTS_CHECK LIMITS_CHECK [SEED]
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MPI, TRAIN, ARGUMENTS, LIMITS = sys.argv[1:5]
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else random.randrange(10**6)


def run(ranks, *command, **settings):
    """Ends the test where the job doesn't end well."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("RT_")}
    env.update(settings)
    result = subprocess.run(
        ["sh", "-euc", f'. "{HERE}/logical-hosts.sh"; on_hosts "$@"', "sh", MPI, str(ranks), "1",
         TRAIN, *command], env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=60)
    said = result.stdout.strip().splitlines()
    what = " ".join([pathlib.Path(command[0]).name, *command[1:]])
    print(f"{MPI}, {ranks} ranks: {what}: status {result.returncode}", *said, sep="\n  ")
    if result.returncode != 0:
        sys.exit(1)


def text_of(name):
    """What isn't UTF-8 stands in a timeline as Latin-1, byte by byte."""
    return name.decode("utf-8", "surrogateescape").translate({0xdc00 + b: b for b in range(256)})


def names(folder):
    """The timeline is JSON, and has them."""
    path = folder / "timeline.json"
    run(2, LIMITS, "names", RT_TIMELINE=str(path))
    events = json.loads(path.read_bytes().decode("utf-8"), strict=True)
    found = {e["args"]["name"] for e in events
             if e.get("name") == "process_name" and "name" in e["args"]}
    missing = {text_of(bytes([b])) for b in range(1, 256)} - found
    if missing or max(len(name) for name in found) < 150:
        print(f"missing in the timeline: {missing}")
        sys.exit(1)


def main():
    launcher = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich", "tcp": "sh"}[MPI]
    if not shutil.which(launcher):
        print(f"skipped: no {launcher}")
        return 77
    print(f"seed {SEED}")
    run(3, ARGUMENTS, str(SEED))
    with tempfile.TemporaryDirectory() as folder:
        names(pathlib.Path(folder))
    if MPI == "tcp":
        run(1, ARGUMENTS, str(SEED + 1))
        run(3, LIMITS, "differ", str(SEED))
        run(2, LIMITS, "many", "20000", RT_CACHE_CAPACITY="50")
    return 0


if __name__ == "__main__":
    sys.exit(main())
