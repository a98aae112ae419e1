# SPDX-License-Identifier: Apache-2.0
"""Drives the real window under Xvfb: python3 test-window.py VIEWER WRITE_EXPORTS

Pointer and keys come from xdotool; what happened is read from --state-file and from pixels of the
screen. Every wait is for a condition; a condition that never comes is the failure.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

WAIT, BLUE, GREEN, ACCENT = (0xE6, 0x9F, 0x00), (0x00, 0x72, 0xB2), (0x00, 0x9E, 0x73), (0xC2, 0x41, 0x0C)
PATIENCE_S = 30


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"never came true: {what}")


class Screen:
    def __init__(self):
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp",
             "-noreset"],
            pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        number = os.read(read, 16).decode().strip()
        self.number = read  # stays open: the server may write to it again
        assert number, "Xvfb did not start"
        self.env = dict(os.environ, DISPLAY=f":{number}", NO_AT_BRIDGE="1", GTK_THEME="Adwaita")

    def do(self, *words):
        subprocess.run(["xdotool", *map(str, words)], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def focus(self, name):
        """There is no window manager: the window may be listed before it can have the focus."""
        words = ["xdotool", "search", "--onlyvisible", "--name", name, "windowfocus"]
        until(f"focus on {name}", lambda: subprocess.run(
            words, env=self.env, check=False, capture_output=True).returncode == 0)

    def pixel(self, x, y):
        out = subprocess.run(["import", "-window", "root", "-crop", f"1x1+{x}+{y}", "-depth", "8",
                              "rgb:-"], env=self.env, check=True, capture_output=True).stdout
        return tuple(out[:3])

    def close(self):
        self.server.terminate()
        self.server.wait()
        os.close(self.number)


class Window:
    def __init__(self, screen, viewer, run, folder, *options, **how):
        self.screen, self.file = screen, folder / "state"
        self.file.unlink(missing_ok=True)
        self.process = subprocess.Popen([viewer, "--state-file", self.file, *options, run],
                                        env=screen.env, text=True, **how)
        until("a first frame", lambda: self.state().get("frames"))
        screen.focus("Ringscope")

    def close(self):
        self.process.kill()
        self.process.wait()

    def state(self):
        """The lines of the state file: key to the words after it."""
        if not self.file.exists():
            return {}
        found = {}
        for line in self.file.read_text().splitlines():
            key, *words = line.split(" ")
            if key == "finding_at":
                found.setdefault(key, []).append(words)
            else:
                found[key] = words
        return found

    def number(self, key, at=0):
        return float(self.state().get(key, ["nan"])[at])

    def view(self):
        s = self.state()
        return float(s["from_ns"][0]), float(s["to_ns"][0])

    def px_ns(self):
        low, high = self.view()
        return (high - low) / (self.number("area", 2) - self.number("gutter"))

    def point(self, x, y):
        """Moves to x, y of the timeline, and waits until the window has seen it."""
        left, top = self.number("area"), self.number("area", 1)
        self.screen.do("mousemove", int(left + x), int(top + y))

    def changed(self, what, condition):
        return until(what, lambda: condition(self.state()))


def close_to(a, b, tolerance):
    assert abs(a - b) <= tolerance, f"{a} is not {b} within {tolerance}"


def zoom_about_the_pointer(w):
    w.point(620, 90)
    at = float(w.changed("the pointer's time", lambda s: s.get("pointer_ns"))[0])
    low, high = w.view()
    w.screen.do("keydown", "ctrl", "click", 4, "click", 4, "click", 4, "keyup", "ctrl")
    span = (high - low) / 1.25 ** 3
    until("zoom by the wheel", lambda: abs(w.view()[1] - w.view()[0] - span) < span / 1000)
    close_to(w.number("pointer_ns"), at, w.px_ns())
    w.screen.do("key", "minus")
    until("zoom by a key", lambda: abs(w.view()[1] - w.view()[0] - span * 1.25) < span / 1000)
    close_to(w.number("pointer_ns"), at, w.px_ns())


def pan(w):
    low, px = w.view()[0], w.px_ns()
    w.point(700, 500)
    w.screen.do("mousedown", 1)
    w.point(640, 500)
    w.point(550, 500)
    w.screen.do("mouseup", 1)
    until("pan by dragging", lambda: abs(w.view()[0] - low - 150 * px) < 2 * px)
    low = w.view()[0]
    w.screen.do("key", "a")
    until("pan by a key", lambda: w.view()[0] < low)


def show_all(w, everything):
    w.screen.do("key", "0")
    until("everything", lambda: w.view() == everything)


def search(w):
    w.screen.do("key", "ctrl+f")
    w.screen.do("type", "allreduce")
    w.screen.do("key", "Return")
    found = w.changed("a match", lambda s: s.get("selected"))
    assert found[6] == "MPI_Allreduce", found
    w.screen.do("key", "Return")
    again = w.changed("the next match", lambda s: s["selected"][0] != found[0] and s["selected"])
    assert again[6] == "MPI_Allreduce", again
    w.screen.do("key", "Escape")
    w.point(600, 20)
    w.screen.do("key", "f")
    return again


def selection_fills_the_view(w, event):
    box = w.changed("zoom to the selection",
                    lambda s: float(s["selected"][4]) > 500 and s["selected"])
    assert box[0] == event[0]
    x, y, width, height = (float(v) for v in box[2:6])
    until("its frame", lambda: w.screen.pixel(int(x), int(y + height / 2)) == ACCENT)
    colour = w.screen.pixel(int(x + width * 0.99), int(y + height - 4))
    assert colour in (WAIT, BLUE), colour
    return x, y, width, height


def click_selects(w, event, box):
    x, y, width, height = box
    w.screen.do("key", "Escape")
    w.changed("nothing selected", lambda s: "selected" not in s)
    w.screen.do("mousemove", int(x + width / 2), int(y + height / 2), "click", 1)
    found = w.changed("a slice clicked", lambda s: s.get("selected"))
    assert found[0] == event[0], (found, event)
    w.screen.do("key", "Left")
    w.changed("the slice before it", lambda s: s.get("selected") and s["selected"][0] != event[0])


def finding_jumps(w, ranks):
    index, x, y, begin, end, _ = w.state()["finding_at"][0]
    w.screen.do("mousemove", x, y, "click", 1)
    w.changed("the finding shown", lambda s: s["finding"] == [index])
    assert w.state()["marked"] == ranks, w.state()["marked"]
    low, high = w.view()
    assert low <= float(begin) and high >= float(end), (low, high, begin, end)
    assert "selected" not in w.state()
    w.screen.do("key", "period")
    until("a step of the finding", lambda: w.view()[1] - w.view()[0] < (high - low) / 5)
    w.screen.do("key", "f")
    until("all of the finding", lambda: w.view() == (low, high))
    left, top = w.number("area"), w.number("area", 1)
    column = [w.screen.pixel(int(left + 1), int(top + y)) for y in range(60, 300, 6)]
    assert ACCENT in column, "no rank is marked in the picture"


def closing_a_rank(w):
    lines = w.number("lines")
    w.point(40, w.number("ruler") + 22 + 10)
    w.screen.do("click", 1)
    w.changed("rank 0 closed", lambda s: float(s["lines"][0]) < lines)
    w.screen.do("click", 1)
    w.changed("rank 0 open", lambda s: float(s["lines"][0]) == lines)


def dismiss(screen, name, closed):
    """Sends Escape to the dialog called `name`, once it is there, until it is closed."""
    screen.do("search", "--sync", "--onlyvisible", "--name", name)

    def gone():
        subprocess.run(["xdotool", "search", "--onlyvisible", "--name", name, "windowfocus", "key",
                        "Escape"], env=screen.env, check=False, capture_output=True)
        return closed()

    until(f"{name} closed", gone)


def help_opens(w):
    named = ["xdotool", "search", "--onlyvisible", "--name", "Keys and pointer"]
    w.screen.do("key", "question")
    dismiss(w.screen, "Keys and pointer",
            lambda: subprocess.run(named, env=w.screen.env, check=False,
                                   capture_output=True).returncode == 1)
    w.screen.focus("Ringscope")


def drive(screen, viewer, folder):
    w = Window(screen, viewer, folder / "faults.sqlite", folder)
    try:
        everything = w.view()
        zoom_about_the_pointer(w)
        pan(w)
        show_all(w, everything)
        event = search(w)
        click_selects(w, event, selection_fills_the_view(w, event))
        show_all(w, everything)
        finding_jumps(w, ["1", "2"])
        closing_a_rank(w)
        help_opens(w)
        w.screen.do("key", "ctrl+q")
        assert w.process.wait(PATIENCE_S) == 0
    finally:
        w.close()


def what_was_asked_for_is_shown(screen, viewer, folder):
    w = Window(screen, viewer, folder / "faults.sqlite", folder, "--finding", "1", "--select",
               "mpi_send")
    try:
        w.changed("finding and slice", lambda s: s["finding"] == ["0"] and s["marked"] == ["1", "2"]
                  and s.get("selected", [""])[-1] == "MPI_Send")
        begin, end = w.state()["finding_at"][0][3:5]
        low, high = w.view()
        assert low <= float(begin) and high >= float(end), (low, high, begin, end)
    finally:
        w.close()


def what_the_run_lacks_is_told(screen, viewer, folder):
    """The message names what there is; behind it stands the whole run, and stays."""
    for option, value, says in (("--finding", "99", "the run has 1 finding: 1 slow-link"),
                                ("--select", "nonesuch", "no slice of the run is named so"),
                                ("--from", "100", "not in the run, which lasts")):
        w = Window(screen, viewer, folder / "faults.sqlite", folder, option, value,
                   stderr=subprocess.PIPE)
        try:
            said = w.process.stderr.readline()
            assert f"{option} {value}: {says}" in said, said
            named = ["xdotool", "search", "--onlyvisible", "--name", "Not in this run"]
            dismiss(screen, "Not in this run",
                    lambda: subprocess.run(named, env=screen.env, check=False,
                                           capture_output=True).returncode == 1)
            screen.focus("Ringscope")
            w.screen.do("key", "ctrl+q")
            assert w.process.wait(PATIENCE_S) == 0
        finally:
            w.close()


def unreadable_run_is_told(screen, viewer, folder):
    text = folder / "no-run.txt"
    text.write_text("not a run\n")
    process = subprocess.Popen([viewer, text], env=screen.env, stderr=subprocess.PIPE, text=True)
    try:
        said = process.stderr.readline()
        assert "no-run.txt" in said and f"{text}: {text}" not in said, said
        dismiss(screen, "Unreadable run", lambda: process.poll() is not None)
        assert process.returncode == 2, process.returncode
    finally:
        process.kill()
        process.wait()


def main(viewer, write_exports):
    folder = pathlib.Path(tempfile.mkdtemp())
    screen = None
    try:
        subprocess.run([write_exports, folder], check=True)
        screen = Screen()
        drive(screen, viewer, folder)
        what_was_asked_for_is_shown(screen, viewer, folder)
        what_the_run_lacks_is_told(screen, viewer, folder)
        unreadable_run_is_told(screen, viewer, folder)
    finally:
        if screen:
            screen.close()
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
