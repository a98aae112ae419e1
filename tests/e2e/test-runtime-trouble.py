# SPDX-License-Identifier: Apache-2.0
"""One rank does something else than the others: the stated message on every rank, exit status, time.

    test-runtime-trouble.py MPI TRAIN_FOLDER CHECK [--late SECONDS] [--seed SEED]

Prints a table, with the ranks that were told, and after how long; which rank does it is drawn. A rank's death has a test of its own (runtime-death), and
so have a rank that is missing at the start and a wrong address (runtime-tcp). By default a late rank
is as late as the first warning; issue and table have 30 s:

    test-runtime-trouble.py openmpi build/samples/train build/tests/e2e/runtime-trouble-check-openmpi \\
        --late 30
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RANKS, HOSTS = 4, "3,1"
# A launcher ends all when the first rank has failed: so all are ready to end before one does.
WRAPPER = """
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RT_RANK}} status=0
"$@" || status=$?
echo "$status" >"$TROUBLE_DIR/$rank.new" && mv "$TROUBLE_DIR/$rank.new" "$TROUBLE_DIR/status-$rank"
until [ "$(ls "$TROUBLE_DIR" | grep -c ^status-)" -eq "$TROUBLE_RANKS" ]; do sleep 0.02; done
exit "$status"
"""


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("mpi", "train", "check"):
        parser.add_argument(name)
    parser.add_argument("--late", type=float, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    return parser.parse_args()


ARGS = arguments()
DRAW = random.Random(ARGS.seed)


def end(process):
    os.killpg(process.pid, signal.SIGTERM)
    return process.communicate()[0]


class Run:
    """What a job of these cases had: out, status of the launcher, statuses of ranks, seconds."""

    def __init__(self, odd, *cases, late=0.0, **settings):
        self.odd, self.cases = odd, " ".join(cases)
        with tempfile.TemporaryDirectory() as work:
            env = {k: v for k, v in os.environ.items() if not k.startswith("RT_")}
            env.update(settings, TROUBLE_DIR=work, TROUBLE_RANKS=str(RANKS),
                       TROUBLE_WARNINGS=f"{work}/warnings")
            script = f'. "{HERE}/logical-hosts.sh"; on_hosts "$@"'
            started = time.monotonic()
            process = subprocess.Popen(
                ["sh", "-euc", script, "sh", ARGS.mpi, str(RANKS), HOSTS, ARGS.train,
                 "sh", "-c", WRAPPER, "sh", ARGS.check, str(odd), str(late), *cases],
                env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True)
            try:
                self.out = process.communicate(timeout=40 + 2 * late)[0]
            except subprocess.TimeoutExpired:
                self.out = end(process)
                self.fail("hangs")
            self.seconds = time.monotonic() - started
            self.status = process.returncode
            self.statuses = [int(pathlib.Path(work, f"status-{r}").read_text())
                             for r in range(RANKS)]
            warnings = pathlib.Path(work, "warnings")
            self.warnings = warnings.read_text() if warnings.exists() else self.out

    def fail(self, what):
        print(f"WRONG, {self.cases} with rank {self.odd}: {what}\n{self.out}seed {ARGS.seed}")
        sys.exit(1)

    def expect(self, what, told, text):
        """Each of ranks `told` is told `text` (a regular expression) about `what`, no other is."""
        waited_ms, said = [], ""
        for rank in range(RANKS):
            # MPICH's launcher may put two ranks' lines into one
            found = re.findall(rf"rank {rank}: {what}: ([\d.]+) ms: (.*?)(?=\n|rank \d: {what}: )",
                               self.out)
            if [rank] * len(found) != [r for r in told if r == rank]:
                self.fail(f"rank {rank} was told {found} about {what}")
            for ms, said in found:
                waited_ms.append(float(ms))
                if not re.fullmatch(text, said):
                    self.fail(f"rank {rank} was told '{said}', expected '{text}'")
        row(",".join(map(str, told)), f"{max(waited_ms):.0f} ms", said)

    def expect_status(self, told):
        statuses = [3 if rank in told else 0 for rank in range(RANKS)]
        if self.statuses != statuses or bool(self.status) != bool(told):
            self.fail(f"statuses {self.statuses} and {self.status}, expected {statuses}")
        row(f"{len(told)} of {RANKS}", f"{self.seconds:.1f} s",
            f"{self.cases}: exit status {self.status}")

    def expect_warning(self, name, missing):
        # rank 0 may have been waited for by others in another tensor, too
        text = (r"rt: some ranks wait for tensors that others have not handed over:\n(  .*\n)*?"
                rf"  {name}: for [\d.]+ s for rank {missing}\n")
        if not re.search(text, self.warnings):
            self.fail(f"no warning: {self.warnings}")


def row(told, duration, text):
    print(f"{told:8} {duration:>8}  {text}", flush=True)


def others(odd):
    return [rank for rank in range(RANKS) if rank != odd]


def disagree(odd):
    def each(usual, other):
        return ", ".join(f"rank {r} {other if r == odd else usual}" for r in range(RANKS))

    run = Run(odd, "mismatch", "uneven", "leave")
    everyone = range(RANKS)
    for what, detail in (("type", each("float32", "int32")), ("root", each("0", "1")),
                         ("reduction", each("sum", "max")), ("count", each("[6]", "[5]")),
                         ("shape", each("[2,3]", "[3,2]")), ("compression", each("none", "fp16")),
                         ("scale", each("1 and 1", "0.5 and 1"))):
        named = {"count": "shape", "scale": "pre- and postscale"}.get(what, what)
        run.expect(what, everyone, re.escape(f"ranks disagree about tensor {what}; {named}: {detail}"))
    operation = f"ranks disagree about tensor operation; operation: {each('ALLREDUCE', 'BROADCAST')}"
    run.expect("operation", everyone, re.escape(operation) + "(; .*)?")
    # who was told, ends; others may hand over after that
    run.expect("more", others(odd), r"tensor more will not be ready: shut down without it:"
               rf"( rank \d)*? rank {odd}( rank \d)*")
    run.expect_status(everyone)


def skip(odd):
    run = Run(odd, "skip", RT_STALL_WARNING_TIME="0.2", RT_STALL_SHUTDOWN_TIME="0.8")
    for what, missing in (("skipped-first", 0), ("skipped", odd)):  # rank 0 coordinates
        run.expect(what, others(missing), rf"tensor {what} has waited [\d.]+ s for rank {missing} "
                   r"\(RT_STALL_SHUTDOWN_TIME\)")
        run.expect_warning(what, missing)
    run.expect_status(range(RANKS))


def come_late(odd):
    run = Run(odd, "start", "late", late=ARGS.late, RT_STALL_WARNING_TIME=str(ARGS.late / 3 or 0.2),
              RT_START_TIMEOUT=str(round(ARGS.late) + 30))
    run.expect_warning("late", odd)
    run.expect_status([])
    if run.seconds < 2 * ARGS.late:
        run.fail(f"after {run.seconds:.1f} s already")


def main():
    launcher = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich", "tcp": "sh"}[ARGS.mpi]
    if not shutil.which(launcher):
        print(f"skipped: no {launcher}")
        return 77
    print(f"{ARGS.mpi}, {RANKS} ranks on hosts of {HOSTS}, seed {ARGS.seed}")
    row("told", "after", "what")
    disagree(DRAW.randrange(RANKS))
    skip(DRAW.randrange(1, RANKS))
    for odd in (0, DRAW.randrange(1, RANKS)):  # rank 0, idle meanwhile, says it of itself, too
        come_late(odd)
    return 0


if __name__ == "__main__":
    sys.exit(main())
