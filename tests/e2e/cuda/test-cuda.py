# SPDX-License-Identifier: Apache-2.0
"""CUPTI under the tracer: python3 test-cuda.py BUILD_ROOT PROGRAM NCCL_PROGRAM [MOCK [TRAINING]]

PROGRAM (cuda-program.c) and NCCL_PROGRAM (../nccl/nccl-program.c) run with the stand-in CUDA runtime
and MOCK (mock-cupti.c), which tells of its work as CUPTI does: what it did must be in the trace, on
the tracks of its streams, joined to the calls that caused it. Then CUPTI fails in many ways, which
must leave one line and all else. TRAINING (samples/train/mlp) does the same under MPI.
"""
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

KERNEL, NCCL_KERNEL = "gemm", "ncclDevKernel_Mocked"
DEVICES = 2
SLICES = """SELECT s.event_id, s.track, s.kind, s.name, s.seq, s.bytes, s.start_ns, s.end_ns,
e.link_event_id AS link, g.api, g.member FROM slices s JOIN events e ON e.id = s.event_id
JOIN signatures g ON g.id = e.signature_id"""


def load_nccl_test():
    path = pathlib.Path(__file__).parent.parent / "nccl/test-nccl.py"
    spec = importlib.util.spec_from_file_location("test_nccl", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runs:
    def __init__(self, build, program, mock, work):
        self.build, self.program, self.mock, self.work = build, program, mock, work

    def environment(self, folder, env, trace="nccl,cuda"):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("RINGSCOPE", "NCCL", "CUDA", "RANK", "WORLD_SIZE"))}
        return {**clean, "LD_PRELOAD": f"{self.mock}:{self.build}/tracer/libringscope.so",
                "RINGSCOPE_DIR": str(folder), "RINGSCOPE_TRACE": trace, "RINGSCOPE_EXPORT": "none",
                "NCCL_PROFILER_PLUGIN": "none", **env}

    def run(self, name, *args, trace="nccl,cuda", **env):
        """Runs the program; returns its run folder and what the tracer said."""
        folder = self.work / name
        done = subprocess.run([self.program, *args], text=True, capture_output=True, timeout=60,
                              env=self.environment(folder, env, trace), check=False)
        assert done.returncode == 0 and done.stdout == "30 38 6\n", (name, done)
        return folder, done.stderr

    def query(self, folder, sql=SLICES):
        done = subprocess.run([f"{self.build}/analyzer/ringscope", "query", str(folder), sql,
                               "--format", "json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def value(self, folder, sql):
        return list(self.query(folder, sql)[0].values())[0]


def counts(rows, track):
    return dict(collections.Counter(r["name"] for r in rows if r["track"] == track))


def check_tracks(rows):
    """Each device's streams have what was put on them, in order."""
    compute, comm = {KERNEL: 2, "set": 1, "copy HtoD": 1}, {KERNEL: 1, NCCL_KERNEL: 2}
    for stream, (device, wanted) in enumerate(((0, compute), (0, comm), (1, compute), (1, comm))):
        track = f"GPU {device} stream {7 + stream}"
        found = counts(rows, track)
        assert found.pop("ncclAllReduce", 4) == 4, found
        assert found == wanted, (track, found)
        assert counts(rows, f"GPU {device} waits") == {"stream waits for an event": 1}
    names = [r["name"] for r in rows if r["track"] == f"GPU 0 stream {7}"]
    assert names == ["set", "copy HtoD", KERNEL, KERNEL], names
    assert {r["bytes"] for r in rows if r["name"] == "copy HtoD"} == {800}
    assert {r["bytes"] for r in rows if r["name"] == "set"} == {400}


def check_links(rows):
    """From each piece of work to the runtime's call, and from each operation to NCCL's."""
    by_id = {r["event_id"]: r for r in rows}
    calls = {KERNEL: "cudaLaunchKernel", NCCL_KERNEL: "cudaLaunchKernel", "set": "cudaMemsetAsync",
             "copy HtoD": "cudaMemcpyAsync", "stream waits for an event": "cudaStreamWaitEvent"}
    linked = [r for r in rows if r["name"] in calls]
    for r in linked:
        call = by_id[r["link"]]
        assert call["name"] == calls[r["name"]] and call["track"] == "main", (r, call)
        assert call["start_ns"] <= r["start_ns"], (r, call)
    assert len({r["link"] for r in linked}) == len(linked), linked
    operations = [r for r in rows if r["kind"] == "device" and r["name"] == "ncclAllReduce"]
    assert sorted((r["track"], r["seq"]) for r in operations) == [
        (f"GPU {i} stream {8 + 2 * i}", seq) for i in range(DEVICES) for seq in range(4)] or \
        sorted((r["member"], r["seq"]) for r in operations) == [
            (i + 1, seq) for i in range(DEVICES) for seq in range(4)], operations
    kernels = [r for r in rows if r["name"] == NCCL_KERNEL]
    for r in operations:
        call = by_id[r["link"]]
        assert (call["name"], call["seq"], call["member"]) == (r["name"], r["seq"], r["member"])
        same = [k for k in kernels if (k["track"], k["start_ns"], k["end_ns"]) ==
                (r["track"], r["start_ns"], r["end_ns"])]
        assert len(same) == 1, (r, kernels)
        launch = by_id[same[0]["link"]]
        assert call["start_ns"] <= launch["start_ns"] <= launch["end_ns"] <= call["end_ns"]


def check_host_calls(rows):
    found = dict(collections.Counter(r["name"] for r in rows if r["api"] == 4 and
                                     r["kind"] == "call"))
    assert found == {"cudaLaunchKernel": 10, "cudaMemsetAsync": 2, "cudaMemcpyAsync": 2,
                     "cudaStreamWaitEvent": 2, "cudaStreamSynchronize": 4}, found


def check_json(folder):
    """One arrow for each piece of work, from a slice of the host's to one of the device's."""
    trace = json.loads((folder / "run.json").read_text())["traceEvents"]
    slices = [e for e in trace if e["ph"] == "X"]
    starts = {e["id"]: e for e in trace if e["ph"] == "s" and e["name"] == "launch"}
    ends = {e["id"]: e for e in trace if e["ph"] == "f" and e["name"] == "launch"}
    assert len(starts) == 14 and starts.keys() == ends.keys(), (len(starts), len(ends))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    for i, e in ends.items():
        assert names[e["pid"], e["tid"]].startswith("GPU "), e
        assert names[starts[i]["pid"], starts[i]["tid"]] == "main", starts[i]
        work = [s for s in slices if (s["pid"], s["tid"], s["ts"]) == (e["pid"], e["tid"], e["ts"])]
        call = [s for s in slices if s.get("args", {}).get("correlation") and s["tid"] == starts[i]["tid"] and
                s["ts"] == starts[i]["ts"]]
        assert work and call, (e, starts[i])
        assert call[0]["args"]["correlation"] in {s.get("args", {}).get("correlation") for s in work}


def check_views(runs, folder):
    rows = runs.query(folder, "SELECT what, communicates, COUNT(*) AS n, COUNT(call) AS calls FROM "
                              "device_activities GROUP BY what, communicates ORDER BY what, n")
    assert [tuple(r.values()) for r in rows] == [
        ("copy", 0, 2, 2), ("kernel", 1, 4, 4), ("kernel", 0, 6, 6), ("set", 0, 2, 2)], rows
    metrics = json.loads(subprocess.run(
        [f"{runs.build}/analyzer/ringscope", "report", str(folder), "--format", "json"],
        capture_output=True, text=True, check=True).stdout)["metrics"]
    rows = [c for c in metrics["collectives"] if c["api"] == "NCCL"]
    assert sum(c["timed"] for c in rows) == 4 and all(c["device"] for c in rows), rows
    again = folder / "again.sqlite"
    subprocess.run([f"{runs.build}/analyzer/ringscope", "export", str(folder / "run.sqlite"),
                    "--format", "sqlite", "-o", str(again)], check=True, capture_output=True)
    assert runs.query(again) == runs.query(folder / "run.sqlite")


def check_whole(runs):
    folder, said = runs.run("plain")
    assert said == "", said
    subprocess.run([f"{runs.build}/analyzer/ringscope", "merge", str(folder)], check=True,
                   capture_output=True)
    rows = runs.query(folder)
    check_tracks(rows)
    check_links(rows)
    check_host_calls(rows)
    check_json(folder)
    check_views(runs, folder)
    library = runs.value(folder, "SELECT value FROM meta WHERE key LIKE '%cupti.library'")
    assert library == f"{runs.mock}, version 130001", library


def check_without_clock(runs):
    folder, said = runs.run("no-clock", MOCK_CUPTI_NO_CLOCK="1")
    rows = runs.query(folder)
    assert said == "", said
    check_tracks(rows)
    last = max(r["end_ns"] for r in rows if r["track"] == "main")
    assert all(r["end_ns"] <= last for r in rows if r["track"].startswith("GPU")), rows


def check_unwanted(runs):
    folder, said = runs.run("off", trace="nccl", MOCK_CUPTI_SUBSCRIBE="39")
    assert said == "" and not [r for r in runs.query(folder) if r["track"].startswith("GPU")], said


def check_failures(runs):
    """One line on standard error, the reason in the capture, and NCCL's calls as ever."""
    for i, (env, words, kernels) in enumerate((
            ({"MOCK_CUPTI_SUBSCRIBE": "39"}, "another tool in this process uses CUPTI", 0),
            ({"MOCK_CUPTI_SUBSCRIBE": "999"}, "is there an NVIDIA driver", 0),
            ({"MOCK_CUPTI_SUBSCRIBE": "8"}, "CUPTI can't be used: error (8)", 0),
            ({"MOCK_CUPTI_VERSION": "18"}, "is version 18 of CUPTI's interface; 19 (CUDA 12.0)", 0),
            ({"MOCK_CUPTI_VERSION": "140000"}, "is version 140000 of CUPTI's interface", 0),
            ({"MOCK_CUPTI_NO_KIND": "10"}, "lets only administrators profile", 0),
            ({"MOCK_CUPTI_SHORT": "1"}, "records are shorter", 0),
            ({"MOCK_CUPTI_NO_KIND": "22"}, "", 10))):
        folder, said = runs.run(f"fails-{i}", **env)
        if "MOCK_CUPTI_SHORT" in env: # however many buffers of it there are
            _, said = runs.run("short", "many", "3000", MOCK_CUPTI_REPEAT="40", **env)
        rows = runs.query(folder)
        reason = runs.value(folder, "SELECT value FROM meta WHERE key LIKE '%off.cuda%'")
        assert words in said and said.count("\n") == (1 if words else 0), (env, said)
        assert words in reason and (words or reason == "CUPTI refuses copies between devices"), (env, reason)
        found = counts(rows, "main")
        assert found["ncclAllReduce"] == 8 and found["ncclCommDestroy"] == 2, (env, found)
        assert len([r for r in rows if r["name"] in (KERNEL, NCCL_KERNEL)]) == kernels, env


def check_driver(runs):
    """The driver loads the tracer as a tool, once more than it was: CUPTI is started once."""
    folder, said = runs.run("driver", "driver")
    assert said == "", said
    check_tracks(runs.query(folder))


def check_vendors(runs):
    """Without the mock: the vendor's CUPTI, which finds no driver for the stand-in, or none."""
    _, said = runs.run("vendor", LD_PRELOAD=f"{runs.build}/tracer/libringscope.so",
                       LD_LIBRARY_PATH=os.getenv("LD_LIBRARY_PATH", "").replace(
                           f"{runs.build}/tests/e2e/cuda", "/none"))
    assert said.count("\n") <= 1, said
    assert said == "" or said.startswith("ringscope: CUDA's kernels are not recorded, "), said


def check_flood(runs):
    """More than there is room for: what is missing is counted."""
    folder, said = runs.run("many", "many", "3000", MOCK_CUPTI_REPEAT="40")
    kernels = runs.value(folder, "SELECT COUNT(*) FROM device_activities WHERE what = 'kernel'")
    lost = runs.value(folder, "SELECT dropped_events FROM run")
    assert said == "" and kernels <= 3010 * 40 <= kernels + lost and kernels > 5000, (kernels, lost)
    print(f"of {3010 * 40} kernels {kernels} are there, {lost} records lost")


def check_graph(runs):
    """What a graph runs is joined to the graph's launch."""
    folder, said = runs.run("graph", "graph")
    rows = runs.query(folder, "SELECT what, graph, call, COUNT(DISTINCT call_event_id) AS n FROM "
                              "device_activities WHERE graph <> '' GROUP BY what ORDER BY what")
    node = f"graph 3, node {3 << 32 | 12}"
    assert said == "" and [tuple(r.values()) for r in rows] == [
        ("kernel", node, "cudaGraphLaunch", 2), ("set", node, "cudaGraphLaunch", 2)], (said, rows)


def check_fork(runs):
    folder, said = runs.run("fork", "fork")
    rows = runs.query(folder)
    assert said == "" and len(list(folder.glob("*.rsc"))) == 2, (said, list(folder.iterdir()))
    assert len([r for r in rows if r["name"] == KERNEL]) == 6, rows
    assert [r["track"] for r in rows if r["name"] == "ncclGetUniqueId"] != ["main"], rows


def check_exit(runs):
    """Work at the very end, and buffers that CUPTI never gives back, keep nobody."""
    folder, said = runs.run("quiet", "quiet")
    assert said == "" and runs.value(folder, "SELECT COUNT(*) FROM device_activities") >= 14


def check_killed(runs):
    """What was in the rings before a SIGKILL is in the capture, joined as ever."""
    folder = runs.work / "killed"
    program = subprocess.Popen([runs.program, "killed"], text=True, stdout=subprocess.PIPE,
                               env=runs.environment(folder, {}))
    assert program.stdout.readline() == "30 38 6\n"
    for _ in range(300): # CUPTI is asked a few times a second
        before = runs.query(folder, "SELECT COUNT(*) AS n FROM device_activities")[0]["n"]
        if before >= 14:
            break
        time.sleep(0.05)
    program.kill()
    program.wait()
    rows = runs.query(folder)
    assert before == 14, before
    check_tracks(rows)
    check_links(rows)
    assert runs.value(folder, "SELECT n.name FROM ranks JOIN enum_ending n ON n.id = ending") == "killed"


def check_nccl(runs, program):
    """Groups over streams and communicators, joined as the profiler plug-in joins them."""
    nccl = load_nccl_test()
    plain = nccl.run(runs.work, program, {})
    for plugin in ("none", f"{runs.build}/tracer/libringscope.so"):
        folder = runs.work / f"nccl-{plugin == 'none'}"
        env = runs.environment(folder, {"NCCL_PROFILER_PLUGIN": plugin,
                                        "RINGSCOPE_RUN_ID": "cuda"})
        assert nccl.run(runs.work, program, env) == plain
        rows = nccl.query(runs.build, folder, nccl.SLICES)
        for rank in range(nccl.RANKS):
            nccl.check_rank(rank, [r for r in rows if r["rank"] == rank])
        kernels = runs.query(folder, "SELECT rank, COUNT(*) AS n FROM device_activities WHERE "
                                     "communicates GROUP BY rank")
        assert len(kernels) == nccl.RANKS and all(k["n"] >= 10 for k in kernels), kernels


def check_training(runs, training):
    """MPI between processes, NCCL by a thread of the runtime: every operation has a kernel."""
    folder = runs.work / "training"
    env = runs.environment(folder, {}, trace="nccl,mpi,nvtx,cuda")
    preload = env.pop("LD_PRELOAD")
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(["mpirun.openmpi", "--oversubscribe", "-np", "2", "env",
                           f"LD_PRELOAD={preload}", training, "--steps", "4"], env=env, text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done
    rows = runs.query(folder, """SELECT r.rank, SUM(s.kind = 0 AND c.name <> 'other' AND s.count > 0
AND s.api = 2) AS calls, SUM(s.kind = 1 AND s.api = 2) AS intervals, SUM(s.op = 6) AS kernels,
SUM(s.kind = 1 AND e.link_event_id IS NULL) AS loose FROM events e JOIN signatures s ON
s.id = e.signature_id JOIN enum_class c ON c.id = s.class JOIN tracks t ON t.id = e.track_id JOIN
ranks r ON r.id = t.rank_id GROUP BY r.rank""")
    assert len(rows) == 2, rows
    for r in rows:
        assert r["calls"] == r["intervals"] >= 8 and r["loose"] == 0, rows
        assert 4 <= r["kernels"] <= r["calls"], rows  # one for a group


def main(build, program, nccl_program, mock=None, training=None):
    if not mock:
        print("needs the vendor's cupti.h for a mock of CUPTI")
        return 77
    with tempfile.TemporaryDirectory() as work:
        runs = Runs(build, program, mock, pathlib.Path(work))
        check_whole(runs)
        check_without_clock(runs)
        check_unwanted(runs)
        check_failures(runs)
        check_driver(runs)
        check_vendors(runs)
        check_flood(runs)
        check_graph(runs)
        check_fork(runs)
        check_exit(runs)
        check_killed(runs)
        check_nccl(runs, nccl_program)
        if training:
            check_training(runs, training)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
