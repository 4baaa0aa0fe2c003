"""The default and a policy in turns, in played jobs whose truth is known: compare_test.py PROGRAM TOOL CASE."""
import glob
import json
import os
import subprocess
import sys
import tempfile

PROGRAM, TOOL, CASE = sys.argv[1:4]
POLICY = "allreduce,0,1073741824,tree,simple,-1,-1,-1,-1,-1\n"
# Real microseconds between two calls: on a busy machine the thread that begins turns needs more of them.
PACES = (30, 100, 300, 1000)


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DIAPASON_", "NCCL_"))}
    return {**clean, **more}


def run(folder, options, kind, *mode, pace=0, iterations=60, **variables):
    """The result of a job of four ranks, as `diapason run --json` prints it."""
    policy = os.path.join(folder, "policy.conf")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY)
    command = [TOOL, "run", "--json", *mode, "--policy", policy, "--", PROGRAM, "--iterations", str(iterations),
               "--pace", str(pace), *options, kind]
    done = subprocess.run(command, env=environment(**variables), stdout=subprocess.PIPE, timeout=1200, check=False)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode} of {' '.join(command)}")
    return json.loads(done.stdout)


def whole_truth(folder, kind, *mode):
    """What happens in an iteration of rank 0 when the whole job runs in one way."""
    path = os.path.join(folder, "truth")
    run(folder, ["--truth", path], kind, *mode)
    with open(path + ".0", encoding="utf-8") as file:
        return json.load(file)


def truth(folder, kind, *mode):
    """The length of an iteration when the whole job runs in one way."""
    return whole_truth(folder, kind, *mode)["iteration_us"]


def compared(folder, kind, *options, mode=(), **variables):
    """A job in turns, slower and slower until enough turns have changed over."""
    for pace in PACES:
        for name in glob.glob(os.path.join(folder, "journals", "*")):
            os.remove(name)
        whole = run(folder, options, kind, "--compare", *mode, pace=pace, iterations=1200, DIAPASON_TURN="100",
                    **variables)
        if whole["agreed"]["agreed"] != "yes":
            sys.exit(f"the ranks did not agree: {whole['agreed']}")
        print(pace, whole["gained"]["text"])
        if whole["gained"]["compared"].get("gain"):
            return whole["gained"]["compared"]
    sys.exit("the turns never changed over often enough")


def gain_is_true(kind, *options):
    with tempfile.TemporaryDirectory(prefix="diapason_compare_") as folder:
        by_default = truth(folder, kind, "--observe")
        by_policy = truth(folder, kind)
        found = compared(folder, kind, *options)
    print(f"in truth {by_default:.1f} us and {by_policy:.1f} us: {by_default / by_policy:.4f} x; found {found}")
    # A percent beside the interval: iterations next to a change of turns are part of both.
    if not found["low"] * 0.99 <= by_default / by_policy <= found["high"] * 1.01:
        sys.exit("the gain is outside its interval")
    for name, expected in (("default_us", by_default), ("policy_us", by_policy)):
        if abs(found[name] / expected - 1) > 0.02:
            sys.exit(f"{name} is {found[name]:.1f}, and in truth {expected:.1f}")


def sides_are_true(kind):
    """The profiles of both sides have the times of a job that runs in one way."""
    with tempfile.TemporaryDirectory(prefix="diapason_compare_") as folder:
        truths = {"default": whole_truth(folder, kind, "--observe"), "policy": whole_truth(folder, kind)}
        journals = os.path.join(folder, "journals")
        os.mkdir(journals)
        compared(folder, kind, mode=("--journal-dir", journals), DIAPASON_JOURNAL_TIMES="1",
                 DIAPASON_JOURNAL_RECORDS="262144")
        for side, expected in truths.items():
            command = [TOOL, "journal", "profile", "--json", "--side", side, *sorted(glob.glob(journals + "/*"))]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, timeout=600, check=True).stdout)
            print(side, found["headline"], "in truth", expected)
            exposed = found["collectives"]["exposed_us"]
            for name, value, share in (("iteration_us", found["iteration_us"], 0.02),
                                       ("collective_us", found["collectives"]["us"], 0.05)):
                if abs(value / expected[name] - 1) > share:
                    sys.exit(f"{side}: {name} is {value:.1f}, and in truth {expected[name]:.1f}")
            if abs(exposed - expected["exposed_us"]) > 0.1 * expected["collective_us"]:
                sys.exit(f"{side}: exposed {exposed:.1f}, and in truth {expected['exposed_us']:.1f}")


def says(kind, expected, mode=("--compare",)):
    """A job that cannot be compared says why, and succeeds."""
    with tempfile.TemporaryDirectory(prefix="diapason_compare_") as folder:
        text = run(folder, [], kind, *mode, iterations=60)["gained"]["text"]
    if expected not in text:
        sys.exit(f"expected '{expected}', printed '{text}'")


CASES = {
    "decode": lambda: gain_is_true("decode"),
    "steps": lambda: gain_is_true("decode", "--steps"),
    "two": lambda: gain_is_true("two"),
    "sides": lambda: sides_are_true("decode"),
    "no_iterations": lambda: says("none", "no iterations were found"),
    "captured": lambda: says("graph", "in no iteration"),
    "no_row": lambda: says("fsdp", "in no iteration"),
}
CASES[CASE]()
