#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands on traces of other tools: check-traces.py RINGSCOPE CASES

merge, report, query and export take them as they take captures; what is written of damaged ones is
strict JSON; no trace is overwritten by what is made of it.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def tool(ringscope, *args, status=0, says=""):
    p = subprocess.run([ringscope, *map(str, args)], capture_output=True, text=True, check=False)
    assert p.returncode == status, f"{args}: exit {p.returncode}, {p.stderr}"
    assert says in p.stderr, f"{args}: {p.stderr}"
    return p.stdout


def refuse(word):
    raise AssertionError(f"bare {word} in JSON")


def check_export(ringscope, trace, folder):
    """What is written of it is strict, and holds the same slices when it is read again."""
    out = folder / "out.json"
    tool(ringscope, "export", trace, "--format", "chrome", "-o", out, "--quiet")
    events = json.loads(out.read_bytes().decode("utf-8"), parse_constant=refuse)["traceEvents"]
    names = "select text from events join signatures s on s.id=signature_id join strings t on t.id=s.name_id order by 1"
    before = tool(ringscope, "query", "--format", "json", trace, names)
    assert before == tool(ringscope, "query", "--format", "json", out, names), trace
    assert sum(e["ph"] in "Xi" for e in events) == len(json.loads(before)), trace


def check_commands(ringscope, cases, folder):
    run = folder / "run"
    shutil.copytree(cases / "ranks" / "straggler-with-clock-offset", run)
    assert "rank 2 is late" in tool(ringscope, "report", run)
    files = sorted(run.glob("*.json"))
    assert "rank 2 is late" in tool(ringscope, "report", *files)
    assert "rank 3 is late" in tool(ringscope, "report", *files, "--rank", "0,1,3,2")
    tool(ringscope, "report", *files, "--rank", "0,1", status=2, says="2 ranks given for 4 files")
    tool(ringscope, "report", files[0], run / "none", status=2, says="no such file")
    assert "run.sqlite" in tool(ringscope, "merge", run)
    assert "rank 2 is late" in tool(ringscope, "report", run / "run.sqlite")
    tool(ringscope, "report", files[0], run / "run.sqlite", status=2, says="name one of them")
    alone = folder / "alone.json"
    shutil.copy(cases / "event" / "html-in-names.json", alone)
    text = alone.read_bytes()
    tool(ringscope, "merge", alone)
    tool(ringscope, "export", alone, "--format", "chrome", "-o", alone, status=2, says="is the run itself")
    assert alone.read_bytes() == text and (folder / "alone-run.sqlite").exists()


def check_words(ringscope, cases):
    """Says nothing of hosts that no file tells, and what to do in the words of traces."""
    ranks = cases / "ranks"
    text = tool(ringscope, "report", ranks / "straggler-rank2")
    assert "4 ranks on hosts that nothing tells" in text and "one host" not in text, text
    assert "what only its host has" in " ".join(text.split()), text
    (finding,) = json.loads(tool(ringscope, "report", "--format", "json", ranks / "straggler-rank2"))["findings"]
    assert finding["ranks"] == [2] and finding["hosts"] == [], finding
    text = tool(ringscope, "report", ranks / "missing-file")
    assert "3 of 4 ranks" in text and "name the other ranks' traces" in text and "RINGSCOPE" not in text, text
    text = " ".join(tool(ringscope, "report", ranks / "missing-file" / "rank0.json").split())
    assert "1 of 4 ranks" in text and "one file of a run of 4 ranks" in text, text
    text = " ".join(tool(ringscope, "report", ranks / "hang-rank3-skips").split())
    assert "the last that it did was gemm_kernel, until 0.000755 s" in text, text
    assert "rank 0 came to allreduce, number 7 on group 0, at 0.000705 s, and its trace ends in it" in text, text
    text = " ".join(tool(ringscope, "report", ranks / "mismatched-collectives").split())
    assert "and rank 2 called allreduce of 4096 Float" in text and "number 2 on group 0" in text, text
    assert "and rank 3 called allreduce of 1048576" in text and "number 3 on group 0" in text, text
    text = tool(ringscope, "report", ranks / "same-pid-no-rank")
    assert "at least 3 collectives" in text, text
    text = tool(ringscope, "report", cases / "event" / "html-in-names.json")
    assert "1 process without a rank" in text and " -1 " not in text, text


def main(ringscope, cases):
    cases = pathlib.Path(cases)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_commands(ringscope, cases, folder)
        check_words(ringscope, cases)
        for case in ("file/non-utf8.json", "file/nan-infinity.json", "file/control-chars.json",
                     "event/unicode-names.json", "event/html-in-names.json", "event/overlapping-x.json",
                     "event/ts-ns-precision.json", "event/b-without-e.json"):
            check_export(ringscope, cases / case, folder)
        tool(ringscope, "report", cases / "file" / "empty.json", status=2, says="empty.json: is empty")
        tool(ringscope, "report", cases / "file" / "open-bracket-only.json", status=2, says="cut before its first event")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
