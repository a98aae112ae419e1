# SPDX-License-Identifier: Apache-2.0
"""The wrappers of a back end (mpi-wrappers.c), made of what tracer/mpi/record.h offers."""
from mpi_calls import CALLS

STARTS = ('coll_start', 'send_start', 'recv_start')
PLACES = {'comm': 'rs_mpi_comm', 'win': 'rs_mpi_win', 'file': 'rs_mpi_file'}


def guard(op):
    if op.name.startswith('MPIX_'):
        return '#if RS_MPI_IS_OPENMPI && defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)'
    return {'mpich': '#if !RS_MPI_IS_OPENMPI && MPI_VERSION >= 4',
            'openmpi': '#if RS_MPI_IS_OPENMPI'}.get(op.attrs.get('only'))


def is_collective(op):
    return op.klass.startswith('coll') or 'persistent' in op.attrs


def is_large(op):
    return any(p.ctype.endswith('MPI_Count') for p in op.params)


def total(op, counts, types):
    """The sum of a -v or -w form's counts; of bytes where each has a type of its own."""
    where = op.role('comm').name
    if 'neighbor' in op.attrs:
        n = f'rs_mpi_neighbors(t, {where}, {"true" if counts.role == "counts" else "false"})'
    elif op.coll == 'reduce_scatter':
        n = f'rs_mpi_contributing(t, on, {where})'
    else:
        n = f'rs_mpi_addressed(t, on, {where})'
    large = '_c' if is_large(op) else ''
    if types:
        return f'rs_mpi_sum_bytes{large}(t, {counts.name}, {types.name}, {n})'
    return f'rs_mpi_sum_counts{large}({counts.name}, {n})'


def in_place(op):
    buffers = [op.role(r) for r in ('send', 'recv') if op.role(r)]
    if not is_collective(op) or len(buffers) < 2:
        return None
    return ' || '.join(f'{b.name} == MPI_IN_PLACE' for b in buffers)


def rooted(op, expression):
    return f'rs_mpi_is_root(on, {op.role("root").name}) ? {expression} : 0'


def before_place(op):
    """Communicator, window or file."""
    for role, find in PLACES.items():
        if op.role(role):
            yield f'struct rs_comm *on = {find}(t, {op.role(role).name});'
            yield 'c.comm = on->id;'


NO_TYPE = 'rs_mpi_predefined.dtype_null'


def own_type(op):
    """The type that this rank's event names. A rank may pass anything for a type that MPI does not
    look at: of the side that it has not, or that is in place. The library must not be asked for it."""
    dtype, rtype, root = op.role('dtype'), op.role('recvdtype'), op.role('root')
    if not dtype:
        return 'rs_mpi_predefined.byte'
    if not is_collective(op) or 'neighbor' in op.attrs:
        return dtype.name
    if not rtype:  # an intercommunicator's root has neighbours that take no part
        return f'{root.name} == MPI_PROC_NULL ? {NO_TYPE} : {dtype.name}' if root else dtype.name
    in_place = {p.role: f'{p.name} == MPI_IN_PLACE' for p in op.params if p.role in ('send', 'recv')}
    if not root:
        return f'{in_place["send"]} ? {rtype.name} : {dtype.name}'
    at_root = f'rs_mpi_is_root(on, {root.name})'
    if op.coll == 'scatter':
        return (f'{at_root} ? {dtype.name} : {root.name} < 0 || {in_place["recv"]} ? {NO_TYPE} : '
                f'{rtype.name}')
    return (f'{root.name} >= 0 && !({in_place["send"]}) ? {dtype.name} : {at_root} ? {rtype.name} : '
            f'{NO_TYPE}')


def has_receive_side(op):
    """Whether this rank's receive count and type are looked at; None: on all ranks."""
    root = op.role('root')
    if not root or not is_collective(op):
        return None
    if op.coll == 'scatter':
        return f'{root.name} >= 0 && {op.role("recv").name} != MPI_IN_PLACE'
    return f'rs_mpi_is_root(on, {root.name})'


