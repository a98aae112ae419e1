#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rt-run on this host: environment, output, input, signals, ends of ranks, and that nothing stays.

    test-rt-run.py BUILD_ROOT
"""
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(sys.argv[1]).resolve()
RUN = str(root / "samples/runtime/run/rt-run")
WORD = f"rt-run-test-{os.getpid()}"  # in the environment of all that a test starts
failures = 0
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, which ranks would inherit


def left():
    """The processes of this test, but for itself."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        try:
            if p.name.isdigit() and f"WORD={WORD}".encode() in (p / "environ").read_bytes():
                line = (p / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (p / "stat").read_text().rpartition(")")[2].split()[0]
                found += [(int(p.name), state, line)]
        except OSError:
            pass
    return found


def start(*words, **options):
    env = dict(os.environ, WORD=WORD)
    env.update(options.pop("env", {}))
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([RUN, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **{"text": True, **options})


def run(*words, given=None, **options):
    if given is not None:
        options["stdin"] = subprocess.PIPE
    with start(*words, **options) as p:
        out, err = p.communicate(given, timeout=60)
    return p.returncode, out, err


def sh(script):
    return ["sh", "-c", script]


def judge(good, what, *seen):
    global failures
    if not good:
        failures += 1
        print(f"WRONG: {what}", *seen, sep="\n")


def wait_until(true, what):
    """No time is judged: what never comes true fails."""
    for _ in range(3000):
        if true():
            return
        time.sleep(0.01)
    judge(False, f"never: {what}", left())


def nothing_left(what):
    wait_until(lambda: not left(), f"nothing of {what} is left")
    for pid, _, _ in left():
        os.kill(pid, signal.SIGKILL)


# ---- the environment ----

def test_environment():
    say = 'echo "$RT_RANK $RT_SIZE $RT_LOCAL_RANK $RT_LOCAL_SIZE $RT_ADDR $RT_PORT $RT_JOB $A $B"'
    status, out, err = run("-n", "3", "-x", "A=a b", "-x", "B", *sh(say), env={"B": "it's"})
    lines = sorted(line.split(" ", 6) for line in out.splitlines())
    judge(status == 0 and not err and len(lines) == 3, "three ranks", out, err)
    for r, line in enumerate(lines):
        judge(line[:5] == [str(r), "3", str(r), "3", "127.0.0.1"], "the environment", line)
        judge(line[5:] == lines[0][5:] and 0 < int(line[5]) < 65536, "the same of all", line)
        judge(line[6].endswith(" a b it's") and re.match("[0-9a-f]{32} ", line[6]), "-x", line)
    _, other, _ = run("-n", "1", *sh(say))
    judge(other.split()[6] not in out, "two jobs have one name", out, other)
    status, out, _ = run("-np", "2", "--port", "1234", "--addr", "::1", "--interface", "lo",
                         "--start-timeout", "7", "--",
                         *sh('echo $RT_ADDR $RT_PORT $RT_INTERFACE $RT_START_TIMEOUT'))
    judge(out == "::1 1234 lo 7\n" * 2, "addresses that are told", out)
    status, out, _ = run("-n1", "sh", "-c", 'printf "%s|" "$@"', "x", "a b", "", "'\"$", "-n", "--help")
    judge(out == "a b||'\"$|-n|--help|", "arguments", out)
    status, out, _ = run(*sh("echo $RT_SIZE"))
    judge(out.splitlines() == [str(len(os.sched_getaffinity(0)))] * len(out.splitlines()), "N", out)


def test_the_socket_of_rank_0():
    look = ('import os, socket; fd = os.environ.get("RT_LISTEN_FD"); s = fd and socket.socket('
            'fileno=int(fd)); print(os.environ["RT_RANK"], fd and s.getsockname()[1] == '
            'int(os.environ["RT_PORT"]) and s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))')
    status, out, err = run("-n", "2", "--tag-output", sys.executable, "-c", look)
    judge(sorted(out.splitlines()) == ["[0]<stdout>:0 1", "[1]<stdout>:1 None"], "rank 0 has it", status, out, err)


# ---- words that are wrong ----

def test_wrong_usage():
    cases = {
        (): "no program to run",
        ("-n", "0", "true"): "-n 0: expected a number from 1",
        ("-n", "2x", "true"): "-n 2x: expected",
        ("-n", "3", "-H", "a:2", "true"): "-n 3, but -H has 2 slots",
        ("-H", "a:0", "true"): "slots 0: expected",
        ("-H", "a,,b", "true"): "'' is no host",
        ("-H", "-oProxyCommand=x", "true"): "is no host",
        ("-H", "[::1", "true"): "expected",
        ("-H", "a", "-H", "b", "true"): "twice",
        ("--port", "65536", "true"): "--port 65536: expected a number from 1 to 65535",
        ("-x", "NOT_SET_HERE", "true"): "-x NOT_SET_HERE: not set here",
        ("-x", "=", "true"): "expected NAME",
        ("--nonsense", "true"): "--nonsense",
        ("-n",): "requires an argument",
    }
    for words, text in cases.items():
        status, out, err = run(*words)
        judge(status == 2 and text in err and not out, f"{words}", status, err)
    status, out, err = run("--help")
    judge(status == 0 and "usage: rt-run" in out and not err, "--help", out)
    longest = max(len(line) for line in out.splitlines())
    judge(longest <= 100, f"--help has lines of {longest}")
    status, out, err = run("--version")
    judge(status == 0 and re.fullmatch(r"rt-run \(Ringscope\) [\d.]+\n", out), "--version", out)


def test_a_program_that_can_not_run():
    status, out, err = run("-n", "4", "./no-such-program")
    judge((status, err) == (127, "rt-run: no program ./no-such-program\n"), "127, once", status, err)
    status, out, err = run("-n", "4", "/etc/passwd")
    judge(status == 126 and err.count("\n") == 1 and "/etc/passwd: Permission denied" in err,
          "126, once", status, err)
    nothing_left("programs that can't run")


# ---- output and input ----

def test_output():
    script = ('i=0; while [ $i -lt 300 ]; do printf "%s" "line $i"; printf " of %s\\n" $RT_RANK; '
              'echo "error $i" >&2; i=$((i+1)); done; printf tail')
    status, out, err = run("-n", "4", "--tag-output", *sh(script))
    for r in range(4):
        mine = [line for line in out.splitlines() if line.startswith(f"[{r}]<stdout>:")]
        want = [f"[{r}]<stdout>:line {i} of {r}" for i in range(300)] + [f"[{r}]<stdout>:tail"]
        judge(mine == want, f"lines of rank {r}", *mine[:5])
    errors = err.splitlines()
    judge(len(errors) == 1200 and set(errors) ==
          {f"[{r}]<stderr>:error {i}" for r in range(4) for i in range(300)}, "errors", *errors[:5])
    judge(len(out.splitlines()) == 4 * 301, "no other line")
    long = "x" * 200000
    status, out, _ = run("-n", "2", "--tag-output", sys.executable, "-c", "print('x' * 200000)")
    judge(sorted(out.splitlines()) == [f"[{r}]<stdout>:{long}" for r in (0, 1)], "long lines")
    status, out, _ = run("-n", "1", sys.executable, "-c",
                         "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)",
                         text=False)
    judge(out == bytes(range(256)) * 4096, "all bytes come", len(out))


def test_input():
    text = "".join(f"{i}\n" for i in range(200000))
    status, out, _ = run("-n", "2", *sh('[ $RT_RANK = 0 ] && exec md5sum; exec wc -c'), given=text)
    import hashlib
    want = {hashlib.md5(text.encode()).hexdigest() + "  -", "0"}
    judge(status == 0 and set(out.splitlines()) == want, "rank 0 has it all, others nothing", out)
    status, out, _ = run("-n", "2", "true", given=text)  # nobody reads it
    judge(status == 0 and not out, "unread", status)
    p = start("-n", "2", "cat", stdin=subprocess.PIPE)  # piece by piece, while ranks run
    for word in ("one\n", "two\n"):
        p.stdin.write(word)
        p.stdin.flush()
        judge(p.stdout.readline() == word, "a line comes back")
    p.stdin.close()
    p.stdin = None
    judge(p.wait(60) == 0, "input ends")
    p.communicate()
    # its output is nobody's any more
    with start("-n", "2", *sh("while echo word; do :; done")) as p:
        p.stdout.readline()
        p.stdout.close()
        err = p.stderr.read()
        judge(p.wait(60) == 128 + signal.SIGPIPE, "no reader", p.returncode, err)
    nothing_left("input")


# ---- ends ----

def test_status():
    status, out, err = run("-n", "3", *sh('[ $RT_RANK = 1 ] && exit 9; exec sleep 600'))
    judge(status == 9, "the rank's status", status)
    judge(re.fullmatch(r"rt-run: rank 1 \(localhost, process \d+\) ended with status 9\n"
                       r"rt-run: ends rank 0 2\n", err), "who, and whom", err)
    for name in ("SEGV", "KILL", "TERM"):
        number = getattr(signal, "SIG" + name)
        status, out, err = run("-n", "2", "--grace", "0",
                               *sh(f'[ $RT_RANK = 1 ] && kill -{name} $$; exec sleep 600'))
        judge(status == 128 + number and f"was killed by signal {number} (" in err, name, status, err)
    # in the time of grace the others say what they know, and nobody is ended who ends
    status, out, err = run("-n", "3", "--grace", "60", *sh(
        'if [ $RT_RANK = 2 ]; then echo $$ >pid.new; mv pid.new pid; exit 3; fi; '
        'until [ -e pid ]; do sleep 0.01; done; while kill -0 $(cat pid) 2>/dev/null; do :; done; '
        'echo "$RT_RANK knows"'))
    judge((status, sorted(out.splitlines())) == (3, ["0 knows", "1 knows"]), "grace", status, out)
    judge("rt-run: ends" not in err, "ended in their time of grace", err)
    status, out, err = run("-n", "2", "--grace", "0", *sh('trap "" TERM; [ $RT_RANK = 0 ] && exit 5; '
                                                         'while :; do sleep 1; done'))
    judge(status == 5, "a rank that ignores SIGTERM", status, err)
    nothing_left("status")


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def pids_of(p, count):
    return [int(p.stdout.readline()) for _ in range(count)]


def test_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        p = start("-n", "2", *sh("echo $$; exec sleep 600"))
        pids_of(p, 2)
        p.send_signal(number)
        _, err = p.communicate(timeout=60)
        judge(p.returncode == 128 + number, f"{number}", p.returncode, err)
    # ranks that make their peace with it are no failure
    p = start("-n", "2", *sh("trap 'echo saved; exit 0' TERM; echo $$; while :; do sleep 0.01; done"))
    pids_of(p, 2)
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=60)
    judge((p.returncode, out) == (0, "saved\nsaved\n"), "a trap", p.returncode, out, err)
    p = start("-n", "2", *sh("trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo $$; "
                             "while :; do sleep 0.01; done"))
    pids_of(p, 2)
    for number, word in ((signal.SIGUSR1, "one"), (signal.SIGUSR2, "two")):
        p.send_signal(number)
        judge([p.stdout.readline(), p.stdout.readline()] == [word + "\n"] * 2, word)
    judge(p.wait(60) == 0, "user's signals")
    p.communicate()
    # a second time: at once, whatever ranks do
    p = start("-n", "2", *sh("trap '' INT TERM; echo $$; while :; do sleep 600; done"))
    pids_of(p, 2)
    p.send_signal(signal.SIGINT)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    judge(p.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM), "twice", p.returncode)
    nothing_left("signals")


