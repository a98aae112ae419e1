# SPDX-License-Identifier: Apache-2.0
"""What a wrapper does from its entry on, by kind: call, leave, write. Each yields C lines."""


def call(op, **instead):
    """The wrapped call, with other arguments where the program ignores what we need."""
    arguments = ', '.join(instead.get(p.role, p.name) for p in op.params)
    yield 'rs_mpi_enter(t, &c);'
    yield f'int result = next({arguments});'


def plain(op):
    yield from call(op)
    yield 'if (rs_mpi_leave(t, &c, result, 0))'
    yield '    rs_commit(t, 1);'


def second(op):
    """A receive side is told only where it differs from the send side."""
    yield from call(op)
    yield 'unsigned ext = rcount != c.count || rtype != type || (c.flags & RS_EVENT_IN_PLACE);'
    yield 'if (rs_mpi_leave(t, &c, result, ext)) {'
    yield '    if (ext)'
    yield '        rs_mpi_put_second(t, 1, -1, rcount, rtype, 0);'
    yield '    rs_commit(t, 1 + ext);'
    yield '}'


def start(op):
    has_second = op.role('recvcount') or op.role('recvcounts')
    if op.role('message'):
        yield f'c.comm = rs_mpi_message_taken(*{op.role("message").name})->id;'
    yield from call(op)
    yield 'unsigned started = result == MPI_SUCCESS;'
    if has_second:
        yield ('unsigned second = rcount != c.count || rtype != type || '
               '(c.flags & RS_EVENT_IN_PLACE);')
    else:
        yield 'const unsigned second = 0;'
    yield 'if (rs_mpi_leave(t, &c, result, started + second)) {'
    yield '    if (started)'
    yield f'        rs_mpi_put_request(t, 1, rs_mpi_handle(*{op.role("request").name}));'
    if has_second:
        yield '    if (second)'
        yield '        rs_mpi_put_second(t, 1 + started, -1, rcount, rtype, 0);'
    yield '    rs_commit(t, 1 + started + second);'
    yield '}'


def substitute_status(op, needed):
    status = op.role('status').name
    yield 'MPI_Status scratch;'
    yield f'MPI_Status *told = {status};'
    yield f'if (told == MPI_STATUS_IGNORE{needed})'
    yield '    told = &scratch;'


def recv(op):
    if op.role('message'):
        message = op.role('message').name
        yield f'struct rs_comm *on = rs_mpi_message_taken(*{message});'
        yield 'c.comm = on->id;'
        yield 'const bool any = true;'
    else:
        yield f'bool any = rs_mpi_is_any({op.role("source").name}, {op.role("tag").name});'
    yield from substitute_status(op, ' && any')
    yield from call(op, status='told')
    yield 'unsigned ext = result == MPI_SUCCESS && told != MPI_STATUS_IGNORE &&'
    yield '               (any || rs_mpi_status_bytes(told) != c.count * type->size_bytes);'
    yield 'if (rs_mpi_leave(t, &c, result, ext)) {'
    yield '    if (ext)'
    yield '        rs_mpi_put_status(t, 1, on, told);'
    yield '    rs_commit(t, 1 + ext);'
    yield '}'


def sendrecv(op):
    source, tag = op.role('source').name, op.role('recvtag').name
    if not op.role('recvcount'):  # MPI_Sendrecv_replace
        yield 'const struct rs_type *rtype = type;'
        yield 'uint64_t rcount = c.count;'
    yield 'uint16_t null_source = 0;'
    yield f'int32_t from = rs_mpi_peer(on, {op.role("comm").name}, {source}, &null_source);'
    yield f'bool any = rs_mpi_is_any({source}, {tag});'
    yield from substitute_status(op, ' && any')
    yield from call(op, status='told')
    yield 'unsigned ext = result == MPI_SUCCESS && any ? 2 : 1;'
    yield 'if (rs_mpi_leave(t, &c, result, ext)) {'
    yield f'    rs_mpi_put_second(t, 1, from, rcount, rtype, {tag});'
    yield '    if (ext == 2)'
    yield '        rs_mpi_put_status(t, 2, on, told);'
    yield '    rs_commit(t, 1 + ext);'
    yield '}'


def probe(op):
    status, flag, message = op.role('status').name, op.role('flag'), op.role('message')
    yield from (substitute_status(op, '') if message else ())
    told = 'told' if message else status
    yield from call(op, status=told)
    found = f' && *{flag.name}' if flag else ''
    yield f'bool found = result == MPI_SUCCESS{found};'
    if message:
        yield 'if (found)'
        yield f'    rs_mpi_message_found(*{message.name}, on);'
    yield f'unsigned ext = found && {told} != MPI_STATUS_IGNORE;'
    yield 'if (rs_mpi_leave(t, &c, result, ext)) {'
    yield '    if (ext)'
    yield f'        rs_mpi_put_status(t, 1, on, {told});'
    yield '    rs_commit(t, 1 + ext);'
    yield '}'


