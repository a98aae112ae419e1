# SPDX-License-Identifier: Apache-2.0
"""File I/O, recorded: python3 test-io.py BUILD_ROOT PROGRAM

Runs PROGRAM (io-program.c) alone, under the tracer, and under it without the part `io`, and compares
what the capture holds with what the program is written to do. The program checks results and errno.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LARGE = 24 << 20
# (thread is the main one, call, file, bytes): each takes far longer than what is not recorded
WANTED = {(True, call, "written", LARGE)
          for call in ("write", "pwrite", "writev", "pread", "readv", "read")} | {
    (True, "fwrite", "by stdio", LARGE),
    (True, "fread", "by stdio", LARGE),
    (False, "write", "behind", LARGE),
}
# No file, not the program's, or not while there is a capture.
NEVER = {"early", "of the child", "by MPI", "none such"}
EVENTS = """SELECT t.tid = r.pid AS main, c.text AS call, n.text AS path, s.bytes
FROM events e JOIN signatures s ON s.id = e.signature_id JOIN enum_kind k ON k.id = s.kind
JOIN strings n ON n.id = s.name_id JOIN strings c ON c.id = s.range_category_id
JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id WHERE k.name = 'io'"""


def run(program, work, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
    env["OMPI_MCA_plm"] = "isolated"  # a singleton needs no remote shell
    with tempfile.TemporaryDirectory(dir=work) as folder:
        done = subprocess.run([program, folder], env={**env, **settings}, capture_output=True,
                              text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done


def tool(build, *words):
    command = [f"{build}/analyzer/ringscope", *map(str, words), "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def check_recorded(build, folder):
    capture, = folder.glob("*.rsc")
    rows = tool(build, "query", capture, EVENTS)
    found = [(bool(r["main"]), r["call"], os.path.basename(r["path"].removesuffix(" (deleted)")),
              r["bytes"]) for r in rows]
    missing = WANTED - set(found)
    assert not missing, (missing, found)
    assert all(found.count(w) == 1 for w in WANTED), found
    assert all(r["path"].startswith("/") or r["call"].startswith(("open", "fopen"))
               for r in rows), rows
    strays = [f for f in found if f[2] in NEVER - {"none such"}]
    assert not strays, strays
    pipes = [r for r in rows if "pipe:" in r["path"] or r["path"].startswith(("/proc/", "/sys/"))
             or "ringscope-" in r["path"] or r["path"].endswith(".rsc")]
    assert not pipes, pipes
    # 6,000 calls that take microseconds: only those that were put off the processor.
    assert sum(f[2] in ("small", "none such") for f in found) < 600, len(found)


def check_report(build, folder):
    report = tool(build, "report", folder)
    row = [r for r in report["metrics"]["breakdown"] if r.get("step") is None][0]
    assert row["io"] > 0, row
    assert any("io_uring" in n["reason"] for n in report["not_applicable"]), report


def main(build, program):
    with tempfile.TemporaryDirectory() as work:
        library, folder = f"{build}/tracer/libringscope.so", pathlib.Path(work, "run")
        traced = {"LD_PRELOAD": library, "RINGSCOPE_EXPORT": "none"}
        run(program, work)
        run(program, work, **traced, RINGSCOPE_DIR=str(folder))
        check_recorded(build, folder)
        check_report(build, folder)
        without = pathlib.Path(work, "without")
        run(program, work, **traced, RINGSCOPE_DIR=str(without), RINGSCOPE_TRACE="mpi")
        assert tool(build, "query", without, EVENTS) == []


if __name__ == "__main__":
    main(*sys.argv[1:])
