# SPDX-License-Identifier: Apache-2.0
"""Proves that every test on disk is run: python3 listed.py SOURCE_ROOT

A file tests/unit/**/test-*.c, tests/e2e/**/test-*.{sh,py,c} or tests/fuzz/fuzz-*.c whose name does not
stand in a meson.build of tests/ is printed, with exit status 1; so is one that uses cmocka's
assert_float_equal, which NaN and infinity pass (tests/unit/near.h).
"""
import pathlib
import sys

PATTERNS = ["unit/**/test-*.c", "unit/**/test-*.py", "e2e/**/test-*.sh", "e2e/**/test-*.py", "fuzz/fuzz-*.c", "checks/*.py"]


def main(root):
    tests = pathlib.Path(root) / "tests"
    listed = "\n".join(p.read_text() for p in tests.rglob("meson.build"))
    found = [p for pattern in PATTERNS for p in sorted(tests.glob(pattern))]
    missing = [p for p in found if p.name not in listed and p.stem not in listed]
    for p in missing:
        print(f"not in any meson.build: {p.relative_to(root)}")
    blind = [p for p in sorted(tests.glob("unit/**/*.c")) if "assert_float_equal" in p.read_text()]
    for p in blind:
        print(f"assert_float_equal in place of assert_near: {p.relative_to(root)}")
    if not found:
        print(f"no tests found below {tests}")
    return 1 if missing or blind or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
