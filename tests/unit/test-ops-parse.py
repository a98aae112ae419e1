# SPDX-License-Identifier: Apache-2.0
"""The reader of the operation tables: test-ops-parse.py SOURCE_ROOT"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / 'schemas/ops/gen'))
import mpi_wrappers  # noqa: E402
import parse  # noqa: E402


def parse_text(text):
    with tempfile.NamedTemporaryFile('w', suffix='.api') as f:
        f.write(text)
        f.flush()
        return parse.parse_files([f.name])


class Parse(unittest.TestCase):
    def refused(self, text, words):
        with self.assertRaises(parse.ApiError) as caught:
            parse_text(text)
        self.assertIn(words, str(caught.exception))

    def test_line_all_parts_are_read(self):
        [op] = parse_text('''
            # a comment
            70 coll/gather+vector+only=mpich  int MPI_X(const void *buf:send, # goes on
                const int counts[]:counts, int ranges[][3]:-, MPI_Comm comm:comm)''')
        self.assertEqual((op.number, op.klass, op.coll, op.ret, op.name),
                         (70, 'coll', 'gather', 'int', 'MPI_X'))
        self.assertEqual(op.attrs, {'vector': True, 'only': 'mpich'})
        self.assertEqual(op.declarations, 'const void *buf, const int counts[], '
                         'int ranges[][3], MPI_Comm comm')
        self.assertEqual(op.arguments, 'buf, counts, ranges, comm')
        self.assertEqual(op.role('comm').name, 'comm')
        self.assertIsNone(op.role('root'))

    def test_line_without_parameters_is_void(self):
        [op] = parse_text('102 env int MPI_Finalize(void)')
        self.assertEqual((op.declarations, op.arguments), ('void', ''))

    def test_files_come_sorted_by_number(self):
        ops = parse_text('80 env int B(void)\n70 env int A(void)')
        self.assertEqual([op.name for op in ops], ['A', 'B'])

    def test_number_used_twice_is_refused(self):
        self.refused('70 env int A(void)\n70 env int B(void)', 'A and B have the number 70')

    def test_name_used_twice_is_refused(self):
        self.refused('70 env int A(void)\n71 env int A(void)', 'two lines')

    def test_number_of_another_meaning_is_refused(self):
        self.refused('7 env int A(void)', 'not in 64')
        self.refused('65280 env int A(void)', 'not in 64')

    def test_unknown_class_names_file_and_line(self):
        self.refused('\n\n70 colll int A(void)', '.api:3: unknown class')

    def test_unknown_collective_is_refused(self):
        self.refused('70 coll/allredcue int A(void)', 'unknown class or collective')

    def test_parameter_without_role_is_refused(self):
        self.refused('70 env int A(int *argc)', 'without a role')

    def test_parenthesis_left_open_is_refused(self):
        self.refused('70 env int A(int *argc:-', 'expected NUMBER')


class Wrappers(unittest.TestCase):
    def test_every_mpi_function_has_a_wrapper_or_passes(self):
        ops = [op for op in parse.parse_file(ROOT / 'schemas/ops/mpi.api')
               if 'record' not in op.attrs]
        text = '\n'.join(mpi_wrappers.emit_wrappers(ops))
        for op in ops:
            self.assertEqual(f'call_{op.name}(' in text, 'pass' not in op.attrs, op.name)


if __name__ == '__main__':
    unittest.main()
