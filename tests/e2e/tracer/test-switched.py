# SPDX-License-Identifier: Apache-2.0
"""Capture switched off and on: test-switched.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

By signal, by steps, by time, by `ringscope control`: results stay, what is recorded keeps the numbers
that it has in the program on every rank, nothing begins in a time that is said to be off, and the
analysis takes such a time for nothing else.
"""
import bisect
import collections
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'mpi'))
import mpi_run  # noqa: E402
from mpi_run import expect  # noqa: E402

RANKS = 3
ELEMENTS = 97
WAIT_S = 60
TROUBLE = {'mismatched-collective', 'order-divergence', 'missing-rank', 'deadlock-cycle', 'incomplete-data'}


def report_of(ringscope, run):
    return json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))


def collectives(ringscope, run):
    """[(rank, communicator's size, number on it, elements)] of those that the program numbers."""
    rows = mpi_run.query(ringscope, run / 'run.sqlite', """
        SELECT r.rank, c.size, e.seq, s.count FROM events e
        JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
        JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id
        JOIN communicators c ON c.id = s.communicator_id
        WHERE n.text IN ('MPI_Allreduce', 'MPI_Iallreduce') AND e.flags & 16""")
    return [tuple(map(int, row)) for row in rows]


def check_numbers(ringscope, run):
    """Of a communicator's collectives: what number it is, and how many elements its n-th one has."""
    found = collectives(ringscope, run)
    wrong = [c for c in found if c[3] != c[2] % ELEMENTS + 1]
    expect('collectives with a wrong number', wrong[:5], [])
    return found


def off_times(ringscope, run):
    """{rank: [(from, to)]}"""
    times = {}
    for rank, start, end in mpi_run.query(ringscope, run / 'run.sqlite', """
            SELECT rank, start_ns, end_ns FROM slices WHERE name = 'capture switched off'
            ORDER BY start_ns"""):
        times.setdefault(int(rank), []).append((int(start), int(end)))
    return times


def check_nothing_begins(ringscope, run, most=1):
    """But the call that a rank's thread was about to make at the switch: it had looked before."""
    times = off_times(ringscope, run)
    starts = mpi_run.query(ringscope, run / 'run.sqlite', """
        SELECT rank, start_ns FROM slices WHERE name GLOB 'MPI_*'""")
    begun = collections.Counter()
    for rank, start in ((int(rank), int(start)) for rank, start in starts):
        offs = times.get(rank, [])
        i = bisect.bisect_left(offs, (start,)) - 1
        if i >= 0 and offs[i][0] < start < offs[i][1]:
            begun[rank, offs[i]] += 1
    expect('calls that begin in a time off', [b for b in begun.items() if b[1] > most], [])
    return times


def check_toggled(flavour, program, library, ringscope, work):
    expected = [f'rank {r} of {RANKS}: 0 wrong, sum 0' for r in range(RANKS)]
    run = work / 'toggle'
    out = mpi_run.run(flavour, RANKS, [program, 'toggle', work], [library], run,
                      settings={'RINGSCOPE_SIGNAL': 'USR1'})
    expect('results', sorted(out.splitlines()), expected)
    mpi_run.merge(ringscope, run)
    found = check_numbers(ringscope, run)
    times = check_nothing_begins(ringscope, run)
    print({r: len(t) for r, t in times.items()}, 'times off;', len(found), 'collectives', flush=True)
    # how often on a busy machine: nobody knows
    expect('ranks that were off', sorted(times), list(range(RANKS)))
    expect('ranks that were on', sorted({c[0] for c in found}), list(range(RANKS)))
    report = report_of(ringscope, run)
    expect('off', report['run']['switched_off']['times'], sum(map(len, times.values())))
    kinds = {f['kind'] for f in report['findings']}
    expect('findings', kinds & TROUBLE, set())


