# SPDX-License-Identifier: Apache-2.0
"""Processes that are spawned, and groups that connect: test-processes.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

The results, failures of what this MPI lacks among them, are the same with and without the tracer,
and each process has one record for each of its calls. No finding comes of it: nobody is missed
from a communicator whose other half belongs to another run.
"""
import json
import pathlib
import sys
import tempfile

import mpi_run
from mpi_run import expect

RANKS = 4


def all_calls(folder):
    return {path.name: mpi_run.read_calls(path) for path in folder.iterdir()}


def in_order(calls):
    return sorted(sorted(c.items()) for c in calls)


def check_records(ringscope, run, told):
    for calls in told.values():
        calls.pop('failures', None)
    captures = sorted(run.glob('*.rsc'))
    expect('captures', len(captures), len(told))
    recorded = [c for capture in captures
                for c in mpi_run.recorded_calls(ringscope, capture).values()]
    expect('calls recorded of each process', in_order(recorded), in_order(told.values()))


def check_report(ringscope, run, told):
    report = json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))
    expect('ranks', report['run']['ranks'], RANKS)
    expect('findings', [f['title'] for f in report['findings']], [])
    rows = mpi_run.query(ringscope, run, 'SELECT count(*) FROM instances WHERE NOT complete')
    expect('collectives that wait for processes of another run', rows, [['0']])
    first = [c for name, c in told.items() if name.startswith('calls.')]
    expect('calls recorded of the first world',
           in_order(mpi_run.recorded_calls(ringscope, run).values()), in_order(first))


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    with tempfile.TemporaryDirectory() as work:
        plain, traced, run = (pathlib.Path(work) / n for n in ('plain', 'traced', 'run'))
        for folder in (plain, traced, run):
            folder.mkdir()
        mpi_run.run(flavour, RANKS, [program, plain])
        mpi_run.run(flavour, RANKS, [program, traced], preload=[library], folder=run)
        told = all_calls(traced)
        expect('calls without the tracer', all_calls(plain), told)
        check_records(ringscope, run, told)
        check_report(ringscope, run, told)


if __name__ == '__main__':
    main(*sys.argv[1:])
