# SPDX-License-Identifier: Apache-2.0
"""An MPI under another name, loaded into no global scope: it is found and traced all the same.

    test-other-names.py FLAVOUR PROGRAM HOST PLUGIN LIBRARY RINGSCOPE

PROGRAM tells which MPI library it uses. A copy of that library gets another file name, and MPICH's
another soname too (Open MPI's own components ask for its soname).
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import mpi_run
from mpi_run import expect

RANKS = 2
CALLS = {'MPI_Init': 1, 'MPI_Allreduce': 5, 'MPI_Barrier': 2, 'MPI_Finalize': 1}
SONAMES = {'mpich': (b'libmpich.so.12', b'liblocal.so.12'), 'openmpi': (b'libmpi.so.40',) * 2}


def mpi_library(program, soname):
    out = subprocess.run(['ldd', program], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(rf'{re.escape(soname)} => (\S+)', out)[1]


def copy_renamed(source, target, old, new):
    data = pathlib.Path(source).read_bytes()
    if old not in data or len(old) != len(new):
        sys.exit(f'{source} does not hold its soname {old}')
    target.write_bytes(data.replace(old + b'\0', new + b'\0'))


def main(flavour, program, host, plugin, library, ringscope):
    mpi_run.launcher_or_skip(flavour)
    old, new = SONAMES[flavour]
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        source = mpi_library(program, old.decode())
        copy_renamed(source, work / 'other-name.so', old, new)
        copy_renamed(plugin, work / 'plugin.so', old, new)
        run = work / 'run'
        mpi_run.run(flavour, RANKS, [host, work / 'other-name.so', work / 'plugin.so'],
                    preload=[library], folder=run)
        sqlite = mpi_run.merge(ringscope, run)
        expect('recorded', mpi_run.recorded_calls(ringscope, sqlite),
               {r: CALLS for r in range(RANKS)})


if __name__ == '__main__':
    main(*sys.argv[1:])
