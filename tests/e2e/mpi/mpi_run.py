# SPDX-License-Identifier: Apache-2.0
"""What the MPI tests share: starting ranks under each MPI, reading what was recorded."""
import csv
import os
import pathlib
import shutil
import subprocess
import time
import sys

TIMEOUT_S = 120
LAUNCHERS = {
    'openmpi': ['mpirun.openmpi', '--oversubscribe', '--allow-run-as-root', '--bind-to', 'none', '-np'],
    'mpich': ['mpiexec.mpich', '-n'],
}


def launcher_or_skip(flavour):
    if not shutil.which(LAUNCHERS[flavour][0]):
        print(f'{LAUNCHERS[flavour][0]} is not installed')
        sys.exit(77)
    return LAUNCHERS[flavour]


def clean_environment():
    names = ('RINGSCOPE_', 'OMPI_', 'PMIX_', 'PMI_')
    return {k: v for k, v in os.environ.items() if not k.startswith(names) and k != 'LD_PRELOAD'}


def run(flavour, ranks, command, preload=(), folder=None, export='none', settings=None,
        status=0):
    """Runs `command` on `ranks` ranks; with `preload`, the launcher and all its children have it.
    It must end with `status`; None: with any but 0."""
    environment = clean_environment()
    if preload:
        environment['LD_PRELOAD'] = ':'.join(map(str, preload))
    if folder:
        environment['RINGSCOPE_DIR'] = str(folder)
    if export:
        environment['RINGSCOPE_EXPORT'] = export
    environment.update(settings or {})
    # the launcher is found without what it is to run with
    words = [shutil.which(LAUNCHERS[flavour][0]), *LAUNCHERS[flavour][1:], str(ranks)]
    done = subprocess.run([*words, *map(str, command)], env=environment, timeout=TIMEOUT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0 if status is None else done.returncode != status:
        sys.exit(f'{command} on {ranks} ranks of {flavour}: status {done.returncode}\n{done.stdout}')
    return done.stdout


def tool(ringscope, *words):
    done = subprocess.run([str(ringscope), *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        sys.exit(f'ringscope {words}: status {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


def wait_until_gone(folder):
    """Launchers return before the ranks that they kill are gone: what those had in their rings can
    be saved only then."""
    for capture in folder.glob('*.rsc'):
        stat = pathlib.Path('/proc', capture.stem.rsplit('-', 1)[1], 'stat')
        for _ in range(1000):
            try:
                if stat.read_text().rsplit(')', 1)[1].split()[0] in 'ZX':
                    break
            except (FileNotFoundError, ProcessLookupError):
                break
            time.sleep(0.01)


def merge(ringscope, folder):
    tool(ringscope, 'merge', folder)
    return pathlib.Path(folder) / 'run.sqlite'


def query(ringscope, sqlite, sql):
    """Rows as lists of text, without the heading."""
    return list(csv.reader(tool(ringscope, 'query', sqlite, '--format', 'csv', sql).splitlines()))[1:]


def recorded_calls(ringscope, sqlite):
    """{rank: {name: number of events}} of MPI's calls."""
    rows = query(ringscope, sqlite, """
        SELECT r.rank, n.text, count(*) FROM events e
        JOIN signatures s ON s.id = e.signature_id JOIN strings n ON n.id = s.name_id
        JOIN tracks t ON t.id = e.track_id JOIN ranks r ON r.id = t.rank_id
        WHERE n.text GLOB 'MPI_*' OR n.text GLOB 'MPIX_*' GROUP BY r.rank, n.text""")
    calls = {}
    for rank, name, count in rows:
        calls.setdefault(int(rank), {})[name] = int(count)
    return calls


def read_calls(path):
    """{name: number of calls} that a rank wrote of itself."""
    return {name: int(times) for name, times in map(str.split, path.read_text().splitlines())}


def check_outputs(plain, traced, ranks):
    for rank in range(ranks):
        expect(f'output of rank {rank}', (traced / f'out.{rank}').read_text(),
               (plain / f'out.{rank}').read_text())


def expect(what, got, wanted):
    if got == wanted:
        return
    if isinstance(got, dict) and isinstance(wanted, dict):
        differ = sorted(k for k in {*got, *wanted} if got.get(k) != wanted.get(k))
        got, wanted = ({k: d.get(k) for k in differ} for d in (got, wanted))
    sys.exit(f'{what}:\n  is       {got}\n  expected {wanted}')
