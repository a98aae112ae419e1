# SPDX-License-Identifier: Apache-2.0
"""MPI 4's sessions and messages in parts: test-sessions.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

Each user call is one record, ranks are those of mpi://WORLD where nobody calls MPI_Init,
communicators are known to all their members by the same identity, and captures end clean.
"""
import pathlib
import sys
import tempfile

import mpi_run
from mpi_run import expect, query

RANKS = 4
# With MPI_COMM_WORLD, allreduce comes once more; three on "all", one on each half, one between them
# (whose one event on each rank is one instance), two persistent ones, one barrier.
SIZES = {'': [['2', '2'], ['4', '7']], 'world': [['2', '2'], ['4', '8']]}


def check_ranks(ringscope, sqlite):
    rows = query(ringscope, sqlite, """
        SELECT r.rank, n.name, r.dropped, run.world_size FROM ranks r
        JOIN enum_ending n ON n.id = r.ending, run ORDER BY 1""")
    expect('ranks', rows, [[str(rank), 'clean', '0', str(RANKS)] for rank in range(RANKS)])


def check_meetings(ringscope, sqlite, way):
    odd = query(ringscope, sqlite, 'SELECT * FROM instances WHERE NOT complete OR mismatched')
    expect('collectives that do not meet', odd, [])
    rows = query(ringscope, sqlite, """
        SELECT c.size, count(*) FROM instances i JOIN communicators c ON c.id = i.communicator_id
        GROUP BY 1 ORDER BY 1""")
    expect('collectives by size of their communicator', rows, SIZES[way])
    rows = query(ringscope, sqlite, """
        SELECT n.text, count(*), min(m.bytes), max(m.bytes), max(m.timed)
        FROM messages m JOIN events e ON e.id = m.send_event_id
        JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
        WHERE m.recv_event_id IS NOT NULL AND e.link_event_id IS NOT NULL GROUP BY 1""")
    expect('messages in parts', rows, [['MPI_Start_psend', str(2 * RANKS), '24', '24', '0']])
    [[lone]] = query(ringscope, sqlite, """
        SELECT count(*) FROM messages WHERE send_event_id IS NULL OR recv_event_id IS NULL""")
    expect('messages without another end', lone, '0')


def check_records(ringscope, sqlite, told):
    recorded = mpi_run.recorded_calls(ringscope, sqlite)
    starts = {'MPI_Start_psend': 2, 'MPI_Start_precv': 2, 'MPI_Start_allreduce': 2}
    for rank in range(RANKS):
        calls = mpi_run.read_calls(told / f'calls.{rank}')
        expect(f'calls recorded of rank {rank}', recorded[rank], {**calls, **starts})


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    for way in SIZES:
        with tempfile.TemporaryDirectory() as work:
            plain, traced, run = (pathlib.Path(work) / n for n in ('plain', 'traced', 'run'))
            for folder in (plain, traced, run):
                folder.mkdir()
            mpi_run.run(flavour, RANKS, [program, plain, *way.split()])
            mpi_run.run(flavour, RANKS, [program, traced, *way.split()], preload=[library],
                        folder=run)
            for rank in range(RANKS):
                expect(f'calls of rank {rank}', mpi_run.read_calls(traced / f'calls.{rank}'),
                       mpi_run.read_calls(plain / f'calls.{rank}'))
            sqlite = mpi_run.merge(ringscope, run)
            check_ranks(ringscope, sqlite)
            check_records(ringscope, sqlite, traced)
            check_meetings(ringscope, sqlite, way)


if __name__ == '__main__':
    main(*sys.argv[1:])
