# SPDX-License-Identifier: Apache-2.0
"""RINGSCOPE_SIZE_LIMIT, RINGSCOPE_KEEP: python3 test-limit.py KEEP PROGRAM LIBRARY RINGSCOPE

A run of two ranks, then processes that are killed at a moment drawn at random: each capture stays as
small as it should, every call is in it or counted as left out, and the report says so first.
"""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'mpi'))
import mpi_run  # noqa: E402
from mpi_run import expect  # noqa: E402

LIMIT = 256 << 10
MOST = {'first': LIMIT, 'last': LIMIT * 3 // 2}  # the newest are written beside what is copied
SLACK = 32 << 10  # definitions, and what closes a capture
BESIDE = 8  # calls that the program makes beside those it counts
KILLS = 20


def settings(keep):
    return {'RINGSCOPE_SIZE_LIMIT': '256K', 'RINGSCOPE_KEEP': keep, 'RINGSCOPE_TRACE': 'mpi'}


def done_of(folder, rank):
    """0 while the file is in the making."""
    path = folder / f'done.{rank}'
    count = path.read_bytes() if path.exists() else b''
    return struct.unpack('=Q', count)[0] if len(count) == 8 else 0


def check_numbers(keep, ringscope, run, folder, report):
    """The oldest calls are there, or the newest, and where no ring was full all between."""
    for rank, least, most, n in mpi_run.query(ringscope, run / 'run.sqlite', """
            SELECT r.rank, min(e.seq), max(e.seq), count(*) FROM events e
            JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
            JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id
            WHERE n.text = 'MPI_Allreduce' AND NOT e.flags & 2 GROUP BY r.rank"""):
        least, most, n, done = int(least), int(most), int(n), done_of(folder, int(rank))
        if n < LIMIT / 48 / 8:
            sys.exit(f'rank {rank}: {n} calls left of {done}')
        if report['run']['dropped_events'] != report['run']['size_limit']['events']:
            continue
        expect('gaps', most - least + 1 - n, 0)
        expect('the oldest', least == 0, keep == 'first')
        expect('the newest', most + 1 in (done, done + 1), keep == 'last')


def merge(keep, ringscope, run):
    """What merge saves from rings comes on top."""
    for capture in run.glob('*.rsc'):
        if capture.stat().st_size > MOST[keep] + SLACK:
            sys.exit(f'{capture}: {capture.stat().st_size} bytes')
    mpi_run.merge(ringscope, run)


def check_ranks(keep, ringscope, run, folder, ranks):
    """Every call of each rank is in the run, or counted. Returns the report."""
    report = json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))
    kept = mpi_run.recorded_calls(ringscope, run / 'run.sqlite')
    lost = dict(map(int, row) for row in map(tuple, mpi_run.query(
        ringscope, run / 'run.sqlite', 'SELECT rank, dropped FROM ranks')))
    for rank in range(ranks):
        beside = sum(kept[rank].values()) + lost[rank] - done_of(folder, rank)
        if not 0 <= beside <= BESIDE:
            sys.exit(f'rank {rank}: {kept[rank]} kept, {lost[rank]} lost, '
                     f'{done_of(folder, rank)} made')
    if report['run']['size_limit']:
        check_numbers(keep, ringscope, run, folder, report)
    expect('files', sorted(p.suffix for p in run.iterdir() if p.suffix not in ('.sqlite', '.json')),
           ['.rsc'] * ranks)
    return report


def check_said(ringscope, run, report, ranks):
    limit = report['run']['size_limit']
    expect('ranks', limit['ranks'], list(range(ranks)))
    expect('events', limit['events'] <= report['run']['dropped_events'], True)
    text = mpi_run.tool(ringscope, 'report', run)
    if not text.startswith('INCOMPLETE  the size limit (RINGSCOPE_SIZE_LIMIT) left out '):
        sys.exit(text)


def check_tracing(report, text):
    tracing, run = report['run']['tracing'], report['run']
    events = tracing['total_s'] * 1e9 / tracing['event_ns']
    if not 0.99 < events / (run['events'] + run['dropped_events']) < 1.01:
        sys.exit(f'{tracing} of {run}')
    expect('written', tracing['bytes'] > LIMIT and tracing['drain_cpu_s'] > 0, True)
    if f"tracing cost about {tracing['event_ns']:.0f} ns an event, " not in ' '.join(text.split()):
        sys.exit(text)


def check_clean(keep, program, library, ringscope, work):
    run, folder = work / 'run', work / 'folder'
    folder.mkdir()
    out = mpi_run.run('openmpi', 2, [program, folder, 50000], [library], run, settings=settings(keep))
    expect('output', sorted(out.splitlines()), ['rank 0 of 2: sum 1', 'rank 1 of 2: sum 1'])
    merge(keep, ringscope, run)
    report = check_ranks(keep, ringscope, run, folder, 2)
    check_said(ringscope, run, report, 2)
    expect('endings', report['run']['early_endings'], [])
    check_tracing(report, mpi_run.tool(ringscope, 'report', run))
    kinds = {f['kind'] for f in report['findings']}
    expect('findings', kinds & {'missing-rank', 'deadlock-cycle'}, set())


def alone(program, library, run, folder, keep):
    environment = {**mpi_run.clean_environment(), **settings(keep), 'LD_PRELOAD': library,
                   'RINGSCOPE_DIR': str(run), 'RINGSCOPE_EXPORT': 'none',
                   'OMPI_MCA_plm': 'isolated', 'OMPI_MCA_btl': 'self'}
    return subprocess.Popen([program, str(folder), '0'], env=environment)


def check_killed(keep, program, library, ringscope, work, draw):
    run, folder = work / 'run', work / 'folder'
    folder.mkdir()
    process = alone(program, library, run, folder, keep)
    try:
        while not done_of(folder, 0):
            expect('status', process.poll(), None)
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.3))
    finally:  # it would go on for ever
        process.send_signal(signal.SIGKILL)
        process.wait()
    merge(keep, ringscope, run)
    report = check_ranks(keep, ringscope, run, folder, 1)
    limited = report['run']['size_limit'] is not None
    if limited:
        check_said(ringscope, run, report, 1)
    expect('damage', [w for w in report['warnings'] if 'block' in w['text']], [])
    expect('ending', [e['ending'] for e in report['run']['early_endings']], ['killed'])
    return limited


def main(keep, program, library, ringscope):
    mpi_run.launcher_or_skip('openmpi')
    seed = int(os.environ.get('RINGSCOPE_TEST_SEED', time.time_ns() % 100000))
    print('seed', seed, flush=True)
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as work:
        check_clean(keep, program, library, ringscope, pathlib.Path(work))
    limited = 0
    for _ in range(KILLS):
        with tempfile.TemporaryDirectory() as work:
            limited += check_killed(keep, program, library, ringscope, pathlib.Path(work), draw)
    print(f'{limited} of {KILLS} had reached their limit')
    expect('captures that reached their limit', limited > KILLS / 2, True)


if __name__ == '__main__':
    main(*sys.argv[1:])
