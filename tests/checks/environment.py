# SPDX-License-Identifier: Apache-2.0
"""Proves that README's table of the environment is the tracer's: python3 environment.py SOURCE_ROOT

Each row of rs_env_table in tracer/env.c, but those of test builds, stands in README.md with the same
type, default and help, and README has no other variable in that table.
"""
import pathlib
import re
import sys


def rows_of_tracer(root):
    text = (root / "tracer/env.c").read_text()
    table = re.search(r"rs_env_table\[\] = \{(.*?)\n\};", text, re.S).group(1)
    table = re.sub(r"#ifdef.*?#endif", "", table, flags=re.S)
    fields = r'"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"'
    return {m.groups() for m in re.finditer(r"\{" + fields + r"\}", table)}


def rows_of_readme(root):
    found = re.findall(r"^\| `(RINGSCOPE_\w+)` \| (.*?) \| (.*?) \| (.*?) \|$",
                       (root / "README.md").read_text(), re.M)
    return {(n, t, d.replace("&lt;", "<"), h) for n, t, d, h in found}


def main(root):
    tracer, readme = rows_of_tracer(root), rows_of_readme(root)
    for row in sorted(tracer ^ readme):
        print("README lacks" if row in tracer else "the tracer has no", *row, sep=" | ")
    return 1 if tracer != readme or not tracer else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
