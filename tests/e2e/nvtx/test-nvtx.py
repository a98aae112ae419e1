# SPDX-License-Identifier: Apache-2.0
"""NVTX by the vendor's header, recorded: python3 test-nvtx.py BUILD_ROOT PROGRAM [NVTX_ONLY_PROGRAM]

Runs PROGRAM (nvtx-program.c) alone and under the tracer, and compares what the capture holds with
what the program is written to do. A program that uses NVTX but never MPI leaves no file.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# (kind, name, domain, category, depth), sorted
WANTED = sorted([
    ("range", "outer", "", "", 0),
    ("range", "innér", "", "", 1),
    ("mark", "a mark", "", "", 0),
    ("span", "across threads", "", "", 0),
    ("range", "buffer 0", "", "", 0),
    ("range", "buffer 1", "", "", 0),
    ("range", "buffer 2", "", "", 0),
    ("range", "registered", "own domain", "", 0),
    # At its end the range of the other domain below it is gone.
    ("range", "inner", "wï de", "7", 0),
    ("range", "inner", "own domain", "seventh", 0),
    ("mark", "registered", "own domain", "99", 0),
    ("mark", "", "", "", 0),
    ("mark", "", "", "", 0),
    ("range", "", "", "", 0),
    ("range", "from the library", "", "", 0),
])
QUERY = """SELECT k.name AS kind, n.text AS name, d.text AS domain, c.text AS category, e.depth
FROM events e JOIN signatures s ON s.id = e.signature_id JOIN enum_kind k ON k.id = s.kind
JOIN strings n ON n.id = s.name_id JOIN strings d ON d.id = s.range_domain_id
JOIN strings c ON c.id = s.range_category_id WHERE k.name IN ('range', 'span', 'mark')"""


def run(program, library=None, folder=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGSCOPE")}
    env["OMPI_MCA_plm"] = "isolated"  # a singleton needs no remote shell
    if library:
        env.update(LD_PRELOAD=library, RINGSCOPE_DIR=str(folder))
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (program, done)
    return done


def main(build, program, *nvtx_only):
    library = f"{build}/tracer/libringscope.so"
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work, "run")
        assert run(program).stdout == "levels -2 -2 -2 -2\n"
        traced = run(program, library, folder)
        assert traced.stdout == "levels 0 1 1 0\n" and traced.stderr == "", traced
        tool = [f"{build}/analyzer/ringscope", "query", str(folder), QUERY, "--format", "json"]
        rows = json.loads(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)
        found = sorted((r["kind"], r["name"], r["domain"], r["category"], r["depth"]) for r in rows)
        assert found == WANTED, "\n".join(map(str, found))
        tool[3] = "SELECT track FROM slices WHERE name = 'across threads'"
        rows = json.loads(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)
        assert [r["track"] for r in rows] == ["ender"], rows
        for only in nvtx_only:
            run(only, library, pathlib.Path(work, "none"))
            assert sorted(p.name for p in pathlib.Path(work).iterdir()) == ["run"]


if __name__ == "__main__":
    main(*sys.argv[1:])
