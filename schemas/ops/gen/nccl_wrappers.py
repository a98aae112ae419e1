# SPDX-License-Identifier: Apache-2.0
"""NCCL's wrappers (nccl-wrappers.c), of what tracer/nccl/record.h offers, and its prototypes."""

OPERATIONS = ('coll', 'send', 'recv')
ENDS = {'ncclGroupEnd': 'rs_nccl_group_end', 'ncclGroupSimulateEnd': 'rs_nccl_group_simulate_end'}


def buffers(op):
    both = op.role('buf')
    send, recv = op.role('send') or both, op.role('recv') or both
    yield from (f'.send = {send.name}',) if send else ()
    yield from (f'.recv = {recv.name}',) if recv else ()


def fields(op):
    """Initialisers of struct rs_nccl_call that the parameters give as they are."""
    yield f'.op = RS_OP_{op.name}'
    peer = op.role('root') or op.role('dest') or op.role('source')
    yield f'.peer = {peer.name if peer else -1}'
    if op.klass not in OPERATIONS:
        return
    yield f'.count = {op.role("count").name}'
    yield from buffers(op)
    yield f'.stream = {op.role("stream").name}'


def before(op):
    comm, free = op.role('comm'), op.role('freecomm')
    if comm or free:
        # Others may be called while it is in progress or broken: then it may not be asked.
        find = 'rs_nccl_comm' if op.klass in OPERATIONS or 'hook' in op.attrs else 'rs_nccl_known'
        yield f'c.on = {find}(t, {(comm or free).name});'
    if free:
        yield f'rs_nccl_comm_freed({free.name});'
    if op.klass in OPERATIONS:
        yield f'rs_nccl_typed(&c, {op.role("dtype").name});'
    if op.role('redop'):
        yield f'rs_nccl_reduces(&c, {op.role("redop").name});'
    if op.klass == 'coll':
        yield 'rs_nccl_number(&c);'


def leave(op):
    if op.name in ENDS:
        return f'{ENDS[op.name]}(t, &c, result);'
    if op.klass in OPERATIONS:
        return 'rs_nccl_leave_operation(t, &c, result);'
    return 'rs_nccl_leave(t, &c, result);'


def while_off(op):
    """What is left to do where capture is switched off: numbers and handles go on. In a group an
    operation goes the whole way, so that what it is told in place of its end finds its number."""
    arguments = op.arguments
    if op.name in ENDS:
        yield 't = rs_nccl_waiting(0) ? rs_nccl_keeping() : NULL;'
    elif op.klass in OPERATIONS:
        yield 't = rs_nccl_in_group() ? rs_nccl_keeping() : NULL;'
    elif 'hook' in op.attrs or op.role('freecomm'):
        yield 't = rs_nccl_keeping();'
    if op.klass == 'coll':
        yield 'struct rs_thread *off = t ? NULL : rs_nccl_off();'
        yield 'if (off) {'
        yield f'    struct rs_comm *on = rs_nccl_comm(off, {op.role("comm").name});'
        yield '    uint32_t number = on ? on->next_seq++ : 0;'
        yield '    off->depth++;'
        yield f'    ncclResult_t result = next({arguments});'
        yield '    off->depth--;'
        yield '    rs_nccl_off_ended(on, number, result);'
        yield '    return result;'
        yield '}'
    yield 'if (!t)'
    yield f'    return next({arguments});'


def recorded(op):
    yield 'struct rs_thread *t = rs_nccl_recording();'
    if op.name in ENDS:
        yield 'rs_nccl_group_depth(-1);'
    if op.name == 'ncclGroupStart':
        yield 'rs_nccl_group_depth(1);'
    yield 'if (RS_UNLIKELY(!t)) {'
    yield from (f'    {line}' for line in while_off(op))
    yield '}'
    yield f'struct rs_nccl_call c = {{{", ".join(fields(op))}}};'
    yield from before(op)
    yield 'rs_nccl_enter(t, &c);'
    yield f'ncclResult_t result = next({op.arguments});'
    yield leave(op)
    if 'hook' in op.attrs:
        yield f'rs_hook_{op.name}(t, result, {op.arguments});'
    yield 'rs_thread_kept(t);'
    yield 'return result;'


def emit_wrapper(op):
    types = ', '.join(f'{p.ctype}{p.array}' for p in op.params) or 'void'
    yield f'RS_EXPORT {op.ret} {op.name}({op.declarations})'
    yield '{'
    yield f'    {op.ret} (*next)({types}) = RS_NCCL_NEXT({op.name});'
    yield '    if (RS_UNLIKELY(!next))'
    yield '        return RS_NCCL_INTERNAL_ERROR;'
    lines = [f'return next({op.arguments});'] if 'pass' in op.attrs else recorded(op)
    yield from (f'    {line}' for line in lines)
    yield '}'
    yield ''


def emit_wrappers(ops):
    yield '#include "nccl/hooks.h"'
    yield '#include "nccl/library.h"'
    yield '#include "ops-numbers.h"'
    yield '#include "nccl/record.h"'
    yield ''
    yield '/* The exported functions are declared by no header of ours. */'
    yield '#pragma GCC diagnostic ignored "-Wmissing-prototypes"'
    yield ''
    yield 'enum {'
    yield from (f'    FUNCTION_{op.name},' for op in ops)
    yield '    FUNCTIONS'
    yield '};'
    yield 'static void *targets[FUNCTIONS];'
    yield ('#define RS_NCCL_NEXT(name) \\')
    yield ('    rs_nccl_function(&targets[FUNCTION_##name], #name, RS_OP_##name)')
    yield ''
    for op in ops:
        yield from emit_wrapper(op)


def emit_prototypes(ops):
    """For a test that has the vendor's header: a difference is a conflicting declaration."""
    for op in ops:
        yield f'{op.ret} {op.name}({op.declarations});'
