# SPDX-License-Identifier: Apache-2.0
"""Reads what runtime-phases-check left, and says what isn't right.

    check-phases.py timeline RANKS FILE           a timeline file in Horovod's format, from whatever program
    check-phases.py killed RANKS FILE             the same, whose writer was killed
    check-phases.py all RANKS HOSTS FILE LOG...   of the case "all": all ranks' NVTX ranges, and the file
    check-phases.py files RANKS FILE FILE         of the case "files"
    check-phases.py overlap RANKS LOG...          NVTX ranges of training programs

PHASES_BETWEEN is the word for what connects hosts, MPI or TCP.
"""
import json
import os
import sys

BETWEEN = os.environ.get("PHASES_BETWEEN", "MPI")
OPERATIONS = {"ALLREDUCE", "ALLGATHER", "BROADCAST", "REDUCESCATTER", "JOIN", "ADASUM", "ALLTOALL", "BARRIER"}
ACTIVITIES = {"INIT_FUSION_BUFFER", "WAIT_FOR_DATA", "WAIT_FOR_OTHER_TENSOR_DATA", "ALLOCATE_OUTPUT", "INIT_NCCL",
              "QUEUE", "MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER", f"{BETWEEN}_ADASUM_ALLREDUCE"} | {
    f"{by}_{what}" for by in ("NCCL", BETWEEN)
    for what in ("ALLREDUCE", "REDUCESCATTER", "ALLGATHER", "REDUCE", "BCAST", "ALLTOALL")}
IN, OUT = "MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"


def fail(text):
    sys.exit(f"check-phases: {text}")


def load(path, killed):
    """Of a writer that was killed in a write the end may be missing, from the middle of an event on."""
    text = open(path, encoding="utf-8").read()
    if killed and not text.endswith("]"):
        text = text[:text.rindex("\n")].rstrip(",") + "]"
    return json.loads(text)


def read_timeline(path, ranks, whole=True, killed=False):
    """Per tensor name: [(operation, {rank: ts}, [activity], args)]; and the marks. `whole`: all that began
    has ended, and began after the file did: else ranks may have been ready before, for the first barrier."""
    events = load(path, killed)
    if events[0].keys() != {"name", "ph", "pid", "args"} or events[0]["name"] != "process_name" or \
            events[0]["pid"] != 0 or not 10**15 < events[0]["args"]["start_time_since_epoch_in_micros"] < 10**17:
        fail(f"{path}: begins with {events[0]}")
    names, done, under_way, marks, before = {}, {}, {}, [], {}
    for e in events[1:]:
        phase, pid = e["ph"], e.get("pid")
        if phase == "M":
            want = {"process_name": {"name"}, "process_sort_index": {"sort_index"}}[e["name"]]
            if e["args"].keys() != want:
                fail(f"{path}: {e}")
            if e["name"] == "process_name":
                if pid in names or pid != len(names) + 1:
                    fail(f"{path}: {e} after {len(names)} names")
                names[pid] = e["args"]["name"]
                done[names[pid]] = []
            elif e["args"]["sort_index"] != pid:
                fail(f"{path}: {e}")
            continue
        if e["ts"] < before.get(pid, 0) or not isinstance(e["ts"], int):
            fail(f"{path}: {e} after {before[pid]}")
        before[pid] = e["ts"]
        if phase == "i":
            if e.keys() != {"ph", "name", "ts", "s"} or e["s"] != "g" or e["name"] != "CYCLE_START":
                fail(f"{path}: {e}")
            marks.append(e)
            continue
        stack, tensor = under_way.setdefault(pid, []), done[names[pid]]
        if phase == "B" and e.keys() == {"ph", "name", "ts", "pid"}:
            name = e["name"]
            if not stack and name.startswith("NEGOTIATE_"):
                tensor.append([name[len("NEGOTIATE_"):], {}, [], None])
            elif not stack and not tensor or not stack and name != tensor[-1][0] or len(stack) > 1:
                fail(f"{path}: {e} in {stack} of {tensor}")
            elif stack and (stack[0] not in OPERATIONS or name not in ACTIVITIES):
                fail(f"{path}: {e} in {stack}")
            elif stack:
                tensor[-1][2].append(name)
            if not stack and tensor[-1][0] not in OPERATIONS:
                fail(f"{path}: {e}")
            stack.append(name)
        elif phase == "X" and e.keys() == {"ph", "name", "ts", "pid", "dur"} and e["dur"] == 0:
            rank = int(e["name"])
            if len(stack) != 1 or not stack[0].startswith("NEGOTIATE_") or not 0 <= rank < ranks or \
                    rank in tensor[-1][1]:
                fail(f"{path}: {e} in {stack} of {tensor}")
            tensor[-1][1][rank] = e["ts"]
        elif phase == "E" and e.keys() - {"args"} == {"ph", "ts", "pid"}:
            name = stack.pop()
            if "args" in e and (name not in OPERATIONS or e["args"].keys() != {"dtype", "shape"}):
                fail(f"{path}: {e} of {name}")
            if name in OPERATIONS:
                tensor[-1][3] = e.get("args")
            elif name.startswith("NEGOTIATE_") and len(tensor[-1][1]) != ranks and \
                    (whole or names[pid] != "rt.barrier" or len(tensor) > 1):
                fail(f"{path}: {names[pid]}: ranks {sorted(tensor[-1][1])} were ready")
        else:
            fail(f"{path}: {e}")
    if whole and any(under_way.values()):
        fail(f"{path}: not ended: {under_way}")
    return done, marks


