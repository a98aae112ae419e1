# SPDX-License-Identifier: Apache-2.0
"""ringscope-viewer --screenshot without any display: python3 test-screenshot.py VIEWER WRITE_EXPORTS TOOL

Pictures are read back by ImageMagick; wrong usage and bad input end with one line and status 2.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WAIT, GREEN, PURPLE, LOST, STEPS = "#E69F00", "#009E73", "#7B4FA3", "#C03A2B", "#E9EDF2"
ENV = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}


def call(*words):
    return subprocess.run([str(w) for w in words], env=ENV, capture_output=True, text=True,
                          check=False)


def picture(viewer, run, file, *options):
    done = call(viewer, "--screenshot", file, *options, run)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    return file.read_bytes()


def colours(file, part="760x700+176+74"):
    """Colour to number of pixels, of the timeline or another part."""
    out = call("convert", file, "-crop", part, "-format", "%c", "histogram:info:-").stdout
    found = {}
    for line in out.splitlines():
        count, rest = line.strip().split(":", 1)
        found["#" + rest.split("#")[1][:6]] = int(count)
    return found


def pictures(viewer, folder):
    file = folder / "a.png"
    everything = picture(viewer, folder / "faults.sqlite", file)
    assert call("identify", "-format", "%wx%h", file).stdout == "1280x800"
    found = colours(file)
    assert found.get(WAIT, 0) > 2000 and found.get(GREEN, 0) > 2000, found
    again = picture(viewer, folder / "faults.sqlite", folder / "b.png")
    assert again == everything, "the same run gives another picture"
    part = picture(viewer, folder / "faults.sqlite", folder / "c.png", "--from", 0.1, "--to", 0.15)
    assert part != everything
    picture(viewer, folder / "faults.sqlite", file, "--size", "640x480")
    assert call("identify", "-format", "%wx%h", file).stdout == "640x480"
    picture(viewer, folder / "faults.sqlite", file, "--size", "300x300")
    steps = colours(file, "120x10+176+60").get(STEPS, 0)
    assert steps > 500, f"{steps} pixels: steps too thin to be told apart are no longer shown"
    picture(viewer, folder / "wide.sqlite", file)
    assert colours(file).get(PURPLE, 0) > 1000, "no device slices"
    picture(viewer, folder / "messy.sqlite", file, "--select", "evil")
    assert colours(file).get(LOST, 0) > 20, "the hole is not shown"
    picture(viewer, folder / "missing.sqlite", file, "--finding", "1")


def ranks_of_traces(viewer, folder):
    """--rank says whose each trace is, as it does for the other commands."""
    for name, ends in ("a", 60), ("b", 90):
        (folder / f"{name}.json").write_text('[{"ph":"X","name":"k","pid":1,"tid":1,"ts":1,"dur":%d}]' % ends)
    shot = [viewer, "--screenshot", folder / "r.png", folder / "a.json", folder / "b.json"]
    pictures = []
    for ranks in ("0,1", "1,0"):
        done = call(*shot, "--rank", ranks)
        assert done.returncode == 0, done.stderr
        pictures.append((folder / "r.png").read_bytes())
    assert pictures[0] != pictures[1], "the ranks that were given don't count"
    refused("--rank: 1 rank given for 2 files", viewer, "--rank", "0", *shot[1:])
    refused("--rank x: not a list", viewer, "--rank", "x", *shot[1:])


def help_has_its_letters(viewer):
    """In a locale without any beyond ASCII, too."""
    done = subprocess.run([viewer, "--help"], env={**ENV, "LC_ALL": "C"}, capture_output=True,
                          encoding="utf-8", check=True)
    assert "ringscope-viewer [OPTION\u2026] RUN" in done.stdout and "--help" in done.stdout, done


def the_tool_hands_over(tool, folder):
    """ringscope view finds the window beside itself, by the folders of the build."""
    file = folder / "view.png"
    done = call(tool, "view", "--screenshot", file, folder / "wide.sqlite")
    assert done.returncode == 0, done.stderr
    assert call("identify", "-format", "%wx%h", file).stdout == "1280x800"
    told = call(tool, "view", "--help").stdout
    assert "ringscope view [OPTION" in told and "--screenshot=FILE.png" in told, told


def refused(expected, *words):
    done = call(*words)
    assert done.returncode == 2, (words, done.returncode)
    lines = done.stderr.splitlines()
    path = str(words[-1])
    assert done.stderr.count(path + ": " + path) == 0, f"said twice: {done.stderr}"
    assert len(lines) == 1 and expected in lines[0], (words, done.stderr)


def refusals(viewer, folder):
    file, run = folder / "x.png", folder / "faults.sqlite"
    (folder / "text").write_text("no run\n")
    (folder / "empty").mkdir()
    shot = [viewer, "--screenshot", file]
    refused("nowhere", *shot, folder / "nowhere")
    refused("text", *shot, folder / "text")
    refused("empty", *shot, folder / "empty")
    refused("no run", *shot)
    refused("size", *shot, "--size", "12", run)
    refused("size", *shot, "--size", "1280x", run)
    refused("size", *shot, "--size", "9999999x800", run)
    refused("--screenshot: no file given", viewer, "--screenshot", "", run)
    refused("--from", *shot, "--from", 2, "--to", 1, run)
    refused("wrong usage", *shot, "--no-such-option", run)
    refused("nofolder", viewer, "--screenshot", folder / "nofolder" / "x.png", run)
    refused("--screenshot", viewer, run)  # no display for a window
    what_the_run_lacks(shot, run)
    assert not file.exists()


def what_the_run_lacks(shot, run):
    """Asked for and not there is an error that says what is there."""
    refused("--finding 99: the run has 1 finding: 1 slow-link", *shot, "--finding", 99, run)
    for number in ("0", "-3", "x", "99999999999"):
        refused(f"--finding {number}: not the number", *shot, "--finding", number, run)
    refused("--select nonesuch: no slice of the run is named so; the most frequent names are MPI_",
            *shot, "--select", "nonesuch", run)
    refused("--select: no text", *shot, "--select", "", run)
    refused("--from 100: not in the run, which lasts", *shot, "--from", 100, run)
    refused("--from nan: not a number", *shot, "--from", "nan", run)
    refused("--to 0: nothing", *shot, "--to", 0, run)


def main(viewer, write_exports, tool):
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        subprocess.run([write_exports, folder], check=True)
        pictures(viewer, folder)
        refusals(viewer, folder)
        ranks_of_traces(viewer, folder)
        help_has_its_letters(viewer)
        the_tool_hands_over(tool, folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