def states(pids):
    return {pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids}


def test_stop():
    """As under mpirun: ranks stop with rt-run, and go on with it; stopped ones end, too."""
    waits = "sleep 600 & echo $$; echo $!; wait"  # a shell that forks waits in D for its stopped child
    for way in ("fg", "TERM", "KILL"):
        p = start("-n", "2", *sh(waits))
        all_pids = [p.pid] + pids_of(p, 4)
        p.send_signal(signal.SIGTSTP)
        wait_until(lambda: states(all_pids) == {"T"}, "ranks, their children and rt-run stop")
        if way == "KILL":
            p.kill()
        else:
            if way == "TERM":
                p.send_signal(signal.SIGTERM)
            p.send_signal(signal.SIGCONT)
            if way == "fg":
                wait_until(lambda: "T" not in states(all_pids), "all go on")
                p.send_signal(signal.SIGTSTP)  # again
                wait_until(lambda: states(all_pids) == {"T"}, "all stop again")
                p.send_signal(signal.SIGCONT)
                p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=60)
        judge(p.returncode == {"KILL": -9}.get(way, 143), f"stopped, then {way}", p.returncode, err)
        nothing_left(f"stopped ranks, {way}")


def test_a_stopped_terminal():
    """Output that nobody takes doesn't keep rt-run from ending."""
    p = start("-n", "2", "cat", "/dev/zero")
    wait_until(lambda: sum(line.startswith("cat") for _, _, line in left()) == 2, "both ranks run")
    p.send_signal(signal.SIGINT)
    p.send_signal(signal.SIGTERM)
    judge(p.wait(60) in (130, 143), "ends", p.returncode)
    p.stdout.close()
    p.stderr.close()
    nothing_left("full output")


