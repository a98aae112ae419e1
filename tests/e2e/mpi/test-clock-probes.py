# SPDX-License-Identifier: Apache-2.0
"""Ranks whose clocks differ are put on one axis by round trips, within what the run says of itself.

    test-clock-probes.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

Three clocks on four ranks, offsets and drifts drawn at random; needs a library built with test_clock.
"""
import pathlib
import random
import sys
import tempfile
import time

import mpi_run
from mpi_run import expect, query

RANKS = 4
# each rank starts the program with its own clock
START = r'''
case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in
%s
esac
exec "$0" "$@"
'''


def draw_clocks(seed):
    """(offset ns, drift ppm) by rank; 1 and 3 are one machine, 0 is right."""
    draw = random.Random(seed)
    two = [(draw.choice((-1, 1)) * draw.randrange(10**8, 10**10), draw.randrange(-40, 40))
           for _ in range(2)]
    return [(0, 0), two[0], two[1], two[0]]


def start_script(clocks):
    cases = (f'{rank}) export RINGSCOPE_TEST_CLOCK={offset},{drift};;'
             for rank, (offset, drift) in enumerate(clocks))
    return START % '\n'.join(cases)


def check_domains(ringscope, sqlite, clocks, elapsed_s):
    [[method, trusted]] = query(ringscope, sqlite, 'SELECT clock_method, clock_trusted FROM run')
    if 'round trips' not in method or trusted != '1':
        sys.exit(f'the clocks were aligned by {method}, trusted: {trusted}')
    rows = query(ringscope, sqlite, """
        SELECT r.rank, d.offset_ns, d.uncertainty_ns FROM ranks r
        JOIN clock_domains d ON d.id = r.domain_id ORDER BY r.rank""")
    for rank, offset, uncertainty in (map(int, row) for row in rows):
        planted, drift_ppm = clocks[rank]
        # A clock drifts from its own process's first moment on; its offset is that at the run's start.
        drifted = int(abs(drift_ppm) * 1000 * elapsed_s)
        off_by = abs(offset + planted)
        print(f'rank {rank}: clock off by {planted} ns, found within {off_by} of {uncertainty} ns')
        if off_by > uncertainty + drifted or (planted and not 0 < uncertainty < 10_000_000):
            sys.exit(f'offset {offset} ns, uncertainty {uncertainty} ns')
    [[domains]] = query(ringscope, sqlite, 'SELECT count(*) FROM clock_domains')
    expect('clock domains', domains, '3')


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    seed = random.randrange(10**6)
    print(f'seed {seed}')
    clocks = draw_clocks(seed)
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name) / 'run'
        began = time.monotonic()
        mpi_run.run(flavour, RANKS, ['sh', '-c', start_script(clocks), pathlib.Path(program).resolve()],
                    preload=[library], folder=run)
        elapsed_s = time.monotonic() - began
        check_domains(ringscope, mpi_run.merge(ringscope, run), clocks, elapsed_s)


if __name__ == '__main__':
    main(*sys.argv[1:])
