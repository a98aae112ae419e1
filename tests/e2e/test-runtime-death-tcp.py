#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job without MPI dies: the others are told who, and end. No launcher helps.

    test-runtime-death-tcp.py TRAIN_FOLDER CHECK [SEED]

First in the midst of allreduces, at a drawn moment, on one host (shared memory, and NCCL's stand-in),
between hosts (sockets), and both, then in a process set that not all ranks are in, and while sets are
added and removed: each other rank says rank, host and process of the dead, and ends with a status that
isn't 0, by itself, or a second later where it goes on as if nothing had happened. A rank that runs out of
descriptors says so to all.
Then at a drawn moment from the start of the process on, so that it may be missing, die between two
steps of the start, at work, or when all end: each other ends, with a message if it wasn't through, and
somebody's names the dead.
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

RANKS = 4
HANGS_S = 25  # a rank that hasn't ended by then never does
train, check = sys.argv[1:3]
seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
draw = random.Random(seed)
print(f"seed {seed}")


def free_port():
    """None that the system gives to clients meanwhile."""
    while True:
        port = draw.randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Job:
    """Ranks as child processes; ends all at the latest when it ends."""

    def __init__(self, hosts, victim, way, us, behaviour, work="all", **settings):
        self.notes = tempfile.TemporaryDirectory()
        self.outs = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(RANKS)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("RT_")}
        env.update(settings, DEATH_DIR=self.notes.name, RT_TABLE="none", RT_FABRIC="tcp",
                   RT_SIZE=str(RANKS), WORLD_SIZE=str(RANKS), RT_ADDR="127.0.0.1",
                   RT_PORT=str(free_port()))
        line = [f"{train}/on-hosts", hosts, "--", check, str(victim), way, str(us), behaviour, work]
        self.started = time.monotonic()
        self.ranks = [subprocess.Popen(line, env=dict(env, RT_RANK=str(r), RANK=str(r)),
                                       stdin=subprocess.DEVNULL, stdout=self.outs[r],
                                       stderr=subprocess.STDOUT) for r in range(RANKS)]
        self.hosts, self.victim = hosts, victim

    def out(self, rank):
        self.outs[rank].seek(0)
        return self.outs[rank].read()

    def fail(self, what):
        print(f"WRONG: {what}")
        for r, p in enumerate(self.ranks):
            print(f"-- rank {r}, status {p.returncode}:\n{self.out(r)}")
        self.clean()
        sys.exit(1)

    def clean(self):
        for p in self.ranks:
            if p.poll() is None:
                p.kill()
                p.wait()
        for f in self.outs:
            f.close()
        self.notes.cleanup()

    def wait(self):
        for r, p in enumerate(self.ranks):
            try:
                p.wait(timeout=max(0.1, self.started + HANGS_S - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {r} hangs")

    def note(self, name):
        try:
            with open(os.path.join(self.notes.name, str(name)), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def survivors(self):
        return [r for r in range(RANKS) if r != self.victim]


def host_of(rank, hosts):
    if hosts == "1":
        return "host0"
    end = 0
    for i, count in enumerate(map(int, hosts.split(","))):
        end += count
        if rank < end:
            return f"host{i}"
    return None


def die_at_work(way, hosts, behaviour, settings, work="all", victim=None):
    victim = draw.randrange(RANKS) if victim is None else victim
    job = Job(hosts, victim, way, draw.randrange(1000, 200000), behaviour, work, **settings)
    job.wait()
    ended_ns = time.monotonic_ns()
    if job.ranks[victim].returncode != {"kill": -9, "segv": -11, "exit": 0}[way]:
        job.fail("the victim did not die")
    pid, died_ns = map(int, job.note("victim").split())
    text = f"rank {victim} ({host_of(victim, hosts)}, process {pid}) is gone"
    for r in job.survivors():
        if f"rt: rank {r}: {text}" not in job.out(r):
            job.fail(f"rank {r} was not told that {text}")
        expected = 1 if behaviour == "deaf" else 3
        if job.ranks[r].returncode != expected:
            job.fail(f"rank {r}: expected status {expected}")
        if behaviour != "deaf" and text not in job.note(r):
            job.fail(f"rank {r} got another error: {job.note(r)}")
        if ("rt: rank %d: ends" % r in job.out(r)) != (behaviour == "deaf"):
            job.fail(f"rank {r} should " + ("have been ended" if behaviour == "deaf"
                                            else "have ended by itself"))
    knew = [(int(job.note(r).split()[0]) - died_ns) / 1e6 for r in job.survivors() if behaviour == "ends"]
    print(f"{way}, {work}, {hosts} {settings}, others {behaviour}: {text}; "
          + "".join(f"known after {ms:.1f} ms; " for ms in knew)
          + f"all ended {(ended_ns - died_ns) / 1e9:.2f} s after")
    job.clean()


def run_out_of_descriptors():
    """It lives, but what it would have to do with the others it can't."""
    victim = draw.randrange(RANKS)
    job = Job("1,1,1,1", victim, "poor", draw.randrange(1000, 100000), "ends", "sets",
              RT_ALLREDUCE="ring")
    job.wait()
    text = (rf"rank {victim} \(host{victim}, process {job.note('victim').split()[0]}\) can't go on: "
            r"(can't agree on how allreduces go: )?Too many open files")
    if "the runtime has failed: " not in job.note(victim) or "open files" not in job.note(victim):
        job.fail(f"rank {victim} was told otherwise: {job.note(victim)}")
    for r in job.survivors():
        if not re.search(rf"rt: rank {r}: {text}\n", job.out(r)) or not re.search(text, job.note(r)):
            job.fail(f"rank {r} was not told that {text}")
    if [p.returncode for p in job.ranks] != [3] * RANKS:
        job.fail("expected status 3 of all")
    print(f"no descriptors: {job.note(job.survivors()[0]).split(' ', 1)[1]}", end="")
    job.clean()


def die_any_time(count):
    """All at once: some wait for their deadline. Who is through may well end with 0."""
    jobs = []
    for i in range(count):
        victim, short = draw.randrange(RANKS), i % 2
        job = Job(draw.choice(["1", "2,2", "1,1,1,1"]), victim, "kill", 10**8,
                  "short" if short else "ends", RT_START_TIMEOUT="2",
                  RT_ALLREDUCE=draw.choice(["auto", "ring"]))
        time.sleep(draw.random() * 0.08)
        job.ranks[victim].send_signal(signal.SIGKILL)
        job.short = short
        jobs.append(job)
    for job in jobs:
        job.wait()
        bad = [r for r in job.survivors() if job.ranks[r].returncode != 0]
        for r in job.survivors():
            if (r in bad) != ("rank" in job.out(r)) or (r not in bad and not job.short):
                job.fail(f"rank {r}: expected a message and a status that isn't 0")
        names = re.compile(rf"rank[ 0-9]* {job.victim}\b")
        if bad and not any(names.search(job.out(r)) for r in bad):
            job.fail(f"nobody names rank {job.victim}")
        first = job.out(bad[0]).splitlines()[0] if bad else "all others were through"
        print(f"killed any time, rank {job.victim} of {job.hosts}: {first[:150]}")
        job.clean()


die_at_work("kill", "1", "ends", {"RT_ALLREDUCE": "ring"})
die_at_work("segv", "1", "deaf", {})
die_at_work("exit", "1,1,1,1", "ends", {})
die_at_work("kill", "1,1,1,1", "deaf", {"RT_ALLREDUCE": "halving-doubling"})
die_at_work("segv", "2,2", "ends", {})
die_at_work("exit", "1,3", "ends", {})
die_at_work("kill", "1,1,1,1", "stays", {"RT_ON_DEATH": "error", "RT_ALLREDUCE": "ring"})
die_at_work("kill", "1", "ends", {}, "set")
die_at_work("segv", "2,2", "ends", {}, "set", RANKS - 1)  # none of the set's
die_at_work("exit", "1,1,1,1", "ends", {"RT_ALLREDUCE": "ring"}, "set", 1)
for way, hosts in (("kill", "1"), ("segv", "2,2"), ("exit", "1,1,1,1"), ("kill", "3,1")):
    die_at_work(way, hosts, "ends", {"RT_ON_DEATH": draw.choice(["exit", "error"])}, "sets")
run_out_of_descriptors()
die_any_time(12)