def before_sizes(op):
    """Type, count."""
    types, dtype, counts = op.role('dtypes'), op.role('dtype'), op.role('counts')
    if dtype or types:
        yield f'const struct rs_type *type = rs_mpi_dtype(t, {own_type(op)});'
        yield 'c.dtype = type->id;'
    if op.role('redop'):
        yield f'c.redop = rs_mpi_redop(t, {op.role("redop").name})->id;'
    if in_place(op):
        yield f'c.flags = {in_place(op)} ? RS_EVENT_IN_PLACE : 0;'
    if op.role('count'):
        count = f'(uint64_t){op.role("count").name}'
        if op.coll == 'scatter':
            count = (f'rs_mpi_is_root(on, {op.role("root").name}) ? {count} : '
                     f'(uint64_t){op.role("recvcount").name}')
        if op.role('partitions'):
            count += f' * (uint64_t){op.role("partitions").name}'
        yield f'c.count = {count};'
    elif op.klass == 'rma':
        yield 'c.count = 1;'
    if op.role('bytes'):
        yield f'c.count = (uint64_t){op.role("bytes").name};'
        yield 'c.dtype = rs_mpi_dtype(t, rs_mpi_predefined.byte)->id;'
    if counts:
        sum_ = total(op, counts, types)
        if 'rooted' in op.attrs:
            sum_ = rooted(op, sum_)
        elif op.role('recvcounts'):  # the send side does not count in place
            sum_ = f'{op.role("send").name} == MPI_IN_PLACE ? 0 : {sum_}'
        yield f'c.count = {sum_};'


def before_second(op):
    """The receive side, where it has a size of its own."""
    one, many = op.role('recvcount'), op.role('recvcounts')
    if not one and not many:
        return
    rtype, here = op.role('recvdtype'), has_receive_side(op)
    if rtype:
        find = f'rs_mpi_dtype(t, {rtype.name})'
        yield f'const struct rs_type *rtype = {f"{here} ? {find} : type" if here else find};'
    else:
        yield 'const struct rs_type *rtype = type;'
    if one:
        count = f'(uint64_t){one.name}'
        yield f'uint64_t rcount = {f"{here} ? {count} : c.count" if here else count};'
    else:
        sum_ = total(op, many, op.role('recvdtypes'))
        # A gather's root alone has receive counts.
        yield f'uint64_t rcount = {rooted(op, sum_) if "rooted" in op.attrs else sum_};'


def before_peer(op):
    comm = op.role('comm')
    peer = op.role('dest') or op.role('source')
    if peer and comm:
        yield f'c.peer = rs_mpi_peer(on, {comm.name}, {peer.name}, &c.flags);'
    if op.role('target'):
        yield f'c.peer = rs_mpi_target({op.role("target").name}, &c.flags);'
    if op.role('root'):
        root = op.role('root').name
        yield f'c.peer = {root} < 0 ? -1 : {root};'
    if op.role('tag'):
        yield f'c.seq = (uint32_t){op.role("tag").name};'
    if op.role('fence'):  # one that ends no epoch waits for nobody, on any rank
        yield f'if ({op.role("fence").name} & MPI_MODE_NOPRECEDE)'
        yield '    c.flags |= RS_EVENT_NO_SEQ;'
        yield 'else'
        yield '    c.seq = on->next_seq++;'
    elif op.klass.startswith('coll'):
        yield 'c.seq = on->next_seq++;'


def before(op):
    yield from before_place(op)
    yield from before_sizes(op)
    yield from before_second(op)
    yield from before_peer(op)


def body(op):
    """(lines after the check that this call is recorded)"""
    yield f'struct rs_mpi_call c = {{.op = RS_OP_{op.name}, .peer = -1}};'
    yield from before(op)
    yield from CALLS[kind(op)](op)
    if may_keep(op):
        yield 'rs_thread_kept(t);'
    yield 'return result;'


def kind(op):
    if 'init' in op.attrs or 'abort' in op.attrs:
        return 'init' if 'init' in op.attrs else 'abort'
    for role in ('newsession', 'freesession', 'newcomm', 'freecomm', 'newwin', 'freewin', 'newfile', 'closefile', 'named',
                 'freedtype', 'freeredop', 'newrequest', 'startrequest', 'startrequests',
                 'requests'):
        if op.role(role):
            return role
    if op.klass == 'complete':
        return 'request'
    if op.klass in STARTS:
        return 'start'
    if op.klass in ('recv', 'probe', 'sendrecv', 'rma', 'file'):
        return op.klass
    return 'second' if op.role('recvcount') or op.role('recvcounts') else 'plain'


