# SPDX-License-Identifier: Apache-2.0
"""Reads *.api: one line, one wrapped function (syntax: ../README.md)."""
import re

CLASSES = ['other', 'coll', 'coll_start', 'send', 'send_start', 'recv', 'recv_start', 'sendrecv',
           'probe', 'complete', 'comm', 'group', 'env', 'rma', 'sync', 'file']
COLLS = ['none', 'allreduce', 'reduce', 'broadcast', 'allgather', 'reduce_scatter', 'alltoall',
         'gather', 'scatter', 'barrier', 'scan']

LINE = re.compile(r'^(\d+)\s+(\w+)(?:/(\w+))?((?:\+[\w.=]+)*)\s+(.+?)\s*\b(\w+)\((.*)\)$')
PARAM = re.compile(r'^(?P<type>.*?)(?P<name>\w+)(?P<array>(?:\[\d*\])*)\s*:(?P<role>[\w-]+)$')


class ApiError(Exception):
    """A line that can't be read; its text names file and line."""


class Param:
    def __init__(self, ctype, name, array, role):
        self.ctype, self.name, self.array, self.role = ctype, name, array, role

    @property
    def declaration(self):
        gap = '' if self.ctype.endswith('*') else ' '
        return f'{self.ctype}{gap}{self.name}{self.array}'


class Op:
    def __init__(self, number, klass, coll, attrs, ret, name, params):
        self.number, self.klass, self.coll, self.attrs = number, klass, coll, attrs
        self.ret, self.name, self.params = ret, name, params

    def role(self, role):
        """The parameter with this role, None without."""
        return next((p for p in self.params if p.role == role), None)

    @property
    def declarations(self):
        return ', '.join(p.declaration for p in self.params) or 'void'

    @property
    def arguments(self):
        return ', '.join(p.name for p in self.params)


def split_params(text):
    return [p.strip() for p in text.split(',') if p.strip() not in ('', 'void')]


def parse_param(text):
    m = PARAM.match(text)
    if not m:
        raise ApiError(f'parameter without a role: {text!r}')
    return Param(m['type'].strip(), m['name'], m['array'], m['role'])


def parse_attrs(text):
    pairs = (a.partition('=') for a in text.split('+') if a)
    return {name: value or True for name, _, value in pairs}


def parse_line(line):
    m = LINE.match(line)
    if not m:
        raise ApiError('expected NUMBER CLASS[/COLL][+ATTR] RETURN NAME(PARAMETERS)')
    number, klass, coll = int(m[1]), m[2], m[3] or 'none'
    if not 64 <= number < 0xff00:
        raise ApiError(f'number {number} is not in 64..65279')
    if klass not in CLASSES or coll not in COLLS:
        raise ApiError(f'unknown class or collective: {klass}/{coll}')
    params = [parse_param(p) for p in split_params(m[7])]
    return Op(number, klass, coll, parse_attrs(m[4]), m[5], m[6], params)


def joined_lines(path):
    """(line number, text) with comments gone and lines that go on in parentheses joined."""
    pending, first = '', 0
    with open(path, encoding='utf-8') as f:
        for number, raw in enumerate(f, 1):
            text = raw.split('#')[0].strip()
            if not text:
                continue
            pending, first = (f'{pending} {text}', first) if pending else (text, number)
            if pending.count('(') == pending.count(')'):
                yield first, pending
                pending = ''
    if pending:
        yield first, pending


def parse_file(path):
    ops = []
    for number, text in joined_lines(path):
        try:
            ops.append(parse_line(text))
        except ApiError as e:
            raise ApiError(f'{path}:{number}: {e}') from None
    return ops


def parse_files(paths):
    """All operations by number; numbers and names must be unique."""
    ops = sorted((op for path in paths for op in parse_file(path)), key=lambda op: op.number)
    for a, b in zip(ops, ops[1:]):
        if a.number == b.number:
            raise ApiError(f'{a.name} and {b.name} have the number {a.number}')
    if len({op.name for op in ops}) != len(ops):
        raise ApiError('a function stands in two lines')
    return ops
