# SPDX-License-Identifier: Apache-2.0
"""What the preloaded library exports is what the tables wrap, and a few life-cycle functions:

    test-exports.py SOURCE_ROOT LIBRARY [BACK_END...]

A back end exports its init alone and links to no MPI.
"""
import pathlib
import re
import subprocess
import sys

# ends of a process that no destructor sees
LIFE = {'_exit', '_Exit', 'execl', 'execle', 'execlp', 'execv', 'execve', 'execveat', 'execvp',
        'execvpe', 'fexecve', 'abort',
        'quick_exit', 'posix_spawn', 'posix_spawnp', 'fork', 'vfork'}
# file I/O: the C library's names, 64-bit and fortified ones too
IO = re.compile(r'^(creat(64)?|(__)?(p?read(64)?(_chk)?|open(at)?(64)?(_2)?)|p?write(64)?|p?(read|write)v(64)?|'
                r'fsync|fdatasync|fopen(64)?|(__)?fread(_chk)?|fwrite|fflush)$')
# Gloo's C++ functions, wrapped by hand
GLOO = re.compile(r'^_ZNK?4gloo')
OTHERS = re.compile(r'^(InitializeInjection|InitializeInjectionNvtx(2|Extension)?|ncclProfiler_v[1-6]|ringscope_marks_v1)$')


def symbols(library, *options):
    lines = subprocess.run(['nm', '-D', *options, library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return {line.split()[-1].split('@')[0] for line in lines if line.strip()}


def wrapped(root):
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / 'schemas/ops/gen'))
    import parse
    for op in parse.parse_files(sorted((root / 'schemas/ops').glob('*.api'))):
        if 'record' in op.attrs:
            continue
        yield op.name
        if op.name.startswith(('MPI_', 'MPIX_')):
            yield 'P' + op.name


def faults(root, library, back_ends):
    exported, tables = symbols(library, '--defined-only'), set(wrapped(root))
    profiling = {'p' + s for s in tables if s.startswith('nccl')}  # may be
    stray = {s for s in exported - tables - profiling - LIFE if not OTHERS.match(s) and not IO.match(s) and not GLOO.match(s)}
    for name in sorted(stray):
        yield f'{library} exports {name}, which no table wraps'
    for name in sorted(tables - exported):
        yield f'{library} does not export {name}'
    for back_end in back_ends:
        if symbols(back_end, '--defined-only') != {'rs_mpi_back_init'}:
            yield f'{back_end} exports more than its init'
        for name in sorted(symbols(back_end, '--undefined-only')):
            if re.match(r'P?MPI_|ompi_', name):
                yield f'{back_end} needs {name}'


def main(root, library, *back_ends):
    found = list(faults(pathlib.Path(root), library, back_ends))
    print('\n'.join(found))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
