# SPDX-License-Identifier: Apache-2.0
"""Proves that every header compiles alone: python3 headers.py SOURCE_ROOT BUILD_ROOT CC

Each header of the tree is compiled as a file of its own, with the flags that the build gives to a C
file of the same folder (compile_commands.json), so a header may use what its folder may use.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

FOLDERS = ["schemas", "tracer", "analyzer", "viewer", "samples"]


def flags_of(commands, root, header):
    """Sets of flags to try: those of the nearest folder, upwards, that compiles anything. A folder
    may build one source against several libraries; a header need compile for one of them."""
    folder = header.parent
    while folder != root.parent:
        found = [flags for source, flags in commands if folder in source.parents]
        if found:
            return [list(flags) for flags in dict.fromkeys(map(tuple, found))]
        folder = folder.parent
    return [["-std=gnu11", f"-I{root}/schemas"]]


def compile_commands(build):
    """(source path, flags that matter to a header) of every C file that meson compiles."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        words = shlex.split(entry["command"])
        keep = []
        for i, word in enumerate(words):
            if word.startswith(("-I", "-D", "-std", "-isystem")):
                keep.append(word)
                if word == "-isystem":
                    keep.append(words[i + 1])
        yield source, keep


def errors_of(cc, flags, header, build):
    """What the compiler says of a file that includes only `header`; "" where it is content."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as unit:
        unit.write(f'#include "{header}"\n')
        unit.flush()
        command = [cc, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
                   *flags, f"-I{header.parent}", unit.name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=build, check=False)
    return (done.stderr or "failed") if done.returncode else ""


def main(root, build, cc):
    root, build = pathlib.Path(root).resolve(), pathlib.Path(build).resolve()
    commands = [c for c in compile_commands(build) if root in c[0].parents]
    headers = [h for f in FOLDERS for h in sorted((root / f).rglob("*.h"))]
    bad = 0
    for header in headers:
        errors = ""
        for flags in flags_of(commands, root, header):
            errors = errors_of(cc, flags, header, build)
            if not errors:
                break
        if errors:
            bad += 1
            print(f"{header.relative_to(root)} does not compile alone:\n{errors}")
    print(f"{len(headers)} headers, {bad} bad")
    return 1 if bad or not headers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
