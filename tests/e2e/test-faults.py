# SPDX-License-Identifier: Apache-2.0
"""Each planted fault does what it says, and no capture tells of it: test-faults.py BUILD_ROOT [SEED]

paced runs healthy and faulted, in turn, under the tracer and beside a witness that counts messages.
What is planted is measured without the analyzer: by the phases that paced logs, by counts, bytes,
checksums, versions. Phases sleep, so that the shortest of a rank's tells what was planted, however
busy the machine is. Ranks, hosts, steps and strengths are drawn from the seed.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
DRAW = random.Random(SEED)
RANKS, STEPS, LAYERS, COMPUTE = 4, 6, 8, 9.0
# by name: not those that are words of every day
NAMES = ("slow-rank slow-code slow-link slow-host slow-loader slow-checkpoint slow-launch late-send "
         "small-tensors no-fusion no-overlap comm-steals-cpu swap-order flip-bit").split()
KINDS_OF_REPORT = ("slow-link", "slow-host")  # stand in every database's documentation
TELLTALE = ["RT_FAULT", "rt_fault", "rt-fault", "pacer", "WITNESS_DIR"] + NAMES


class Run:
    """A run of paced, ended: status, out, phase(rank, name) in ms, witness(rank)."""

    def __init__(self, work, fault, args=(), ranks=RANKS, hosts=2, steps=STEPS, settings=None):
        self.fault = fault
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=work))
        self.captures = self.folder / "captures"
        self.captures.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("RT_", "RINGSCOPE_"))}
        env.update(settings or {}, RT_FAULT=fault, WITNESS_DIR=str(self.folder),
                   RINGSCOPE_DIR=str(self.captures), OMPI_MCA_mpi_yield_when_idle="1")
        script = f'. "{HERE}/logical-hosts.sh"; on_hosts_traced "$@"'
        preload = f"{BUILD}/tracer/libringscope.so:{BUILD}/tests/e2e/libfault-witness.so"
        train = f"{BUILD}/samples/train"
        self.process = subprocess.Popen(
            ["sh", "-c", "set -eu; " + script, "sh", preload, "openmpi", str(ranks), str(hosts), train,
             f"{train}/paced", "--log", str(self.folder), "--dir", str(self.folder),
             "--steps", str(steps), "--layers", str(LAYERS), "--compute", str(COMPUTE), *args],
            env=env, cwd=self.folder, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.out = ""
        self.checked = False

    def wait(self, hangs_after=None):
        """With `hangs_after`: ends it when it has done nothing for a second after that many steps."""
        if hangs_after is None:
            self.out += self.process.communicate(timeout=60)[0]
        else:
            before = None
            while before is None or min(before) < hangs_after or before != self.steps():
                before = self.steps()
                try:
                    self.out += self.process.communicate(timeout=1)[0]
                    break
                except subprocess.TimeoutExpired:
                    pass
            else:
                os.killpg(self.process.pid, signal.SIGTERM)
                self.out += self.process.communicate(timeout=30)[0]
        self.status = self.process.returncode
        return self

    def log(self, rank):
        path = self.folder / f"rank-{rank}"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [line.split() for line in lines]

    def phase(self, rank, name):
        return [int(ns) / 1e6 for phase, _, ns in self.log(rank) if phase == name]

    def steps(self):
        return [len(self.phase(r, "step")) for r in range(RANKS)]

    def witness(self, rank):
        words = (self.folder / f"witness-{rank}").read_text().split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def total(self, what):
        return sum(self.witness(r)[what] for r in range(RANKS))


RUNS = []


def run(work, fault, *args, hangs_after=None, **how):
    r = Run(work, fault, args, **how)
    try:
        r.wait(hangs_after)
    finally:
        if r.process.poll() is None:
            os.killpg(r.process.pid, signal.SIGKILL)
        # at once: what killed ranks left in memory is taken up, and gone
        r.merged = subprocess.run([BUILD / "analyzer/ringscope", "merge", r.captures],
                                  capture_output=True, text=True)
    RUNS.append(r)
    return r


def check(holds, text, r):
    if not r.checked:
        print(r.fault or "healthy")
    r.checked = True
    print(("  " if holds else "  WRONG: ") + text, flush=True)
    if not holds:
        print(r.out)
        for k in range(RANKS):
            print(k, " ".join(f"{phase} {int(ns) / 1e6:.2f}" for phase, _, ns in r.log(k)))
        sys.exit(f"with seed {SEED}")


def check_phase(r, name, planted, slow, own):
    """The shortest `name` of ranks `slow` has `planted` ms more than `own`, of the others not half."""
    for rank in range(RANKS):
        shortest = min(r.phase(rank, name))
        if rank in slow:
            check(shortest >= own + planted, f"rank {rank}: {name} {shortest:.2f} ms", r)
        else:
            check(shortest < own + planted / 2, f"rank {rank}: {name} {shortest:.2f} ms, no more", r)


def ms():
    return round(DRAW.uniform(8, 14), 2)


def rank():
    return DRAW.randrange(RANKS)


def a_step():
    return DRAW.randrange(1, STEPS - 1)


def time_faults(work):
    a, b, version = rank(), rank(), f"2.{DRAW.randrange(10, 28)}.{DRAW.randrange(1, 9)}"
    slow, late, disk, v = ms(), ms(), ms(), rank()
    r = run(work, f"slow-rank:rank={a},ms={slow};slow-loader:rank={b},ms={late};"
                  f"slow-checkpoint:every=2,ms={disk};version:rank={v},lib=nccl,value={version}")
    check(r.status == 0 and "identical" in r.out, "trains", r)
    check_phase(r, "forward", slow, [a], COMPUTE / 3)
    check_phase(r, "load", late, [b], 0)
    check(len(r.phase(0, "checkpoint")) == STEPS // 2 and min(r.phase(0, "checkpoint")) >= disk,
          "checkpoints, and how long they take", r)
    major, minor, patch = map(int, version.split("."))
    for k in range(RANKS):
        told = int(r.log(k)[0][1])
        other = major * 10000 + minor * 100 + patch
        check((told == other) == (k == v), f"rank {k} has NCCL {told}", r)

    host, factor = DRAW.randrange(2), round(DRAW.uniform(3, 4), 2)
    c, code = rank(), ms()
    phase = DRAW.choice(["load", "synchronize", "optimizer"])
    r = run(work, f"slow-host:host={host},factor={factor};slow-code:rank={c},phase={phase},ms={code}")
    of_host = [k for k in range(RANKS) if k // 2 == host]
    check_phase(r, "forward", COMPUTE / 3 * (factor - 1), of_host, COMPUTE / 3)
    check(min(r.phase(c, phase)) >= code, f"rank {c}: {phase} {min(r.phase(c, phase)):.2f} ms", r)
    if phase != "synchronize":  # there the others wait for it
        check(all(min(r.phase(k, phase)) < code / 2 for k in range(RANKS) if k != c),
              f"the others' {phase} is shorter", r)

    spread = round(DRAW.uniform(2, 4), 2)
    r = run(work, f"imbalance:spread={spread},seed={SEED}", steps=12)
    own = COMPUTE / 3
    times = [r.phase(k, "forward") for k in range(RANKS)]
    slowest = {max(range(RANKS), key=lambda k: times[k][s]) for s in range(12)}
    check(min(map(min, times)) < own * (1 + spread / 3) and
          max(map(max, times)) > own * (1 + spread * 2 / 3) and len(slowest) > 1,
          f"the slowest was one of {sorted(slowest)}", r)

    j, more = rank(), ms()
    r = run(work, f"jitter:rank={j},prob=0.5,ms={more},seed={SEED}", steps=20)
    hit = [sum(t >= own + more for t in r.phase(k, "forward")) for k in range(RANKS)]
    check(1 <= hit[j] <= 19 and all(hit[k] < hit[j] for k in range(RANKS) if k != j),
          f"steps it came in, by rank: {hit}", r)

    sender, late = rank(), ms()
    r = run(work, f"late-send:rank={sender},ms={late}", "--plain")
    receiver, before = (sender + 1) % RANKS, (sender - 1) % RANKS
    waits = [min(r.phase(k, "exchange")) for k in range(RANKS)]
    check(waits[sender] >= late and sorted(r.phase(receiver, "exchange"))[STEPS // 2] >= late / 2 and
          waits[before] < late / 2, f"exchange by rank: {waits}", r)


def core_faults(work):
    work_args = ("--work", "--compute", "60", "--layers", "4")
    r = run(work, "contend:rank=1", *work_args, ranks=2, steps=3)
    shares = [sum(r.phase(k, "forward")) / 3 / 20 for k in range(2)]
    cores = [r.witness(k)["cores"] for k in range(2)]
    check(shares[1] > 1.4 and cores[1] == 1 and cores[0] == len(os.sched_getaffinity(0)),
          f"forward against its work, by rank: {shares}; cores {cores}", r)
    r = run(work, "comm-steals-cpu;slow-link:hosts=0-1,mbps=100", *work_args, ranks=2, steps=3)
    share = sum(r.phase(0, "backward")) / 3 / 40
    check(share > 1.2 and r.witness(0)["cores"] == 1, f"backward against its work: {share:.2f}", r)


def link_faults(work, healthy):
    lossy = run(work, f"loss:hosts=0-1,percent={DRAW.randint(4, 7)}")
    check(lossy.total("retransmits") > 3 * healthy.total("retransmits") + 5,
          f"segments sent again: {lossy.total('retransmits')}, healthy "
          f"{healthy.total('retransmits')}", lossy)

    # 1 MiB in steps of 90 ms: the link has it in the 60 of the backward pass, or after it
    slow = f"slow-link:hosts=0-1,mbps={DRAW.randint(250, 350)}"
    overlapped = run(work, slow, "--compute", "90")
    after = run(work, slow + ";no-overlap", "--compute", "90")
    exposed = [min(min(r.phase(k, "synchronize")) for k in range(RANKS)) for r in (overlapped, after)]
    check(exposed[1] > 1.5 * exposed[0], f"synchronize {exposed[1]:.1f} ms, overlapped "
          f"{exposed[0]:.1f}", after)
    quick = min(min(healthy.phase(k, "synchronize")) for k in range(RANKS))
    check(exposed[1] > 2 * quick, f"synchronize {exposed[1]:.1f} ms, with a good link {quick:.1f}",
          after)


def runtime_faults(work):
    small, us = f"small-tensors:bytes={4 * DRAW.randrange(500, 1000)}", DRAW.randint(15000, 20000)
    fused = run(work, f"{small};slow-launch:rank={rank()},us={us}", "--bytes", "300000")
    # gradients go through two kernels at least
    shortest = min(b + s for b, s in zip(fused.phase(0, "backward"), fused.phase(0, "synchronize")))
    check(shortest >= us / 500, f"gradients took {shortest:.0f} ms", fused)
    r = run(work, small + ";no-fusion", "--bytes", "300000")
    check(r.total("sends") > 3 * fused.total("sends") and "identical" in r.out,
          f"{r.total('sends')} messages, fused {fused.total('sends')}", r)

    ring = run(work, "", hosts=4, settings={"RT_ALLREDUCE": "ring"})
    doubling = run(work, "algorithm:recursive-doubling", hosts=4, settings={"RT_ALLREDUCE": "ring"})
    share = doubling.total("bytes") / ring.total("bytes")
    check(1.2 < share < 1.5, f"{share:.2f} times the bytes of a ring", doubling)  # 2 : 2 * 3/4

    piece = 4 * DRAW.randrange(500, 2000)
    r = run(work, f"small-tensors:bytes={piece}", "--plain", "--bytes", "200000")
    unit = 200000 // 4 // (2 * LAYERS)
    pieces = sum(-(-(3 * unit if k % 2 else unit) // (piece // 4)) for k in range(LAYERS))
    check(r.witness(0)["allreduces"] == pieces * STEPS + 1,
          f"{r.witness(0)['allreduces']} allreduces, {pieces} a step", r)

    flipped = rank()
    r = run(work, f"flip-bit:rank={flipped},step={a_step()}")
    check(r.status == 0 and "DIFFER" in r.out, "parameters differ at the end", r)


def structure_faults(work):
    r = run(work, "pipeline:stages=4", "--plain", "--microbatches", "4", "--compute", "30")
    # the first of 4 stages waits for the last: 4 microbatches take the time of 7
    shortest = min(f + b for f, b in zip(r.phase(0, "forward"), r.phase(0, "backward")))
    check(shortest >= 30 * 7 / 4, f"forward and backward take {shortest:.1f} ms for 30 of work", r)

    r = run(work, f"swap-order:rank={rank()},step={a_step()}")
    check(r.status == 0 and "identical" in r.out, "the runtime takes any order", r)
    swapped = a_step()
    r = run(work, f"swap-order:rank={rank()},step={swapped}", "--plain", "--bytes", "4096")
    check(r.status != 0 and min(r.steps()) <= swapped, f"steps by rank: {r.steps()}", r)

    wrong = a_step()
    r = run(work, f"mismatch:rank={rank()},step={wrong},what=count", "--plain", "--bytes", "4096")
    check(r.status != 0 and min(r.steps()) <= wrong, f"steps by rank: {r.steps()}", r)

    dead, last, absent, stuck = rank(), a_step(), rank(), a_step()
    steps = {what: a_step() for what in ("count", "dtype", "op")}
    with concurrent.futures.ThreadPoolExecutor() as pool:  # their times don't matter: all at once
        refused = {what: pool.submit(run, work, f"mismatch:rank={rank()},step={step},what={what}")
                   for what, step in steps.items()}
        died = pool.submit(run, work, f"die:rank={dead},step={last},signal=KILL")
        skipped = pool.submit(run, work, f"skip:rank={absent},step={a_step()}",
                              hangs_after=STEPS - 1)
        locked = pool.submit(run, work, f"deadlock:step={stuck}", "--plain", hangs_after=stuck)
    for what, called in (("count", "shape"), ("dtype", "type"), ("op", "reduction")):
        r = refused[what].result()
        text = rf"ranks disagree about tensor gradient\.layer{LAYERS}\.0; {called}: rank 0 "
        check(r.status != 0 and re.search(text, r.out) and max(r.steps()) == steps[what],
              f"refused in step {max(r.steps())}", r)
    r = died.result()
    check(r.status != 0 and r.steps()[dead] == last, f"steps by rank: {r.steps()}", r)
    r = skipped.result()
    expected = [STEPS if k == absent else STEPS - 1 for k in range(RANKS)]
    check(r.status != 0 and r.steps() == expected, f"steps by rank: {r.steps()}", r)
    r = locked.result()
    check(r.steps() == [stuck] * RANKS and all(r.log(k)[-1][0] == "forward" for k in range(RANKS)),
          f"steps by rank: {r.steps()}", r)


def words_of(fault):
    """What of a fault's text can't be there by chance."""
    for one in filter(None, fault.split(";")):
        yield one
        if ":" in one:
            yield one.split(":")[1]
        yield from (w for w in re.split("[:,]", one) if "=" in w and len(w) > 7)


def check_silence(r, seen):
    left = sorted(p.name for p in r.folder.iterdir() if p.name.startswith("paced-"))
    check(not left, f"files left: {left}", r)
    if r.merged.returncode:
        print(r.merged.stderr)
        check(False, "the captures don't merge", r)
    told = TELLTALE + list(words_of(r.fault))
    for path in sorted(r.captures.iterdir()):
        data = path.read_bytes()
        seen.update(word for word in ("backward", "NEGOTIATE_ALLREDUCE", "synchronize")
                    if path.suffix in (".rsc", ".json", ".sqlite") and word.encode() in data)
        for word in told:
            if word.encode() in data and not (path.suffix == ".sqlite" and word in KINDS_OF_REPORT):
                check(False, f"{path.name} tells '{word}'", r)
    check(any(p.suffix == ".rsc" for p in r.captures.iterdir()), "captures tell nothing", r)


def main():
    if not shutil.which("mpirun.openmpi"):
        print("skipped: no launcher of openmpi")
        sys.exit(77)
    print(f"seed {SEED}")
    with tempfile.TemporaryDirectory() as work:
        healthy, plain = run(work, ""), run(work, "", "--plain")
        for r in (healthy, plain):
            check(r.status == 0 and "identical" in r.out, "trains", r)
        time_faults(work)
        link_faults(work, healthy)
        runtime_faults(work)
        structure_faults(work)
        core_faults(work)
        seen = set()
        for r in RUNS:
            check_silence(r, seen)
        if len(seen) < 3:
            sys.exit(f"the search finds nothing that is there: {seen}")


main()
