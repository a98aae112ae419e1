# SPDX-License-Identifier: Apache-2.0
"""MPI past the tracer: test-unobserved.py FLAVOUR PROGRAM HOST PLUGIN LIBRARY RINGSCOPE

A library bound deeply and a handle's functions are seen by no preloaded library: capture, report and
the end of `ringscope run` name the MPI and the way out. A program that was seen, and one that has MPI
mapped and doesn't use it, give no such finding; the latter no file.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import mpi_run
from mpi_run import expect

RANKS = 2
SONAMES = {'mpich': 'libmpich.so.12', 'openmpi': 'libmpi.so.40'}


def library_of(program, soname):
    out = subprocess.run(['ldd', program], check=True, text=True, stdout=subprocess.PIPE).stdout
    path, = (line.split()[2] for line in out.splitlines() if line.split()[0] == soname)
    return path


def report(ringscope, run):
    return json.loads(mpi_run.tool(ringscope, 'report', run, '--format', 'json'))


def findings(ringscope, run):
    return [f for f in report(ringscope, run)['findings'] if f['kind'] == 'unobserved-communication']


def check_found(ringscope, run, mpi):
    found, = findings(ringscope, run)
    expect('ranks', found['ranks'], list(range(RANKS)))
    expect('severity', found['severity'], 'high')
    expect('title names the library', pathlib.Path(mpi).name in found['title'], True)
    expect('evidence has its path', any(os.path.realpath(e.split(' is ')[0]) == os.path.realpath(mpi)
                                        for e in found['evidence'] if ' is ' in e), True)
    expect('way out', 'RTLD_DEEPBIND' in found['remedy'], True)
    sqlite = mpi_run.merge(ringscope, run)
    said = mpi_run.query(ringscope, sqlite,
                         "SELECT value FROM meta WHERE key LIKE '%/unobserved.mpi'")
    expect('what the captures say', [s[0].split(':')[0] for s in said], ['used library'] * RANKS)


def check_run_says(ringscope, program, work):
    """The last words of `ringscope run`."""
    environment = {**mpi_run.clean_environment(), 'OMPI_MCA_plm': 'isolated', 'OMPI_MCA_btl': 'self'}
    done = subprocess.run([ringscope, 'run', '-o', work / 'said', '--', *program], env=environment,
                          capture_output=True, text=True, check=False, timeout=mpi_run.TIMEOUT_S)
    expect('status', done.returncode, 0)
    expect(f'said in {done.stderr}', 'mpi was used past the tracer' in done.stderr, True)


def check_unused(flavour, library, mpi, run):
    """Launchers and helpers have it mapped, too."""
    script = 'import ctypes, sys; ctypes.CDLL(sys.argv[1])'
    mpi_run.run(flavour, 1, [sys.executable, '-c', script, mpi], preload=[library], folder=run)
    expect('files of a program that only maps it', run.exists(), False)


def main(flavour, program, host, plugin, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    mpi = library_of(program, SONAMES[flavour])
    by_handle = [sys.executable, pathlib.Path(__file__).with_name('by-handle.py'), flavour, mpi]
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        deep = [host, '--deep', plugin]
        mpi_run.run(flavour, RANKS, deep, preload=[library], folder=work / 'deep')
        check_found(ringscope, work / 'deep', mpi)
        mpi_run.run(flavour, RANKS, by_handle, preload=[library], folder=work / 'handle')
        check_found(ringscope, work / 'handle', mpi)
        check_run_says(ringscope, deep, work)
        check_unused(flavour, library, mpi, work / 'unused')
        mpi_run.run(flavour, RANKS, [program], preload=[library], folder=work / 'seen')
        expect('findings of what was seen', findings(ringscope, work / 'seen'), [])


if __name__ == '__main__':
    main(*sys.argv[1:])
