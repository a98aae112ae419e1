# SPDX-License-Identifier: Apache-2.0
"""The preloaded library's side of MPI: exported jumps (mpi-stubs.S) and their names (mpi-names.c)."""


def emit_stubs(ops):
    yield '#include "stubs.inc"'
    yield '    BEGIN_STUBS'
    for i, op in enumerate(ops):
        yield f'    STUB {op.name}, {i}, {2 * i}, {2 * i + 1}'
    yield f'    END_STUBS {len(ops)}'


def emit_names(ops):
    yield '#include "front.h"'
    yield '#include "ops-numbers.h"'
    yield ''
    yield 'const struct rs_mpi_front_name rs_mpi_front_names[] = {'
    for op in ops:
        zero = int('pass' in op.attrs and op.role('flag') is not None)
        yield f'    {{"{op.name}", RS_OP_{op.name}, {zero}}},'
    yield '};'
    yield f'const unsigned rs_mpi_front_count = {len(ops)};'
