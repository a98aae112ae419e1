# SPDX-License-Identifier: Apache-2.0
"""Every wrapped MPI call, with and without the tracer: test-families.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

The results are the same, each user call is one record, collectives meet on all ranks, and each
message finds its other end.
"""
import pathlib
import sys
import tempfile

import mpi_run
from mpi_run import expect, query

RANKS = 4


def read_calls(folder, rank):
    lines = (folder / f'calls.{rank}').read_text().splitlines()
    return {name: int(times) for name, times in (line.split() for line in lines)}


def check_outputs(plain, traced):
    for rank in range(RANKS):
        expect(f'output of rank {rank}', (traced / f'out.{rank}').read_text(),
               (plain / f'out.{rank}').read_text())


def check_records(ringscope, sqlite, traced):
    recorded = mpi_run.recorded_calls(ringscope, sqlite)
    for rank in range(RANKS):
        made = read_calls(traced, rank)
        # beside its call, each persistent operation has an event of its own
        made['MPI_Start_receive'] = made['MPI_Start']
        made['MPI_Start_send'] = made['MPI_Startall']
        expect(f'calls recorded of rank {rank}', recorded[rank], made)


def check_matching(ringscope, sqlite, traced):
    odd = query(ringscope, sqlite, 'SELECT * FROM instances WHERE NOT complete OR mismatched')
    expect('collectives that do not meet', odd, [])
    [[instances]] = query(ringscope, sqlite, 'SELECT count(*) FROM instances')
    if int(instances) < 80:
        sys.exit(f'only {instances} collectives')
    rows = query(ringscope, sqlite, """
        SELECT send_event_id IS NULL, recv_event_id IS NULL, count(*) FROM messages
        WHERE send_event_id IS NULL OR recv_event_id IS NULL GROUP BY 1, 2""")
    cancelled = sum(read_calls(traced, rank)['MPI_Cancel'] for rank in range(RANKS))
    expect('messages without another end: cancelled receives', rows, [['1', '0', str(cancelled)]])
    rows = query(ringscope, sqlite, 'SELECT count(*) FROM ranks JOIN enum_ending n ON n.id = ending '
                 "WHERE n.name <> 'clean' OR dropped")
    expect('captures not ended', rows, [['0']])


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    with tempfile.TemporaryDirectory() as work:
        plain, traced, run = (pathlib.Path(work) / n for n in ('plain', 'traced', 'run'))
        for folder in (plain, traced, run):
            folder.mkdir()
        mpi_run.run(flavour, RANKS, [program, plain])
        mpi_run.run(flavour, RANKS, [program, traced], preload=[library], folder=run)
        check_outputs(plain, traced)
        sqlite = mpi_run.merge(ringscope, run)
        check_records(ringscope, sqlite, traced)
        check_matching(ringscope, sqlite, traced)


if __name__ == '__main__':
    main(*sys.argv[1:])
