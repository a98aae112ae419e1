# SPDX-License-Identifier: Apache-2.0
"""Proves that `ninja programs` makes all that is used and no test: python3 programs.py BUILD_ROOT

Each executable that no meson.build of tests/ defines, and each library of the tracer, is in it.
"""
import json
import pathlib
import re
import sys


def main(build):
    with open(build / "meson-info/intro-targets.json", encoding="utf-8") as f:
        targets = json.load(f)
    text = re.sub(r"\$\n", "", (build / "build.ninja").read_text())
    made = re.search(r"^build programs: phony(.*)$", text, re.M)
    made = set(made[1].split()) - {"|"} if made else set()
    wanted = set()
    for target in targets:
        file = str(pathlib.Path(target["filename"][0]).resolve().relative_to(build))
        used = target["type"] == "executable" or file.startswith("tracer/lib")
        if used and not file.startswith("tests/"):
            wanted.add(file)
    for file in sorted(wanted - made):
        print(f"{file} is not among programs: its meson.build says programs += it")
    for file in sorted(made - wanted):
        print(f"{file} is among programs, and is none")
    if not wanted:
        print("no programs found")
    return 1 if not wanted or made != wanted else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
