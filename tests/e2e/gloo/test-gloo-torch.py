# SPDX-License-Identifier: Apache-2.0
"""Torch's DistributedDataParallel over Gloo under the tracer: python3 test-gloo-torch.py BUILD_ROOT DDP

Two ranks of DDP (ddp.py) give the same result with the tracer and without; the capture holds each reduction
that torch was asked for, matched between the ranks, and the report names the late rank. Needs a torch that is
linked to a shared Gloo (Debian's python3-torch): with another the results are compared alone.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

RANKS = 2
ASK = """import torch, torch.distributed as d
assert d.is_available() and d.is_gloo_available()
print(any("/libgloo.so" in line for line in open("/proc/self/maps")))"""
CALLS = """SELECT s.rank, g.count FROM slices s JOIN events e ON e.id = s.event_id
JOIN signatures g ON g.id = e.signature_id WHERE s.name = 'gloo_allreduce'"""
BAD = "SELECT count(*) AS n FROM instances WHERE present <> 2 OR mismatched"


def python_with_torch():
    """(interpreter, is its Gloo shared?); ends the test where there is none."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return python, done.stdout.strip() == "True"
    print("no Python here has torch with Gloo (Debian: python3-torch)")
    sys.exit(77)


def train(python, ddp, meet, **env):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("RINGSCOPE", "RANK", "WORLD_SIZE", "MASTER_"))}
    started = [subprocess.Popen([python, ddp, str(r), str(RANKS), str(meet)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**clean, "GLOO_SOCKET_IFNAME": "lo", "RANK": str(r),
                                     "WORLD_SIZE": str(RANKS), **env})
               for r in range(RANKS)]
    out = [p.communicate(timeout=100) for p in started]
    assert all(p.returncode == 0 for p in started), out
    return [text.splitlines() for text, _ in out]


def tool(build, *words):
    done = subprocess.run([f"{build}/analyzer/ringscope", *map(str, words), "--format", "json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check(build, folder, lines):
    rows = tool(build, "query", folder, CALLS)
    for rank in range(RANKS):
        asked = collections.Counter(int(w.split()[1]) for w in lines[rank] if w.startswith("call"))
        found = collections.Counter(r["count"] for r in rows if r["rank"] == rank)
        assert found == asked, (found, asked)
    assert tool(build, "query", folder, BAD) == [{"n": 0}]
    report = tool(build, "report", folder)
    late = [f for f in report["findings"] if f["kind"] == "straggler"]
    assert late and late[0]["ranks"] == [1], report["findings"]


def main(build, ddp):
    python, shared = python_with_torch()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        plain = train(python, ddp, work / "plain")
        lines = train(python, ddp, work / "traced", RINGSCOPE_DIR=str(work / "run"),
                      LD_PRELOAD=f"{build}/tracer/libringscope.so", RINGSCOPE_EXPORT="none",
                      RINGSCOPE_RUN_ID="ddp")
        assert lines == plain
        if not shared:
            print("torch's Gloo is not a shared library: what was recorded is not compared")
            sys.exit(77)
        check(build, work / "run", lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
