#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rendezvous, with ranks started by hand: what each of them says where something is wrong with
one, and who is turned away while the job comes about.

    test-rt-rendezvous.py TRAIN_FOLDER
"""
import os
import random
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

train = os.path.abspath(sys.argv[1])
seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
draw = random.Random(seed)
print(f"seed {seed}")
failures = 0
MAGIC = b"RT-TCP2\0"


def judge(good, what, *seen):
    global failures
    if not good:
        failures += 1
        print(f"WRONG: {what}", *seen, sep="\n")


class Port:
    """A port that is ours alone: bound, not listened at, as long as this lives; rank 0 may bind it,
    too, as both allow it (SO_REUSEADDR), and listens."""

    def __init__(self, address="127.0.0.1"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, 0))
        self.address, self.number = self.socket.getsockname()[:2]

    def connect(self):
        """Rank 0 may come later."""
        while True:
            s = socket.socket(self.socket.family)
            if s.connect_ex((self.address, self.number)) == 0:
                return s
            s.close()


def start(port, rank, size, limit=None, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RT_")}
    env.update(RT_RANK=str(rank), RT_SIZE=str(size), RT_ADDR=port.address, RT_PORT=str(port.number),
               RT_TABLE="none")
    env.update(settings)
    lower = ["sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh"] if limit else []
    return subprocess.Popen([*lower, f"{train}/mlp-tcp", "--steps", "2"], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ends(ranks):
    """Of each, its status and what it said."""
    said = [p.communicate(timeout=60)[0] for p in ranks]
    return [(p.returncode, text) for p, text in zip(ranks, said)]


def all_say(what, ranks, pattern):
    result = ends(ranks)
    judge(all(status not in (0, None) for status, _ in result), f"{what}: a status is 0", result)
    judge(all(re.search(pattern, text) for _, text in result), f"{what}: {pattern}", result)
    judge(all(text.count("\n") == 1 for _, text in result), f"{what}: said once", result)


def all_train(what, ranks):
    result = ends(ranks)
    judge(all(status == 0 for status, _ in result), what, result)


def job(port, size, **settings):
    return [start(port, r, size, **settings) for r in range(size)]


def test_plain():
    all_train("IPv4", job(Port(), 3))
    all_train("IPv6", job(Port("::1"), 3))


def test_missing():
    port = Port()
    ranks = [start(port, r, 9, RT_START_TIMEOUT="2") for r in (0, 2, 5)]
    all_say("missing", ranks, r"after 2 s \(RT_START_TIMEOUT\) 6 of 9 ranks have not come to rank 0 at "
            rf"127\.0\.0\.1:{port.number}; missing: rank 1 3 4 6-8$")
    ranks = [start(port, 1, 2, RT_START_TIMEOUT="1")]
    all_say("no rank 0", ranks, r"rank 1 did not reach rank 0 at 127\.0\.0\.1:\d+ within 1 s "
            r"\(RT_START_TIMEOUT\): Connection refused")


def test_same_rank():
    """The first two are told, and rank 0; none waits for the rank that nobody is."""
    port = Port()
    ranks = [start(port, r, 4) for r in (0, 1, 1, 2)]
    pids = "|".join(str(p.pid) for p in ranks[1:3])
    all_say("the same rank", ranks, rf"process ({pids}) of \S+ is rank 1 of 4, and process ({pids}) of "
            r"\S+ is that too: RT_RANK is wrong")


def test_sizes():
    port = Port()
    all_say("sizes", [start(port, 0, 3), start(port, 1, 3), start(port, 2, 4)],
            r"is rank 2 of 4, but rank 0 has 3 ranks: RT_RANK and RT_SIZE are wrong")


def test_port_in_use():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = Port.__new__(Port)
        port.address, port.number = other.getsockname()
        all_say("in use", [start(port, 0, 2)], rf"port {port.number} is in use \(127\.0\.0\.1:"
                rf"{port.number}\); set another RT_PORT")

        def answer():
            c = other.accept()[0]
            c.recv(1)
            c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)
            held.append(c)

        held = []
        t = threading.Thread(target=answer)
        t.start()
        all_say("another listens", [start(port, 1, 2)], "is not rank 0: set another RT_PORT")
        t.join()


def junk(port):
    """Strangers of many a kind; some stay, silent or in the midst of a word."""
    held = []
    for kind in range(24):
        s = port.connect()
        try:
            if kind % 4 == 0:
                s.sendall(b"GET / HTTP/1.1\r\n\r\n")
            elif kind % 4 == 1:
                s.sendall(draw.randbytes(draw.randrange(1, 5000)))
            elif kind % 4 == 2:
                s.sendall(MAGIC[:draw.randrange(1, 8)])
            if kind % 3:
                held.append(s)
            else:
                s.close()
        except OSError:
            s.close()  # turned away already
    return held


def test_strangers():
    port = Port()
    ranks = [start(port, 0, 3)]
    held = junk(port)
    ranks += [start(port, r, 3) for r in (1, 2)]
    all_train("with strangers at the door", ranks)
    for s in held:
        s.close()
    ranks = [start(port, 0, 3, RT_START_TIMEOUT="2")]
    held = junk(port)
    all_say("strangers alone", ranks, r"missing: rank 1 2; \d+ connections came that were no ranks'")
    for s in held:
        s.close()


def test_a_crowd_that_says_nothing():
    """More than rank 0 has places for: they don't keep the ranks out."""
    port = Port()
    ranks = [start(port, 0, 3)]
    held = [port.connect() for _ in range(150)]
    ranks += [start(port, r, 3) for r in (1, 2)]
    all_train("in a silent crowd", ranks)
    ranks = [start(port, 0, 3, limit=40)]
    held += [port.connect() for _ in range(60)]
    ranks += [start(port, r, 3) for r in (1, 2)]
    all_train("in a silent crowd, with few descriptors", ranks)
    for s in held:
        s.close()


