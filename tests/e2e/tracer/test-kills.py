# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments: test-kills.py PROGRAM LIBRARY RINGSCOPE [KILLS]

PROGRAM counts its calls in shared memory as they return. Whatever the moment, every call that had
returned is in the capture: those of 50 ms before the kill must be, and as the rings outlive the process
so are the last; what recovery finds is whole, and each collective's number is there once.
RINGSCOPE_TEST_SEED repeats a run.
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

THREADS = 2
KINDS = ['MPI_Init_thread', 'MPI_Barrier', 'MPI_Allreduce', 'MPI_Sendrecv', 'MPI_Irecv', 'MPI_Send',
         'MPI_Wait']
LONGEST_S = 0.4
SQL = """
    SELECT t.tid, n.text, count(*), count(DISTINCT e.seq), max(e.seq) FROM events e
    JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
    JOIN tracks t ON t.id = e.track_id WHERE n.text GLOB 'MPI_*' AND NOT e.flags & {open}
    GROUP BY t.tid, n.text"""


def counts_of(path):
    """By thread and kind; zeros while the file is in the making."""
    data = path.read_bytes() if path.exists() else b''
    data = data.ljust(8 * THREADS * len(KINDS), b'\0')
    numbers = struct.unpack(f'={THREADS * len(KINDS)}Q', data)
    return [numbers[i * len(KINDS):][:len(KINDS)] for i in range(THREADS)]


def start(program, library, run, counts):
    environment = {**mpi_run.clean_environment(), 'LD_PRELOAD': library, 'RINGSCOPE_DIR': str(run),
                   'RINGSCOPE_TRACE': 'mpi', 'OMPI_MCA_plm': 'isolated', 'OMPI_MCA_btl': 'self'}
    return subprocess.Popen([program, str(counts)], env=environment)


def kill_at(process, counts, called, after_s):
    """So long after its start, or where it has `called` after that. Returns what had returned by then."""
    while called and not sum(map(sum, counts_of(counts))):
        expect('status', process.poll(), None)
        time.sleep(0.005)
    time.sleep(after_s)
    expect('status', process.poll(), None)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return counts_of(counts)


def recorded(ringscope, run, pid):
    """{thread: {kind: count}}, the first thread of a process being 0."""
    calls = [{}, {}]
    for tid, name, n, numbers, last in mpi_run.query(ringscope, run / 'run.sqlite',
                                                     SQL.format(open=2)):
        calls[int(tid) != pid][name] = int(n)
        if name in ('MPI_Barrier', 'MPI_Allreduce'):
            expect(f'{name}: each number once', int(numbers), int(n))
    return calls


def check_kill(program, library, ringscope, work, called, after_s):
    run, counts = work / 'run', work / 'counts'
    process = start(program, library, run, counts)
    try:
        done = kill_at(process, counts, called, after_s)
    finally:
        process.kill()
        process.wait()
    if not any(p.stat().st_size for p in run.glob('*.rsc')):  # its first block comes before its first call
        expect('calls without a capture', sum(map(sum, done)), 0)
        for ring in pathlib.Path('/dev/shm').glob(f'ringscope-*-{process.pid}-*'):
            ring.unlink()
        return 0
    mpi_run.merge(ringscope, run)
    report = json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))
    expect('dropped', report['run']['dropped_events'], 0)
    expect('damage', [w for w in report['warnings'] if 'block' in w['text']], [])
    expect('ending', [e['ending'] for e in report['run']['early_endings']], ['killed'])
    found = recorded(ringscope, run, process.pid)
    for thread in range(THREADS):
        for kind, n in zip(KINDS, done[thread]):
            # one may have been recorded that its program had not counted yet
            if not n <= found[thread].get(kind, 0) <= n + 1:
                sys.exit(f'killed after {after_s} s, thread {thread}: {found[thread].get(kind, 0)} '
                         f'{kind} of {n}')
    return sum(map(sum, done))


def main(program, library, ringscope, kills='8'):
    seed = int(os.environ.get('RINGSCOPE_TEST_SEED', time.time_ns() % 100000))
    print('seed', seed, flush=True)
    draw = random.Random(seed)
    late = 0
    for i in range(int(kills)):
        with tempfile.TemporaryDirectory() as work:
            called, after_s = draw.random() > 0.25, draw.uniform(0, LONGEST_S)
            calls = check_kill(program, library, ringscope, pathlib.Path(work), called, after_s)
            print(f'kill {i + 1}: after {after_s:.3f} s, {calls} calls', flush=True)
            late += calls > 1
    expect('kills while it called', late > 0, True)


if __name__ == '__main__':
    main(*sys.argv[1:])