# ---- nothing stays ----

CHILDREN = ("(sleep 600 & echo) >/dev/null; setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & "
            "echo $$; ")


def test_nothing_stays():
    status, out, err = run("-n", "2", *sh(CHILDREN + "exit 0"))  # they hold the pipes
    judge(status == 0 and len(out.split()) == 2, "children stay behind", status, out, err)
    judge(not left(), "nothing is left of an end in peace", *left())
    for how in ("TERM", "KILL"):
        p = start("-n", "2", *sh(CHILDREN + "exec sleep 600"))
        ranks = pids_of(p, 2)
        p.send_signal(getattr(signal, "SIG" + how))
        p.wait(60)
        p.stdout.close()
        p.stderr.close()
        nothing_left(f"SIG{how} to rt-run, ranks {ranks}")


def test_killed_helpers():
    """SIGKILL to the agent, to its keeper, and to either together with rt-run: ranks end with all that
    they have started, and rt-run says that they are lost."""
    for whom in (["agent"], ["keeper"], ["rt-run", "agent"], ["rt-run", "keeper"]):
        p = start("-n", "2", *sh(CHILDREN + "exec sleep 600"))
        pids_of(p, 2)
        pids = {parent_of(pid) == p.pid: pid for pid, _, line in left() if line.endswith("--agent ")}
        pids = {"rt-run": p.pid, "keeper": pids[True], "agent": pids[False]}
        for name in whom:
            os.kill(pids[name], signal.SIGKILL)
        out, err = p.communicate(timeout=60)
        if "rt-run" not in whom:
            judge(p.returncode == 1 and "lost host localhost" in err, f"{whom} is gone", p.returncode, err)
        nothing_left(f"{whom}")


