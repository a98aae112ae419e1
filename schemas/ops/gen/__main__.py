# SPDX-License-Identifier: Apache-2.0
"""python3 gen PRODUCT OUTPUT FILE.api...: writes one product of the operation tables."""
import sys

import parse
import table

PRODUCTS = {
    'table': table.emit_table,
    'numbers': table.emit_numbers,
}


def main(product, output, *inputs):
    lines = PRODUCTS[product](parse.parse_files(inputs))
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
