# SPDX-License-Identifier: Apache-2.0
"""One rank doesn't get what it asks the system for: all ranks end, and say why; none crashes or hangs.

    test-runtime-scarce.py RT_RUN SCARCE_CHECK [SEED | all]

Which request fails is counted from rt_init on; some counts are drawn ("all": every one, 20 minutes).
"""
import concurrent.futures
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile

RT_RUN, CHECK = sys.argv[1:3]
SEED = sys.argv[3] if len(sys.argv) > 3 else str(random.randrange(10**6))
RANKS, JOBS = 3, 8
COUNTS = {"memory": 760, "thread": 6, "file": 45, "map": 45}
# where a group of ranks is made; a first message comes and can't be taken
ALWAYS = [("memory", rank, n) for rank in (0, 1) for n in range(57, 60)] + \
         [("file", 1, n, "always") for n in range(18, 24)] + [("thread", 0, 1), ("thread", 1, 1)]


def cases():
    every = [(what, rank, n, *more) for what, count in COUNTS.items() for rank in (0, 1)
             for n in range(1, count + 1) for more in ((), ("always",))]
    if SEED == "all":
        return every
    return ALWAYS + random.Random(SEED).sample(every, 16)


def fault_of(case, folder, number):
    """What is wrong; none where nothing is."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("RT_")}
    env.update(RT_TABLE="none", SCARCE_TIMELINE=f"{folder}/{number}")
    process = subprocess.Popen([RT_RUN, "-n", str(RANKS), CHECK, case[0], *map(str, case[1:])],
                               env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    try:
        said = process.communicate(timeout=40)[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        return "hangs", process.communicate()[0]
    if process.returncode not in (0, 1, 3):
        return f"status {process.returncode}", said
    if process.returncode == 1 and not re.search(r"^(rt: )?rank \d+: .*\w", said, re.M):
        return "no rank says why", said
    if re.search(r": *$", said, re.M):
        return "a message without its reason", said
    return None, said


def main():
    chosen = cases()
    print(f"{len(chosen)} cases, seed {SEED}")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = pool.map(fault_of, chosen, itertools.repeat(folder), itertools.count())
        for case, (fault, said) in zip(chosen, results):
            if fault:
                wrong += 1
                print(*case, f": {fault}\n{said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
