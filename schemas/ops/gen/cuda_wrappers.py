# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime's wrappers (cuda-wrappers.c), of what tracer/cuda/waits.h and captures.h offer."""


def passed(op):
    yield f'{op.ret} result = next({op.arguments});'
    yield f'rs_hook_{op.name}(result, {op.arguments});'
    yield 'return result;'


def recorded(op):
    yield 'struct rs_thread *t = rs_cuda_recording();'
    yield 'if (!t)'
    yield f'    return next({op.arguments});'
    yield f'uint64_t start = rs_call_enter(t, RS_OP_{op.name}, 0, 0, -1, 0, 0);'
    yield f'{op.ret} result = next({op.arguments});'
    yield f'rs_cuda_waited(t, RS_OP_{op.name}, start, result != 0);'
    yield 'return result;'


def emit_wrapper(op):
    types = ', '.join(p.ctype for p in op.params) or 'void'
    yield f'RS_EXPORT {op.ret} {op.name}({op.declarations})'
    yield '{'
    yield f'    static {op.ret} (*real)({types});'
    yield f'    {op.ret} (*next)({types}) ='
    yield f'        rs_cuda_function((void **)&real, "{op.name}", RS_OP_{op.name});'
    yield '    if (RS_UNLIKELY(!next))'
    yield '        return RS_CUDA_ERROR_UNKNOWN;'
    lines = passed(op) if 'pass' in op.attrs else recorded(op)
    yield from (f'    {line}' for line in lines)
    yield '}'
    yield ''


def emit_wrappers(ops):
    yield '#include "cuda/captures.h"'
    yield '#include "cuda/waits.h"'
    yield '#include "ops-numbers.h"'
    yield ''
    yield '/* The exported functions are declared by no header of ours. */'
    yield '#pragma GCC diagnostic ignored "-Wmissing-prototypes"'
    yield ''
    for op in ops:
        yield from emit_wrapper(op)
