# SPDX-License-Identifier: Apache-2.0
"""Proves the layers: python3 layers.py SOURCE_ROOT

Every include of a folder's C files is either of that folder, of the folders it may use, or not one
of the libraries it must not use. What each folder may include stands in CONTRIBUTING.md.
"""
import pathlib
import re
import sys

# folder: (folders it may include from, system headers it may not)
RULES = {
    "schemas": ((), r"^(glib|gtk|sqlite3|cjson|mpi|nccl|cuda|cupti|nvtx3|cmocka)"),
    "tracer": (("schemas",), r"^(glib|gio|gtk|sqlite3|cjson)"),
    "analyzer": (("schemas",), r"^(gtk|gdk|cairo|mpi|nccl|cuda|cupti)"),
    "viewer": (("schemas", "analyzer"), r"^(sqlite3|mpi|nccl|cuda|cupti)"),
    "samples": (("schemas",), r"^(glib|gio|gtk|sqlite3|cjson)"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def headers_of(root, folder):
    return {p.name for p in (root / folder).rglob("*.h")}


def faults(root):
    owners = {folder: headers_of(root, folder) for folder in RULES}
    for folder, (may, banned) in RULES.items():
        for path in sorted((root / folder).rglob("*.[ch]")):
            for _, name in INCLUDE.findall(path.read_text(errors="replace")):
                base = name.rsplit("/", 1)[-1]
                if re.match(banned, name) and base not in owners[folder]:
                    yield f"{path.relative_to(root)}: may not include {name}"
                elif base not in owners[folder]:
                    for other in set(RULES) - {folder, *may}:
                        if base in owners[other] and base not in ("nccl.h", "cuda_runtime_api.h"):
                            yield f"{path.relative_to(root)}: {name} belongs to {other}/"


def main(root):
    found = list(faults(pathlib.Path(root)))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
