# SPDX-License-Identifier: Apache-2.0
"""NCCL under the tracer: python3 test-nccl.py BUILD_ROOT PROGRAM DDP PLUGIN=VERSION...

Runs PROGRAM (nccl-program.c) on three ranks alone, under the tracer with each version of the
profiler plug-in, and with the tracer as plug-in alone; compares results, and what was recorded with
what the program is written to do. DDP (samples/train/nccl-ddp) trains with a slow rank, which the
report must name by NCCL and the waits for the device alone.
"""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

RANKS = 3
# World's collectives by number: name, S of nccl-tests in bytes (4-byte elements), device interval
WORLD = [
    ("ncclAllReduce", 4000, 1), ("ncclBroadcast", 2000, 1), ("ncclAllReduce", 28, 1),
    ("ncclAllReduce", 120000, 1), ("ncclAllGather", 64 * 4 * 3, 1),
    ("ncclReduceScatter", 128 * 4 * 3, 1), ("ncclAllReduce", 384, 1), ("ncclAllReduce", 36000, 1),
    ("ncclAllReduce", 384, 1), ("ncclBcast", 308, 1), ("ncclAlltoAll", 33 * 4 * 3, 1),
    ("ncclGather", 40 * 4 * 3, 1), ("ncclScatter", 50 * 4 * 3, 1), ("ncclAllReduce", 0, 0),
    ("ncclReduce", 240, 1), ("ncclAllReduce", 1600, 1)]
HALF = [("ncclAllReduce", 1200, 1), ("ncclBroadcast", 100, 1)]

SLICES = """SELECT s.rank, s.kind, s.name, s.seq, s.bytes, s.start_ns, s.end_ns, s.peer, s.datatype,
c.size, c.parent <> 0 AS child, e.flags, e.link_event_id, s.event_id FROM slices s
JOIN events e ON e.id = s.event_id JOIN signatures g ON g.id = e.signature_id
LEFT JOIN communicators c ON c.id = g.communicator_id WHERE g.api = 2"""


