"""`diapason tune -- COMMAND`, from the command line to the report, in played jobs whose truth is known.

    tune_test.py PROGRAM TOOL CASE
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid

PROGRAM, TOOL, CASE = (os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3])
LIMIT = 900  # seconds; every wait ends by then
# Seconds of a run, and real microseconds between two calls: a busy machine needs more of both.
EFFORTS = ((240, 300), (600, 500))
TOKEN = uuid.uuid4().hex
SHARED = f"/dev/shm/diapason-{os.getuid()}"


def environment(**more):
    ours = ("DIAPASON_", "NCCL_", "OMPI_", "PMIX", "SLURM")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**clean, "TUNE_TEST_TOKEN": TOKEN, **more}


def processes():
    """Those of this test, however they were started."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and int(name) != os.getpid():
                with open(f"/proc/{name}/environ", "rb") as file:
                    if TOKEN.encode() in file.read():
                        found.append(int(name))
    return found


def check(condition, text):
    if not condition:
        sys.exit(text)


def check_nothing_left(tool):
    check(not processes(), f"processes are left: {processes()}")
    # Jobs are named after the process of the tool.
    left = [name for name in os.listdir(SHARED) if f"tune-{tool}-" in name] if os.path.isdir(SHARED) else []
    check(not left, f"left in {SHARED}: {left}")


def command_of(folder, budget, options, command):
    return [TOOL, "tune", "--json", "--budget", f"{budget}s", "-o", folder, *options, "--", *command]


