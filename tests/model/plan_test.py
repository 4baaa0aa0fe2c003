"""From a real sweep to a policy that is really run.

    plan_test.py --tool PATH [--watch PATH --calls PATH] gloo|openmpi

Nothing here depends on what is fastest: the plan has to follow from the samples, and what runs has to be what it says.
Skips (77) where the library is not here.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "openmpi"))
import rules_test as rules  # noqa: E402

LIMIT = 600
SIZES = "1K:256K:x16"
# Anything that was faster at all: rows are what is to be tested, whatever they gain.
EAGER = ("--margin", "0", "--confidence", "50%", "--tolerance", "0")


class Skip(Exception):
    pass


def run(tool, *arguments, status=0):
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def need(tool, backend):
    for one in json.loads(run(tool, "backends", "--json"))["backends"]:
        if one["name"] == backend and not one["usable"]:
            raise Skip(one["reason"])


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [line.strip().split(",") for line in file if line.strip() and not line.startswith("#")]


def medians(tool, store):
    """(collective, bytes) -> {algorithm: median}; '' is the default."""
    found = {}
    samples = json.loads(run(tool, "data", "export", store, "--format", "json"))["samples"]
    for sample in samples:
        if sample["outcome"] != "fine":
            continue
        key = (sample["collective"], sample["bytes"])
        name = "/".join(str(sample[part]) for part in ("algorithm", "protocol", "channels"))
        found.setdefault(key, {}).setdefault(name, []).append(sample["seconds"])
    return {key: {name: sorted(values)[len(values) // 2] for name, values in all_.items()} for key, all_ in found.items()}


def sweep_and_plan(tool, backend, ranks, folder):
    need(tool, backend)
    store, policy = f"{folder}/store.db", f"{folder}/planned.conf"
    run(tool, "sweep", "all_reduce", "all_gather", "--backend", backend, "-g", str(ranks), "--sizes", SIZES, "--most", "3",
        "--store", store, "-q")
    run(tool, "plan", "--data", store, "-o", policy, *EAGER)
    run(tool, "policy", "check", policy)
    rows = rows_of(policy)
    if not rows:
        raise Skip("the library's own choice won everywhere")
    known = medians(tool, store)
    covered = 0
    for (collective, size), times in known.items():
        for row in rows:
            if row[0] == collective and int(row[1]) <= size <= int(row[2]):
                assert (row[6], row[7]) == ("1", str(ranks)), row
                assert min(times.values()) < times["//0"], f"{collective} at {size}: the default was fastest, and there is {row}"
                covered += 1
                break
    assert covered > 0, "no row holds a size that was measured"
    # What is planned in earnest harms nothing that was measured.
    strict = f"{folder}/strict.conf"
    run(tool, "plan", "--data", store, "-o", strict)
    judged = json.loads(run(tool, "evaluate", "--data", store, "--policy", strict, "--json"))
    scores = {one["chooser"]: one for one in judged["choosers"]}
    assert scores["policy"]["worst_of_default"] >= 1, scores["policy"]
    assert scores["oracle"]["of_best"] == 1
    return store, policy, rows


def gloo(options, folder):
    _, policy, rows = sweep_and_plan(options.tool, "gloo", 2, folder)
    shown = json.loads(run(options.tool, "bench", "all_reduce", "all_gather", "--backend", "gloo", "-g", "2", "-b", "1K",
                           "-e", "256K", "-f", "16", "--policy", policy, "--rounds", "2", "--json"))
    ran = [row for row in shown["rows"] if row["verdict"] not in ("default", "failed")]
    assert ran, shown
    for row in shown["rows"]:
        inside = any(r[0] == row["collective"] and int(r[1]) <= row["bytes"] <= int(r[2]) for r in rows)
        assert inside == (row["verdict"] != "default"), (row, rows)


def openmpi(options, folder):
    store, policy, rows = sweep_and_plan(options.tool, "mpi", 2, folder)
    if options.calls is None:
        raise Skip("the program for this test was not built: no MPI compiler")
    dynamic = f"{folder}/rules.txt"
    run(options.tool, "plan", "--data", store, "-o", dynamic, "--format", "openmpi-rules", *EAGER)

    class Planned(rules.Obeyed):
        def runTest(self):
            plan = [(c, 2, size) for c in ("allreduce", "allgather") for size in (1024, 16384, 262144)]
            without = self.run_calls(plan, {})
            with_rules = self.run_calls(plan, {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_dynamic_rules_filename": dynamic})
            obeyed = 0
            for collective, ranks, size in plan:
                question = (collective, ranks, size)
                named = [r[3] for r in rows if r[0] == collective and int(r[1]) <= size <= int(r[2])]
                if not named:
                    self.assertEqual(with_rules[question], without[question], question)
                    continue
                function = with_rules[question].partition(" ")[0]
                self.assertEqual(function, rules.FUNCTIONS[collective][named[0]], question)
                obeyed += 1
            self.assertGreater(obeyed, 0)

    rules.TOOL, rules.WATCH, rules.CALLS = options.tool, options.watch, options.calls
    result = rules.unittest.TextTestRunner(verbosity=2).run(Planned())
    if result.skipped:
        raise Skip(result.skipped[0][1])
    assert result.wasSuccessful()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--watch")
    parser.add_argument("--calls")
    parser.add_argument("what", choices=("gloo", "openmpi"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plan_test.") as folder:
        try:
            {"gloo": gloo, "openmpi": openmpi}[options.what](options, folder)
        except Skip as reason:
            print(f"skipped: {reason}")
            return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