def request(op):
    """MPI_Wait, MPI_Test."""
    flag = op.role('flag')
    yield f'uint64_t before = rs_mpi_handle(*{op.role("request").name});'
    yield from substitute_status(op, '')
    yield from call(op, status='told')
    done = f'result == MPI_SUCCESS && *{flag.name}' if flag else 'true'
    yield f'rs_mpi_leave_done_one(t, &c, result, {done}, before, told);'


def requests(op):
    n, array, flag = op.role('n').name, op.role('requests').name, op.role('flag')
    index, statuses = op.role('index'), op.role('statuses')
    yield f'const uint64_t *before = rs_mpi_save_requests(t, {n}, {array});'
    if statuses:
        yield f'MPI_Status *told = rs_mpi_some_statuses(t, {n}, {statuses.name});'
    else:
        yield from substitute_status(op, '')
    yield from call(op, status='told', statuses='told')
    if index:
        yield f'bool done = result == MPI_SUCCESS && before{f" && *{flag.name}" if flag else ""};'
        yield f'done = done && *{index.name} >= 0 && *{index.name} < {n};'
        yield (f'rs_mpi_leave_done_one(t, &c, result, done, done ? before[*{index.name}] : 0, '
               'told);')
        return
    indices, outcount = op.role('indices'), op.role('outcount')
    count = f'*{outcount.name}' if outcount else n
    done = f'result == MPI_SUCCESS && before{f" && *{flag.name}" if flag else ""}'
    yield (f'rs_mpi_leave_done(t, &c, result, {done} ? {count} : 0, before, '
           f'{indices.name if indices else "NULL"}, told);')


def rma(op):
    """One-sided: what stands at the target follows the event, then a request."""
    request, count, dtype = op.role('request'), op.role('targetcount'), op.role('targetdtype')
    target = dtype.name if dtype else op.role('dtype').name
    yield f'const struct rs_type *there = rs_mpi_dtype(t, {target});'
    yield from call(op)
    yield f'unsigned started = {"result == MPI_SUCCESS" if request else 0};'
    yield 'if (rs_mpi_leave(t, &c, result, 1 + started)) {'
    yield (f'    rs_mpi_put_place(t, 1, {op.role("disp").name}, '
           f'{f"(uint64_t){count.name}" if count else 1}, there->id);')
    if request:
        yield '    if (started)'
        yield f'        rs_mpi_put_request(t, 2, rs_mpi_handle(*{request.name}));'
    yield '    rs_commit(t, 2 + started);'
    yield '}'


def file(op):
    """Files: the offset where one is passed, then a request, or how much moved if not all did."""
    offset, request, status = op.role('offset'), op.role('request'), op.role('status')
    if status:
        yield 'MPI_Status scratch = {0};'
        yield f'MPI_Status *told = {status.name};'
        yield 'if (told == MPI_STATUS_IGNORE)'
        yield '    told = &scratch;'
    yield from call(op, status='told')
    yield f'const unsigned place = {int(offset is not None)};'
    more = '0'
    if request:
        more = 'result == MPI_SUCCESS'
    elif status:
        more = 'result == MPI_SUCCESS'
        if op.role('count'):
            more += ' && rs_mpi_status_bytes(told) != c.count * type->size_bytes'
    yield f'unsigned more = {more};'
    yield 'if (rs_mpi_leave(t, &c, result, place + more)) {'
    if offset:
        yield f'    rs_mpi_put_place(t, 1, {offset.name}, 0, 0);'
    if request:
        yield '    if (more)'
        yield f'        rs_mpi_put_request(t, 1 + place, rs_mpi_handle(*{request.name}));'
    elif status:
        yield '    if (more)'
        yield '        rs_mpi_put_moved(t, 1 + place, told);'
    yield '    rs_commit(t, 1 + place + more);'
    yield '}'


def made(op, api, handle, name):
    yield 'uint32_t child = on->next_child++;'
    yield from plain(op)
    yield 'if (result == MPI_SUCCESS)'
    yield f'    rs_mpi_place_made(t, on, {api}, {handle}, child, {name});'


def freed(op, api, handle):
    yield f'c.comm = rs_mpi_place(t, {api}, {handle})->id;'
    yield f'rs_mpi_place_freed({api}, {handle});'
    yield from plain(op)


def newwin(op):
    yield from made(op, 'RS_COMM_MPI_WINDOW', f'rs_mpi_win_handle(*{op.role("newwin").name})',
                    '"MPI window"')


def freewin(op):
    yield from freed(op, 'RS_COMM_MPI_WINDOW', f'rs_mpi_win_handle(*{op.role("freewin").name})')


def newfile(op):
    yield from made(op, 'RS_COMM_MPI_FILE', f'rs_mpi_file_handle(*{op.role("newfile").name})',
                    op.role('filename').name)


def closefile(op):
    yield from freed(op, 'RS_COMM_MPI_FILE', f'rs_mpi_file_handle(*{op.role("closefile").name})')


