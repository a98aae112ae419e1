#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-commands.py WRITER TOOL: what report, export and query answer, and their exit status."""
import csv
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile


class Tool:
    def __init__(self, path):
        self.path = path

    def __call__(self, *args, status=0, says=""):
        return self.run(args, status, says).stdout

    def stderr(self, *args, status=0, says=""):
        return self.run(args, status, says).stderr

    def run(self, args, status, says):
        p = subprocess.run([self.path, *map(str, args)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        assert p.returncode == status, f"{args}: exit {p.returncode}, {p.stderr}"
        assert says in p.stderr, f"{args}: '{says}' is not in '{p.stderr}'"
        assert status != 2 or p.stderr.count("\n") == 1, f"{args}: one line says it: {p.stderr}"
        return p


def check_parts(tool, run):
    """A part that is not of the run is refused by the option that was given, whichever command."""
    for words in (("report", run), ("export", run, "--format", "csv", "-o", "/dev/null")):
        tool(*words, "--steps", "500-600", status=2, says="numbered 0 to ")
        said = tool.stderr(*words, "--from", "99", status=2)
        assert "--from 99: not in the run, which lasts " in said and "--to" not in said, said
        for seconds in ("nan", "-1", "1e999", "x", ""):
            tool(*words, "--from", seconds, status=2, says=f"--from {seconds}: not a number of sec")
            tool(*words, "--to", seconds, status=2, says=f"--to {seconds}: not a number of seconds")
        tool(*words, "--to", "0", status=2, says="--to 0: nothing of a run is before it")
        tool(*words, "--from", "0.4", "--to", "0.2", status=2, says="--to 0.2: not after --from 0.4")


def check_report(tool, run):
    kinds = [f["kind"] for f in json.loads(tool("report", run, "--format", "json"))["findings"]]
    assert "slow-link" in kinds, kinds
    tool("report", run, "--fail-on", "slow-link", status=1)
    tool("report", run, "--fail-on", "straggler,clock-untrusted")
    tool("report", run, "--fail-on", "slow-link,packet-loss", status=2, says="packet-loss")
    tool("report", run, "--fail-on", "slow-lnik", status=2, says="slow-lnik")
    tool("report", run, "--format", "pdf", status=2, says="pdf")
    tool("report", status=2, says="which run")
    tool("report", run, "--ranks", "0-", status=2, says="--ranks 0-")
    tool("report", run, "--ranks", "99", status=2, says="4 ranks")
    check_parts(tool, run)
    tool("report", run, "--no-such", status=2, says="no-such")
    assert "Findings" in tool("report", run, "--from", "0.1", "--to", "0.5")
    assert ", seen from 0." in tool("report", run), "a finding's time is no interval of its cost"
    for command in ("report", "export", "query"):
        words = tool(command, "--help")
        assert "Example:" in words and "[options]" not in words, words


def check_export(tool, run, folder):
    target = folder / "part.json"
    tool("export", run, "--format", "chrome", "-o", target, "--from", "0.2", "--to", "0.4",
         "--ranks", "1,2", "--kinds", "call,range")
    doc = json.loads(target.read_text())
    slices = [e for e in doc["traceEvents"] if e["ph"] == "X"]
    assert slices and {e["pid"] for e in slices} == {1, 2}
    assert all(float(e["ts"]) < 0.4e6 and float(e["ts"]) + float(e["dur"]) > 0.2e6 for e in slices)
    tool("export", run, "--format", "csv", "-o", folder / "steps.csv", "--steps", "3-4,9")
    spans = json.loads(tool("query", run, "SELECT rank, s.start_ns, s.end_ns FROM step_spans s "
                            "JOIN steps ON steps.id = step_id JOIN ranks ON ranks.id = rank_id "
                            "WHERE number IN (3, 4, 9)", "--format", "json"))
    rows = list(csv.DictReader((folder / "steps.csv").read_text().splitlines()))
    assert sum(r["name"] == "step" for r in rows) == len(spans) > 0
    for r in rows:
        assert any(s["rank"] == int(r["rank"]) and s["start_ns"] < int(r["end_ns"])
                   and s["end_ns"] > int(r["start_ns"]) for s in spans), r
    tool("export", run, "--format", "csv", "-o", folder / "all.csv")
    rows = list(csv.DictReader((folder / "all.csv").read_text().splitlines()))
    assert len(rows) == int(tool("query", run, "SELECT COUNT(*) FROM events", "--format",
                                 "csv").splitlines()[1])
    before = target.read_bytes()
    tool("export", run, "--format", "chrome", "-o", folder / "no" / "x.json", status=2, says="x.json")
    tool("export", folder / "none", "--format", "chrome", "-o", target, status=2, says="none")
    assert target.read_bytes() == before, "a failure leaves the old file"
    tool("export", run, "--format", "chrome", status=2, says="-o")
    tool("export", run, "--format", "mp3", "-o", target, status=2, says="mp3")
    tool("export", run, "--format", "csv", "-o", target, "--kinds", "cat", status=2, says="cat")
    assert not list(folder.glob("*.part-*"))


def check_what_is_no_file(tool, run, folder):
    """Nothing waits for a pipe, and no export takes the place of a pipe, a device or a folder."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    for args in (("report", pipe), ("query", pipe, "SELECT 1"), ("merge", pipe)):
        tool(*args, status=2, says="not a regular file")
    for name in ("chrome", "csv", "sqlite"):
        tool("export", run, "--format", name, "-o", pipe, status=2, says="a device or a pipe")
        tool("export", run, "--format", name, "-o", folder, status=2, says="directory")
    assert stat.S_ISFIFO(pipe.stat().st_mode), "an export took the pipe's place"
    loop = folder / "loop"
    loop.symlink_to(loop)
    tool("report", loop, status=2, says="symbolic links")
    odd = folder / "file:odd.sqlite"
    odd.write_bytes(run.read_bytes())
    p = subprocess.run([os.path.abspath(tool.path), "query", odd.name, "SELECT 7"], cwd=folder, text=True,
                       stdout=subprocess.PIPE, check=True)
    assert p.stdout.split()[1] == "7", "a name is no URI"


def check_no_room(tool, run, folder):
    """What does not fit is an error, and leaves nothing behind."""
    target = folder / "big.json"
    for name in ("chrome", "csv", "sqlite"):
        p = subprocess.run([tool.path, "export", run, "--format", name, "-o", target],
                           stderr=subprocess.PIPE, text=True, preexec_fn=lambda: (
                               resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))))
        assert p.returncode == 2 and "can't be written" in p.stderr, (name, p.returncode, p.stderr)
        assert not target.exists() and not list(folder.glob("*.part-*"))
    for args in (("report", run), ("query", run, "SELECT * FROM events"),
                 ("query", run, "SELECT 1", "--format", "json"), ("--help",)):
        with open("/dev/full", "w") as full:
            p = subprocess.run([tool.path, *args], stdout=full, stderr=subprocess.PIPE, text=True)
        assert p.returncode == 2 and "can't write the answer" in p.stderr, (args, p.returncode)


def check_interrupted(tool, run, folder):
    """Ctrl-C in the middle of an export leaves no part of it."""
    caught = False
    for _ in range(200):
        target = folder / "cut.json"
        p = subprocess.Popen([tool.path, "export", run, "--format", "chrome", "-o", target])
        while p.poll() is None and not list(folder.glob("cut.json.part-*")):
            pass
        p.send_signal(signal.SIGINT)
        caught = p.wait() == -signal.SIGINT
        assert not list(folder.glob("*.part-*")), "a part is left"
        if caught:
            break
    assert caught, "never interrupted"


def check_query(tool, run, folder):
    rows = json.loads(tool("query", run, "SELECT rank, wall_s, NULL AS n, 'x\"y' AS t FROM "
                           "time_per_rank WHERE step IS NULL", "--format", "json"))
    assert [r["rank"] for r in rows] == [0, 1, 2, 3] and rows[0]["n"] is None
    assert rows[0]["t"] == 'x"y' and rows[0]["wall_s"] > 0
    assert json.loads(tool("query", run, "SELECT 1 WHERE 0", "--format", "json")) == []
    table = tool("query", run, "SELECT * FROM last_arrivals").splitlines()
    assert table[0].split() == ["rank", "times_last", "waited_ns"]
    for number in (0.1, 1.5, 1e300, 5e-324, 1 / 3, 0.12345678901234567, 2.5e-7, -0.3):
        sql = f"SELECT {number!r} AS x"
        told = tool("query", run, sql, "--format", "json").split("{")[1].split("}")[0]
        assert float(told.split(":")[1]) == number and len(told) <= len(f'"x":{number!r}'), told
        assert float(tool("query", run, sql, "--format", "csv").split()[1]) == number
    tool("query", run, "SELEC 1", status=2, says="syntax error; --schema shows")
    assert "CREATE VIEW last_arrivals" in tool("query", "--schema")
    assert tool("query", run, "--schema") == tool("query", "--schema")
    tool("query", run, "SELECT 1", "--schema", status=2, says="leave the SQL away")
    tool("query", run, "", status=2, says="no SQL given")
    for seconds in ("0", "-1", "nan", "inf"):
        tool("query", run, "SELECT 1", "--timeout", seconds, status=2, says="--timeout " + seconds)
    tool("query", run, "SELECT 1; SELECT 2", status=2, says="one statement")
    tool("query", run, "SELECT * FROM nix", status=2, says="no such table: nix; --schema")
    before = run.read_bytes()
    for sql in ("DELETE FROM events", "CREATE TABLE t (x)", "DROP TABLE events",
                "UPDATE run SET world_size = 1", f"ATTACH '{folder}/other.db' AS o",
                f"VACUUM INTO '{folder}/other.db'", "SELECT load_extension('/tmp/x.so')"):
        tool("query", run, sql, status=2)
    assert run.read_bytes() == before and not (folder / "other.db").exists()
    tool("query", run, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
         "SELECT SUM(x) FROM c", "--timeout", "0.2", status=2, says="--timeout")
    tool("query", run, status=2, says="one SQL statement")


def check_foreign(tool, folder):
    other = folder / "foreign.sqlite"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)")
    db.commit()
    db.close()
    tool("report", other, status=2, says="not a run that Ringscope exported")
    assert "0" in tool("query", other, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    text = folder / "notes.txt"
    text.write_text("hello\n")
    tool("report", text, status=2, says="notes.txt")
    tool("query", text, "SELECT 1", status=2, says="notes.txt")


def check_wrong_usage(tool, run, folder):
    """Each says what is wrong and what to do; none is taken for something else in silence."""
    for command in ("report", "export", "query", "merge", "view"):
        tool(command, status=2)
    for command in ("report", "export", "query", "merge", "run", "clean", "version"):
        tool(command, "--nope", status=2, says=f"--nope (try: ringscope {command} --help)")
        usage = tool(command, "--help").splitlines()[1]
        assert usage.lower().count("[option") == 1 and usage.count("  ") == 1, usage
    assert "-np N, as mpirun has it, is -n N" in tool("run", "--help")
    tool("version", "x", status=2, says="takes no arguments")
    tool("view", status=2, says="which run")
    tool("report", "", status=2, says="name is empty: name a run folder")
    tool("report", "--format", run, status=2, says="no format")
    tool("report", run, "--fail-on", "", status=2, says="no kind of finding given; there are ")
    csv_to = ("export", run, "--format", "csv", "-o")
    tool("export", run, "-o", folder / "x", status=2, says="which format? Give --format chrome,")
    tool(*csv_to, "", status=2, says="Give -o FILE")
    tool(*csv_to, folder / "x", "--kinds", "", status=2, says="--kinds : expected call, device,")
    tool(*csv_to, folder / "no" / "x", status=2, says=f"there is no folder {folder}/no")
    (folder / "nothing").touch()
    tool("report", folder / "nothing", status=2, says="is empty; name a run folder")
    (folder / "none.rsc").touch()
    for prefix in ("", f"{folder}/"):
        tool("merge", folder / "none.rsc", "-o", prefix, status=2, says=f"-o {prefix}: names no file")
    assert tool("help", "report") == tool("report", "--help")
    tool("help", "nope", status=2, says="no command 'nope'")
    tool("merge", folder / "none.rsc", "-f", "", status=2, says="no format '': chrome or sqlite")
    tool("merge", folder / "none.rsc", "-f", "sqlite,", status=2, says="no format ''")


def check_closed_folder(tool_path, folder):
    """A folder that may not be listed is named once."""
    open_to_all, closed = folder / "open", folder / "open" / "closed"
    closed.mkdir(parents=True)
    shutil.copy(tool_path, open_to_all / "ringscope")
    for place, mode in ((folder, 0o755), (open_to_all, 0o755), (closed, 0)):
        place.chmod(mode)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    p = subprocess.run([open_to_all / "ringscope", "report", closed], stderr=subprocess.PIPE,
                       text=True, **nobody)
    closed.chmod(0o755)
    assert (p.returncode, p.stderr) == (
        2, f"ringscope: {closed}: can't be listed: Permission denied\n"), p.stderr


def main(writer, tool_path):
    tool = Tool(tool_path)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([writer, name], check=True)
        run = folder / "faults.sqlite"
        check_report(tool, run)
        check_export(tool, run, folder)
        check_query(tool, run, folder)
        check_foreign(tool, folder)
        check_what_is_no_file(tool, run, folder)
        check_wrong_usage(tool, run, folder)
        check_closed_folder(tool_path, folder)
        check_no_room(tool, run, folder)
        check_interrupted(tool, run, folder)


if __name__ == "__main__":
    main(*sys.argv[1:3])
