# SPDX-License-Identifier: Apache-2.0
"""Plain LD_PRELOAD over a whole mpirun: test-preload.py FLAVOUR PROGRAM TOOL LIBRARY RINGSCOPE NO_MPI

Each rank leaves .rsc, .json and .sqlite, nobody else leaves a file, merge makes the run of them.
Another PMPI tool, preloaded before or after, sees what it saw without us, and so do we. A program
without MPI that looks for it is answered as by a missing library. One traced rank among others, and
one that aborts, leave what they did.
"""
import pathlib
import subprocess
import sys
import tempfile

import mpi_run
from mpi_run import expect

RANKS = 3
ABORTED = 3  # few-calls.c
# what PROGRAM calls on each rank, and TOOL counts
CALLS = {'MPI_Init': 1, 'MPI_Allreduce': 5, 'MPI_Barrier': 2, 'MPI_Finalize': 1}
TOLD = ['tool saw 5 allreduce, 2 barrier']


def check_whole_tree(flavour, program, library, ringscope, work):
    run = work / 'tree'
    mpi_run.run(flavour, RANKS, [program], preload=[library], folder=run, export=None)
    for suffix in ('rsc', 'json', 'sqlite'):
        expect(f'number of .{suffix}', len(list(run.glob(f'*.{suffix}'))), RANKS)
    sqlite = mpi_run.merge(ringscope, run)
    expect('recorded', mpi_run.recorded_calls(ringscope, sqlite), {r: CALLS for r in range(RANKS)})
    expect('run.json is there', (run / 'run.json').stat().st_size > 0, True)


def check_stacked(flavour, program, order, ringscope, run):
    out = mpi_run.run(flavour, RANKS, [program], preload=order, folder=run)
    told = sorted(line for line in out.splitlines() if line.startswith('tool saw'))
    expect(f'the tool in {order}', told, TOLD * RANKS)
    sqlite = mpi_run.merge(ringscope, run)
    expect(f'recorded in {order}', mpi_run.recorded_calls(ringscope, sqlite),
           {r: CALLS for r in range(RANKS)})


def check_without_mpi(no_mpi, library, work):
    run = work / 'without'
    environment = mpi_run.clean_environment()
    environment.update(LD_PRELOAD=library, RINGSCOPE_DIR=str(run))
    done = subprocess.run([no_mpi], env=environment, timeout=mpi_run.TIMEOUT_S, check=False)
    expect('status of a program without MPI', done.returncode, 0)
    expect('its files', run.exists(), False)


def check_one_traced(flavour, program, library, ringscope, run):
    """The others do not know that anybody is traced: nobody waits for them."""
    script = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export LD_PRELOAD="$1"; exec "$0"'
    mpi_run.run(flavour, RANKS, ['sh', '-c', script, pathlib.Path(program).resolve(),
                                 pathlib.Path(library).resolve()], folder=run)
    sqlite = mpi_run.merge(ringscope, run)
    expect('recorded of one rank', mpi_run.recorded_calls(ringscope, sqlite), {1: CALLS})


def check_abort(flavour, program, library, ringscope, run):
    """Rank 1 aborts in its third barrier's place, with what it did on record."""
    mpi_run.run(flavour, RANKS, [program, 'abort'], preload=[library], folder=run, status=ABORTED)
    mpi_run.wait_until_gone(run)
    sqlite = mpi_run.merge(ringscope, run)
    expect('recorded of who aborted', mpi_run.recorded_calls(ringscope, sqlite)[1],
           {'MPI_Init': 1, 'MPI_Allreduce': 5, 'MPI_Barrier': 2, 'MPI_Abort': 1})


def check_mpi_off(flavour, program, library, work):
    run = work / 'off'
    mpi_run.run(flavour, RANKS, [program], preload=[library], folder=run,
                settings={'RINGSCOPE_TRACE': 'nvtx'})
    expect('files with MPI off', run.exists(), False)


def main(flavour, program, other, library, ringscope, no_mpi):
    mpi_run.launcher_or_skip(flavour)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check_without_mpi(no_mpi, library, work)
        check_whole_tree(flavour, program, library, ringscope, work)
        check_stacked(flavour, program, [other, library], ringscope, work / 'before')
        check_stacked(flavour, program, [library, other], ringscope, work / 'after')
        check_one_traced(flavour, program, library, ringscope, work / 'one')
        check_abort(flavour, program, library, ringscope, work / 'abort')
        check_mpi_off(flavour, program, library, work)


if __name__ == '__main__':
    main(*sys.argv[1:])