def read_log(path):
    """Per tensor name: [(operation, [activity])], from NVTX ranges."""
    categories, open_ranges, done, negotiated = {}, {}, {}, {}
    for line in open(path, encoding="utf-8"):
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "category":
            number, _, name = rest.partition(" ")
            categories[int(number)] = name
            done[name] = []
        elif word == "start":
            number, category, domain, message = rest.split(" ")
            if domain != "horovod":
                continue
            tensor = categories[int(category)]
            open_ranges[int(number)] = (tensor, message)
            if tensor == "rt.shutdown":
                continue
            inside = [m for n, (t, m) in open_ranges.items() if t == tensor and n != int(number)]
            if message.startswith("NEGOTIATE_"):
                if inside:
                    fail(f"{path}: {tensor}: {message} in {inside}")
                negotiated[tensor] = message[len("NEGOTIATE_"):]
            elif message in OPERATIONS:
                if inside or negotiated.pop(tensor, None) != message:
                    fail(f"{path}: {tensor}: {message} in {inside}, negotiated {negotiated}")
                done[tensor].append((message, []))
            elif message in ACTIVITIES:
                if inside != [done[tensor][-1][0]]:
                    fail(f"{path}: {tensor}: {message} in {inside}")
                done[tensor][-1][1].append(message)
            else:
                fail(f"{path}: {tensor}: {message}")
        elif word == "end":
            open_ranges.pop(int(rest), None)
    if open_ranges:
        fail(f"{path}: not ended: {open_ranges}")
    del done["rt.shutdown"]
    return done


def is_late(name):
    return name == "gate" or name.startswith("late.")


def expected_of_all(ranks, hosts):
    """What each tensor goes through: (operation, activities, dtype and shape)."""
    if hosts == 1:
        reduce, gather, exchange = ["NCCL_ALLREDUCE"], ["NCCL_ALLGATHER"], ["NCCL_ALLTOALL"]
        scatter, root = ["NCCL_REDUCESCATTER"], ["NCCL_BCAST"]
    else:
        reduce = ["NCCL_REDUCESCATTER", f"{BETWEEN}_ALLREDUCE", "NCCL_ALLGATHER"]
        gather, exchange, scatter, root = (
            [f"{BETWEEN}_{what}"] for what in ("ALLGATHER", "ALLTOALL", "REDUCESCATTER", "BCAST"))
    one = ("ALLREDUCE", ["QUEUE", *reduce], "[2, 3, 4]")
    return {
        "one": [one, one],
        "compressed": [("ALLREDUCE", ["QUEUE", IN, *reduce, OUT], "[24]")],
        "adaptive": [("ADASUM", ["QUEUE", f"{BETWEEN}_ADASUM_ALLREDUCE"], "[24]")],
        "group": [("ALLREDUCE", ["QUEUE", IN, *reduce, OUT], "[8]+[4]")],
        "gather": [("ALLGATHER", ["QUEUE", "ALLOCATE_OUTPUT", *gather], "[*, 3]")],
        "exchange": [("ALLTOALL", ["QUEUE", "ALLOCATE_OUTPUT", *exchange], "[*, 2]")],
        "scatter": [("REDUCESCATTER", ["QUEUE", IN, *scatter, OUT], "[8, 3]")],
        "root": [("BROADCAST", ["QUEUE", *root], "[24]")],
        "rt.barrier": [("BARRIER", ["QUEUE"], None)],
        "rt.join": [("JOIN", ["QUEUE"], None)],
    }


