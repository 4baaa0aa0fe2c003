"""`diapason tune` from end to end: what it writes has to follow from what it measured, and has to be usable.

    tune_test.py --tool PATH --data FOLDER gloo|openmpi|launched|iteration|recorded_step|workload|simulated|together|mistakes

Nothing here depends on how fast anything is: the number of samples ends a run, not the budget; whatever is tuned must have
been confirmed by its own runs, and whatever is written must be read by those it is for. Skips (77) where a library is not here.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 600  # seconds; only what hangs takes as long
# Counts end the run: the budget is out of reach on a slow machine as well. A configuration that hangs
# takes the limit of a wait.
COUNTED = ("--budget", "1h", "--limit", "20s", "--samples", "60")
LONG = ("--budget", "1h", "--limit", "20s")  # until the test ends it


class Skip(Exception):
    pass


class Tool:
    def __init__(self, path):
        self.path = path
        self.environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                         "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def run(self, *arguments, status=0, before=()):
        done = subprocess.run([*before, self.path, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False,
                              env=self.environment)
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def need(self, backend):
        for one in json.loads(self.run("backends", "--json").stdout)["backends"]:
            if one["name"] == backend and not one["usable"]:
                raise Skip(one["reason"])


def check_outcome(tool, outcome, folder):
    """What holds for every tuning, whatever it found."""
    policy = os.path.join(folder, "policy.conf")
    assert outcome["files"]["policy"] == policy
    tool.run("policy", "check", policy)
    rows = [line for line in open(policy, encoding="utf-8") if line.strip() and not line.startswith("#")]
    assert len(rows) == outcome["rows"]
    assert (outcome["rows"] == 0) == (outcome["tuned"] == 0)
    for call in outcome["calls"]:
        if call["ending"] == "tuned":
            assert call["check"]["low"] > 1, call
            assert call["check"]["rounds"] >= 6, call
            assert call["configuration"] == call["planned"] != "library default", call
        else:
            assert call["configuration"] == "library default", call
            assert call["gain"] == 1, call
            assert call["why"], call
    runs = json.loads(tool.run("data", "export", os.path.join(folder, "measurements.db"), "--format", "json").stdout)
    assert len(runs["samples"]) >= outcome["samples"] > 0
    report = open(os.path.join(folder, "report.html"), encoding="utf-8").read()
    assert report.lower().startswith("<!doctype html") and "allreduce" in report


def tune(tool, folder, *arguments, before=()):
    done = tool.run("tune", *arguments, "-o", folder, "--json", "-q", before=before)
    outcome = json.loads(done.stdout)
    check_outcome(tool, outcome, folder)
    return outcome


def gloo(tool, scratch, _data):
    tool.need("gloo")
    folder = f"{scratch}/tuned"
    outcome = tune(tool, folder, "all_reduce", "--backend", "gloo", "--sizes", "1K,64K", *COUNTED)
    assert outcome["library"] == "gloo" and outcome["ranks"] == 4
    # Again into the same folder, for people: the table, and the lines that use it.
    text = tool.run("tune", "all_reduce", "--backend", "gloo", "-g", "4", "--sizes", "1K", *COUNTED, "-o", folder).stdout
    # On a busy machine Gloo's own choice may be as good as any other.
    use = ("Nothing to gain",) if "no rows" in text else ("no plugin interface", f'options.policy = "{folder}/policy.conf"')
    for part in ("library default", "tuned", "gain", "measurements.db", "report.html", *use):
        assert part in text, f"{part} is not in\n{text}"
    # Anybody can verify it.
    bench = tool.run("bench", "all_reduce", "--backend", "gloo", "-g", "4", "-b", "1K", "-e", "1K", "--policy",
                     f"{folder}/policy.conf", "--rounds", "6").stdout
    assert "allreduce" in bench


def openmpi(tool, scratch, _data):
    tool.need("mpi")
    folder = f"{scratch}/tuned"
    outcome = tune(tool, folder, "all_reduce", "--backend", "mpi", "-g", "4", "--sizes", "1K,64K,1M", *COUNTED)
    assert outcome["library"] == "openmpi"
    rules = outcome["files"]["rules"]
    assert os.path.exists(rules)
    # Open MPI itself reads them.
    done = subprocess.run(["mpirun", "-n", "2", "--mca", "coll_tuned_use_dynamic_rules", "1", "--mca",
                           "coll_tuned_dynamic_rules_filename", rules, tool.path, "bench", "all_reduce", "--backend", "mpi", "-b",
                           "1K", "-e", "1K", "--rounds", "2"], capture_output=True, text=True, timeout=LIMIT, check=False,
                          env=tool.environment)
    assert done.returncode == 0, done.stdout + done.stderr


def launched(tool, scratch, _data):
    """Ranks that somebody else has started, and ranks that a launcher starts for us."""
    tool.need("mpi")
    folder = f"{scratch}/tuned"
    outcome = tune(tool, folder, "all_reduce", "--backend", "mpi", "--sizes", "1K,64K", *COUNTED,
                   before=("mpirun", "-n", "2"))
    assert outcome["ranks"] == 2
    outcome = tune(tool, f"{scratch}/again", "all_reduce", "--backend", "gloo", "-g", "2", "--launcher", "mpirun", "--sizes",
                   "1K,64K", *COUNTED)
    assert outcome["ranks"] == 2 and outcome["library"] == "gloo"
    text = tool.run("tune", "all_reduce", "--backend", "gloo", "--sizes", "1K", *COUNTED, "-o", f"{scratch}/third",
                    before=(tool.path, "launch", "-n", "2", "--")).stdout
    assert "the same ranks" in text or "Nothing to gain" in text, text


def iteration(tool, scratch, _data):
    tool.need("gloo")
    folder = f"{scratch}/tuned"
    outcome = tune(tool, folder, "--backend", "gloo", "-g", "2", "--objective", "iteration", "--iteration", "tp", "--bucket-bytes",
                   "16K", "--compute", "2ms", *COUNTED)
    assert outcome["iteration"]["workload"].startswith("tp: 8 x allreduce 16KiB"), outcome["iteration"]
    assert len(outcome["calls"]) == 1
    if outcome["tuned"]:
        assert outcome["iteration"]["check"]["low"] > 1
    kinds = tool.run("data", "show", f"{folder}/measurements.db", "--kind", "iteration").stdout
    assert "tp: 8 x allreduce 16KiB" in kinds, kinds


def recorded_step(tool, scratch, _data):
    """A step is what the job repeats, in its order: without the calls of its start."""
    start = [(1, 4), (0, 64), (0, 12345), (1, 1 << 20), (0, 999)]
    step = [(1, 65536)] * 3 + [(0, 4096)]
    lines = ['{"type":"journal","version":1,"diapason":"0.2.0","host":"n","pid":7,"time_ns":1794712905000000000}',
             '{"type":"communicator","comm":1,"id":"0x5eed","api":5,"library":"nccl","library_version":22809,"nodes":1,'
             '"ranks":8,"mode":"static","policy":"","digest":"","rows":0,"chain":"","rank":0,"name":"dp"}']
    for call, (kind, size) in enumerate(start + step * 20):
        lines.append(json.dumps({
            "type": "decision", "time_ns": 1794712905001000000 + call * 10000 + (call - len(start)) // len(step) * 1000000,
            "comm": 1, "call": call + 1, "collective": ("allreduce", "allgather")[kind], "bytes": size, "pipe_ops": 1,
            "reg_buff": 0, "algorithm": "ring", "protocol": "ll", "channels": 0, "line": 4, "reason": "row", "applied": True,
            "default_algorithm": "ring", "default_protocol": "ll"}))
    journal = f"{scratch}/recorded.jsonl"
    with open(journal, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    folder = f"{scratch}/step"
    done = tool.run("tune", "--backend", "sim", "-g", "8", "--objective", "iteration", "--workload", journal, *COUNTED, "-o",
                    folder, "--json")
    assert "the job repeats 4 calls; 5 recorded calls outside of that" in done.stderr, done.stderr
    text = json.loads(done.stdout)["iteration"]["workload"]
    assert "3 x allgather 64KiB" in text and "allreduce 4KiB" in text and "12345" not in text, text


def workload(tool, scratch, data):
    tool.need("gloo")
    outcome = tune(tool, f"{scratch}/journal", "--backend", "gloo", "-g", "2", "--workload", f"{data}/journals/agree.0.jsonl",
                   f"{data}/journals/agree.1.jsonl", *COUNTED)
    assert outcome["workload"]["calls"] > 0
    assert sum(call["weight"] for call in outcome["calls"]) <= outcome["workload"]["calls"]
    assert outcome["workload"]["judged"] == "calls alone", outcome["workload"]
    with open(f"{scratch}/journal/report.html", encoding="utf-8") as file:
        assert "calls alone were judged" in file.read()
    # With 64 KiB instead of 64 MiB, which take seconds, and at which some of Gloo's configurations hang.
    logs = f"{scratch}/steady"
    shutil.copytree(f"{data}/logs-lab/steady", logs)
    for name in os.listdir(logs):
        path = f"{logs}/{name}"
        if not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("count 16777216 ", "count 16384 "))
    outcome = tune(tool, f"{scratch}/log", "--backend", "gloo", "-g", "2", "--workload", logs, *COUNTED)
    assert sorted(call["bytes"] for call in outcome["calls"]) == [65536, 1048576], outcome
    assert outcome["workload"]["calls"] > 0
    done = tool.run("tune", "--backend", "gloo", "-g", "2", "--workload", __file__, *COUNTED, "-o", f"{scratch}/x",
                    status=1)
    assert "tune_test.py" in done.stderr, done.stderr


def simulated(tool, scratch, _data):
    folder = f"{scratch}/tuned"
    outcome = tune(tool, folder, "all_reduce", "--backend", "sim", "-g", "8", "--sizes", "4K,1M", *COUNTED)
    assert outcome["simulated"]
    # At 1 MiB another configuration is a fifth faster than the default of the simulated library, whose clock is virtual: a
    # tuner that misses that is broken.
    assert outcome["tuned"] == 1 and outcome["calls"][1]["ending"] == "tuned", outcome
    # What an earlier run has written is kept; what belongs to another library is not left beside it.
    for name, content in (("policy.conf", "# mine\n"), ("rules.conf", "1\n")):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(content)
    text = tool.run("tune", "all_reduce", "--backend", "sim", "-g", "8", "--sizes", "4K", *COUNTED, "-o", folder).stdout
    assert "simulated; nothing was measured" in text, text
    assert "what policy.conf was before" in text, text
    with open(f"{folder}/policy.old.conf", encoding="utf-8") as file:
        assert file.read() == "# mine\n"
    assert not os.path.exists(f"{folder}/rules.conf")


def together(tool, scratch, _data):
    """The second one in a folder says who is there and changes nothing; a killed one leaves the folder to the next."""
    folder = f"{scratch}/tuned"
    arguments = ("tune", "all_reduce", "--backend", "sim", "-g", "4", "--sizes", "4K", "-o", folder)

    def content():
        return {name: open(f"{folder}/{name}", "rb").read() for name in sorted(os.listdir(folder))}

    first = subprocess.Popen([tool.path, *arguments, "-q", *LONG], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + LIMIT
        while not os.path.exists(f"{folder}/measurements.db"):
            assert first.poll() is None and time.monotonic() < limit, "the first one does not begin"
            time.sleep(0.05)
        first.send_signal(signal.SIGSTOP)
        before = content()
        done = tool.run(*arguments, *COUNTED, status=1)
        assert f"the folder '{folder}' is in use by process {first.pid} on " in done.stderr, done.stderr
        assert " since 20" in done.stderr and "--output" in done.stderr and done.stdout == "", done.stderr
        assert content() == before
    finally:
        first.kill()
        first.wait()
    tool.run(*arguments, *COUNTED)
    assert os.path.exists(f"{folder}/policy.conf") and not os.path.exists(f"{folder}/tune.lock")


def mistakes(tool, scratch, _data):
    def fails(status, part, *arguments):
        done = tool.run("tune", *arguments, "-o", f"{scratch}/out", status=status)
        assert part in done.stderr and done.stdout == "", f"{arguments}: {done.stderr}{done.stdout}"

    fails(2, "--objective", "--objective", "speed")
    fails(2, "--workload", "--workload", "x", "--sizes", "1K")
    fails(2, "--bucket-bytes", "--bucket-bytes", "1K")
    fails(2, "--iteration", "--iteration", "fsdp")
    fails(2, "the step has its collectives", "--objective", "iteration", "--sizes", "1K")
    fails(2, "glu", "--backend", "glu")
    fails(2, "all_redduce", "all_redduce", "--backend", "sim")
    fails(2, "is not a size", "--sizes", "4parsecs")
    fails(1, "no other to talk to", "--backend", "sim", "-g", "1")
    fails(1, "one number of nodes", "--backend", "sim", "--nodes", "1,2")
    fails(1, "no_such_journal", "--backend", "sim", "--workload", f"{scratch}/no_such_journal")
    taken = f"{scratch}/file"
    with open(taken, "w", encoding="utf-8") as file:
        file.write("x")
    assert "file" in tool.run("tune", "--backend", "sim", "-o", f"{taken}/x", status=1).stderr
    # Ctrl-C keeps the samples, writes no policy, and leaves nobody behind.
    tool.need("gloo")
    folder = f"{scratch}/cut"
    process = subprocess.Popen([tool.path, "tune", "all_reduce", "--backend", "gloo", "-g", "2", "--sizes", "1K:4M:x2", *LONG,
                                "-o", folder, "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + LIMIT
    store = f"{folder}/measurements.db"
    while not (os.path.exists(store) and os.path.getsize(store) > 65536):
        assert process.poll() is None and time.monotonic() < limit, "it does not measure"
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, f"{process.returncode} {out} {errors}"
    assert "no policy was written" in errors, errors
    assert not os.path.exists(f"{folder}/policy.conf")
    assert json.loads(tool.run("data", "export", store, "--format", "json").stdout)["samples"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("case")
    options = parser.parse_args()
    cases = {case.__name__: case for case in (gloo, openmpi, launched, iteration, recorded_step, workload, simulated, together, mistakes)}
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="diapason_tune_"))
    try:
        cases[options.case](Tool(os.path.abspath(options.tool)), scratch, os.path.abspath(options.data))
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("fine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
