# SPDX-License-Identifier: Apache-2.0
"""Every wrapped MPI call, with and without the tracer:

    test-families.py FLAVOUR PROGRAM LIBRARY RINGSCOPE MPI_API

The results are the same, each user call is one record, collectives meet on all ranks, and each
message finds its other end. No function of the table is left out.
"""
import importlib
import pathlib
import struct
import sys
import tempfile

import mpi_run
from mpi_run import expect, query

RANKS = 4
# What other tests call: each of them ends a process, or starts some, or is of sessions.c.
ELSEWHERE = {'MPI_Init', 'MPI_Abort', 'MPI_Comm_spawn', 'MPI_Comm_spawn_multiple', 'MPI_Comm_accept',
             'MPI_Comm_connect', 'MPI_Comm_join', 'MPI_Open_port', 'MPI_Close_port',
             'MPI_Publish_name', 'MPI_Unpublish_name', 'MPI_Lookup_name',
             'MPI_Session_init', 'MPI_Session_finalize', 'MPI_Group_from_session_pset',
             'MPI_Comm_create_from_group', 'MPI_Intercomm_create_from_groups', 'MPI_Psend_init',
             'MPI_Precv_init', 'MPI_Pready', 'MPI_Pready_list', 'MPI_Pready_range', 'MPI_Parrived'}
# Open MPI has two ways to files, and each calls other functions inside.
WAYS = {'openmpi': ({}, {'OMPI_MCA_io': 'romio321'}), 'mpich': ({},)}


def read_calls(folder, rank):
    return mpi_run.read_calls(folder / f'calls.{rank}')


def operations(api):
    sys.path.insert(0, str(pathlib.Path(api).parent / 'gen'))
    return importlib.import_module('parse').parse_files([api])


def functions(flavour, api):
    """Names of the functions that this MPI has, and that leave a record."""
    return {op.name for op in operations(api) if op.attrs.get('only', flavour) == flavour and
            not {'pass', 'record'} & {*op.attrs}}


def check_table(flavour, api, called):
    if not any(name.endswith('_c') for name in called):  # an MPI before 4
        called |= {name for name in functions(flavour, api) if name.endswith('_c')}
    if not any(name.startswith('MPIX_') for name in called):  # Open MPI without the extension
        called |= {name for name in functions(flavour, api) if name.startswith('MPIX_')}
    expect('functions that nobody called', functions(flavour, api) - ELSEWHERE - called, set())


def check_records(ringscope, sqlite, traced):
    recorded = mpi_run.recorded_calls(ringscope, sqlite)
    for rank in range(RANKS):
        # beside its call, each start of a persistent operation has an event of its own
        expect(f'calls recorded of rank {rank}', recorded[rank], read_calls(traced, rank))


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


def check_places(ringscope, sqlite):
    """Windows and files are known to all their ranks by the same identity, and bytes to whom they go."""
    rows = query(ringscope, sqlite, """
        SELECT DISTINCT c.api, c.size, c.members FROM communicators c WHERE c.api IN (4, 5)""")
    expect('windows and files', sorted(rows), [[api, str(RANKS), str(RANKS)] for api in '45'])
    rows = query(ringscope, sqlite, """
        SELECT count(*) FROM events e JOIN signatures s ON s.id = e.signature_id
        JOIN strings n ON n.id = s.name_id JOIN strings d ON d.id = s.datatype_id
        LEFT JOIN communicators c ON c.id = s.communicator_id
        WHERE n.text IN ('MPI_Put', 'MPI_Rput') AND s.count > 0
        AND (c.api IS NOT 4 OR d.text <> 'MPI_INT' OR s.bytes <> 4 * s.count
             OR s.peer NOT BETWEEN 0 AND 3)""")
    expect('puts without window, type or target', rows, [['0']])


def slots(capture):
    """(slot's number, slot) of all events of a capture, block by block."""
    data, at = capture.read_bytes(), 0
    while at + 64 <= len(data):
        _, _, _, kind, size = struct.unpack_from('<IBBHI', data, at)
        for i in range(at + 64, at + 64 + size, 48) if kind == 3 else ():
            yield struct.unpack_from('<H', data, i)[0], data[i:i + 48]
        at += 64 + (size + 7) // 8 * 8


def extensions(capture, op, kind):
    """Slots of `kind` that follow events of `op`."""
    here = False
    for number, slot in slots(capture):
        here = number == op if number < 0xff00 else here
        if here and number == kind:
            yield slot


def check_extensions(run, api):
    """Displacements, offsets, and what a read that met the file's end really read."""
    numbers = {op.name: op.number for op in operations(api)}
    for capture in run.glob('*.rsc'):
        # dtype, offset, count at the target
        places = {struct.unpack_from('<4xIqQ', x)[1:]
                  for x in extensions(capture, numbers['MPI_Put'], 0xff06)}
        expect('places of puts', places & {(3, 2), (0, 0), (1, 1), (0, 1)},
               {(3, 2), (0, 0), (1, 1), (0, 1)})
        offsets = {struct.unpack_from('<8xq', x)[0]
                   for x in extensions(capture, numbers['MPI_File_write_at'], 0xff06)}
        expect('one offset on each rank', (len(offsets), max(offsets) % 3), (1, 0))
        read = [struct.unpack_from('<4xi8xQ', x)
                for x in extensions(capture, numbers['MPI_File_read_at'], 0xff02)]
        expect('short reads', set(read), {(-3, 8)})


def main(flavour, program, library, ringscope, api):
    mpi_run.launcher_or_skip(flavour)
    called = set()
    for settings in WAYS[flavour]:
        with tempfile.TemporaryDirectory() as work:
            plain, traced, run = (pathlib.Path(work) / n for n in ('plain', 'traced', 'run'))
            for folder in (plain, traced, run):
                folder.mkdir()
            mpi_run.run(flavour, RANKS, [program, plain], settings=settings)
            mpi_run.run(flavour, RANKS, [program, traced], preload=[library], folder=run,
                        settings=settings)
            called |= {name for rank in range(RANKS) for name in read_calls(traced, rank)}
            mpi_run.check_outputs(plain, traced, RANKS)
            sqlite = mpi_run.merge(ringscope, run)
            check_records(ringscope, sqlite, traced)
            check_matching(ringscope, sqlite, traced)
            check_places(ringscope, sqlite)
            check_extensions(run, api)
    check_table(flavour, api, called)


if __name__ == '__main__':
    main(*sys.argv[1:])