def check_all(ranks, hosts, path, *logs):
    expected = expected_of_all(ranks, int(hosts))
    without_shape = {name: [(op, activities) for op, activities, _ in times] for name, times in expected.items()}
    if len(logs) != ranks:
        fail(f"{ranks} ranks, {len(logs)} of them with NVTX ranges")
    for log in logs:
        got = read_log(log)
        for name in {n for n in got if not is_late(n)} | without_shape.keys():
            if got.get(name) != without_shape.get(name):
                fail(f"{log}: {name}: {got.get(name)}, expected {without_shape.get(name)}")
    got, marks = read_timeline(path, ranks)
    check_late(ranks, path, got)
    for name in {n for n in got if not is_late(n)} | expected.keys():
        times = [(op, activities, args and args["shape"]) for op, _, activities, args in got.get(name, [])]
        if times != expected.get(name):
            fail(f"{path}: {name}: {times}, expected {expected.get(name)}")
    if not marks:
        fail(f"{path}: no cycle is marked")


def check_late(ranks, path, got):
    for rank in range(ranks):
        [[_, ready, _, _]] = got[f"late.{rank}"]
        if list(ready)[-1] != rank or any(t > ready[rank] for t in ready.values()):
            fail(f"{path}: late.{rank}: {ready}")


def check_files(ranks, first, second):
    got, marks = read_timeline(first, ranks, whole=False)
    if not {"first", "rt.barrier"} >= got.keys() - {"before", "between"} or "first" not in got or not marks:
        fail(f"{first}: {got.keys()}, {len(marks)} marks")
    got, marks = read_timeline(second, ranks, whole=False)
    if not {"second", "first"} <= got.keys() <= {"second", "first", "rt.barrier", "between"} or marks:
        fail(f"{second}: {got.keys()}, {len(marks)} marks")


def check_overlap(ranks, *logs):
    """Gradients are handed over within the backward pass, in each step all of them; and somewhere one is on
    its way before the last of its step is handed over."""
    if len(logs) != ranks:
        fail(f"{ranks} ranks, {len(logs)} of them with NVTX ranges")
    early = 0
    for log in logs:
        categories, phases, steps, given, agreed = {}, [], [], 0, False
        for line in open(log, encoding="utf-8"):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "category":
                number, _, name = rest.partition(" ")
                categories[number] = name
            elif word == "push":
                phases.append(rest)
                given, agreed = 0, False
            elif word == "pop":
                if phases.pop() == "backward":
                    steps.append(given)
            elif word == "start":
                _, category, domain, message = rest.split(" ")
                if domain != "horovod" or not categories[category].startswith("gradient"):
                    continue
                agreed |= message == "ALLREDUCE"
                if not message.startswith("NEGOTIATE_"):
                    continue
                if not phases or phases[-1] != "backward":
                    fail(f"{log}: {categories[category]} is handed over in {phases}")
                given += 1
                early += agreed
        if len(steps) < 10 or min(steps) < 4 or len(set(steps)) > 1:
            fail(f"{log}: gradients handed over in the backward passes: {steps}")
    if early == 0:
        fail("no gradient is on its way before the last one is there")
    print(f"{early} gradients were handed over while others of their step were on their way")


def main(what, ranks, *files):
    if what in ("timeline", "killed"):
        got, _ = read_timeline(files[0], int(ranks), whole=False, killed=what == "killed")
        print(f"{files[0]}: {sum(map(len, got.values()))} operations on {len(got)} tensors")
        return
    {"all": check_all, "files": check_files, "overlap": check_overlap}[what](int(ranks), *files)


main(*sys.argv[1:])
