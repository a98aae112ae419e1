#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-exports.py WRITER TOOL SCHEMA: every export of the writer's runs, read by other programs."""
import collections
import csv
import decimal
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import jsonschema

RUNS = ["messy", "wide", "faults", "missing"]


def refuse(name):
    raise ValueError(f"{name} is not JSON")


def no_twins(pairs):
    keys = [k for k, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return dict(pairs)


def load(path):
    text = path.read_bytes().decode("utf-8", errors="strict")
    return json.loads(text, parse_constant=refuse, object_pairs_hook=no_twins,
                      parse_float=decimal.Decimal)


def ns(us):
    value = decimal.Decimal(us) * 1000
    assert value == value.to_integral_value(), us
    return int(value)


def check_nesting(slices):
    """Within one lane any two slices are apart or one holds the other."""
    lanes = collections.defaultdict(list)
    for s in slices:
        lanes[s["pid"], s["tid"]].append((ns(s["ts"]), -ns(s["dur"])))
    for lane, spans in lanes.items():
        spans.sort()
        open_ends = []
        for start, minus in spans:
            end = start - minus
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], f"half overlap in {lane} at {start}"
            open_ends.append(end)
    return lanes


def check_flows(events, lanes):
    ends = collections.defaultdict(dict)
    for e in events:
        if e["ph"] in "sf":
            key = e["cat"], e["name"], e["id"]
            assert e["ph"] not in ends[key], f"two {e['ph']} of {key}"
            ends[key][e["ph"]] = e
            at = ns(e["ts"])
            assert any(s <= at and (at < s - d or d == 0) for s, d in lanes[e["pid"], e["tid"]]), \
                f"an arrow's end lies on no slice: {e}"
            if e["ph"] == "f":
                assert e["bp"] == "e"
    for key, both in ends.items():
        assert set(both) == {"s", "f"}, key
        assert ns(both["s"]["ts"]) <= ns(both["f"]["ts"]), f"back in time: {both}"
    return collections.Counter(key[0] for key in ends)


def slices_of(db):
    """(rank id, name, start, duration) of what a timeline draws, open ones to the end."""
    end_of_run = db.execute("SELECT duration_ns FROM run").fetchone()[0]
    rows = db.execute("""SELECT t.rank_id, n.text, e.start_ns,
        CASE WHEN e.flags & 2 THEN MAX(e.end_ns, ?) ELSE e.end_ns END - e.start_ns
        FROM events e JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
        JOIN tracks t ON t.id = e.track_id JOIN enum_kind k ON k.id = s.kind
        WHERE k.name NOT IN ('mark', 'counter')""", (end_of_run,))
    return collections.Counter(rows.fetchall())


def check_chrome(folder, name, db):
    doc = load(folder / f"{name}.chrome")
    assert doc["displayTimeUnit"] == "ns"
    events = doc["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert all(ns(e["dur"]) >= 0 for e in slices)
    drawn = collections.Counter((e["pid"], e["name"], ns(e["ts"]), ns(e["dur"])) for e in slices)
    assert drawn == slices_of(db), f"{name}: slices are not those of the run"
    flows = check_flows(events, check_nesting(slices))
    messages, = db.execute("SELECT COUNT(*) FROM messages WHERE send_event_id IS NOT NULL AND "
                           "recv_event_id IS NOT NULL").fetchone()
    assert flows["message"] == messages, (flows, messages)
    arrows, = db.execute("SELECT SUM(present - 1) FROM instances WHERE timed").fetchone()
    assert flows["collective"] == arrows, (flows, arrows)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices} <= named
    ranks = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len(ranks) == db.execute("SELECT COUNT(*) FROM ranks").fetchone()[0]
    assert str(doc["otherData"]["base_unix_ns"]) == \
        str(db.execute("SELECT base_unix_ns FROM run").fetchone()[0])
    return doc, events