def unrecorded(op):
    """The call alone; but that there is a session must be known whenever recording begins."""
    if op.role('newsession'):
        return f'rs_mpi_session_made(next({op.arguments}), {op.role("newsession").name})'
    if op.role('freesession'):
        return f'(rs_mpi_session_ends({op.role("freesession").name}), next({op.arguments}))'
    return f'next({op.arguments})'


HANDLES = ('init', 'abort', 'newcomm', 'freecomm', 'newwin', 'freewin', 'newfile', 'closefile', 'named',
           'freedtype', 'freeredop', 'newrequest', 'startrequest', 'startrequests')


def keeps(op):
    return kind(op) in HANDLES or bool(op.role('message'))


def may_keep(op):
    return keeps(op) or op.klass == 'complete'


def numbers(op):
    return bool(op.role('fence')) or op.klass.startswith('coll')


def while_off(op):
    """What is left to do where capture is switched off: what a later record depends on. Others' calls
    must come to the same numbers, whoever is switched when."""
    if keeps(op):
        yield 't = rs_thread_if_keeping();'
        yield 'if (!t)'
        yield f'    return {unrecorded(op)};'
    elif op.klass == 'complete':
        yield 't = rs_mpi_promises ? rs_thread_if_keeping() : NULL;'
        yield 'if (!t)'
        yield f'    return {unrecorded(op)};'
    elif numbers(op):
        role, find = next((r, f) for r, f in PLACES.items() if op.role(r))
        fence = f' && !({op.role("fence").name} & MPI_MODE_NOPRECEDE)' if op.role('fence') else ''
        yield 't = rs_thread_if_off();'
        yield f'if (t{fence})'
        yield f'    {find}(t, {op.role(role).name})->next_seq++;'
        yield 'if (t)'
        yield '    t->depth++;'
        yield f'int result = next({op.arguments});'
        yield 'if (t)'
        yield '    t->depth--;'
        yield 'return result;'
    else:
        yield f'return {unrecorded(op)};'


def emit_wrapper(op):
    if guard(op):
        yield guard(op)
    yield (f'RS_INLINE int call_{op.name}(__typeof__(&{op.name}) next'
           f'{", " if op.params else ""}{op.declarations if op.params else ""})')
    yield '{'
    yield '    struct rs_thread *t = rs_thread_if_recording();'
    yield '    if (RS_UNLIKELY(!t)) {'
    yield from (f'        {line}' for line in while_off(op))
    yield '    }'
    for line in body(op):
        yield line if line.startswith('#') else '    ' + line
    yield '}'
    for entry, target in (('mpi', 'next'), ('pmpi', 'real')):
        yield f'static int {entry}_{op.name}({op.declarations})'
        yield '{'
        arguments = f', {op.arguments}' if op.params else ''
        yield (f'    return call_{op.name}((__typeof__(&{op.name}))'
               f'rs_targets[FUNCTION_{op.name}].{target}{arguments});')
        yield '}'
    if guard(op):
        yield '#endif'
    yield ''


def emit_entry(op):
    if 'pass' in op.attrs:
        yield f'    {{NULL, NULL}}, /* {op.name} */'
        return
    entry = f'    {{(void *)mpi_{op.name}, (void *)pmpi_{op.name}}},'
    if guard(op):
        yield from (guard(op), entry, '#else', '    {NULL, NULL},', '#endif')
    else:
        yield entry


def emit_wrappers(ops):
    yield '#include "wrappers.h"'
    yield '#include "fortran.h"'
    yield '#include "ops-numbers.h"'
    yield '#include "record.h"'
    yield ''
    yield 'enum {'
    for op in ops:
        yield f'    FUNCTION_{op.name},'
    yield '    FUNCTIONS'
    yield '};'
    yield 'static struct rs_mpi_target rs_targets[FUNCTIONS];'
    yield ''
    for op in ops:
        if 'pass' not in op.attrs:
            yield from emit_wrapper(op)
    yield 'static const struct rs_mpi_wrapper wrappers[FUNCTIONS] = {'
    for op in ops:
        yield from emit_entry(op)
    yield '};'
    yield ''
    yield 'const struct rs_mpi_back rs_mpi_wrappers = {wrappers, rs_targets};'
    yield 'const unsigned rs_mpi_wrapper_count = FUNCTIONS;'
