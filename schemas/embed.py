#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py INPUT OUTPUT NAME: a text file as a C string constant, for programs that carry it."""
import sys


def main(source, target, name):
    with open(source, "rb") as f:
        data = f.read()
    with open(target, "w", encoding="ascii") as f:
        f.write(f"/* made by schemas/embed.py */\nconst char {name}[] = {{\n")
        for i in range(0, len(data), 20):
            f.write("".join(f"{b}," for b in data[i:i + 20]) + "\n")
        f.write("0};\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