def test_another_job():
    """Whatever rank and size it has, and where only one of the two has a name."""
    of = r"process \d+ of \S+ is rank {} of {}; the job that waits at its RT_PORT has {} RT_JOB: set another RT_PORT"
    port = Port()
    ranks = [start(port, 0, 2, RT_JOB="this")]
    all_say("another job", [start(port, 1, 2, RT_JOB="that")],
            of.format(1, r"2 of job 'that' \(RT_JOB\)", "another"))
    all_say("another size", [start(port, 7, 9, RT_JOB="that")],
            of.format(7, r"9 of job 'that' \(RT_JOB\)", "another"))
    all_say("no name", [start(port, 1, 2)], of.format(1, "2 of a job without RT_JOB", "an"))
    all_train("this job", ranks + [start(port, 1, 2, RT_JOB="this")])
    port = Port()
    ranks = [start(port, 0, 2)]
    all_say("a name", [start(port, 1, 2, RT_JOB="that")], of.format(1, r"2 of job 'that' \(RT_JOB\)", "no"))
    all_train("without names", ranks + [start(port, 1, 2)])
    port = Port()
    ranks = [start(port, 0, 2, RT_JOB="this", RT_START_TIMEOUT="2")]
    all_say("missing", [start(port, 1, 2)], "without RT_JOB")
    all_say("rank 0 says", ranks, "missing: rank 1; turned away: " + of.format(1, "2 of a job without RT_JOB", "an"))


def test_a_rank_that_comes_again():
    """The first one of its number was killed while it waited."""
    port = Port()
    root = start(port, 0, 3)
    first = start(port, 1, 3)
    connected = re.compile(rf" 0100007F:{port.number:04X} \S+ 01 ")  # at rank 0's end
    while not connected.search(open("/proc/net/tcp", encoding="ascii").read()):
        pass
    first.kill()
    first.communicate()
    all_train("a second try", [root, start(port, 1, 3), start(port, 2, 3)])


def test_no_descriptors():
    size, limit = 12, 12
    port = Port()
    ranks = [start(port, 0, size, limit=limit)]
    ranks += [start(port, r, size, RT_START_TIMEOUT="2") for r in range(1, size)]
    result = ends(ranks)
    judge(all(status != 0 for status, _ in result), "a status is 0", result)
    judge(re.search(rf"rank 0 can't take in all ranks: its {limit} descriptors \(ulimit -n\) are in "
                    rf"use, \d+ of {size} ranks have come", result[0][1]), "rank 0", result[0])
    judge(not any("missing" in text for _, text in result), "said to be missing", result)
    told = sum("descriptors (ulimit -n) are in use" in text for _, text in result[1:])
    judge(told > 0, "nobody else is told", result)
    judge(all("descriptors" in text or "rank 0 has ended, or turned this rank away" in text
              or "Connection refused" in text for _, text in result[1:]), "another reason", result)


def test_settings():
    port = Port()
    for settings, text in (({"RT_START_TIMEOUT": "0"}, "RT_START_TIMEOUT is '0', expected a number"),
                           ({"RT_PORT": "70000"}, "RT_PORT is '70000', expected a number from 1"),
                           ({"RT_PORT": ""}, "RT_PORT is not set"),
                           ({"RT_ADDR": ""}, "RT_ADDR is not set"),
                           ({"RT_ADDR": "no such.host"}, "RT_ADDR is 'no such.host'"),
                           ({"RT_JOB": "j" * 64}, "', expected at most 63 bytes"),
                           ({"RT_RANK": "2"}, "rank 2 of 2: RT_RANK and RT_SIZE are wrong"),
                           ({"RT_LISTEN_FD": "0", "RT_ADDR": "192.0.2.1"}, "no address of this host")):
        settings = {"RT_START_TIMEOUT": "1", **settings}
        all_say(str(settings), [start(port, 0, 2, **settings)], re.escape(text))


def test_torchrun_in_srun():
    port = Port()
    srun = {"RT_RANK": "", "RT_SIZE": "", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "RANK": "2", "WORLD_SIZE": "2",
            "TORCHELASTIC_RUN_ID": "none", "RT_START_TIMEOUT": "1"}
    all_say("torchrun", [start(port, 0, 2, **srun)], "rank 2 of 2: RT_RANK and RT_SIZE are wrong")


with ThreadPoolExecutor(4) as pool:  # they wait for most of their time
    # a copy: a warning adds a name to the globals while tests run
    tests = {name: pool.submit(test) for name, test in list(globals().items())
             if name.startswith("test_")}
for name, test in tests.items():
    print(name)
    test.result()
sys.exit(1 if failures else 0)
