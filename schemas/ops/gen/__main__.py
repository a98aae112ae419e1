# SPDX-License-Identifier: Apache-2.0
"""python3 gen PRODUCT OUTPUT FILE.api...: writes one product of the operation tables."""
import sys

import cuda_wrappers
import mpi_front
import mpi_wrappers
import nccl_wrappers
import parse
import table

PRODUCTS = {
    'table': table.emit_table,
    'numbers': table.emit_numbers,
    'nccl-wrappers': nccl_wrappers.emit_wrappers,
    'nccl-prototypes': nccl_wrappers.emit_prototypes,
    'cuda-wrappers': cuda_wrappers.emit_wrappers,
    'mpi-stubs': mpi_front.emit_stubs,
    'mpi-names': mpi_front.emit_names,
    'mpi-wrappers': mpi_wrappers.emit_wrappers,
}


TABLES = ('table', 'numbers')  # the others are of functions, not of what is only recorded


def main(product, output, *inputs):
    ops = parse.parse_files(inputs)
    if product not in TABLES:
        ops = [op for op in ops if 'record' not in op.attrs]
    lines = PRODUCTS[product](ops)
    text = '/* Made by schemas/ops/gen from the .api files; edit those. */\n' + '\n'.join(lines) + '\n'
    with open(output, 'w', encoding='utf-8') as f:
        f.write(text)


if __name__ == '__main__':
    if len(sys.argv) < 4 or sys.argv[1] not in PRODUCTS:
        sys.exit(f'usage: gen {"|".join(PRODUCTS)} OUTPUT FILE.api...')
    try:
        main(*sys.argv[1:])
    except (parse.ApiError, OSError) as e:
        sys.exit(f'gen: {e}')