def check_messy(doc, events):
    values = [e["args"]["value"] for e in events if e["ph"] == "C"]
    assert len(values) == 4 * 10, "NaN and infinity have no place"
    assert {float(v) for v in values} == {1.5, 2.5, 3.5, 4.5}
    assert sum(e["ph"] == "i" for e in events) == 4 + 12
    unfinished = [e for e in events if e.get("args", {}).get("unfinished")]
    assert [e["name"] for e in unfinished] == ["MPI_Recv"]
    assert ns(unfinished[0]["ts"]) + ns(unfinished[0]["dur"]) == doc["otherData"]["duration_ns"]
    lost = [e for e in events if e.get("cat") == "lost"]
    assert lost[0]["args"]["lost"] == 17
    assert doc["otherData"]["nccl_standin"] and doc["otherData"]["incomplete"]
    assert any("\x1b[31mred" in e["name"] for e in events), "JSON keeps the name as it was"


def check_sqlite(db, report):
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    for view, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
        db.execute(f"SELECT * FROM {view}").fetchall()
    found = db.execute("SELECT kind, title, cost_s FROM findings ORDER BY id").fetchall()
    assert found == [(f["kind"], f["title"], float(f["cost_s"])) for f in report["findings"]]
    rows = db.execute("SELECT r.rank, b.wall_ns, b.compute_ns + b.comm_exposed_ns + b.wait_ns + "
                      "b.io_ns + b.idle_ns FROM breakdown b JOIN ranks r ON r.id = b.rank_id")
    assert all(wall == parts for _, wall, parts in rows)


def check_text(text, width):
    for line in text.splitlines():
        assert len(line) <= width, f"{len(line)} columns: {line}"
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\ufeff" for c in line), \
            repr(line)


def check_csv(folder, name, db):
    text = (folder / f"{name}.csv").read_bytes().decode("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == db.execute("SELECT COUNT(*) FROM events").fetchone()[0]
    for row in rows:
        assert None not in row and None not in row.values(), row
        for value in row.values():
            assert not value.startswith(("=", "+", "@")), f"a formula: {value}"
            assert all(ord(c) >= 32 for c in value)


def report_of(tool, path, *options):
    out = subprocess.run([tool, "report", path, "--format", "json", *options],
                         stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout, parse_constant=refuse, parse_float=decimal.Decimal)


def check_run(folder, name, tool, schema):
    report = load(folder / f"{name}.report.json")
    jsonschema.validate(json.loads((folder / f"{name}.report.json").read_text()), schema)
    db = sqlite3.connect(f"file:{folder}/{name}.sqlite?mode=ro", uri=True)
    doc, events = check_chrome(folder, name, db)
    if name == "messy":
        check_messy(doc, events)
    check_sqlite(db, report)
    check_csv(folder, name, db)
    check_text((folder / f"{name}.txt").read_text(encoding="utf-8"), 100)
    again = report_of(tool, folder / f"{name}.sqlite")
    again["run"]["name"] = name
    assert again == report, f"{name}: another report from SQLite"
    db.close()
    return report


def check_whole(reports, folder):
    kinds = [f["kind"] for f in reports["faults"]["findings"]]
    assert sorted(kinds[:2]) == ["slow-link", "straggler"] or "slow-link" in kinds, kinds
    assert reports["missing"]["run"]["missing_ranks"] == [2]
    first = (folder / "missing.txt").read_text().splitlines()[0]
    assert first.startswith("INCOMPLETE") and "rank 2" in first, first
    assert "stand-in" in (folder / "messy.txt").read_text()
    assert reports["messy"]["run"]["nccl_standin"] and not reports["wide"]["run"]["nccl_standin"]


def main(writer, tool, schema_path):
    schema = json.loads(pathlib.Path(schema_path).read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([writer, name], check=True)
        assert not list(folder.glob("*.part-*")), "a temporary file was left"
        reports = {run: check_run(folder, run, tool, schema) for run in RUNS}
        check_whole(reports, folder)
        cut = report_of(tool, folder / "faults.sqlite", "--steps", "2-9", "--ranks", "0,3")
        jsonschema.validate(json.loads(json.dumps(cut, default=float)), schema)
        assert cut["run"]["cut"] and {b["rank"] for b in cut["metrics"]["breakdown"]} == {0, 3}


if __name__ == "__main__":
    main(*sys.argv[1:4])
