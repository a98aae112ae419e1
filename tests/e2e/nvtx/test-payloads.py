# SPDX-License-Identifier: Apache-2.0
"""Payloads of NVTX's extension by the vendor's header: python3 test-payloads.py BUILD_ROOT PROGRAM

Fields have their layouts' names and values in SQLite and in the Chrome file; layouts that lie, and
texts without end, neither end the program nor show what isn't the payload's. Those of one file read
back from SQLite are the same.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

KINDS = {"small": -3, "large": 1 << 63, "real": 1.5, "text": "full", "pointer": "behind", "inner.x": -7,
         "inner.y": 2.25, "dims[0]": 4, "dims[1]": 5, "dims[2]": 6, "colour": "green",
         "mixed": "red|green", "unknown": 9}
X = 0x7878787878787878
# a layout of 16 bytes that says of itself what can't be
LYING = {"past the page": "", "huge[0]": X, "wide": 2 * "\ufffd", "field 9": 0x78}
WANTED = {
    "all kinds": {"everything": KINDS},
    "size unknown": {"everything": KINDS},
    "cut": {"everything": {"small": -3, "large": 1 << 63, "real": 1.5, "text": "fu"}},
    "wild pointer": {"everything": {**KINDS, "pointer": ""}},
    "dynamic": {"dynamic": {"n": 2, "bytes[0]": 11, "bytes[1]": 12, "text": "ok", "last": 77}},
    "longer than it is": {"dynamic": {"n": 200, "bytes[0]": 11, "bytes[1]": 12}},
    "not terminated": {"dynamic": {"n": 0, "text": "noend"}},
    "pushed": {"call": {"n": 1, "n #2": 2}},
    "renamed": {"call": {"n": 1, "n #2": 2}},
    "marked": {"call": {"n": 1}},
    "two payloads": {"values": {"value": 1}, "call #2": {"n": 1}},
    "hostile": {"hostile": {"past the page": "", **{f"itself.{k}": v for k, v in LYING.items()},
                            **{f"huge[{i}]": X for i in range(3)}, "wide": 6 * "\ufffd", "field 9": 0x78}},
    "hostile, cut": None,
    "hostile, of no length": None,
    "hostile, nowhere": None,
    "hostile, too long": {"hostile": LYING},
    "of no layout": None,
    "invalid": None,
    "many fields": {"many": {f"f{i}": i for i in range(32)}},
    "after them": {"many": {"f0": 0, "f1": 1}},
}


def run(program, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
    env.update({"OMPI_MCA_plm": "isolated", **settings})
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", (program, done)
    return done.stdout


def tool(build, *words):
    return subprocess.run([f"{build}/analyzer/ringscope", *map(str, words)], capture_output=True,
                          text=True, check=True).stdout


def once(pairs):
    keys = [k for k, _ in pairs]
    assert len(set(keys)) == len(keys), keys
    return dict(pairs)


def payloads(path):
    """{name of a range or mark: its payload} of a Chrome file, whose keys must be unique."""
    with open(path, encoding="utf-8") as f:
        events = json.load(f, object_pairs_hook=once)["traceEvents"]
    return {e["name"]: e["args"].get("payload") for e in events
            if e.get("args", {}).get("domain") == "payloads" and e["name"]}


def main(build, program):
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work, "run")
        assert run(program).startswith("levels -2 -2\n")
        told = run(program, LD_PRELOAD=f"{build}/tracer/libringscope.so", RINGSCOPE_DIR=str(folder))
        assert told == "levels 0 0\nrefused 1 1 1\n", told
        tool(build, "merge", folder)
        found = payloads(folder / "run.json")
        for name, wanted in WANTED.items():
            assert found.pop(name, "lacking") == wanted, (name, wanted, payloads(folder / "run.json"))
        assert not found, found
        tool(build, "export", folder / "run.sqlite", "--format", "chrome", "-o", f"{work}/again.json")
        assert payloads(f"{work}/again.json") == payloads(folder / "run.json")
        rows = json.loads(tool(build, "query", folder / "run.sqlite", "--format", "json", """
            SELECT n.text AS name, type, value, t.text FROM event_args a
            JOIN strings n ON n.id = name_id JOIN strings t ON t.id = text_id
            JOIN strings s ON s.id = schema_id JOIN slices e USING (event_id)
            WHERE s.text = 'everything' AND e.name = 'all kinds'
            AND n.text IN ('real', 'text', 'colour') ORDER BY position"""))
        assert [(r["name"], r["type"], r["value"], r["text"]) for r in rows] == [
            ("real", 3, 1.5, ""), ("text", 4, None, "full"), ("colour", 1, 2, "green")], rows
        lost = tool(build, "query", folder / "run.sqlite", "--format", "csv",
                    "SELECT count(*) FROM meta WHERE key LIKE '%off.nvtx.fields'")
        assert lost.split()[-1] == "1", lost


if __name__ == "__main__":
    main(*sys.argv[1:])