def check_steps(flavour, program, library, ringscope, work):
    plain = mpi_run.run(flavour, RANKS, [program, 'steps', work])
    run = work / 'steps'
    out = mpi_run.run(flavour, RANKS, [program, 'steps', work], [library], run,
                      settings={'RINGSCOPE_STEPS': '5-7,12,15-16'})
    expect('results', sorted(out.splitlines()), sorted(plain.splitlines()))
    mpi_run.merge(ringscope, run)
    found = check_numbers(ringscope, run)
    check_nothing_begins(ringscope, run, 0)
    wanted = [(r, RANKS, 3 * s + k, (3 * s + k) % ELEMENTS + 1)
              for r in range(RANKS) for s in (5, 6, 7, 12, 15, 16) for k in range(3)]
    expect('of the world', sorted(c for c in found if c[1] == RANKS), wanted)
    # step 7 makes communicators; what the tracer hears of them stays, whenever it is switched
    expect('of the others', len(found) - len(wanted), 3 * RANKS)
    report = report_of(ringscope, run)
    expect('steps', (report['run']['steps'], report['run']['step_source']), (6, 'marks'))
    expect('off', (report['run']['switched_off']['times'], report['run']['switched_off']['ranks']),
           (4 * RANKS, list(range(RANKS))))
    check_breakdown(report)
    check_requests(ringscope, run)
    kinds = {f['kind'] for f in report['findings']}
    expect('findings', kinds & TROUBLE, set())


def check_requests(ringscope, run):
    """Begun in one step and completed in the next: the two are put together where both are recorded."""
    rows = mpi_run.query(ringscope, run / 'run.sqlite', """
        SELECT r.rank, n.text, count(*), count(e.link_event_id) FROM events e
        JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
        JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id
        WHERE n.text IN ('MPI_Isend', 'MPI_Irecv') AND s.count = 3
           OR n.text = 'MPI_Iallreduce' AND e.flags & 16 AND e.seq % 3 = 0
        GROUP BY r.rank, n.text ORDER BY r.rank, n.text""")
    expect('requests and those completed', rows, [
        [str(r), name, '6', '3'] for r in range(RANKS) for name in ('MPI_Iallreduce', 'MPI_Irecv', 'MPI_Isend')])


def check_breakdown(report):
    """Time that is off is no part of any."""
    off, most = report['run']['switched_off'], report['run']['duration_s']
    for row in report['metrics']['breakdown']:
        if row.get('step') is None and row['wall'] > most - off['least_s'] + 1e-6:
            sys.exit(f'{row}: {off}')


def check_time(flavour, program, library, ringscope, work):
    run = work / 'time'
    mpi_run.run(flavour, RANKS, [program, 'steps', work], [library], run,
                settings={'RINGSCOPE_START': '1000'})
    mpi_run.merge(ringscope, run)
    expect('recorded', collectives(ringscope, run), [])
    report = report_of(ringscope, run)
    expect('off', (report['run']['switched_off']['times'], report['run']['dropped_events']),
           (RANKS, 0))
    text = ' '.join(mpi_run.tool(ringscope, 'report', run).split())
    if 'SWITCHED OFF capture of ranks 0, 1, 2 was off for ' not in text:
        sys.exit(text)


def control(ringscope, *words, status=0):
    done = subprocess.run([str(ringscope), 'control', *map(str, words)], capture_output=True, text=True,
                          timeout=WAIT_S, check=False)
    expect(f'status of control {words}', (done.returncode, done.stdout), (status, ''))
    return done.stderr


def wait_for(what, condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f'{what}: did not come')
        time.sleep(0.05)


