# SPDX-License-Identifier: Apache-2.0
"""A program's own marks, recorded: python3 test-marks.py BUILD_ROOT PROGRAM...

Runs each PROGRAM (marks-program.c) alone and under the tracer, and compares what the capture holds
with what the program is written to do. Without MPI calls marks leave no file.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

THREADS, ROUNDS, STEPS = 4, 500, 4
WANTED = collections.Counter({
    ("range", "forward", 0): STEPS,
    ("range", "inner", 1): THREADS * ROUNDS,
    ("mark", "tick", 0): THREADS * ROUNDS,
    ("mark", "", 0): 2,
    ("counter", "loss", 0): STEPS,
    ("counter", "bare", 0): 1,
    **{("range", f"thread {i}", 0): ROUNDS for i in range(THREADS)},
    **{("mark", f"step {10 + n}", 0): 1 for n in range(STEPS + 1)},
})
EVENTS = """SELECT k.name AS kind, n.text AS name, e.depth FROM events e
JOIN signatures s ON s.id = e.signature_id JOIN enum_kind k ON k.id = s.kind
JOIN strings n ON n.id = s.name_id WHERE k.name IN ('range', 'span', 'mark', 'counter')"""
COUNTERS = """SELECT n.text AS name, u.text AS unit, c.value FROM counters c
JOIN events e ON e.id = c.event_id JOIN signatures s ON s.id = e.signature_id
JOIN strings n ON n.id = s.name_id JOIN strings u ON u.id = s.range_category_id
ORDER BY e.start_ns"""
TRACKS = "SELECT n.text AS name FROM tracks t JOIN strings n ON n.id = t.name_id"


def run(command, library=None, folder=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
    env["OMPI_MCA_plm"] = "isolated"  # a singleton needs no remote shell
    if library:
        env.update(LD_PRELOAD=library, RINGSCOPE_DIR=str(folder), RINGSCOPE_EXPORT="none",
                   RINGSCOPE_TRACE="mpi")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, (command, done)
    return done.stdout


def query(build, capture, sql):
    tool = [f"{build}/analyzer/ringscope", "query", str(capture), sql, "--format", "json"]
    return json.loads(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)


def counted(build, capture):
    rows = query(build, capture, EVENTS)
    return collections.Counter((r["kind"], r["name"], r["depth"]) for r in rows)


def check(build, program, work):
    library, folder = f"{build}/tracer/libringscope.so", work / "run"
    assert run([program]) == "errno kept\n"
    assert run([program], library, folder) == "errno kept\n"
    captures = sorted(folder.glob("*.rsc"))
    found = [counted(build, c) for c in captures]
    assert WANTED in found, found
    parent = captures[found.index(WANTED)]
    children = [f for f in found if f != WANTED]
    assert all(f == {("mark", "tick", 0): 1} for f in children), children
    assert query(build, parent, "SELECT number FROM steps ORDER BY number") == \
        [{"number": 10 + n} for n in range(STEPS)]
    assert query(build, parent, "SELECT step_source FROM run")[0]["step_source"] == "marks"
    # A thread's marks and its MPI calls are one track.
    names = [r["name"] for r in query(build, parent, TRACKS)]
    assert len(names) == 1 + THREADS and names.count("main") == 1, names
    values = [(r["name"], r["unit"], round(r["value"], 4)) for r in query(build, parent, COUNTERS)]
    assert values == [("loss", "nat", round(1 / (1 + n), 4)) for n in range(STEPS)] + \
        [("bare", "", -2.5)], values
    run([program, "alone"], library, work / "none")
    assert not (work / "none").exists()


def main(build, *programs):
    for program in programs:
        with tempfile.TemporaryDirectory() as work:
            check(build, program, pathlib.Path(work))


if __name__ == "__main__":
    main(*sys.argv[1:])
