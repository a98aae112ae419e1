# SPDX-License-Identifier: Apache-2.0
"""Gloo under the tracer: python3 test-gloo.py BUILD_ROOT OTHER [PROGRAM LINKED MODULE]

OTHER (other-program.c) calls a Gloo whose options nobody knows. PROGRAM and LINKED (gloo-program.c) run
every operation of the real one, where that is installed: their own lists of what they called, with
results, are compared with a run without tracer, and with what was recorded. Then one rank is late, which
the report must name.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

RANKS = 4
SLICES = """SELECT s.rank, s.name, s.seq, s.bytes, g.count, t.text AS type, g.peer, e.flags & 1 AS failed,
g.communicator_id AS comm, c.size FROM slices s JOIN events e ON e.id = s.event_id
JOIN signatures g ON g.id = e.signature_id JOIN strings t ON t.id = g.datatype_id
LEFT JOIN communicators c ON c.id = g.communicator_id WHERE g.api = 5 ORDER BY s.start_ns"""
INSTANCES = "SELECT communicator_id AS comm, seq, present, mismatched FROM instances"
NOTES = ("gloo.algorithms was off", )


def ranks_of(work, command, what, ranks, **env):
    """The ranks' output, by rank, as lines."""
    meet = pathlib.Path(work, f"meet-{len(os.listdir(work))}")
    meet.mkdir()
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("RINGSCOPE", "RANK", "WORLD_SIZE", "MASTER_"))}
    program, *module = command
    started = [subprocess.Popen([program, str(r), str(ranks), str(meet), what, *module], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**clean, **env, "RANK": str(r), "WORLD_SIZE": str(ranks)})
               for r in range(ranks)]
    out = [p.communicate(timeout=60) for p in started]
    assert all(p.returncode == 0 for p in started) and not any(err for _, err in out), out
    return [text.splitlines() for text, _ in out]


def tool(build, *words):
    done = subprocess.run([f"{build}/analyzer/ringscope", *map(str, words)], capture_output=True,
                          text=True, check=True)
    return done.stdout


def query(build, folder, sql):
    return json.loads(tool(build, "query", folder, sql, "--format", "json"))


def traced(build, folder, **env):
    return {"LD_PRELOAD": f"{build}/tracer/libringscope.so", "RINGSCOPE_DIR": str(folder),
            "RINGSCOPE_EXPORT": "none", "RINGSCOPE_RUN_ID": "gloo", **env}


def called(lines):
    """(failed, operation, elements, type, root) of the program's own list."""
    words = [line.split() for line in lines if line.startswith(("call ", "failed "))]
    return collections.Counter((int(w[0] == "failed"), w[3], int(w[4]),
                                f"{w[5]}-byte" if w[5] != "0" else "", int(w[6])) for w in words)


def check_rank(rows, lines):
    calls = [r for r in rows if r["name"] != "gloo_connectFullMesh"]
    found = collections.Counter((r["failed"], r["name"], r["count"], r["type"], r["peer"])
                                for r in calls)
    assert found == called(lines), (found - called(lines), called(lines) - found)
    assert len(rows) - len(calls) == 4 and not any(r["failed"] for r in rows if r not in calls)
    # In the world's order; torch's by their tags.
    world = [w.split() for w in lines if w.startswith("call world ")]
    comm = next(r["comm"] for r in calls if r["name"] == "gloo_barrier")
    numbered = {r["seq"]: r["name"] for r in calls if r["comm"] == comm}
    assert [numbered[i] for i in range(len(numbered))] == [w[3] for w in world]
    tags = {(w.split()[2], w.split()[4]) for w in lines if w.startswith("call torch ")}
    seqs = {(str(r["seq"]), str(r["count"])) for r in calls}
    assert len(tags) == 40 and tags <= seqs, tags - seqs


def check_all(build, folder, lines):
    rows = query(build, folder, SLICES)
    for rank in range(RANKS):
        check_rank([r for r in rows if r["rank"] == rank], lines[rank])
    comms = query(build, folder, "SELECT id, size, members FROM communicators WHERE api = 3")
    assert sorted(c["size"] for c in comms) == [2, 2, 4, 4, 4], comms
    assert all(c["size"] == c["members"] for c in comms), comms
    broken = [r["comm"] for r in rows if r["failed"]]
    instances = query(build, folder, INSTANCES)
    assert not any(i["mismatched"] for i in instances), instances
    sizes = {c["id"]: c["size"] for c in comms}
    short = [i for i in instances if i["present"] != sizes[i["comm"]] and i["comm"] not in broken]
    assert not short, short
    report = json.loads(tool(build, "report", folder, "--format", "json"))
    warnings = [w["text"] for w in report["warnings"]]
    assert all(any(n in w for n in NOTES) for w in warnings), warnings


def check_late(build, work, linked):
    folder = work / "late"
    ranks_of(work, [linked], "late", 2, **traced(build, folder))
    report = json.loads(tool(build, "report", folder, "--format", "json"))
    first = report["findings"][0]
    assert first["kind"] == "straggler" and first["ranks"] == [1], report["findings"]


def check_other(build, work, other):
    def run(**env):
        done = subprocess.run([other], capture_output=True, text=True, check=False,
                              env={**os.environ, **env})
        assert (done.returncode, done.stdout, done.stderr) == (0, "42 calls\n", ""), done
    run()
    folder = work / "other"
    run(**traced(build, folder))
    rows = query(build, folder, SLICES)
    names = collections.Counter((r["name"], r["count"], r["type"]) for r in rows)
    assert names == {("gloo_allreduce", 0, ""): 22, ("gloo_broadcast", 0, ""): 20}, names
    said = tool(build, "report", folder)
    assert said.count("gloo.sizes was off") == 1 == said.count("gloo.matching was off"), said
    run(**traced(build, work / "none", RINGSCOPE_TRACE="mpi,nccl"))
    assert not (work / "none").exists()


def main(build, other, *programs):
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check_other(build, work, other)
        if not programs:
            return
        program, linked, module = programs
        plain = [sorted(lines) for lines in ranks_of(work, [linked], "all", RANKS)]
        for i, command in enumerate(([linked], [program, module])):
            folder = work / f"run-{i}"
            lines = ranks_of(work, command, "all", RANKS, **traced(build, folder))
            assert [sorted(x) for x in lines] == plain
            check_all(build, folder, lines)
        check_late(build, work, linked)


if __name__ == "__main__":
    main(*sys.argv[1:])
