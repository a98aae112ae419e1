# SPDX-License-Identifier: Apache-2.0
"""NCCL while capture is switched off and on: test-nccl-switched.py BUILD_ROOT PROGRAM PLUGIN=VERSION... [--seed N]

By steps, other ones on each rank: recorded is what begins in a wanted step, and nothing else, whatever
a group, a capture or a communicator that was made while off has to do with it. By a signal at random
moments, under the wrappers and as NCCL's plug-in alone: results stay, the n-th collective is called so.
"""
import collections
import json
import os
import pathlib
import random
import secrets
import subprocess
import sys
import tempfile

RANKS = 3
STEPS = 160
ELEMENTS = 97
NUMBERED = 16  # of events.flags
SQL = """SELECT r.rank, k.name AS kind, c.id AS comm, c.size, e.seq, e.flags, g.count, e.start_ns FROM events e
JOIN signatures g ON g.id = e.signature_id JOIN enum_kind k ON k.id = g.kind
JOIN strings n ON n.id = g.name_id JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id
JOIN communicators c ON c.id = g.communicator_id WHERE n.text = 'ncclAllReduce'"""
OFF = """SELECT rank, start_ns, end_ns FROM slices WHERE name = 'capture switched off'"""


def tool(build, *words):
    done = subprocess.run([f"{build}/analyzer/ringscope", *map(str, words), "--format", "json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run(program, work, name, seed, way, env_of_rank):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("RINGSCOPE", "NCCL", "RANK", "WORLD_SIZE"))}
    ranks = [subprocess.Popen(
        [program, str(r), str(RANKS), str(pathlib.Path(work, f"{name}.id")), str(seed), way],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**clean, "RANK": str(r), "WORLD_SIZE": str(RANKS), "RINGSCOPE_RUN_ID": name,
             "RINGSCOPE_EXPORT": "none", "RINGSCOPE_DIR": str(pathlib.Path(work, name)), **env_of_rank(r)})
        for r in range(RANKS)]
    out = [p.communicate(timeout=60) for p in ranks]
    assert [p.returncode for p in ranks] == [0] * RANKS and not any(err for _, err in out), (name, out)
    return [text.splitlines() for text, _ in out]


def draw_steps():
    """As RINGSCOPE_STEPS has them, and as a set."""
    words, wanted, at = [], set(), random.randrange(4)
    while at < STEPS:
        last = at + random.randrange(4)
        words.append(f"{at}-{last}" if last > at else str(at))
        wanted.update(range(at, last + 1))
        at = last + 2 + random.randrange(6)
    return ",".join(words), wanted


def numbers_are_right(rows, name):
    wrong = [r for r in rows if r["flags"] & NUMBERED and r["count"] != r["seq"] % ELEMENTS + 1]
    assert not wrong, (name, wrong[:5])
    twice = [k for k, n in collections.Counter(
        (r["rank"], r["kind"], r["comm"], r["seq"]) for r in rows if r["flags"] & NUMBERED).items() if n > 1]
    assert not twice, (name, twice[:5])


def check_rank(rows, lines, wanted, name, with_captured):
    """What is recorded of a rank, by communicator's size and number of elements."""
    calls, device = collections.Counter(), collections.Counter()
    for line in lines[:-1]:
        size, number, count, captured, called, *ran = map(int, line.split()[1:])
        if called in wanted:
            calls[size, number, count] += 1
        if size == 1:
            continue  # nothing runs
        if captured and with_captured:
            device[size, count] += sum(step in wanted for step in ran)
        elif not captured:
            device[size, count] += called in wanted and ran[0] in wanted
    found = collections.Counter((r["size"], r["seq"], r["count"]) for r in rows if r["kind"] == "call" and
                                r["flags"] & NUMBERED)
    assert found == +calls, (name, found - calls, calls - found)
    if with_captured:
        found = collections.Counter((r["size"], r["count"]) for r in rows if r["kind"] == "device")
        assert found == +device, (name, found - device, device - found, sorted(wanted), lines)
    return len(calls), sum(device.values())


def check_steps(build, program, work, seed, plain, name, with_captured, **env):
    steps = [draw_steps() for _ in range(RANKS)]
    out = run(program, work, name, seed, "steps", lambda r: {
        "LD_PRELOAD": f"{build}/tracer/libringscope.so", "RINGSCOPE_STEPS": steps[r][0], **env})
    assert out == plain, (name, out, plain)
    folder = pathlib.Path(work, name)
    rows = tool(build, "query", folder, SQL)
    numbers_are_right(rows, name)
    counted = [check_rank([x for x in rows if x["rank"] == r], out[r], steps[r][1], f"{name}, rank {r}",
                          with_captured) for r in range(RANKS)]
    print(f"{name}: calls and executions by rank {counted}", flush=True)
    assert all(calls > 5 for calls, _ in counted), counted
    check_report(build, folder)


def check_report(build, folder):
    report = tool(build, "report", folder)
    assert report["run"]["switched_off"]["ranks"] == list(range(RANKS)), report["run"]
    kinds = {f["kind"] for f in report["findings"]}
    assert not kinds & {"mismatched-collective", "order-divergence", "missing-rank", "deadlock-cycle",
                        "incomplete-data"}, report["findings"]
    assert report["run"]["dropped_events"] == 0, report["run"]


def check_toggled(build, program, work, seed, name, **env):
    out = run(program, work, name, seed, "toggle", lambda r: {"RINGSCOPE_SIGNAL": "USR1", **env})
    assert [lines[-1] for lines in out] == [f"rank {r}: 0 wrong" for r in range(RANKS)], out
    folder = pathlib.Path(work, name)
    rows = tool(build, "query", folder, SQL)
    numbers_are_right(rows, name)
    off = tool(build, "query", folder, OFF)
    kinds = {"device"} if "LD_PRELOAD" not in env else {"device", "call"}
    assert {r["kind"] for r in rows} == kinds, (name, kinds)
    times = collections.Counter(o["rank"] for o in off)
    seen = collections.Counter(r["rank"] for r in rows)
    print(f"{name}: times off {dict(times)}, recorded {dict(seen)}", flush=True)
    assert len(times) == len(seen) == RANKS, name
    check_report(build, folder)


def main(build, program, *rest):
    rest = list(rest)
    seed = int(rest[rest.index("--seed") + 1]) if "--seed" in rest else secrets.randbits(30)
    library = f"{build}/tracer/libringscope.so"
    print(f"seed {seed}", flush=True)
    random.seed(seed)
    with tempfile.TemporaryDirectory() as work:
        plain = run(program, work, "plain", seed, "steps", lambda r: {})
        assert max(int(line.split()[-1]) for line in plain[0][:-1]) < STEPS
        check_steps(build, program, work, seed, plain, "newest", True)
        for path, version in (p.split("=") for p in rest if "=" in p):
            check_steps(build, program, work, seed, plain, version, False, NCCL_PROFILER_PLUGIN=path)
        check_toggled(build, program, work, seed, "toggled", LD_PRELOAD=library)
        check_toggled(build, program, work, seed, "alone", NCCL_PROFILER_PLUGIN=library)


if __name__ == "__main__":
    main(*sys.argv[1:])
