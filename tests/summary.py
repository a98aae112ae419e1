# SPDX-License-Identifier: Apache-2.0
"""Counts meson's test logs: python3 summary.py EXPECTED_SKIPS TESTLOG...

Prints the tests that failed, with the end of what they said, and every skip with its reason, then
"N passed, N failed, N skipped".
A skip that EXPECTED_SKIPS doesn't list ("test name: reason", one a line) counts as failed, and so
does a log that is missing or empty: a suite that didn't run has not passed.
"""
import json
import sys

LINES, COLUMNS = 40, 300  # at most, of what a failed test said


def expected_skips(path):
    with open(path, encoding="utf-8") as f:
        lines = (line.strip() for line in f)
        return dict(line.split(":", 1) for line in lines if line and not line.startswith("#"))


def results(log):
    """(test name, meson's result, what it said) of one log."""
    with open(log, encoding="utf-8") as f:
        tests = [json.loads(line) for line in f if line.strip()]
    return [(test["name"].split(" / ")[-1], test["result"],
             test.get("stdout", "") + test.get("stderr", "")) for test in tests]


def main(skips_path, logs):
    expected = expected_skips(skips_path)
    count = {"passed": 0, "failed": 0, "skipped": 0}

    def tell(verdict, text):
        count[verdict] += 1
        if text:
            print(f"{verdict}: {text}")

    for log in logs:
        folder = log.split("/", 1)[0]
        try:
            tests = results(log)
        except OSError as error:
            tests = []
            print(error)
        if not tests:
            tell("failed", f"{folder}: no test ran")
        for name, result, said in tests:
            if result == "OK":
                tell("passed", "")
            elif result == "SKIP" and name in expected:
                tell("skipped", f"{folder}: {name}:{expected[name]}")
            else:
                for line in said.splitlines()[-LINES:]:
                    print(f"    {line[:COLUMNS]}")
                tell("failed", f"{folder}: {name}: {result}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
