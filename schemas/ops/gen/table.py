# SPDX-License-Identifier: Apache-2.0
"""The operation table (ops-table.c) and the numbers (ops-numbers.h): see ../../ops.h."""


def api_of(op):
    prefixes = {'nccl': 'NCCL', 'cuda': 'CUDA', 'gloo': 'GLOO'}
    return prefixes.get(op.name[:4], 'MPI')


def row(op):
    return (f'    {{{op.number}, RS_API_{api_of(op)}, RS_CLASS_{op.klass.upper()}, '
            f'RS_COLL_{op.coll.upper()}, {int("vector" in op.attrs)}, "{op.name}"}},')


def emit_table(ops):
    yield '#include "ops.h"'
    yield ''
    yield 'const struct rs_op_info rs_op_table[] = {'
    yield from map(row, ops)
    yield '};'
    yield 'const size_t rs_op_table_len = sizeof rs_op_table / sizeof *rs_op_table;'


def emit_numbers(ops):
    yield '#ifndef RS_OPS_NUMBERS_H'
    yield '#define RS_OPS_NUMBERS_H'
    yield ''
    yield 'enum rs_op_number {'
    for op in ops:
        yield f'    RS_OP_{op.name} = {op.number},'
    yield '};'
    yield ''
    yield '#endif'
