# SPDX-License-Identifier: Apache-2.0
"""Threads that call MPI at once: test-threads.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

Each thread's calls stand on a track of its own, and what they do with communicators whose handles
are used again and again still meets on all ranks.
"""
import pathlib
import sys
import tempfile

import mpi_run
from mpi_run import expect, query

RANKS, THREADS, ROUNDS = 3, 3, 40  # many-threads.c


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name) / 'run'
        mpi_run.run(flavour, RANKS, [program], preload=[library], folder=run)
        sqlite = mpi_run.merge(ringscope, run)
        rows = query(ringscope, sqlite, """
            SELECT t.rank_id, count(*) FROM events e
            JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
            JOIN tracks t ON t.id = e.track_id
            WHERE n.text = 'MPI_Sendrecv' GROUP BY e.track_id ORDER BY 1""")
        expect('exchanges by rank, one row a thread', rows,
               [[str(r), str(ROUNDS)] for r in range(RANKS) for _ in range(THREADS)])
        rows = query(ringscope, sqlite, """
            SELECT present, complete, mismatched, count(*) FROM instances GROUP BY 1, 2, 3""")
        expect('allreduces', rows, [[str(RANKS), '1', '0', str(THREADS * ROUNDS)]])
        rows = query(ringscope, sqlite, """
            SELECT send_event_id IS NULL, recv_event_id IS NULL, count(*) FROM messages
            GROUP BY 1, 2""")
        expect('messages', rows, [['0', '0', str(RANKS * THREADS * ROUNDS)]])


if __name__ == '__main__':
    main(*sys.argv[1:])
