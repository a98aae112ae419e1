# SPDX-License-Identifier: Apache-2.0
"""NCCL by handle, MPI linked into the program: test-nccl-unobserved.py BUILD_ROOT BY_HANDLE NCCL
STATIC_MPI PLUGIN_V1 STATIC_MPI_LARGE [WITHOUT_LOADER]

Capture and report say that communication went past the tracer, by what, and what to do. What is only
mapped leaves no file, and with the API's part off nothing is said.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def run(build, command, folder, **extra):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("RINGSCOPE", "NCCL", "LD_PRELOAD", "RANK", "WORLD_SIZE"))}
    plain = subprocess.run(command, env=env, capture_output=True, check=False, timeout=60)
    env.update(LD_PRELOAD=f"{build}/tracer/libringscope.so", RINGSCOPE_DIR=str(folder),
               RINGSCOPE_EXPORT="none", **extra)
    traced = subprocess.run(command, env=env, capture_output=True, check=False, timeout=60)
    assert plain.returncode == 0, plain
    assert (traced.returncode, traced.stdout, traced.stderr) == (
        plain.returncode, plain.stdout, plain.stderr), (plain, traced)


def finding(build, folder):
    done = subprocess.run([f"{build}/analyzer/ringscope", "report", str(folder), "--format", "json"],
                          capture_output=True, text=True, check=True)
    found = [f for f in json.loads(done.stdout)["findings"]
             if f["kind"] == "unobserved-communication"]
    assert len(found) == 1, done.stdout
    return found[0]


def says(found, *texts):
    whole = "\n".join([found["title"], *found["evidence"], found["remedy"]])
    for text in texts:
        assert text in whole, (text, whole)


def check_without_loader(build, program, folder):
    """No preloaded library ever comes to it: `ringscope run` looks at its file."""
    done = subprocess.run([f"{build}/analyzer/ringscope", "run", "-o", str(folder), "--", program],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not folder.exists(), done
    assert f"{program} is statically linked" in done.stderr and "-static" in done.stderr, done


def main(build, by_handle, nccl, static_mpi, plugin_v1, static_large, *without_loader):
    with tempfile.TemporaryDirectory() as work:
        # its plug-in tells of the operations, nobody of the calls
        folder = pathlib.Path(work, "told")
        run(build, [by_handle, "use", nccl], folder)
        found = finding(build, folder)
        says(found, "libnccl.so", "by NCCL", "profiler plug-in told", "RTLD_DEFAULT")
        assert found["severity"] == "low", found
        # one that tells of no execution: all is missing
        folder = pathlib.Path(work, "untold")
        run(build, [by_handle, "use", nccl], folder, NCCL_PROFILER_PLUGIN=plugin_v1)
        found = finding(build, folder)
        says(found, "libnccl.so", "past the tracer")
        # linked in
        folder = pathlib.Path(work, "static")
        run(build, [static_mpi, "use"], folder)
        found = finding(build, folder)
        says(found, "by MPI", static_mpi, "the program itself", "no .a")
        assert found["severity"] == "high", found
        # ... among many names, of which only a rank's are looked at
        folder = pathlib.Path(work, "static-large")
        run(build, [static_large, "use"], folder, RINGSCOPE_RANK="0")
        says(finding(build, folder), "by MPI", static_large, "the program itself")
        for program in without_loader:
            check_without_loader(build, program, pathlib.Path(work, "without-loader"))
        for name, command, extra in (
                ("mapped", [by_handle, "map", nccl], {}), ("idle", [static_mpi, "idle"], {}),
                ("no rank", [static_large, "use"], {}),
                ("off", [static_mpi, "use"], {"RINGSCOPE_TRACE": "nvtx"})):
            folder = pathlib.Path(work, name)
            run(build, command, folder, **extra)
            assert not folder.exists(), (name, list(folder.iterdir()))
    print("what goes past the tracer is told")


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