def times_off(ringscope, run):
    done = subprocess.run([str(ringscope), 'report', str(run), '--format', 'json'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    off = json.loads(done.stdout)['run']['switched_off'] if done.returncode == 0 else None
    return off['times'] if off else 0


def start(flavour, command, library, run, settings):
    environment = {**mpi_run.clean_environment(), 'LD_PRELOAD': str(library), 'RINGSCOPE_DIR': str(run),
                   'RINGSCOPE_EXPORT': 'none', **settings}
    words = [*mpi_run.LAUNCHERS[flavour], str(RANKS), *map(str, command)]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


def marks(ringscope, run):
    rows = mpi_run.query(ringscope, run, """
        SELECT name, count(*) FROM slices WHERE name GLOB 'asked *' GROUP BY name""")
    return {name: int(n) for name, n in rows}


def check_control(flavour, program, library, ringscope, work):
    run, folder = work / 'control', work / 'folder'
    folder.mkdir()
    process = start(flavour, [program, 'until', folder], library, run, {})
    try:
        wait_for('begin', lambda: all((folder / f'begun.{r}').exists() for r in range(RANKS)))
        said = control(ringscope, run, 'mark', 'asked before')
        expect('told', said, f'ringscope: mark is asked of {RANKS} processes on this host\n')
        control(ringscope, run, 'stop')
        wait_for('stop', lambda: times_off(ringscope, run) == RANKS)
        control(ringscope, run, 'mark', 'asked while off')
        for word, text in (('pause', 'start, stop, or mark'), ('mark', 'start, stop, or mark')):
            if text not in control(ringscope, run, word, status=2):
                sys.exit(f'control {word} says nothing of {text}')
        control(ringscope, run, 'start')
        control(ringscope, run, 'mark', 'asked after')
        wait_for('mark', lambda: marks(ringscope, run).get('asked after') == RANKS)
    finally:
        (folder / 'end').touch()
        process.communicate(timeout=WAIT_S)
    expect('status', process.returncode, 0)
    mpi_run.merge(ringscope, run)
    expect('marks', marks(ringscope, run), {'asked before': RANKS, 'asked after': RANKS})
    expect('off', {r: len(t) for r, t in check_nothing_begins(ringscope, run).items()},
           {r: 1 for r in range(RANKS)})
    check_no_run(ringscope, run, folder)


def check_no_run(ringscope, run, folder):
    """Each case is said to be what it is, and no file is left that the run's user could not open."""
    cases = [(run, f'its run is over: none of the {RANKS} processes'), (folder, 'no capture in it'),
             (folder / 'nowhere', 'name the folder that the run records into'),
             (run / 'run.sqlite', 'no folder')]
    if os.geteuid() == 0:
        others = folder / 'others'
        shutil.copytree(run, others)
        (others / 'control').unlink()
        for path in (others, *others.iterdir()):
            os.chown(path, 1, 1)
        cases.append((others, f'a run of user {pwd.getpwuid(1).pw_name}, who alone can control it'))
    for path, said in cases:
        text = control(ringscope, path, 'stop', status=2)
        if said not in text:
            sys.exit(f'{path}: {text} lacks: {said}')
    expect('control file of another', (folder / 'others' / 'control').exists(), False)


def status_or_nothing(ringscope, run):
    """A capture that was just made may be empty still."""
    done = subprocess.run([str(ringscope), 'status', str(run)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=WAIT_S, check=False)
    return done.stdout if done.returncode == 0 else ''


def check_late(flavour, program, library, ringscope, work):
    """Rank 1's capture is off while all wait for it: nobody knows where it is, and nobody is named."""
    run, folder = work / 'late', work / 'late-folder'
    folder.mkdir()
    script = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export RINGSCOPE_STEPS=3-5; exec "$0" late "$1"'
    process = start(flavour, ['sh', '-c', script, pathlib.Path(program).resolve(), folder], library, run, {})
    try:
        wait_for('wait', lambda: 'in MPI_Barrier, number' in status_or_nothing(ringscope, run))
        time.sleep(1.5)  # so long that a missing rank would be named
        text = mpi_run.tool(ringscope, 'status', run)
    finally:
        (folder / 'end').touch()
        process.communicate(timeout=WAIT_S)
    if 'MISSING' in text or 'not known: its capture is switched off' not in text:
        sys.exit(text)


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    with tempfile.TemporaryDirectory() as name:
        for check in (check_toggled, check_steps, check_time, check_control, check_late):
            check(flavour, program, os.path.abspath(library), ringscope, pathlib.Path(name))
            print('ok', check.__name__, flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