def test_no_zombies():
    p = start("-n", "3", *sh('[ $RT_RANK = 0 ] || exit 0; (sleep 0 & exec sleep 0) & echo $$; '
                             'read x; wait; echo done'), stdin=subprocess.PIPE)
    pids_of(p, 1)
    wait_until(lambda: len([s for _, s, line in left() if line.startswith("sh")]) == 1, "ranks are reaped")
    judge(not [x for x in left() if x[1] == "Z"], "zombies", left())
    p.send_signal(signal.SIGKILL)
    p.communicate()
    nothing_left("zombies")


def test_a_terminal():
    """Ctrl-Z and Ctrl-C reach the ranks by rt-run, once; a rank has no terminal to be stopped by."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["WORD"] = WORD
        os.execv(RUN, [RUN, "-n", "2", *sh("trap 'echo got; exit 0' INT; sleep 600 & echo up $$; "
                                           "wait")])
    seen = b""
    while seen.count(b"\n") < 2:
        seen += os.read(fd, 1000)
    os.write(fd, b"\x1a")
    judge(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]), "Ctrl-Z", seen)
    ranks = [int(word) for word in seen.split() if word.isdigit()]
    wait_until(lambda: len(ranks) == 2 and states(ranks) == {"T"}, "Ctrl-Z stops ranks")
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: "T" not in states(ranks), "ranks go on")
    os.write(fd, b"\x03")
    try:
        while True:
            seen += os.read(fd, 1000)
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    judge(os.waitstatus_to_exitcode(status) == 0 and seen.count(b"got") == 2, "Ctrl-C", status, seen)
    nothing_left("a terminal")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
sys.exit(1 if failures else 0)
