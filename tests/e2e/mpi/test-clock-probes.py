# SPDX-License-Identifier: Apache-2.0
"""Ranks whose clocks differ are put on one axis by round trips, within what the run says of itself.

    test-clock-probes.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

Three clocks on four ranks, offsets and drifts drawn at random; needs a library built with test_clock.
As on several hosts of some launchers, each rank has a run id of its own: all take rank 0's. Where a
rank is not traced, the others run without clocks, and say so.
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
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
export RINGSCOPE_RUN_ID="id-of-rank-$rank"
case $rank in
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


def planted_offset(clock, true_ns):
    """What has to be added to the planted clock when the right one stands at true_ns."""
    offset, drift_ppm = clock
    return -(offset + true_ns * drift_ppm * 1e-6)


def check_domains(ringscope, sqlite, clocks):
    [[method, trusted, base]] = query(
        ringscope, sqlite, 'SELECT clock_method, clock_trusted, base_unix_ns FROM run')
    if 'round trips' not in method or trusted != '1':
        sys.exit(f'the clocks were aligned by {method}, trusted: {trusted}')
    zero_ns = int(base) - (time.time_ns() - time.monotonic_ns())  # the right clock's at 0 of the axis
    rows = query(ringscope, sqlite, """
        SELECT r.rank, d.offset_ns, d.drift_ppm, d.uncertainty_ns,
               MIN(r.first_ns) OVER (PARTITION BY d.id), MAX(r.last_ns) OVER (PARTITION BY d.id)
        FROM ranks r JOIN clock_domains d ON d.id = r.domain_id ORDER BY r.rank""")
    for rank, offset, drift_ppm, uncertainty, first, last in (map(float, row) for row in rows):
        clock = clocks[int(rank)]
        at_first = offset - planted_offset(clock, zero_ns + first)
        at_last = offset + drift_ppm * 1e-6 * (last - first) - planted_offset(clock, zero_ns + last)
        print(f'rank {rank:.0f}: clock off by {clock[0]} ns and {clock[1]} ppm, found within '
              f'{at_first:.0f} ns at its first event and {at_last:.0f} at its last, of '
              f'{uncertainty:.0f} ns in {(last - first) / 1e6:.1f} ms')
        if max(abs(at_first), abs(at_last)) > uncertainty:
            sys.exit('the clock is less certain than it says')
        if clock != (0, 0) and not 0 < uncertainty < 10_000_000:
            sys.exit(f'uncertainty {uncertainty} ns')
    [[domains]] = query(ringscope, sqlite, 'SELECT count(*) FROM clock_domains')
    expect('clock domains', domains, '3')


def check_run_ids(ringscope, sqlite):
    rows = query(ringscope, sqlite,
                 "SELECT value, count(*) FROM meta WHERE key GLOB '*/run_id' GROUP BY value")
    expect('run ids', rows, [['id-of-rank-0', str(RANKS)]])


def check_partly_traced(flavour, program, library, ringscope, run):
    script = START % '2) unset LD_PRELOAD;;\n*) export RINGSCOPE_TEST_CLOCK=$rank,0;;'
    mpi_run.run(flavour, RANKS, ['sh', '-c', script, program], preload=[library], folder=run)
    # without rank 0's id the captures are of different runs: each is read alone
    captures = sorted(run.glob('*.rsc'))
    expect('captures', len(captures), RANKS - 1)
    for capture in captures:
        sqlite = run / 'one.sqlite'
        mpi_run.tool(ringscope, 'export', capture, '--format', 'sqlite', '-o', sqlite)
        rows = query(ringscope, sqlite, "SELECT value FROM meta WHERE key GLOB '*/off.clock'")
        expect('the clock is off', rows, [['not all ranks of MPI_COMM_WORLD are traced']])
        sqlite.unlink()


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    program = pathlib.Path(program).resolve()
    seed = random.randrange(10**6)
    print(f'seed {seed}')
    clocks = draw_clocks(seed)
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name) / 'run'
        mpi_run.run(flavour, RANKS, ['sh', '-c', start_script(clocks), program], preload=[library],
                    folder=run)
        sqlite = mpi_run.merge(ringscope, run)
        check_domains(ringscope, sqlite, clocks)
        check_run_ids(ringscope, sqlite)
        check_partly_traced(flavour, program, library, ringscope, pathlib.Path(name) / 'partly')


if __name__ == '__main__':
    main(*sys.argv[1:])
