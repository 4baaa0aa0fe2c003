"""`diapason run` and `journal profile` with an MPI program that has no GPU.

    look_test.py --tool PATH [--steps PATH] [CLASS.test_NAME...]

Skips (77) where there is no mpirun or the program was not built.
"""

import json
import sys

from mpi_case import main, MpiCase

POLICY = "# diapason: version=1 library=openmpi\nallreduce,0,1048576,ring,-1,-1,-1,-1,-1,-1\n"


class Look(MpiCase):
    def setUp(self):
        super().setUp()
        self.need_steps()

    def command(self, ranks=2, iterations=50):
        return self.steps(ranks, iterations, 200)

    def test_an_mpi_program_is_recognised_and_looked_at(self):
        done = self.run_tool("run", "--observe", *self.command())
        self.assertRegex(done.stdout, r"\Achecksum \d+\n\Z")
        self.assertRegex(done.stderr, r"looked  an iteration takes .* ms; collectives .* ms of it \(\d+ %\)")
        self.assertRegex(done.stderr, r"share   collectives take \d+ % of the program's time")
        self.assertRegex(done.stderr, r"rules   Open MPI's rules can change \d+ % of the collective time")

    def test_the_profile_has_calls_iterations_and_call_sites(self):
        self.run_tool("run", "--observe", "--journal-dir", "records", "-q", *self.command())
        files = sorted((self.folder / "records").glob("run-*.mpirec"))
        self.assertEqual(len(files), 2)
        profile = json.loads(self.run_tool("journal", "profile", "--json", *files).stdout)
        self.assertEqual(profile["ranks"], 2)
        self.assertEqual(profile["iterations"], 49)
        calls = {(one["call"], one["bytes"], one["ranks"]): one for one in profile["classes"]}
        self.assertEqual({key: one["calls"] for key, one in calls.items()},
                         {("allreduce", 65536, 2): 800, ("bcast", 1 << 20, 2): 200, ("barrier", 0, 2): 2})
        self.assertTrue(calls["allreduce", 65536, 2]["can_change"])
        self.assertEqual(calls["barrier", 0, 2]["why_not"], "not searched")
        self.assertEqual(sum(calls["bcast", 1 << 20, 2]["sites"].values()), 200)
        self.assertGreater(profile["collective_share"], 0)
        text = self.run_tool("journal", "profile", *files).stdout
        self.assertIn("allreduce  64 KiB      2    800", text)
        self.assertIn("steps+0x", text)

    def test_a_policy_is_applied_as_rules(self):
        (self.folder / "p.conf").write_text(POLICY)
        shown = json.loads(self.run_tool("run", "--dry-run", "--json", "--policy", "p.conf", *self.command()).stdout)
        self.assertEqual(shown["variables"]["OMPI_MCA_coll_tuned_use_dynamic_rules"], "1")
        done = self.run_tool("run", "--policy", "p.conf", "--journal-dir", "records", *self.command())
        self.assertIn("checksum", done.stdout)
        rules = list((self.folder / "records").glob("rules-*.conf"))
        self.assertEqual(len(rules), 1)
        self.assertIn("# MPI_Allreduce", rules[0].read_text())

    def test_what_cannot_be_done_is_said(self):
        done = self.run_tool("run", "--learn", *self.command(), status=1)
        self.assertIn("`diapason tune -- COMMAND` tries them by launches", done.stderr)
        (self.folder / "p.conf").write_text(POLICY)
        words = self.command(ranks=1, iterations=1)
        words[2:2] = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        done = self.run_tool("run", "--policy", "p.conf", *words, status=1)
        self.assertIn("chooses Open MPI's algorithms itself", done.stderr)

    def test_a_program_without_collectives_is_said(self):
        done = self.run_tool("run", "--observe", "--library", "mpi", "--", "sh", "-c", "exit 3", status=3)
        self.assertIn("there are no recordings of MPI calls", done.stderr)

    def test_recordings_and_journals_do_not_mix(self):
        self.run_tool("run", "--observe", "--journal-dir", "records", "-q", *self.command(iterations=5))
        record = next((self.folder / "records").glob("run-*.mpirec"))
        (self.folder / "other").write_text("{}\n")
        done = self.run_tool("journal", "profile", record, "other", status=1)
        self.assertIn("'other' is no recording of MPI calls", done.stderr)


if __name__ == "__main__":
    sys.exit(main(__name__))
