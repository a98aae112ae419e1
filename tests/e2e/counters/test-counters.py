# SPDX-License-Identifier: Apache-2.0
"""Counters, recorded: python3 test-counters.py BUILD_ROOT PROGRAM MOCK_NVML

Runs PROGRAM (counters-program.c), which keeps its machine busy in known ways, under the tracer with
the part `counters`, itself and in the child of a fork, and compares what is counted with that.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SECONDS = 4
ALL = {
    "CPU": "cores", "minor page faults": "1/s", "major page faults": "1/s",
    "context switches, voluntary": "1/s", "context switches, involuntary": "1/s",
    "run-queue wait of the main thread": "s/s", "resident memory": "B",
    "TCP segments retransmitted": "1/s", "lo received": "B/s", "lo sent": "B/s",
    "lo errors and drops": "1/s",
}
GPUS = {  # of mock-nvml.c
    ("GPU 0 busy", "%", 37), ("GPU 1 busy", "%", 38), ("GPU 0 power", "W", 250.5),
    ("GPU 0 memory", "B", 10 << 30), ("GPU 1 memory", "B", 11 << 30),
    ("GPU 0 clock", "Hz", 1410e6), ("GPU 1 clock", "Hz", 1420e6)}
OF_HOST = {name for name in ALL if name.startswith(("TCP", "lo "))}
COUNTERS = """SELECT n.text AS name, u.text AS unit, c.value, e.start_ns AS at, w.text AS track
FROM counters c JOIN events e ON e.id = c.event_id JOIN signatures s ON s.id = e.signature_id
JOIN strings n ON n.id = s.name_id JOIN strings u ON u.id = s.range_category_id
JOIN tracks t ON t.id = e.track_id JOIN strings w ON w.id = t.name_id ORDER BY e.start_ns"""


def run(build, folder, command, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
    env["OMPI_MCA_plm"] = "isolated"  # a singleton needs no remote shell
    env.update(LD_PRELOAD=f"{build}/tracer/libringscope.so", RINGSCOPE_DIR=str(folder),
               RINGSCOPE_EXPORT="chrome", **settings)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done
    return int(done.stdout)


def samples(build, capture):
    tool = [f"{build}/analyzer/ringscope", "query", str(capture), COUNTERS, "--format", "json"]
    return json.loads(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)


def meta(build, capture, key):
    tool = [f"{build}/analyzer/ringscope", "query", str(capture), "--format", "json",
            f"SELECT value FROM meta WHERE key LIKE '%{key}'"]
    rows = json.loads(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)
    return [r["value"] for r in rows]


def gpus(rows):
    return {(r["name"], r["unit"], r["value"]) for r in rows if r["name"].startswith("GPU ")}


def check(rows, sent):
    assert {r["track"] for r in rows} == {"counters"}, rows
    assert {(r["name"], r["unit"]) for r in rows if r["name"].startswith(("TCP", "lo "))
            or r["name"] in ALL} == set(ALL.items()), rows
    values = collections.defaultdict(list)
    for r in rows:
        values[r["name"]].append(r["value"])
    times = sorted({r["at"] for r in rows})
    assert 2 <= len(times) <= SECONDS + 1, times
    assert all(b - a >= 0.9e9 for a, b in zip(times, times[1:])), times
    assert all(len(values[name]) == len(times) for name in ALL), values
    mean = {name: sum(v) / len(v) for name, v in values.items()}
    # It computes all the time, on a processor that another uses as much as it may.
    assert 0.02 < mean["CPU"] < 3, mean
    assert 0.05 < mean["run-queue wait of the main thread"] < 1.05, mean
    assert mean["minor page faults"] > 1024 and mean["context switches, involuntary"] > 1, mean
    assert mean["context switches, voluntary"] > 10, mean  # the sender's sleeps
    # 96 MiB of its own; the kernel counts them roughly, and may have put some away.
    assert 64 << 20 < mean["resident memory"] < 4 << 30, mean
    assert mean["lo sent"] > 0.3 * sent / SECONDS > 0, (mean, sent)
    assert all(v >= 0 for v in mean.values()), mean


def main(build, program, mock):
    # by name, as the driver's own is found
    os.environ["LD_LIBRARY_PATH"] = f"{pathlib.Path(mock).parent}:{os.getenv('LD_LIBRARY_PATH', '')}"
    with tempfile.TemporaryDirectory() as work:
        parts = {"RINGSCOPE_TRACE": "mpi,counters"}
        folder = pathlib.Path(work, "run")
        sent = run(build, folder, [program], **parts)
        capture, = folder.glob("*.rsc")
        rows = samples(build, capture)
        check(rows, sent)
        assert gpus(rows) == GPUS and not meta(build, capture, "off.gpu_use"), gpus(rows)
        chrome = json.loads(capture.with_suffix(".json").read_text())["traceEvents"]
        assert {e["name"] for e in chrome if e["ph"] == "C"} >= set(ALL), chrome

        folder = pathlib.Path(work, "forks")
        sent = run(build, folder, [program, "forks"], **parts, MOCK_NVML_INIT="9")
        captures = list(folder.glob("*.rsc"))
        whys = {why for c in captures for why in meta(build, c, "off.gpu_use")}
        assert whys == {"NVML: Driver Not Loaded"}, whys
        found = [samples(build, c) for c in captures]
        assert not any(gpus(rows) for rows in found), found
        child = [rows for rows in found if any(r["value"] > 64 << 20 for r in rows
                                               if r["name"] == "resident memory")]
        assert len(found) == 2 and len(child) == 1, found
        check(child[0], sent)

        folder = pathlib.Path(work, "second of its host")
        run(build, folder, [program], **parts, OMPI_COMM_WORLD_LOCAL_RANK="1")
        capture, = folder.glob("*.rsc")
        assert {r["name"] for r in samples(build, capture)} == set(ALL) - OF_HOST


if __name__ == "__main__":
    main(*sys.argv[1:])
