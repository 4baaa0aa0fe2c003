"""Whether Open MPI does what a policy says, once it is exported as a dynamic rules file.

    rules_test.py --tool PATH [--watch PATH --calls PATH] [CLASS.test_NAME...]

A small program makes calls under mpirun, and a preloaded library sees which function of Open MPI each of them ends in.
Skips (77) where there is no mpirun or the program was not built.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = WATCH = CALLS = None
LIMIT = 600  # seconds for one mpirun; it takes about one
HEAD = "# diapason: version=1 library=openmpi\n"

# The function behind every algorithm, by the policy's name for it.
FUNCTIONS = {
    "broadcast": {
        "basic_linear": "bcast_intra_basic_linear",
        "chain": "bcast_intra_chain",
        "pipeline": "bcast_intra_pipeline",
        "split_binary_tree": "bcast_intra_split_bintree",
        "binary_tree": "bcast_intra_bintree",
        "binomial": "bcast_intra_binomial",
        "knomial": "bcast_intra_knomial",
        "scatter_allgather": "bcast_intra_scatter_allgather",
        "scatter_allgather_ring": "bcast_intra_scatter_allgather_ring",
    },
    "reduce": {
        "linear": "reduce_intra_basic_linear",
        "chain": "reduce_intra_chain",
        "pipeline": "reduce_intra_pipeline",
        "binary": "reduce_intra_binary",
        "binomial": "reduce_intra_binomial",
        "in_order_binary": "reduce_intra_in_order_binary",
        "rabenseifner": "reduce_intra_redscat_gather",
    },
    "allgather": {
        "linear": "allgather_intra_basic_linear",
        "bruck": "allgather_intra_bruck",
        "recursive_doubling": "allgather_intra_recursivedoubling",
        "ring": "allgather_intra_ring",
        "neighbor": "allgather_intra_neighborexchange",
        "two_proc": "allgather_intra_two_procs",
    },
    "reducescatter": {
        "non_overlapping": "reduce_scatter_intra_nonoverlapping",
        "recursive_halving": "reduce_scatter_intra_basic_recursivehalving",
        "ring": "reduce_scatter_intra_ring",
        "butterfly": "reduce_scatter_intra_butterfly",
    },
    "allreduce": {
        "basic_linear": "allreduce_intra_basic_linear",
        "nonoverlapping": "allreduce_intra_nonoverlapping",
        "recursive_doubling": "allreduce_intra_recursivedoubling",
        "ring": "allreduce_intra_ring",
        "segmented_ring": "allreduce_intra_ring_segmented",
        "rabenseifner": "allreduce_intra_redscat_allgather",
    },
    "alltoall": {
        "linear": "alltoall_intra_basic_linear",
        "pairwise": "alltoall_intra_pairwise",
        "modified_bruck": "alltoall_intra_bruck",
        "linear_sync": "alltoall_intra_linear_sync",
        "two_proc": "alltoall_intra_two_procs",
    },
}
# Parts of equal size: only multiples of the ranks can be asked for.
DIVIDED = ("allgather", "alltoall")
RANKS = (2, 3, 4)


class Row:
    def __init__(self, collective, first, last, algorithm, nodes=-1, ranks=-1):
        self.collective, self.first, self.last, self.algorithm = collective, first, last, algorithm
        self.nodes, self.ranks = nodes, ranks

    def text(self):
        return (f"{self.collective},{self.first},{self.last},{self.algorithm},-1,-1,"
                f"{self.nodes},{self.ranks},-1,-1")


def wanted(rows, collective, ranks, nbytes):
    """The first row that matches; None where Open MPI decides."""
    for row in rows:
        if row.collective == collective and row.first <= nbytes <= row.last and row.ranks in (-1, ranks):
            if row.algorithm == "-1" or (row.algorithm == "two_proc" and ranks != 2):
                return None
            return row.algorithm
    return None


def questions(rows, ranks=RANKS, extra=()):
    """(collective, ranks, bytes) wherever an answer can change, and next to it."""
    plan = []
    for collective in FUNCTIONS:
        for size in ranks:
            sizes = set(extra) | {4096}
            for row in rows:
                if row.collective == collective:
                    sizes |= {row.first - 1, row.first, row.last, row.last + 1}
            if collective in DIVIDED:
                sizes = {n // size * size for n in sizes} | {-(-n // size) * size for n in sizes}
            # A call without bytes may end before an algorithm begins.
            plan += [(collective, size, n) for n in sorted(sizes) if 0 < n <= 1 << 22]
    return plan


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rules_test.")

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def convert(self, policy, *options):
        return subprocess.run([TOOL, "policy", "convert", policy, "--format", "openmpi-rules", *options],
                              capture_output=True, text=True, timeout=LIMIT, check=False)


class Command(Files):
    def test_command_writes_or_prints(self):
        policy = self.write("p.conf", HEAD + Row("allreduce", 0, 99, "rabenseifner").text() + "\n")
        printed = self.convert(policy)
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertIn("\n0 6 0 0  # rabenseifner, line 2\n", printed.stdout)
        written = self.convert(policy, "-o", self.path("rules"))
        self.assertEqual((written.returncode, written.stdout, written.stderr), (0, "", ""))
        with open(self.path("rules"), encoding="utf-8") as file:
            self.assertEqual(file.read(), printed.stdout)

    def test_command_notes_go_to_standard_error(self):
        rows = [Row("allreduce", 0, 99, "ring", nodes=1, ranks=4), Row("reduce", 0, 99, "linear", nodes=2)]
        policy = self.write("p.conf", HEAD + "".join(row.text() + "\n" for row in rows))
        done = self.convert(policy)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"diapason: warning: {policy}: lines 2, 3: a rules file does not know nodes", done.stderr)
        self.assertNotIn("warning", done.stdout)
        done = self.convert(policy, "--nodes", "2")
        self.assertIn(f"{policy}: line 2: left out, for another number of nodes", done.stderr)
        self.assertIn("# For jobs on 2 nodes.\n", done.stdout)
        self.assertNotIn("MPI_Allreduce", done.stdout)

    def test_command_refuses(self):
        nccl = self.write("nccl.conf", "allreduce,0,99,ring,simple,-1,-1,-1,-1,-1\n")
        done = self.convert(nccl, "-o", self.path("rules"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("only a policy for Open MPI can become its rules file; this one is for NCCL", done.stderr)
        self.assertFalse(os.path.exists(self.path("rules")))
        both = self.write("both.conf", HEAD + Row("reduce", 0, 9, "linear", nodes=1).text() + "\n" +
                          Row("reduce", 20, 29, "linear", nodes=2).text() + "\n")
        done = self.convert(both)
        self.assertEqual(done.returncode, 1)
        self.assertIn("lines 2 and 3 are for 1 and 2 nodes", done.stderr)
        self.assertEqual(self.convert(both, "--nodes", "0").returncode, 2)
        csv = subprocess.run([TOOL, "policy", "convert", both, "--nodes", "2"], capture_output=True, text=True,
                             timeout=LIMIT, check=False)
        self.assertEqual((csv.returncode, csv.stdout), (1, ""))
        self.assertIn("--nodes belongs to --format openmpi-rules", csv.stderr)
        unknown = subprocess.run([TOOL, "policy", "convert", both, "--format", "ompi"], capture_output=True,
                                 text=True, timeout=LIMIT, check=False)
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))


class Obeyed(Files):
    """With a real mpirun."""

    def setUp(self):
        if CALLS is None:
            self.skipTest("the program for these tests was not built: no MPI compiler")
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun on this machine")
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=LIMIT, check=False)
        if "Open MPI" not in version.stdout + version.stderr:
            self.skipTest("the mpirun of this machine is not Open MPI's")
        super().setUp()

    def run_calls(self, plan, parameters):
        """What ran for every question of the plan; the same on all ranks."""
        listed = self.write("plan", "".join(f"{c} {r} {b}\n" for c, r, b in plan))
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(max(RANKS)),
                   "--mca", "mpi_yield_when_idle", "1"]
        for name, value in parameters.items():
            command += ["--mca", name, str(value)]
        # Whoever runs the tests may have a choice of components of their own.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OMPI_MCA_") or k == "OMPI_MCA_orte_tmpdir_base"}
        output = self.path("output")
        done = subprocess.run(command + ["-x", f"LD_PRELOAD={WATCH}", CALLS, listed, output], env=environment,
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        seen = {}
        for rank in range(max(RANKS)):
            with open(f"{output}.{rank}", encoding="utf-8") as file:
                for line in file:
                    number, _, what = line.strip().partition(" ")
                    seen.setdefault(plan[int(number)], []).append(what)
        for question in plan:
            self.assertEqual(len(seen[question]), question[1], f"{question}: not every rank has called")
            self.assertEqual(len(set(seen[question])), 1, f"{question}: the ranks disagree: {seen[question]}")
        return {question: what[0] for question, what in seen.items()}

    def rules(self, rows, *options):
        policy = self.write("policy.conf", HEAD + "".join(row.text() + "\n" for row in rows))
        done = self.convert(policy, "-o", self.path("rules"), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_dynamic_rules_filename": self.path("rules")}

    def assert_obeyed(self, rows, plan, *options):
        without = self.run_calls(plan, {})
        with_rules = self.run_calls(plan, self.rules(rows, *options))
        chosen = 0
        for question in plan:
            algorithm = wanted(rows, *question)
            if algorithm is None:
                self.assertEqual(with_rules[question], without[question], f"{question}: not Open MPI's own")
            else:
                chosen += 1
                function = with_rules[question].partition(" ")[0]
                self.assertEqual(function, FUNCTIONS[question[0]][algorithm], f"{question}: {algorithm} was wanted")
        return with_rules, without, chosen

    def test_every_algorithm(self):
        rows = []
        for collective, functions in FUNCTIONS.items():
            for place, algorithm in enumerate(functions):
                rows.append(Row(collective, 1200 * (place + 1), 1200 * (place + 1) + 600, algorithm))
        with_rules, without, chosen = self.assert_obeyed(rows, questions(rows, extra=(1, 100000)))
        self.assertGreater(chosen, 200)
        # Were they what Open MPI does anyway, this test would say nothing.
        different = sum(with_rules[question] != without[question] for question in with_rules)
        self.assertGreater(different, 100)

    def test_ranks_do_not_leak(self):
        rows = []
        for collective, functions in FUNCTIONS.items():
            first, second, third = list(functions)[:3]
            rows += [
                Row(collective, 1000, 3000, first, ranks=3),
                Row(collective, 2000, 4000, second),
                Row(collective, 0, 10000, third, ranks=4),
            ]
        _, _, chosen = self.assert_obeyed(rows, questions(rows))
        self.assertGreater(chosen, 100)

    def test_rows_for_the_smallest_only(self):
        rows = [Row("allreduce", 0, 1 << 63, "basic_linear", ranks=2), Row("broadcast", 0, 99, "chain", ranks=2)]
        self.assert_obeyed(rows, questions(rows, extra=(1 << 20,)))

    def test_overlapping_rows(self):
        rows = [
            Row("allreduce", 2000, 2999, "-1"),  # hides the rows below
            Row("allreduce", 1000, 1999, "basic_linear"),
            Row("allreduce", 1500, 3500, "ring"),
            Row("allreduce", 0, 18446744073709551615, "nonoverlapping"),
            Row("allgather", 0, 999, "two_proc"),
            Row("allgather", 0, 9999, "bruck"),
        ]
        self.assert_obeyed(rows, questions(rows, extra=(1, 1 << 20)))

    def test_empty_policy(self):
        plan = questions([], extra=(1, 8, 1000, 65536, 1 << 20))
        _, _, chosen = self.assert_obeyed([], plan)
        self.assertEqual(chosen, 0)

    def test_nodes(self):
        rows = [Row("reduce", 0, 999, "in_order_binary", nodes=1), Row("reduce", 1000, 2999, "linear", nodes=7)]
        kept = [rows[0]]
        plan = questions(rows)
        without = self.run_calls(plan, {})
        with_rules = self.run_calls(plan, self.rules(rows, "--nodes", "1"))
        for question in plan:
            algorithm = wanted(kept, *question)
            expected = without[question] if algorithm is None else FUNCTIONS[question[0]][algorithm]
            self.assertTrue(with_rules[question].startswith(expected), question)

    def test_many_rows(self):
        rows = []
        for place in range(3000):
            algorithm = list(FUNCTIONS["allreduce"])[place % 6]
            rows.append(Row("allreduce", 10 * place, 10 * place + 5, algorithm, ranks=(-1, 2, 3, 4)[place % 4]))
        plan = [(c, r, b) for c, r, b in questions(rows) if c == "allreduce" and b % 7 == 0]
        self.assert_obeyed(rows, plan)

    def test_random_policies(self):
        generator = random.Random(4711)
        for _ in range(4):
            rows = []
            for _ in range(60):
                collective = generator.choice(list(FUNCTIONS))
                first = generator.choice((0, generator.randrange(1 << generator.randrange(1, 17))))
                algorithm = generator.choice(["-1", *FUNCTIONS[collective]])
                rows.append(Row(collective, first, first + generator.randrange(1 << generator.randrange(1, 17)),
                                algorithm, ranks=generator.choice((-1, -1, 1, 2, 3, 4, 5))))
            self.assert_obeyed(rows, questions(rows))

    def test_chosen_as_measured(self):
        """A rule runs an algorithm with the fan-out and segments it has where it is forced, which is how it is
        measured."""
        words = {"broadcast": "bcast", "reducescatter": "reduce_scatter"}
        plan = questions([], extra=(5000, 100000))
        for place in (1, 2):  # the chains, and what comes next
            forced = {"coll_tuned_use_dynamic_rules": 1}
            rows = []
            for collective, functions in FUNCTIONS.items():
                forced[f"coll_tuned_{words.get(collective, collective)}_algorithm"] = place + 1
                rows.append(Row(collective, 0, 1 << 40, list(functions)[place]))
            by_rules, _, chosen = self.assert_obeyed(rows, plan)
            self.assertEqual(chosen, len(plan))
            self.assertEqual(by_rules, self.run_calls(plan, forced))


class Vocabulary(Files):
    def test_knows_every_algorithm(self):
        """The table above is all there is: a row with a wrong name is answered with the right ones."""
        for collective, functions in FUNCTIONS.items():
            policy = self.write("p.conf", HEAD + Row(collective, 0, 9, "xyzzy").text() + "\n")
            done = self.convert(policy)
            self.assertEqual(done.returncode, 1)
            known = re.search(r"known are ([a-z_, ]+)", done.stderr)
            self.assertIsNotNone(known, done.stderr)
            self.assertEqual(known.group(1).strip().split(", "), list(functions))


def main():
    global TOOL, WATCH, CALLS
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--watch")
    parser.add_argument("--calls")
    options, names = parser.parse_known_args()
    TOOL, WATCH, CALLS = (path and os.path.abspath(path) for path in (options.tool, options.watch, options.calls))
    result = unittest.main(argv=[sys.argv[0], *names], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)


if __name__ == "__main__":
    main()