def tune(folder, budget, command, *options):
    """Status, result (None if there is none) and what was said of one run, which leaves nothing running."""
    line = command_of(folder, budget, options, command)
    with subprocess.Popen(line, env=environment(), cwd=os.path.dirname(folder), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(timeout=LIMIT)
    print(err)
    check_nothing_left(process.pid)
    result = json.loads(out) if out.strip() else None
    if result:
        print("status", process.returncode, json.dumps({**result, "look": 0, "contexts": 0})[:2000])
    return process.returncode, result, err


def program(kind, pace, *options, iterations=10000000):
    return [PROGRAM, "--iterations", str(iterations), "--pace", str(pace), *options, kind]


def truth(folder, kind, *mode):
    """The length of an iteration, in seconds, when the whole job runs in one way."""
    path = os.path.join(folder, "truth")
    done = subprocess.run([TOOL, "run", "-q", *mode, "--", *program(kind, 0, "--truth", path, iterations=60)],
                          env=environment(), cwd=folder, stdout=subprocess.DEVNULL, timeout=LIMIT, check=False)
    check(done.returncode == 0, f"status {done.returncode} of a whole job")
    with open(path + ".0", encoding="utf-8") as file:
        return json.load(file)["iteration_us"] / 1e6


def check_files(tuned, result, measured=True):
    wanted = ["result.json", "report.html"] + [f"launch-{one['number']}.log" for one in result["launches"]]
    if result["verdict"] == "faster":
        wanted += ["policy.conf"] + ["measurements.db"] * measured
    for name in wanted:
        check(os.path.getsize(os.path.join(tuned, name)) > 0, f"{name} is empty")
    with open(os.path.join(tuned, "result.json"), encoding="utf-8") as file:
        check(json.load(file)["verdict"] == result["verdict"], "result.json is of another run")
    check(os.path.exists(os.path.join(tuned, "policy.conf")) == (result["verdict"] == "faster"),
          "a policy is written if and only if it is confirmed")


def check_agreed(tuned, result):
    for one in result["launches"]:
        journals = os.path.join(tuned, "journals", f"launch-{one['number']}")
        files = [os.path.join(journals, name) for name in sorted(os.listdir(journals))]
        done = subprocess.run([TOOL, "journal", "check", *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT, check=False, text=True)
        check(done.returncode == 0, f"the ranks of launch {one['number']} did not agree:\n{done.stdout}")


def check_nothing_is_faster(folder, kind, result, by_default):
    """Whole jobs in which all calls of a context run in one way, for each that was tried."""
    policy = os.path.join(folder, "one.conf")
    tried = [(context, one["config"]) for context in result["contexts"] for one in context["tried"]]
    check(tried, "nothing was tried")
    for context, config in tried:
        last = context["band_last"]
        channels = config["channels"] or -1
        row = [context["collective"], last // 2 + 1, last, config["algorithm"], config["protocol"], channels,
               context["nodes"], context["ranks"], -1, -1]
        with open(policy, "w", encoding="utf-8") as file:
            file.write(",".join(str(one) for one in row) + "\n")
        gained = by_default / truth(folder, kind, "--policy", policy)
        print(f"{kind}: {row}: in truth {gained:.4f} x")
        # The search calls nothing faster that gains less than a percent.
        check(gained < 1.02, "there is something to gain")


def check_truth(folder, tuned, kind, result):
    by_default = truth(folder, kind, "--observe")
    if result["verdict"] == "nothing to gain":
        return check_nothing_is_faster(folder, kind, result, by_default)
    gained = by_default / truth(folder, kind, "--policy", os.path.join(tuned, "policy.conf"))
    gain = result["gain"]
    print(f"{kind}: in truth {gained:.4f} x, found {gain}")
    # A percent beside the interval: iterations next to a change of turns are part of both.
    check(gain["low"] * 0.99 <= gained <= gain["high"] * 1.01, "the gain is outside its interval")
    check(gained > 1, "the policy is slower")


def decided(kind, *options, command=program, verdicts=("faster", "nothing to gain")):
    """Tunes a kind of job, with more and more time until the tool can decide; the files stay for `then`."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        tuned = os.path.join(folder, "tuned")
        for budget, pace in EFFORTS:
            status, result, err = tune(tuned, budget, command(kind, pace), *options)
            check(result and "verdict" in result, f"status {status} without a result: {err}")
            check(status == (0 if result["verdict"] in ("faster", "nothing to gain") else 1), f"status {status}")
            if result["verdict"] in verdicts:
                break
            check(result["verdict"] in ("undecided", "not confirmed"), f"the verdict is {result['verdict']}")
        else:
            sys.exit("it could never decide")
        check_files(tuned, result)
        check_agreed(tuned, result)
        if "metric changed" not in verdicts:
            check_truth(folder, tuned, kind, result)
        return result


def seeded(*options, iterations=10000000):
    """Launches that differ from each other."""
    def command(kind, pace):
        words = " ".join([*program(kind, pace, *options, iterations=iterations)])
        return ["sh", "-c", f"exec {words} --seed $DIAPASON_LAUNCH"]

    return command


def by_launches(kind, *options):
    """Calls in graphs: tried and verified by launches, whose number was said beforehand."""
    result = decided(kind, command=seeded(*options), verdicts=("faster",))
    captured = [one for one in result["contexts"] if one["tried_by"] == "launches"]
    check(len(captured) == 1 and captured[0]["collective"] == "allreduce", f"captured: {captured}")
    check(captured[0]["chosen"]["algorithm"] == "tree", f"chosen: {captured[0]['chosen']}")
    check(len(captured[0]["tried"]) >= 4, "too few configurations were tried")
    check(result["gain"]["compared"] == "between launches" and result["gain"]["pairs"] >= 3, f"{result['gain']}")
    check(not result["verified"] and len(result["pairs"]) >= 3, "it was not verified by pairs of launches")
    first = [one["default_launch"] < one["policy_launch"] for one in result["pairs"]]
    check(first == [i % 2 == 0 for i in range(len(first))], f"the order does not alternate: {result['pairs']}")
    check(len(result["launches"]) <= 40, "more launches than were said")
    check(0.3 < result["shares"]["by_launches"] <= 1 and result["shares"]["untried"] == 0, f"{result['shares']}")
    return result


def graph():
    """Three captured calls, and one that is tried inside the job."""
    result = by_launches("graph")
    check(result["timed"] == "iterations" and result["shares"]["by_launches"] < 0.95, f"{result['shares']}")
    inside = [one for one in result["contexts"] if one["tried_by"] == "blocks"]
    check(inside and inside[0]["collective"] == "allgather" and inside[0]["tried"], f"inside: {inside}")


def groups():
    """What cannot be tried at all is said with its part."""
    shares = decided("groups")["shares"]
    check(shares["of"] == "time" and 0.2 < shares["untried"] < 0.9 and shares["by_launches"] == 0, f"{shares}")
    check(any("groups of several calls" in one for one in shares["reasons"]), f"{shares}")


def whole():
    """Nothing shows when graphs are replayed: launches are timed to their end."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        tuned = os.path.join(folder, "tuned")
        # A busy machine needs longer launches.
        for iterations in (60, 1000):
            command = seeded("--real-time", iterations=iterations)("replays", 0)
            status, result, err = tune(tuned, 240, command)
            check(result and "verdict" in result, f"status {status} without a result: {err}")
            if result["verdict"] == "faster":
                break
            check(result["verdict"] in ("undecided", "not confirmed", "nothing to gain"), result["headline"])
        check(result["verdict"] == "faster", f"it could never decide: {result['headline']}")
        check_files(tuned, result, measured=False)
        check(result["timed"] == "launches" and "a launch takes" in result["headline"], result["headline"])
        check(all(not one["ended_by_diapason"] for one in result["launches"]), "a launch was cut short")
        check("tree" in result["policy"][0], f"policy: {result['policy']}")
        check("whole launches are timed" in err, "it does not say what is timed")


def locked():
    """A second run in the same folder changes nothing."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        tuned = os.path.join(folder, "tuned")
        line = command_of(tuned, 600, ("--grace", "2s"), program("decode", 150))
        with subprocess.Popen(line, env=environment(), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as first:
            for text in first.stderr:
                if "launch 1" in text:
                    break
            second = subprocess.run(command_of(tuned, 600, (), ["true"]), env=environment(), cwd=folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
            first.send_signal(signal.SIGTERM)
            first.communicate(timeout=LIMIT)
        check(second.returncode == 1, f"status {second.returncode}")
        check(str(first.pid) in second.stderr and "choose another folder" in second.stderr, second.stderr)
        check(first.returncode == 130, f"the first run ended with {first.returncode}")
        check_nothing_left(first.pid)


def between():
    """SIGINT while --between runs: the end is the same as during a launch."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        tuned = os.path.join(folder, "tuned")
        began = os.path.join(folder, "between")
        options = ("--grace", "2s", "--between", f"touch {began}; sleep 600")
        # It ends by itself while the search has just begun.
        line = command_of(tuned, 600, options, program("decode", 300, iterations=600))
        with subprocess.Popen(line, env=environment(), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            for _ in range(LIMIT * 10):
                if os.path.exists(began) or process.poll() is not None:
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT)
        check(process.returncode == 130, f"status {process.returncode}: {err}")
        check(json.loads(out)["interrupted"] and len(json.loads(out)["launches"]) == 1, out)
        check_nothing_left(process.pid)


def says(kind, expected, *options, budget=20):
    """A job in which nothing can be tuned: what is said about it, and that no policy is written."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        tuned = os.path.join(folder, "tuned")
        _, result, err = tune(tuned, budget, program(kind, 500, *options))
        check(expected in err + json.dumps(result), f"expected '{expected}'")
        check(not os.path.exists(os.path.join(tuned, "policy.conf")), "a policy was written")


def again():
    """Launches that end by themselves: the search goes on in the next one; --between runs; the metric is the same."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        between = os.path.join(folder, "between")

        def short(kind, pace):
            # About nine seconds: a launch is too short for the whole search.
            return ["sh", "-c", f"echo loss 1.0; exec {PROGRAM} --iterations {800 * 300 // pace} --pace {pace} {kind}"]

        result = decided("decode", "--metric", "loss ([0-9.]+)", "--launches", "40", "--between",
                         f"echo $DIAPASON_LAUNCH >> {between}", command=short)
        with open(between, encoding="utf-8") as file:
            numbers = [int(line) for line in file]
    searching = [one for one in result["launches"] if "search" in one["purpose"]]
    check(len(searching) > 1, "one launch was enough for the search")
    # The last run, if it took several.
    last = numbers[-(len(result["launches"]) - 1):]
    check(last == list(range(2, len(result["launches"]) + 1)), f"between launches: {numbers}")
    check(result["verdict"] == "faster", result["headline"])
    check(result["metric"]["verdict"] == "unchanged", f"the metric: {result['metric']}")


def metric_changes():
    """A loss that is another one with a policy: no policy is written."""

    def changing(kind, pace):
        lines = f"""case "$DIAPASON_MODE" in static) echo loss 1.1;; *) echo loss 1.0;; esac
            exec {PROGRAM} --iterations {1200 * 300 // pace} --pace {pace} {kind}"""
        return ["sh", "-c", lines]

    result = decided("decode", "--metric", "loss ([0-9.]+)", "--launches", "40", command=changing,
                     verdicts=("metric changed",))
    check("1.1" in result["headline"], result["headline"])


def interrupted():
    """SIGINT in the middle of the search."""
    with tempfile.TemporaryDirectory(prefix="diapason_tune_") as folder:
        tuned = os.path.join(folder, "tuned")
        line = command_of(tuned, 600, ("--grace", "2s"), program("decode", 150))
        with subprocess.Popen(line, env=environment(), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            for text in process.stderr:
                if "trying" in text:
                    break
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT)
        check(process.returncode == 130, f"status {process.returncode}: {err}")
        check_nothing_left(process.pid)
        check(json.loads(out)["interrupted"], "it does not say that it was interrupted")
        check(not os.path.exists(os.path.join(tuned, "policy.conf")), "a policy was written")


CASES = {
    "none": lambda: says("none", "no iterations were found"),
    "graph": graph,
    "groups": groups,
    "replays": lambda: by_launches("replays", "--steps"),
    "whole": whole,
    "unmarked": lambda: says("replays", "call diapason_step() (diapason.step() in Python) once per iteration, or let"),
    "locked": locked,
    "between": between,
    "again": again,
    "metric_changes": metric_changes,
    "interrupted": interrupted,
}
# Where a shell has started this in the background, SIGINT is ignored, and would be by the tool and its jobs.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    CASES.get(CASE, lambda: decided(CASE))()
finally:
    for left in processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)
