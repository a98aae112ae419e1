# SPDX-License-Identifier: Apache-2.0
"""A rank drawn at random dies, or two wait for each other, and the launcher ends the others: test-killed.py FLAVOUR PROGRAM LIBRARY RINGSCOPE

The report says who died and in which call each of the others waited for it, and so does the JSON.
"""
import json
import pathlib
import random
import sys
import tempfile

import mpi_run
from mpi_run import expect

RANKS = 4
BARRIERS = 7


def check_report(ringscope, run, victim, way):
    report = json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))
    finding = report['findings'][0]
    print(json.dumps(finding, indent=1))
    expect('kind and ranks', (finding['kind'], finding['ranks']), ('missing-rank', [victim]))
    said = {'kill': f'rank {victim}, which was killed at ', 'abort': f'rank {victim}, which called MPI_Abort at '}
    if not finding['title'].startswith(said[way]) or 'waiting in MPI_Barrier' not in finding['title']:
        sys.exit(f'title: {finding["title"]}')
    # they wait for 0.9 s or longer, and are seen alive up to some tenths of a second before the end
    if not 0.5 < finding['cost_s'] < report['run']['duration_s']:
        sys.exit(f'cost {finding["cost_s"]} s of {report["run"]["duration_s"]} s')
    others = [r for r in range(RANKS) if r != victim]
    for rank in others:
        if not any(text.startswith(f'rank {rank} waited ') and
                   f'MPI_Barrier, number {BARRIERS} on MPI_COMM_WORLD' in text
                   for text in finding['evidence']):
            sys.exit(f'rank {rank} is not among those that waited')
    check_endings(report, victim, way)
    for row in report['metrics']['breakdown']:
        if row['rank'] != victim and row['wait'] < 0.5:
            sys.exit(f'no wait: {row}')
    text = mpi_run.tool(ringscope, 'report', run)
    if said[way] not in ' '.join(text.split()):
        sys.exit(text)


def check_endings(report, victim, way):
    endings = {e['rank']: e for e in report['run']['early_endings']}
    expect('early endings', sorted(endings), list(range(RANKS)))
    expect('victim', endings[victim]['ending'], {'kill': 'killed', 'abort': 'aborted'}[way])
    for rank, ending in endings.items():
        if rank != victim:
            expect(f'rank {rank}', (ending['ending'], ending['call']),
                   ('killed', f'MPI_Barrier, number {BARRIERS} on MPI_COMM_WORLD'))


def check_deadlock(ringscope, run, victim):
    report = json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))
    finding = report['findings'][0]
    print(json.dumps(finding, indent=1))
    ranks = [victim, (victim + 1) % RANKS]
    expect('kind and ranks', (finding['kind'], sorted(finding['ranks'])), ('deadlock-cycle', sorted(ranks)))
    for rank, other in (ranks, ranks[::-1]):
        if not any(f'rank {rank} waited for rank {other} in MPI_Recv' in e for e in finding['evidence']):
            sys.exit(f'rank {rank} is not said to wait for rank {other}')
    if not 1.5 < finding['cost_s'] < 4:
        sys.exit(f'cost {finding["cost_s"]} s')


def main(flavour, program, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    victim = random.randrange(RANKS)
    for way in ('kill', 'abort'):
        with tempfile.TemporaryDirectory() as name:
            run = pathlib.Path(name) / 'run'
            mpi_run.run(flavour, RANKS, [program, victim, way], preload=[library], folder=run,
                        status=None)
            mpi_run.wait_until_gone(run)
            check_report(ringscope, run, victim, way)  # from the rings
            mpi_run.merge(ringscope, run)
            check_report(ringscope, run / 'run.sqlite', victim, way)
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name) / 'run'
        mpi_run.run(flavour, RANKS, [program, victim, 'deadlock'], preload=[library], folder=run, status=None)
        mpi_run.wait_until_gone(run)
        check_deadlock(ringscope, run, victim)


if __name__ == '__main__':
    main(*sys.argv[1:])
