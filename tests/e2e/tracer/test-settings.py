# SPDX-License-Identifier: Apache-2.0
"""Wrong settings: python3 test-settings.py BUILD_ROOT PROGRAM

A wrong value and an unknown name must leave the defaults, stand in the capture, and show in merge and
report; with RINGSCOPE_VERBOSE=1 the process that is first on its host says them. Where no capture can
be made, one line says so; never in a file of the program's, and never at the price of its life.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

WRONG = {
    "RINGSCOPE_TRACE": "bogus",
    "RINGSCOPE_EXPORT": "bogus,sqlite",
    "RINGSCOPE_SIZE_LIMIT": "64KB",
    "RINGSCOPE_START": "90-60",
    "RINGSCOPE_STEPS": "5-7;9",
    "RINGSCOPE_SIGNAL": "KILL",
    "RINGSCOPE_RANK": "x",
    "RINGSCOPE_HOST": "h" * 300,
    "RINGSCOPE_DIRR": "elsewhere",
}
SAID = [
    "RINGSCOPE_TRACE=bogus: unknown 'bogus'; known: nccl,mpi,nvtx,io,counters,cuda,gloo; the default holds",
    "RINGSCOPE_EXPORT=bogus,sqlite: unknown 'bogus'; known: chrome,sqlite,none; the rest counts",
    "RINGSCOPE_SIZE_LIMIT=64KB: expected bytes, from 64K; K, M or G may follow; the default holds "
    "(none)",
    "RINGSCOPE_START=90-60: expected seconds, as 60 or 60-90.5; the default holds (0)",
    "RINGSCOPE_STEPS=5-7;9: expected numbers of steps, as 10-12,50 or 100-; the default holds (all)",
    "RINGSCOPE_SIGNAL=KILL: expected USR1, USR2, or a number from 34 to 64; the default holds (none)",
    "RINGSCOPE_RANK=x: expected a number from 0; the default holds (from the launcher, MPI or NCCL)",
    "RINGSCOPE_HOST=" + "h" * 60 + "...: expected a shorter text; the default holds (the host's name)",
    "RINGSCOPE_DIRR: no such setting; after RINGSCOPE_ go: DIR TRACE EXPORT SIZE_LIMIT KEEP START STEPS SIGNAL "
    "RUN_ID RANK HOST "
    "VERBOSE",
]


def run(build, command, work, settings, status=0):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("RINGSCOPE", "LD_PRELOAD"))}
    preload = {"LD_PRELOAD": f"{build}/tracer/libringscope.so"} if settings is not None else {}
    done = subprocess.run(command, env={**keep, **preload, **(settings or {})}, cwd=work,
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status, (command, done)
    return done.stdout, done.stderr


def tool(build, work, *words, status=0):
    return run(build, [f"{build}/analyzer/ringscope", *words], work, None, status)


def lines_of(text):
    return [l.removeprefix("ringscope: ") for l in text.splitlines()]


def starts(lines, expected):
    return len(lines) == len(expected) and all(map(str.startswith, lines, expected))


def check_notes(build, program, work):
    program = [program, "plain"]
    _, said = run(build, program, work, {**WRONG, "RINGSCOPE_DIR": "notes", "RANK": "5"})
    assert said == "", said
    capture, = pathlib.Path(work, "notes").glob("*.rsc")
    assert {p.suffix for p in capture.parent.iterdir()} == {".rsc", ".sqlite"}  # "the rest counts"
    sql = "SELECT COUNT(*) FROM slices WHERE rank = 5 AND name = 'ncclGroupEnd'"
    out, _ = tool(build, work, "query", str(capture), "--format", "csv", sql)
    assert out.split() == ["COUNT(*)", "20"], out  # parts and rank: their defaults hold
    _, said = tool(build, work, "merge", "notes")
    assert starts(sorted(l for l in lines_of(said) if "RINGSCOPE" in l), sorted(SAID)), said
    assert all(l.endswith(" (rank 5)") for l in lines_of(said) if "RINGSCOPE" in l), said
    report, _ = tool(build, work, "report", "notes")
    words = " ".join(report.split())
    for text in SAID:
        assert text in words, (text, report)

    loud = {**WRONG, "RINGSCOPE_DIR": "loud", "RINGSCOPE_VERBOSE": "1"}
    _, said = run(build, program, work, loud)
    assert starts(lines_of(said), ["recording to "] + SAID), said
    _, said = run(build, program, work, {**loud, "LOCAL_RANK": "1"})  # the first has said it
    assert starts(lines_of(said), ["recording to "]), said
    _, said = run(build, [program[0], "fork-both"], work, loud, status=0)
    assert said.count("RINGSCOPE_TRACE") == 1 and said.count("recording to") == 2, said


def check_right(build, program, work):
    right = {"RINGSCOPE_TRACE": "mpi,nccl", "RINGSCOPE_EXPORT": "none", "RINGSCOPE_RANK": "3",
             "RINGSCOPE_HOST": "here", "RINGSCOPE_RUN_ID": "id", "RINGSCOPE_DIR": "right",
             "RINGSCOPE_VERBOSE": "1"}
    _, said = run(build, [program, "plain"], work, right)
    assert starts(lines_of(said), ["recording to "]), said
    capture, = pathlib.Path(work, "right").iterdir()
    assert capture.name.startswith("here-"), capture
    sql = "SELECT key, value FROM meta WHERE key LIKE '%/setting.%' OR key LIKE '%/trace.parts'"
    out, _ = tool(build, work, "query", str(capture), "--format", "csv", sql)
    assert out.split()[1:] == ['3/trace.parts,"nccl,mpi"'], out


def check_nowhere(build, program, work):
    pathlib.Path(work, "file").touch()
    nowhere = {"RINGSCOPE_DIR": "file/folder", "RINGSCOPE_VERBOSE": "1"}
    for way in ("plain", "take-stderr", "break-stderr"):
        plain, _ = run(build, [program, way], work, None)
        out, said = run(build, [program, way], work, nowhere)
        assert out == plain and "at the end of" in out, (way, out)
        expected = [f"nothing is recorded: {work}/file/folder: "] if way == "plain" else []
        assert starts(lines_of(said), expected), (way, said)
    _, said = run(build, [program, "plain"], work, {**nowhere, "LOCAL_RANK": "1"})
    assert said == "", said


def check_run(build, program, work):
    """`ringscope run` offers what the tracer knows, and tells where there is nothing to record to."""
    help_text, _ = tool(build, work, "run", "--help")
    assert "(default: nccl,mpi,nvtx,io,gloo; known besides: counters, cuda)" in help_text, help_text
    _, said = tool(build, work, "run", "--trace", "mpi,gpu", "--", program, status=2)
    assert "--trace mpi,gpu: unknown 'gpu'; known: nccl,mpi,nvtx,io,counters,cuda,gloo" in said, said
    _, said = tool(build, work, "run", "-o", "file/folder", "--", program, status=2)
    assert f"{work}/file/folder: can't make or write the run folder" in said, said
    taken_away = f"rmdir taken; touch taken; {program} plain"
    _, said = tool(build, work, "run", "-o", "taken", "--", "sh", "-c", taken_away)
    assert f"nothing is recorded: {work}/taken: " in said, said
    assert f"{work}/taken: nothing was recorded: " in said, said


def main(build, program):
    with tempfile.TemporaryDirectory() as work:
        work = os.path.realpath(work)
        for check in (check_notes, check_right, check_nowhere, check_run):
            check(build, program, work)
            print("ok", check.__name__, flush=True)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
