#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the headers declare is what the stand-ins export, and the other way round; where the vendor's
headers and libraries are, nothing of theirs is missing but what is explained here.

hostnccl-exports.py LIBNCCL LIBCUDART OWN_INCLUDE CC [CFLAGS...]     (CFLAGS lead to the vendor's)
"""

import glob
import re
import subprocess
import sys

# The vendor's NCCL has these and hostnccl hasn't: they give a kernel what it needs (nccl_device.h),
# and no kernel runs here. ncclDevCommCreate, without which none of them is of use, is refused.
REFUSED = {
    'GinBarrierCreateRequirement', 'LLA2ACalcSlots', 'LLA2ACreateRequirement',
    'LsaBarrierCreateRequirement', 'TeamLsa', 'TeamRail', 'TeamRankToLsa', 'TeamRankToWorld',
    'TeamWorld',
}
INTERNAL = {'ncclResetDebugInitInternal'}  # no header has it
OWN = {'hostnccl_standin'}
UNDECLARED = {'DevCommCreate', 'DevCommDestroy'}  # in the vendor's nccl_device.h alone

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def exports(library):
    """Name to nm's letter."""
    out = subprocess.run(['nm', '-D', '--defined-only', library], check=True, text=True,
                         capture_output=True).stdout
    return {line.split()[-1].split('@')[0]: line.split()[-2] for line in out.splitlines()}


def declares(header, pattern, cc):
    """The functions that a header declares; None: there is no such header."""
    run = subprocess.run(cc + ['-E', '-P', '-x', 'c', '-'], input=f'#include <{header}>\n',
                         text=True, capture_output=True)
    return set(re.findall(rf'\b({pattern})\s*\(', run.stdout)) if run.returncode == 0 else None


def nccl(library, own_include, cc):
    has = exports(library)
    own = declares('nccl.h', 'p?nccl[A-Z]\\w*', [cc[0], '-I' + own_include])
    vendors = declares('nccl.h', 'p?nccl[A-Z]\\w*', cc)
    check(len(own) > 80, f'{len(own)} functions found in nccl.h')
    for name in sorted(own | (vendors or set())):
        check(name in has, f'{name} is declared, and not exported by {library}')
    for name in sorted(own ^ (vendors or own)):
        check(False, f'{name} is in one nccl.h and not in the other')
    for name, letter in sorted(has.items()):
        base = name.removeprefix('p').removeprefix('nccl')
        check(name in own or name in OWN or base in UNDECLARED,
              f'{name} is exported by {library}, and not declared')
        if name not in OWN:
            check(letter == ('T' if name.startswith('p') else 'W'), f'{name} is {letter}')
            check('p' + name in has or name.startswith('p'), f'p{name} is not there')
    for library in sorted(glob.glob('/usr/local/cuda*/lib*/libnccl.so')) if vendors else []:
        missing = set(exports(library)) - set(has) - INTERNAL
        refused = {prefix + name for name in REFUSED for prefix in ('nccl', 'pnccl')}
        for name in sorted(missing - refused):
            check(False, f'{library} exports {name}: hostnccl has it not, and nothing says why')
        for name in sorted(refused & set(has)):
            check(False, f'{name} is said to be refused, and is there')
    return vendors is not None


def cuda(library, own_include, cc):
    has = {name for name in exports(library) if name.startswith('cuda')}
    own = declares('cuda_runtime_api.h', 'cuda[A-Z]\\w*', [cc[0], '-I' + own_include])
    vendors = declares('cuda_runtime_api.h', 'cuda[A-Z]\\w*', cc)
    for name in sorted(own ^ has):
        check(False, f'{name} is declared or exported by hostcudart, not both')
    for name in sorted(own - (vendors or own)):
        check(False, f"{name} is not in the vendor's cuda_runtime_api.h")


def main():
    library_nccl, library_cudart, own_include, cc = *sys.argv[1:4], sys.argv[4:]
    found = nccl(library_nccl, own_include, cc)
    cuda(library_cudart, own_include, cc)
    print("the vendor's headers:", 'compared' if found else 'not here')
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
