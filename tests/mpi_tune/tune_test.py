"""`diapason tune -- mpirun ...` with an MPI program that has no GPU, from the command line to the files.

    tune_test.py --tool PATH [--steps PATH] [CLASS.test_NAME...]

Nothing here depends on which configuration is fastest, or on whether any is. Skips (77) where there is no mpirun or the
program was not built.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

from mpi_case import LONGEST, main, MpiCase

# Seconds: a quarter is the limit of a launch, which takes one or two.
BUDGET = "240"
VERDICTS = {"faster": 0, "nothing to gain": 0, "not confirmed": 1, "undecided": 1}


class Tune(MpiCase):
    def setUp(self):
        super().setUp()
        self.need_steps()

    def command(self, ranks=2, iterations=60):
        return self.steps(ranks, iterations, 100)

    def test_looks_searches_verifies_and_leaves(self):
        done = self.run_tool("tune", "--json", "--budget", BUDGET, "-o", "out", "--metric", "checksum ([0-9.]+)", *self.command(),
                             status=None)
        result = json.loads(done.stdout)
        self.assertIn(result["verdict"], VERDICTS, done.stderr)
        self.assertEqual(done.returncode, VERDICTS[result["verdict"]], done.stderr)
        self.assertEqual(result, json.loads((self.folder / "out/result.json").read_text()))
        self.assertIn("launch 1 of at most 52: look", done.stderr)
        # The calls of the program, with the sizes and communicators that it has.
        for context in result["contexts"]:
            self.assertIn((context["collective"], context["most_bytes"], context["ranks"]),
                          [("allreduce", 65536, 2), ("broadcast", 1 << 20, 2)])
        self.assertTrue((self.folder / "out/report.html").is_file())
        faster = result["verdict"] == "faster"
        self.assertEqual((self.folder / "out/rules.conf").exists(), faster)
        self.assertEqual((self.folder / "out/policy.conf").exists(), faster)
        verified = [one for one in result["launches"] if one["purpose"].startswith("verify")]
        if result["verdict"] in ("faster", "not confirmed"):
            # In turns, each first as often as the other.
            sides = [one["purpose"].split(", ")[1] for one in verified]
            self.assertEqual(sides, (["default", "rules", "rules", "default"] * 20)[:len(sides)])
            self.assertGreaterEqual(len(sides), 12)
        else:
            self.assertEqual(verified, [])
        if faster:
            self.assertGreater(result["iteration"]["low"], 1)
            policy = (self.folder / "out/policy.conf").read_text()
            self.assertIn("library=openmpi", policy)
            self.assertTrue([line for line in policy.splitlines() if not line.startswith("#")])
            # Sums of whole numbers: the checksum is the same with every algorithm.
            self.assertIn("has not changed", result["metric"])

    def test_too_few_launches_are_undecided_not_guessed(self):
        done = self.run_tool("tune", "--json", "--budget", BUDGET, "--launches", "6", "-o", "out", *self.command(),
                             status=None)
        result = json.loads(done.stdout)
        self.assertIn(result["verdict"], ("undecided", "nothing to gain"))
        self.assertLessEqual(len(result["launches"]), 6)
        self.assertFalse((self.folder / "out/rules.conf").exists())

    def test_a_command_that_fails_ends_it(self):
        done = self.run_tool("tune", "-o", "out", "--library", "mpi", "--", "sh", "-c", "echo broken; exit 4", status=1)
        self.assertRegex(done.stderr, r"the command ended with status 4 in launch 1 \(look\); .*broken")

    def test_a_command_without_mpi_ends_it(self):
        done = self.run_tool("tune", "-o", "out", "--library", "mpi", "--", "true", status=1)
        self.assertIn("there are no recordings of MPI calls", done.stderr)

    def test_other_libraries_are_not_tuned(self):
        if not shutil.which("mpicc.mpich") or not shutil.which("mpirun.mpich"):
            self.skipTest("MPICH is not installed")
        program = self.folder / "steps"
        source = pathlib.Path(__file__).resolve().parent / "steps.c"
        subprocess.run(["mpicc.mpich", "-o", program, source], check=True, timeout=LONGEST)
        done = self.run_tool("tune", "-o", "out", "--", "mpirun.mpich", "-n", "2", program, 20, status=1)
        self.assertTrue(re.search("library is 'MPICH.*only Open MPI's algorithms can be chosen", done.stderr), done.stderr)


if __name__ == "__main__":
    sys.exit(main(__name__))
