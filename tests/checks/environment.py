# SPDX-License-Identifier: Apache-2.0
"""Proves that README's table of the environment is the tracer's: python3 environment.py SOURCE_ROOT

Each row of RS_SETTINGS in schemas/settings.h stands in README.md with the same type, default and help,
and README has no other variable in that table. What a list may hold is its default, or in its help.
"""
import pathlib
import re
import sys


def rows_of_tracer(root):
    text = (root / "schemas/settings.h").read_text()
    for name, value in re.findall(r'define (RS_\w+_DEFAULT) ("\S*")', text):
        text = text.replace(f"{name},", f"{value},")
    table = re.search(r"define RS_SETTINGS\(X\)(.*?)#ifdef", text, re.S).group(1)
    fields = r'(\w+),\s*(\w+),\s*(\w+),[\s\\]*"([^"]*)",[\s\\]*"([^"]*)"'
    words = dict(re.findall(r'define (RS_\w+_WORDS) "(.*)"', text))
    rows = set()
    for name, kind, list_of, default, help_text in re.findall(r"X\(" + fields, table):
        unsaid = set(words.get(list_of, "").split(",")) - set(default.split(","))
        if not unsaid <= {"", *re.findall(r"\w+", help_text)}:
            sys.exit(f"neither default nor help of {name} says {unsaid}")
        rows.add(("RINGSCOPE_" + name, kind, default, help_text))
    return rows


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