def run(work, program, env):
    """The ranks' output, by rank."""
    name = pathlib.Path(work, f"id-{len(os.listdir(work))}")
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("RINGSCOPE", "NCCL", "RANK", "WORLD_SIZE"))}
    told = env.pop("TOLD", True)  # as by torchrun; else NCCL alone knows the ranks
    ranks = [subprocess.Popen([program, str(r), str(RANKS), str(name)], text=True,
                              env={**clean, **({"RANK": str(r), "WORLD_SIZE": str(RANKS)}
                                               if told else {}), **env},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for r in range(RANKS)]
    out = [p.communicate(timeout=60) for p in ranks]
    assert all(p.returncode == 0 for p in ranks), out
    assert not any(err for _, err in out), out
    return [text for text, _ in out]


def query(build, folder, sql):
    done = subprocess.run([f"{build}/analyzer/ringscope", "query", str(folder), sql, "--format",
                           "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def numbered(rows, child):
    return sorted((r["seq"], r["name"], r["bytes"]) for r in rows
                  if r["seq"] is not None and r["child"] == child)


def wanted(calls, device):
    return [(i, name, size) for i, (name, size, on_device) in enumerate(calls)
            if on_device or not device]


def check_rank(rank, rows):
    calls = [r for r in rows if r["kind"] == "call"]
    device = [r for r in rows if r["kind"] == "device"]
    half = HALF if rank != 1 else []
    assert numbered(calls, 0) == wanted(WORLD, False), numbered(calls, 0)
    assert numbered(calls, 1) == wanted(half, False), numbered(calls, 1)
    assert numbered(device, 0) == wanted(WORLD, True), numbered(device, 0)
    assert numbered(device, 1) == wanted(half, True), numbered(device, 1)
    for kind in (calls, device):
        messages = sorted((r["name"], r["peer"], r["bytes"]) for r in kind
                          if r["name"] in ("ncclSend", "ncclRecv"))
        assert messages == [("ncclRecv", (rank + 2) % 3, 800), ("ncclSend", (rank + 1) % 3, 800)]
    counts = collections.Counter(r["name"] for r in calls)
    assert counts["ncclGroupStart"] == counts["ncclGroupEnd"] == 5, counts
    assert counts["ncclCommInitRank"] == 1 and counts["ncclCommSplit"] == 1, counts
    failed = [r for r in calls if r["flags"] & 1]
    assert [(r["name"], r["seq"]) for r in failed] == [("ncclAllReduce", None)], failed
    by_id = {r["event_id"]: r for r in calls}
    for r in device:
        call = by_id.get(r["link_event_id"])
        assert call, r
        assert (call["name"], call["seq"], call["bytes"]) == (r["name"], r["seq"], r["bytes"])
        assert call["start_ns"] <= r["start_ns"] <= r["end_ns"], (call, r)


def check_grouped(rows):
    """Operations of a group last until its outermost end."""
    calls = [r for r in rows if r["kind"] == "call"]
    ends = sorted(r["end_ns"] for r in calls if r["name"] == "ncclGroupEnd")
    for seqs, end in (((1, 2, 3, 4, 5), 0), ((6, 7, 8), 1), ((15,), 4)):
        for r in calls:
            if r["child"] == 0 and r["seq"] in seqs:
                assert r["end_ns"] == ends[end], (r, ends)


def check_report(build, folder):
    done = subprocess.run([f"{build}/analyzer/ringscope", "report", str(folder), "--format",
                           "json"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    rows = [c for c in report["metrics"]["collectives"] if c["api"] == "NCCL"]
    assert sum(c["timed"] for c in rows) == len(WORLD) + len(HALF) - 1, rows
    sampled = [c for c in rows if c["sampled"]]  # what is no warm-up: the second of 384 bytes
    assert [c["bytes"] for c in sampled] == [768], sampled
    assert all(c["device"] and c["busbw_transfer_bytes_per_s"] > 0 for c in sampled), sampled
    assert not any("NCCL" in n["analysis"] for n in report["not_applicable"]), report


def check_traced(build, folder):
    rows = query(build, folder, SLICES)
    for rank in range(RANKS):
        mine = [r for r in rows if r["rank"] == rank]
        check_rank(rank, mine)
        check_grouped(mine)
    instances = query(build, folder, "SELECT i.seq, i.complete, i.timed, c.size, c.parent <> 0 AS"
                      " child FROM instances i JOIN communicators c ON c.id = i.communicator_id"
                      " WHERE c.api = 2 ORDER BY child, i.seq")
    untimed = [(i["child"], i["seq"]) for i in instances if not i["timed"]]
    assert [(i["child"], i["seq"]) for i in instances] == (
        [(0, i) for i in range(len(WORLD))] + [(1, i) for i in range(len(HALF))]), instances
    assert all(i["complete"] for i in instances), instances
    assert untimed == [(0, 13)], untimed  # nothing to do for no elements
    assert {i["size"] for i in instances if i["child"]} == {2}
    meta = query(build, folder, "SELECT value FROM meta WHERE key LIKE '%nccl.%' ORDER BY value")
    assert {m["value"] for m in meta} == {"2.28.9", "hostnccl 1"}, meta


def check_alone(build, folder):
    """Without wrappers: device intervals, numbered alike on all ranks."""
    rows = query(build, folder, SLICES)
    assert {r["kind"] for r in rows} == {"device"}, rows
    numbers = [sorted((r["size"], r["seq"], r["name"], r["bytes"]) for r in rows
                      if r["rank"] == rank and r["seq"] is not None) for rank in range(RANKS)]
    assert len(numbers[1]) > 10 and numbers[0] == numbers[2], numbers
    assert [n for n in numbers[0] if n[0] == 3] == numbers[1], numbers


def check_many_devices(build, folder):
    """Three communicator handles of one process are three members of one communicator."""
    rows = query(build, folder, """SELECT k.name AS kind, g.member, e.seq, c.id AS comm, c.size
FROM events e JOIN signatures g ON g.id = e.signature_id JOIN enum_kind k ON k.id = g.kind
JOIN communicators c ON c.id = g.communicator_id WHERE g.bytes = 400""")
    assert len({r["comm"] for r in rows}) == 1 and {r["size"] for r in rows} == {3}, rows
    found = sorted((r["kind"], r["member"], r["seq"]) for r in rows)
    assert found == [(kind, member, seq) for kind in ("call", "device") for member in (1, 2, 3)
                     for seq in range(3)], found
    timed = query(build, folder, "SELECT complete, timed FROM instances ORDER BY seq")
    assert timed == [{"complete": 1, "timed": 1}] * 3, timed


def check_straggler(build, work, ddp):
    """Which rank is slow, and by how much, is drawn."""
    slow, ms, folder = random.randrange(RANKS), random.randrange(12, 30), pathlib.Path(work, "ddp")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "NCCL"))}
    ranks = [subprocess.Popen([ddp, "--steps", "12"], stdout=subprocess.DEVNULL, env={
        **clean, "RANK": str(r), "WORLD_SIZE": str(RANKS), "NCCL_DDP_ID": f"{work}/ddp-id",
        "RT_FAULT": f"slow-rank:rank={slow},ms={ms}", "RINGSCOPE_RUN_ID": "ddp",
        "RINGSCOPE_EXPORT": "none", "RINGSCOPE_DIR": str(folder),
        "LD_PRELOAD": f"{build}/tracer/libringscope.so"}) for r in range(RANKS)]
    assert [p.wait(timeout=60) for p in ranks] == [0] * RANKS
    done = subprocess.run([f"{build}/analyzer/ringscope", "report", str(folder), "--format",
                           "json"], capture_output=True, text=True, check=True)
    findings = json.loads(done.stdout)["findings"]
    assert [(f["kind"], f["ranks"]) for f in findings[:1]] == [("straggler", [slow])], (
        slow, ms, findings)
    waits = query(build, folder, "SELECT rank, COUNT(*) AS n FROM slices WHERE name = "
                  "'cudaStreamSynchronize' GROUP BY rank ORDER BY rank")
    assert [w["rank"] for w in waits] == [0, 1, 2] and all(w["n"] >= 12 for w in waits), waits


def main(build, program, ddp, *plugins):
    library = f"{build}/tracer/libringscope.so"
    with tempfile.TemporaryDirectory() as work:
        plain = run(work, program, {})
        common = {"RINGSCOPE_RUN_ID": "test", "RINGSCOPE_EXPORT": "none"}
        def traced(name, **env):
            folder = pathlib.Path(work, name)
            out = run(work, program, {**common, "RINGSCOPE_DIR": str(folder), **env})
            assert out == plain, (name, out, plain)
            return folder
        folder = traced("newest", LD_PRELOAD=library)
        check_traced(build, folder)
        check_report(build, folder)
        check_straggler(build, work, ddp)
        for plugin in plugins:
            path, _, version = plugin.partition("=")
            folder = traced(version, LD_PRELOAD=library, NCCL_PROFILER_PLUGIN=path,
                            TOLD=version != "5")
            if int(version) >= 3:  # before, NCCL tells of no kernels
                check_traced(build, folder)
        for how in ("all", "grouped"):
            folder = pathlib.Path(work, how)
            env = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "NCCL"))}
            subprocess.run([program, how, str(RANKS)], check=True, timeout=60,
                           env={**env, **common, "RINGSCOPE_DIR": str(folder),
                                "LD_PRELOAD": library})
            check_many_devices(build, folder)
        check_alone(build, traced("alone", NCCL_PROFILER_PLUGIN=library))
        folder = traced("off", LD_PRELOAD=library, RINGSCOPE_TRACE="mpi")
        assert not folder.exists() or not list(folder.glob("*.rsc"))
    print("NCCL's calls and executions are as the program made them")


if __name__ == "__main__":
    main(*sys.argv[1:])
