# SPDX-License-Identifier: Apache-2.0
"""A rank drawn at random hangs: `ringscope status` names it while the run lives, and after its end.

    test-status.py FLAVOUR PROGRAM LIBRARY RINGSCOPE SCHEMA STACKS
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import jsonschema
import mpi_run
from mpi_run import expect

RANKS = 4
BARRIER = 'MPI_Barrier, number 7 on MPI_COMM_WORLD'


def start(flavour, command, library, folder):
    environment = mpi_run.clean_environment()
    environment.update(LD_PRELOAD=str(library), RINGSCOPE_DIR=str(folder), RINGSCOPE_EXPORT='none')
    words = mpi_run.LAUNCHERS[flavour]
    return subprocess.Popen([shutil.which(words[0]), *words[1:], str(RANKS), *map(str, command)],
                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def status(ringscope, run, *options):
    return json.loads(mpi_run.tool(ringscope, 'status', run, '--format', 'json', *options))


def wait_for_hang(ringscope, run, launcher):
    for _ in range(600):
        if launcher.poll() is not None:
            sys.exit(f'the run ended: {launcher.returncode}')
        if len(list(run.glob('*.rsc'))) == RANKS:
            s = status(ringscope, run)
            if s['missing']:
                return s
        time.sleep(0.1)
    sys.exit(f'nobody was missing: {s}')


def check_living(s, victim):
    print(json.dumps(s, indent=1))
    expect('missing', (s['missing'], s['deadlock'], s['without_capture']), ([victim], [], []))
    for rank in s['ranks']:
        expect(f'state of rank {rank["rank"]}', rank['state'], 'running')
        if rank['rank'] == victim:
            expect('victim', (rank['call'], rank['waits_for']), (None, []))
        else:
            expect(f'rank {rank["rank"]}', (rank['call'], rank['waits_for']), (BARRIER, [victim]))
            if not 0.5 < rank['call_s'] < 60:  # the longest is a second or more
                sys.exit(f'in its call for {rank["call_s"]} s')


def check_stacks(s, victim):
    """Where the system lets nobody look at a process, it says so."""
    if s['no_stacks']:
        print(f'no stacks: {s["no_stacks"]}')
        return
    for rank in s['ranks']:
        wanted = 'sleep' if rank['rank'] == victim else 'MPI_Barrier'
        if not any(wanted in frame for frame in rank['stack']):
            sys.exit(f'{wanted} is not on the stack of rank {rank["rank"]}: {rank["stack"]}')


def check_dead(ringscope, run, victim):
    s = status(ringscope, run)
    print(json.dumps(s, indent=1))
    expect('missing', s['missing'], [victim])
    for rank in s['ranks']:
        if rank['state'] not in ('killed', 'exited'):
            sys.exit(f'rank {rank["rank"]} is {rank["state"]}')
    expect('calls', {r['rank']: r['call'] for r in s['ranks']},
           {r: None if r == victim else BARRIER for r in range(RANKS)})
    report = json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))
    finding = report['findings'][0]
    expect('finding', (finding['kind'], finding['ranks']), ('missing-rank', [victim]))


def main(flavour, program, library, ringscope, schema, stacks):
    mpi_run.launcher_or_skip(flavour)
    victim = random.randrange(RANKS)
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name) / 'run'
        launcher = start(flavour, [program, victim, 'hang'], library, run)
        try:
            s = wait_for_hang(ringscope, run, launcher)
            jsonschema.validate(s, json.loads(pathlib.Path(schema).read_text()))
            check_living(s, victim)
            if stacks == 'true':
                check_stacks(status(ringscope, run, '--stacks'), victim)
            text = mpi_run.tool(ringscope, 'status', run)
            if f'MISSING   rank {victim} ' not in text:
                sys.exit(text)
        finally:
            launcher.terminate()
            launcher.wait()
        mpi_run.wait_until_gone(run)
        check_dead(ringscope, run, victim)
        mpi_run.merge(ringscope, run)
        check_dead(ringscope, run, victim)


if __name__ == '__main__':
    main(*sys.argv[1:])
