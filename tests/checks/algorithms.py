# SPDX-License-Identifier: Apache-2.0
"""Proves that each algorithm of rt_coll says what it costs, and which bits a sum has: algorithms.py SOURCE_ROOT

The comment at the head of its file has "Cost" in the terms of rt-coll.h (a message, b byte, g byte reduced), or
that of other algorithms; where it reduces, "Bits" too.
"""
import pathlib
import re
import sys

KINDS = ("allgather", "allgatherv", "allreduce", "alltoallv", "barrier", "broadcast", "reduce", "reduce-scatter")
REDUCING = ("allreduce", "reduce", "reduce-scatter")


def paragraph(head, word):
    found = re.search(rf"\n \* {word}[:,](.*?)(?=\n \*\n|\n \*/)", head, re.DOTALL)
    return found and re.sub(r"\n \*", "", found[1])


def faults(files):
    for path in files:
        text = path.read_text()
        head = text[:text.find("*/", text.find("\n/*")) + 2]
        reduces = path.name.startswith(REDUCING)
        cost = paragraph(head, "Cost")
        if not cost:
            yield f"{path.name}: no Cost at its head"
            continue
        of_others = "that of" in cost
        for letter in "ab" + "g" * reduces:
            if not re.search(rf"\b{letter}\b", cost) and not of_others and not (
                    letter == "b" and path.name.startswith("barrier")):
                yield f"{path.name}: its cost has no {letter}"
        if reduces and not paragraph(head, "Bits"):
            yield f"{path.name}: no Bits at its head"


def main(root):
    folder = pathlib.Path(root, "samples/runtime/coll")
    files = [p for p in sorted(folder.glob("*.c")) if p.name.startswith(tuple(k + "-" for k in KINDS))]
    found = list(faults(files)) + ([] if len(files) >= 20 else [f"{len(files)} algorithms in {folder}"])
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
