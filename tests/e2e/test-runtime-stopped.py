#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank is stopped in the midst of work: the others say which, and go on when it does.

    test-runtime-stopped.py TRAIN_FOLDER [SEED]

Without a launcher, over TCP, on logical hosts. Rank 0 says who is stopped; of rank 0 all others do.
"""
import os
import pty
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

RANKS = 3
train = sys.argv[1]
seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
draw = random.Random(seed)
print(f"seed {seed}")


class Job:
    """Trains until it is ended."""

    def __init__(self, hosts):
        self.held = socket.socket()  # its port is nobody else's as long as this lives
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.said = [b""] * RANKS
        ends = [pty.openpty() for _ in range(RANKS)]  # what isn't a terminal gets lines late
        env = {k: v for k, v in os.environ.items() if not k.startswith("RT_")}
        env.update(RT_TABLE="none", RT_SIZE=str(RANKS), RT_ADDR="127.0.0.1", RT_STALL_WARNING_TIME="1",
                   RT_PORT=str(self.held.getsockname()[1]), WORLD_SIZE=str(RANKS))
        line = [f"{train}/on-hosts", hosts, "--", f"{train}/mlp-tcp", "--steps", "100000000"]
        self.ranks = [subprocess.Popen(line, env=dict(env, RT_RANK=str(r), RANK=str(r)),
                                       stdin=subprocess.DEVNULL, stdout=ends[r][1],
                                       stderr=subprocess.STDOUT) for r in range(RANKS)]
        for r, (mine, its) in enumerate(ends):
            os.close(its)
            threading.Thread(target=self.listen, args=(r, mine), daemon=True).start()

    def listen(self, rank, fd):
        try:
            while True:
                self.said[rank] += os.read(fd, 65536)
        except OSError:  # all have closed it
            os.close(fd)

    def out(self, rank):
        return self.said[rank].decode(errors="replace").replace("\r", "")

    def wait_for(self, rank, pattern, after=0):
        """Until that rank has said it; no time is judged."""
        for _ in range(3000):
            found = re.search(pattern, self.out(rank)[after:])
            if found:
                return found.group(0)
            time.sleep(0.01)
        print(f"WRONG: rank {rank} does not say {pattern}")
        for r, p in enumerate(self.ranks):
            print(f"-- rank {r}, process {p.pid}:\n{self.out(r)[-2000:]}")
        self.end()
        sys.exit(1)

    def end(self):
        for p in self.ranks:
            p.kill()
            p.wait()


def stop(victim, hosts):
    job = Job(hosts)
    pid = job.ranks[victim].pid
    job.wait_for(0, r"(?m)^step 9 ")
    os.kill(pid, signal.SIGSTOP)
    told = [r for r in range(RANKS) if r != 0] if victim == 0 else [0]
    for r in told:
        print(job.wait_for(r, rf"(?m)^rt: rank {r}: rank {victim} \(host\d, process {pid}\) has given no answer for "
                           r"[\d.]+ s: it is stopped, by a signal or a debugger; others wait for it$"))
    os.kill(pid, signal.SIGCONT)
    for r in told:
        print(job.wait_for(r, rf"(?m)^rt: rank {r}: rank {victim} \(host\d, process {pid}\) answers again, after "
                           r"[\d.]+ s$"))
    job.wait_for(0, r"(?m)^step \d+9 ", len(job.out(0)))
    job.end()


stop(draw.randrange(1, RANKS), draw.choice(["3", "1,1,1"]))
stop(0, draw.choice(["3", "2,1"]))
