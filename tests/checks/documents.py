# SPDX-License-Identifier: Apache-2.0
"""Proves that documents and contracts stand alone: python3 documents.py SOURCE_ROOT

Each .md file that a document or a file of schemas/ names is in the tree.
"""
import pathlib
import re
import sys


def main(root):
    files = [f for f in root.rglob("*.md") if "build" not in f.relative_to(root).parts[0]]
    names = {f.name for f in files}
    missing = 0
    for file in sorted({*files, *(f for f in (root / "schemas").rglob("*") if f.is_file())}):
        for name in re.findall(r"[\w-]+\.md\b", file.read_text()):
            if name not in names:
                print(f"{file.relative_to(root)} names {name}, which is not in the tree")
                missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
