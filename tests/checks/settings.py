# SPDX-License-Identifier: Apache-2.0
"""Proves that the tables of samples/README.md are the samples': python3 settings.py SOURCE_ROOT

Each variable that the samples read stands in one of its tables of settings, and each there is read; the
runtime's stand in the manual, runtime/rt.h, too, and what it doesn't read but to refuse it in neither; it
knows all of them, so as to warn of others.
Each fault stands in its table of faults, with parameters that the fault has and all that it needs, and
so it does in faults/rt-fault.h; neither has one that there isn't. No test sets a variable that nobody
reads.
"""
import pathlib
import re
import sys

NAME = r"(?:RT|HOSTNCCL|TRAIN|NCCL_DDP)_[A-Z_]+"
WRONG = []


def same(what, code, document, where):
    WRONG.extend(f"{where} lacks {what} {x}" for x in sorted(code - document))
    WRONG.extend(f"{where} has {what} {x}, which no code reads" for x in sorted(document - code))


def read_by(sources):
    """Names of the environment: whole words in quotes."""
    names = {n for text in sources for n in re.findall(rf'"({NAME})"', text)}
    refused = {n for text in sources for n in re.findall(rf'{{"({NAME})",[^}}]*, refuse}}', text)}
    return names - refused, refused


def settings(root, readme):
    samples = root / "samples"
    read, refused = read_by([f.read_text() for f in sorted(samples.rglob("*.[ch]"))])
    rows = re.findall(r"^\| (`[A-Z].*?`) \|", readme, re.M)
    same("setting", read, {n for row in rows for n in re.findall(rf"`({NAME})`", row)},
         "samples/README.md")
    runtime, _ = read_by([f.read_text() for f in (samples / "runtime").rglob("*.c")])
    manual = (samples / "runtime/rt.h").read_text()
    listed = set(re.findall(NAME, manual[manual.index("Environment:"):manual.index("#ifndef")]))
    same("setting", runtime, listed, "samples/runtime/rt.h")
    known = (samples / "runtime/rt-config.c").read_text()
    for name in sorted(n for n in read | refused if n.startswith("RT_") and f'"{n}"' not in known):
        WRONG.append(f"samples/runtime/rt-config.c doesn't know {name}, and would warn of it")
    of_tests, _ = read_by([f.read_text() for f in (root / "tests").rglob("*.c")])
    for test in sorted([*(root / "tests").rglob("*.sh"), *(root / "tests").rglob("*.py")]):
        set_there = set(re.findall(rf"\b((?:RT|HOSTNCCL)_[A-Z_]+)=", test.read_text()))
        for name in sorted(set_there - read - refused - of_tests):
            WRONG.append(f"{test.relative_to(root)} sets {name}, which no code reads")


def faults_of_code(root):
    """name: (needed, allowed) parameters; one without a name is ''."""
    text = (root / "samples/faults/parse.c").read_text()
    parameters = {k: "" if n == "NULL" else n.strip('"')
                  for k, n in re.findall(r'^    \[(\w+)\] = \{("\w+"|NULL), "', text, re.M)}
    return {name: tuple({parameters[p] for p in re.findall(r"P\((\w+)\)", bits)}
                        for bits in (needed, allowed))
            for name, needed, allowed in
            re.findall(r'^    \[RT_FAULT_\w+\] = \{"([\w-]+)", (.*?), (.*?)\},$', text, re.M)}


def check_faults(code, found, where):
    same("fault", set(code), {name for name, _ in found}, where)
    for name, text in found:
        if name not in code:
            continue
        given = {word.split("=")[0] if "=" in word else "" for word in
                 re.split(r"[\[\],:]+", text) if word}
        needed, allowed = code[name]
        if not needed <= given <= needed | allowed:
            WRONG.append(f"{where}: {name} has {sorted(given)}, needs {sorted(needed)}, "
                         f"may have {sorted(allowed)}")


def main(root):
    readme = (root / "samples/README.md").read_text()
    settings(root, readme)
    code = faults_of_code(root)
    if not code:
        WRONG.append("samples/faults/parse.c: no table of faults")
    table = re.findall(r"`RT_FAULT=([\w-]+)(:\S+)? on_2_hosts", readme)
    check_faults(code, table, "samples/README.md")
    manual = (root / "samples/faults/rt-fault.h").read_text()
    # what a line has after its fault begins after two spaces
    lines = re.findall(r"^ \*(?: more|  ) ([a-z-]+)(:\S+)?(?:  |$)", manual[:manual.index("Model:")],
                       re.M)
    check_faults(code, lines, "samples/faults/rt-fault.h")
    for line in WRONG:
        print(line)
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