def newcomm(op):
    new, partial = op.role('newcomm').name, 'partial' in op.attrs
    colour = op.role('colour').name if op.role('colour') else '0'
    if op.role('stringtag'):
        colour = f'rs_mpi_colour_of({op.role("stringtag").name})'
    how = 'RS_MPI_MADE_BY_ALL'
    if partial:
        how = 'RS_MPI_MADE_BETWEEN' if 'between' in op.attrs else 'RS_MPI_MADE_BY_GROUP'
    if not op.role('comm'):
        yield 'struct rs_comm *on = &rs_mpi_no_comm;'
    yield f'uint32_t child = {"0" if partial else "on->next_child++"};'
    if op.role('request'):
        yield from start(op)
        yield 'if (result == MPI_SUCCESS)'
        yield (f'    rs_mpi_comm_promised(on, {new}, child, '
               f'rs_mpi_handle(*{op.role("request").name}));')
        return
    yield from plain(op)
    yield 'if (result == MPI_SUCCESS)'
    yield f'    rs_mpi_comm_made(t, on, *{new}, {how}, child, {colour});'


def freecomm(op):
    comm = op.role('freecomm').name
    yield f'c.comm = rs_mpi_comm(t, *{comm})->id;'
    yield f'rs_mpi_comm_freed(*{comm});'
    yield from plain(op)


def named(op):
    comm = op.role('named').name
    yield f'c.comm = rs_mpi_comm(t, {comm})->id;'
    yield from plain(op)
    yield 'if (result == MPI_SUCCESS)'
    yield f'    rs_mpi_comm_named(t, {comm});'


def freedtype(op):
    yield f'rs_mpi_type_freed(rs_mpi_handle(*{op.role("freedtype").name}));'
    yield '#if !RS_MPI_IS_OPENMPI'
    yield 'if (rs_mpi_is_own_type_of_fortran(__builtin_return_address(0))) {'
    yield '    rs_thread_kept(t);'
    yield f'    return next({op.arguments});'
    yield '}'
    yield '#endif'
    yield from plain(op)


def freeredop(op):
    yield f'rs_mpi_type_freed(rs_mpi_handle(*{op.role("freeredop").name}));'
    yield from plain(op)


def newsession(op):
    yield from plain(op)
    yield f'rs_mpi_session_made(result, {op.role("newsession").name});'
    yield 'rs_mpi_after_session(t);'


def freesession(op):
    """Its end is MPI's end where it is the last one."""
    yield f'bool last = rs_mpi_session_ends({op.role("freesession").name});'
    yield from plain(op)
    yield 'if (last)'
    yield '    rs_mpi_after_last_session(t);'


def start_op(op):
    """The kind of event that each start of a persistent request leaves."""
    if 'partitioned' in op.attrs:
        return f'RS_OP_MPI_Start_{"precv" if op.role("source") else "psend"}'
    if 'persistent' in op.attrs:
        stem = op.name.removesuffix('_c').removesuffix('_init').partition('_')[2]
        return f'RS_OP_MPI_Start_{stem.lower()}'
    return f'RS_OP_MPI_Start_{"receive" if op.role("source") else "send"}'


def newrequest(op):
    yield from plain(op)
    yield 'if (result == MPI_SUCCESS)'
    yield '    rs_mpi_persistent_made(&(struct rs_mpi_persistent){'
    yield f'        .request = rs_mpi_handle(*{op.role("newrequest").name}), .op = {start_op(op)},'
    if 'persistent' in op.attrs:
        yield '        .on = on, .redop = c.redop,'
    if op.role('recvcount') or op.role('recvcounts'):
        yield '        .second = rcount != c.count || rtype != type || (c.flags & RS_EVENT_IN_PLACE),'
        yield '        .rcount = rcount, .rtype = rtype,'
    yield '        .comm = c.comm, .dtype = c.dtype, .peer = c.peer, .tag = (int32_t)c.seq,'
    yield '        .flags = c.flags, .count = c.count});'


def startrequest(op):
    yield f'uint64_t before = rs_mpi_handle(*{op.role("startrequest").name});'
    yield from call(op)
    yield 'rs_mpi_leave_started(t, &c, result, 1, &before);'


def startrequests(op):
    n, array = op.role('n').name, op.role('startrequests').name
    yield f'const uint64_t *before = rs_mpi_save_requests(t, {n}, {array});'
    yield from call(op)
    yield f'rs_mpi_leave_started(t, &c, result, before ? {n} : 0, before);'


def init(op):
    yield from plain(op)
    yield 'if (result == MPI_SUCCESS)'
    yield '    rs_mpi_after_init(t);'


def abort(op):
    yield 'rs_mpi_enter(t, &c);'
    yield 'rs_mpi_before_abort();'
    yield f'int result = next({op.arguments});'
    yield 'if (rs_mpi_leave(t, &c, result, 0))'
    yield '    rs_commit(t, 1);'


CALLS = {f.__name__: f for f in (
    plain, second, start, recv, sendrecv, probe, request, requests, newsession,
    freesession, newcomm, freecomm, named, rma, file, newwin, freewin, newfile, closefile, freedtype,
    freeredop, newrequest, startrequest, startrequests, init, abort)}
