# SPDX-License-Identifier: Apache-2.0
"""MPI called from Fortran, with and without the tracer: test-bindings.py FLAVOUR LIBRARY RINGSCOPE PROGRAM...

By mpif.h, `use mpi` and `use mpi_f08` alike the results are the same, and each call is one record,
whatever the bindings call themselves; collectives meet, and each message finds its other end.
"""
import pathlib
import sys
import tempfile

import mpi_run
from mpi_run import expect, query

RANKS = 4


def check_records(ringscope, sqlite, traced):
    recorded = mpi_run.recorded_calls(ringscope, sqlite)
    for rank in range(RANKS):
        made = mpi_run.read_calls(traced / f'calls.{rank}')
        made['MPI_Start_receive'] = made['MPI_Start']
        made['MPI_Start_send'] = made['MPI_Startall']
        expect(f'calls recorded of rank {rank}', recorded[rank], made)


def check_matching(ringscope, sqlite):
    rows = query(ringscope, sqlite, 'SELECT * FROM instances WHERE NOT complete OR mismatched')
    expect('collectives that do not meet', rows, [])
    rows = query(ringscope, sqlite, """
        SELECT count(*) FROM messages WHERE send_event_id IS NULL OR recv_event_id IS NULL""")
    expect('messages without another end', rows, [['0']])
    rows = query(ringscope, sqlite, """
        SELECT DISTINCT d.text FROM events e JOIN signatures s ON s.id = e.signature_id
        JOIN strings n ON n.id = s.name_id JOIN strings d ON d.id = s.datatype_id
        WHERE n.text = 'MPI_Allreduce'""")
    expect('types of allreduce', rows, [['MPI_INTEGER']])


def check(flavour, program, library, ringscope, work):
    plain, traced, run = (work / n for n in ('plain', 'traced', 'run'))
    for folder in (plain, traced, run):
        folder.mkdir(parents=True)
    mpi_run.run(flavour, RANKS, [program, plain])
    mpi_run.run(flavour, RANKS, [program, traced], preload=[library], folder=run)
    mpi_run.check_outputs(plain, traced, RANKS)
    sqlite = mpi_run.merge(ringscope, run)
    check_records(ringscope, sqlite, traced)
    check_matching(ringscope, sqlite)


def main(flavour, library, ringscope, *programs):
    mpi_run.launcher_or_skip(flavour)
    with tempfile.TemporaryDirectory() as name:
        for program in programs:
            print(program, flush=True)
            check(flavour, program, library, ringscope, pathlib.Path(name) / pathlib.Path(program).name)


if __name__ == '__main__':
    main(*sys.argv[1:])
