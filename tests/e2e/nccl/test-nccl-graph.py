# SPDX-License-Identifier: Apache-2.0
"""NCCL captured into CUDA graphs, under the tracer:

    python3 test-nccl-graph.py BUILD_ROOT PROGRAM COUNTING_CUDA PLUGIN=VERSION... [--seed N]

What is captured is recorded as captured, whether NCCL's profiler interface tells it or not; a launch
of a graph is a device interval, the first with the call's number. COUNTING_CUDA is a CUDA runtime
that counts calls: with the tracer each function is called as often as without.
"""
import collections
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile

CAPTURED = 4
SQL = """SELECT k.name AS kind, g.member, e.seq, e.flags, g.count FROM events e
JOIN signatures g ON g.id = e.signature_id JOIN enum_kind k ON k.id = g.kind
JOIN strings n ON n.id = g.name_id WHERE n.text = 'ncclAllReduce'"""


def run(program, counting, work, name, seed, **env):
    """What it printed, and how often each function of CUDA was called."""
    counts = pathlib.Path(work, f"{name}.counts")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "NCCL"))}
    done = subprocess.run([program, str(seed)], capture_output=True, text=True, timeout=60,
                          env={**clean, "CUDA_COUNTS": str(counts),
                               "LD_LIBRARY_PATH": str(pathlib.Path(counting).parent), **env})
    assert done.returncode == 0 and not done.stderr, (name, done)
    assert counts.exists(), f"{name}: another CUDA runtime was loaded"
    return done.stdout, dict(line.split() for line in counts.read_text().splitlines())


def check_records(rows, wanted, name, with_device):
    for member in (1, 2):
        calls = sorted((r["seq"], bool(r["flags"] & CAPTURED)) for r in rows
                       if r["kind"] == "call" and r["member"] == member)
        assert calls == [(i, captured) for i, (captured, _) in enumerate(wanted)], (name, calls)
        if not with_device:
            continue
        device = [r for r in rows if r["kind"] == "device" and r["member"] == member]
        numbered = collections.Counter(r["seq"] for r in device if r["flags"] & 16)
        assert numbered == {i: 1 for i, (_, launches) in enumerate(wanted) if launches}, (
            name, numbered)
        assert len(device) == sum(launches for _, launches in wanted), (name, len(device))


def main(build, program, counting, *rest):
    rest = list(rest)
    seed = int(rest[rest.index("--seed") + 1]) if "--seed" in rest else secrets.randbits(31)
    plugins = [p.split("=") for p in rest if "=" in p]
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as work:
        plain, plain_counts = run(program, counting, work, "plain", seed)
        wanted = [(line.split()[1] == "1", int(line.split()[2])) for line in plain.splitlines()
                  if line.startswith("call")]
        assert len(wanted) >= 12 and plain_counts["cudaStreamGetCaptureInfo"], plain_counts
        for path, version in [("", "newest"), ("none", "none"), *plugins]:
            folder = pathlib.Path(work, version)
            env = {"NCCL_PROFILER_PLUGIN": path} if path else {}
            out, counts = run(program, counting, work, version, seed,
                              LD_PRELOAD=f"{build}/tracer/libringscope.so",
                              RINGSCOPE_DIR=str(folder), RINGSCOPE_EXPORT="none",
                              RINGSCOPE_RUN_ID="graph", **env)
            assert out == plain, (version, out, plain)
            assert counts == plain_counts, (version, {
                f: (plain_counts.get(f), counts.get(f)) for f in counts.keys() | plain_counts.keys()
                if plain_counts.get(f) != counts.get(f)})
            done = subprocess.run([f"{build}/analyzer/ringscope", "query", str(folder), SQL,
                                   "--format", "json"], capture_output=True, text=True, check=True)
            check_records(json.loads(done.stdout), wanted, version, version in ("newest", "5"))
    print(f"{len(wanted)} collectives, {sum(c for c, _ in wanted)} captured, are as they were made")


if __name__ == "__main__":
    main(*sys.argv[1:])
