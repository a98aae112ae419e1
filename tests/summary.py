"""Counts meson's test log: python3 summary.py TESTLOG EXPECTED_SKIPS MESON_STATUS

Prints the tests that failed and every skip with its reason, then "N passed, N failed, N skipped".
A skip that EXPECTED_SKIPS doesn't list ("test name: reason", one a line) counts as failed.
Exit status 0 only where nothing failed and meson itself was content.
"""
import json
import sys


def expected_skips(path):
    with open(path, encoding="utf-8") as f:
        lines = (line.strip() for line in f)
        return dict(line.split(":", 1) for line in lines if line and not line.startswith("#"))


def main(log, skips_path, meson_status):
    expected = expected_skips(skips_path)
    passed = failed = skipped = 0
    with open(log, encoding="utf-8") as f:
        tests = [json.loads(line) for line in f if line.strip()]
    for test in tests:
        name = test["name"].split(" / ")[-1]
        if test["result"] == "OK":
            passed += 1
        elif test["result"] == "SKIP" and name in expected:
            skipped += 1
            print(f"skipped: {name}:{expected[name]}")
        else:
            failed += 1
            print(f"failed: {name}: {test['result']}")
    if not tests:
        print("failed: no test ran")
        failed += 1
    if meson_status != 0 and failed == 0:
        print(f"failed: meson test ended with status {meson_status}")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
