"""Jobs under `diapason run`, with real launchers, on a library that is played.

    run_test.py --tool PATH --rank PATH [RunTest.test_NAME...]
"""

import json
import os
import subprocess

import ran
from ran import LIMIT, main, Ran


class RunTest(Ran):
    def test_local_ranks(self):
        status, out, err = self.with_policy(ran.TOOL, "launch", "-n", "3", "--", *self.rank())
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"rank {r} of 3: done" for r in range(3)])
        chosen, gained, agreed = self.assert_three_lines(err)
        self.assertEqual(len(err), 3, err)
        self.assertEqual(chosen, "allreduce 512KiB: tree/simple, 1 channel, 300 calls")
        self.assertTrue(gained.startswith("not known: "), gained)
        self.assertEqual(agreed, "yes: 3 ranks, 300 calls: all ranks chose the same for every call")
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_mpirun(self):
        self.needs("mpirun")
        for prefix in ([], ["env", "A=1", "timeout", "600", "nice"], ["env", "-i", f"PATH={os.environ['PATH']}",
                                                                     f"TOKEN={self.token}", "OMPI_ALLOW_RUN_AS_ROOT=1",
                                                                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]):
            status, out, err = self.with_policy(*prefix, "mpirun", "--oversubscribe", "-n", "2", *self.rank())
            self.assertEqual(status, 0, (prefix, out, err))
            self.assertTrue(self.assert_three_lines(err)[2].startswith("yes: 2 ranks"), err)
            os.unlink(self.path("board"))

    def test_mpirun_in_a_shell(self):
        self.needs("mpirun")
        script = "cd /tmp && mpirun --oversubscribe -n 2 " + " ".join(self.rank()) + " | tee " + self.path("log")
        status, out, err = self.with_policy("bash", "-c", script)
        self.assertEqual((status, out), (0, self.read("log")), err)
        self.assertTrue(self.assert_three_lines(err)[2].startswith("yes: 2 ranks"), err)

    def test_mpirun_hands_over_by_x(self):
        """Ranks on other hosts have only what -x names: seen in the environment that Open MPI builds for them."""
        self.needs("mpirun")
        script = "tr '\\0' '\\n' < /proc/$PPID/cmdline > " + self.path("words")
        status, _, err = self.with_policy("mpirun", "-n", "1", "sh", "-c", script)
        self.assertEqual(status, 0, err)
        words = self.read("words").split("\n")
        handed = {words[i + 1] for i, word in enumerate(words) if word == "-x"}
        self.assertLessEqual({"NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "DIAPASON_MODE", "DIAPASON_POLICY_INLINE",
                              "DIAPASON_JOURNAL"}, handed)

    def test_ranks_that_differ(self):
        command = [ran.TOOL, "launch", "-n", "2", "--", *self.rank("--differ", "1")]
        status, _, err = self.with_policy(*command)
        self.assertEqual(status, 1, err)
        agreed = self.assert_three_lines(err)[2]
        self.assertTrue(agreed.startswith("NO: 2 ranks, 300 calls: the ranks ran different things in 150 runs"), agreed)
        self.assertIn("rank 1 ran ring/simple", agreed)
        # What shows it is kept, under the name that is printed.
        kept = [line for line in err if "journals are kept" in line]
        self.assertEqual(len(kept), 1, err)
        check = subprocess.run(["sh", "-c", kept[0].split(": ", 2)[2].replace("diapason", ran.TOOL, 1)],
                               capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(check.returncode, 1, check)
        self.assertIn("different things", check.stdout)
        # The command's own failure wins.
        os.unlink(self.path("board"))
        status, _, err = self.with_policy(*command, "--exit", "4")
        self.assertEqual(status, 4, err)

    def test_learning(self):
        learned = self.path("learned.conf")
        status, _, err = self.run_tool("--learn", "--learned", learned, "--", ran.TOOL, "launch", "-n", "2", "--",
                                       *self.rank("--calls", "20000"), env={"DIAPASON_REWARD": "gpu"})
        self.assertEqual(status, 0, err)
        chosen, gained, agreed = self.assert_three_lines(err)
        self.assertRegex(chosen, r"^allreduce up to 512KiB \(played\): tree/simple.*, at the end of 20000 calls$")
        self.assertRegex(gained, r"^allreduce up to 512KiB \(played\) 1\.\d\d x.*; times of calls against")
        self.assertTrue(agreed.startswith("yes: 2 ranks, 20000 calls"), agreed)
        self.assertIn("allreduce,262145,524288,tree,simple", self.read("learned.conf"))
        # The next job starts from it.
        os.unlink(self.path("board"))
        status, _, err = self.run_tool("--policy", learned, "--", ran.TOOL, "launch", "-n", "2", "--", *self.rank())
        self.assertEqual(status, 0, err)
        chosen, gained, _ = self.assert_three_lines(err)
        self.assertIn("tree/simple", chosen)
        self.assertRegex(gained, r"^not known: .*The policy says of itself: line \d: learned: 1\.\d+ x")

    def test_observe(self):
        status, _, err = self.with_policy(*self.rank(), options=["--observe"])
        self.assertEqual(status, 0, err)
        chosen, gained, agreed = self.assert_three_lines(err)
        self.assertEqual(chosen, "the library's own choice for all 300 calls, as --observe wants it")
        self.assertEqual(gained, "nothing: nothing was changed")
        self.assertEqual(agreed, "one rank only: there is nothing to compare")

    def test_journals_of_several_runs(self):
        journals = self.path("a/b")
        for _ in range(2):
            status, _, err = self.with_policy(*self.rank(), options=["--journal-dir", journals])
            self.assertEqual(status, 0, err)
            self.assertIn("300 calls", self.assert_three_lines(err)[0])
        self.assertEqual(len(os.listdir(journals)), 2)

    def test_no_communicator(self):
        status, _, err = self.with_policy("sh", "-c", "exit 5")
        self.assertEqual(status, 5)
        chosen, _, _ = self.assert_three_lines(err)
        self.assertEqual(chosen, "no communicator was created: the command ended with status 5 before that")
        status, _, err = self.with_policy("true")
        self.assertEqual(status, 0)
        chosen, gained, agreed = self.assert_three_lines(err)
        self.assertTrue(chosen.startswith("no communicator was created: "), chosen)
        self.assertIn("NCCL_DEBUG=INFO", chosen)
        self.assertTrue(gained.startswith("not known") and agreed.startswith("not known"), err)

    def test_journals_that_were_cut(self):
        status, _, err = self.with_policy(ran.TOOL, "launch", "-n", "2", "--", *self.rank("--calls", "1000"),
                                          env={"DIAPASON_JOURNAL_LIMIT": "64KiB"})
        self.assertEqual(status, 0, err)
        self.assertIn("2 of 2 journals end before their process did", self.assert_three_lines(err)[2])

    def test_open_mpis_other_way(self):
        self.needs("mpirun")
        for words, env in ((["--mca", "mca_base_env_list", "HOME"], {}), ([], {"OMPI_MCA_mca_base_env_list": "HOME"})):
            status, out, err = self.with_policy("mpirun", *words, "-n", "2", *self.rank(), env=env)
            self.assertEqual(status, 0, (out, err))
            self.assertTrue(self.assert_three_lines(err)[2].startswith("yes: 2 ranks"), err)
            os.unlink(self.path("board"))

    def test_no_row_applies(self):
        with open(self.path("policy.conf"), "w", encoding="utf-8") as file:
            file.write("allgather,0,1024,ring,simple,-1,-1,-1,-1,-1\n")
        status, _, err = self.with_policy(*self.rank())
        self.assertEqual(status, 0, err)
        self.assertIn("no row of the policy applies", self.assert_three_lines(err)[0])

    def test_json(self):
        status, out, err = self.with_policy("sh", "-c", "echo of the command; exec \"$@\"", "-", *self.rank(),
                                            options=["--json"])
        self.assertEqual(status, 0, err)
        self.assertIn("of the command", err)
        read = json.loads(out)
        self.assertEqual((read["status"], read["command_status"], read["mode"]), (0, 0, "static"))
        self.assertEqual(read["chosen"]["by_call"][0]["algorithm"], "tree")
        self.assertEqual(read["agreed"]["agreed"], "one rank")
        self.assertEqual(read["library_version"], "2.28.9")
        for wrong in (["--policy", "/none"], ["--learn", "--store", "nonsense:"]):
            status, out, _ = self.run_tool("--json", *wrong, "--", "true")
            self.assertEqual(status, 1)
            self.assertIn("error", json.loads(out))

    def test_dry_run_can_be_run(self):
        status, out, err = self.with_policy(*self.rank(), options=["--dry-run", "--journal-dir", self.path("j")])
        self.assertEqual((status, err), (0, []))
        self.assertFalse(os.path.exists(self.path("j")))
        os.mkdir(self.path("j"))
        done = subprocess.run(["sh", "-c", out], env=self.environment(), capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout), (0, "rank 0 of 1: done\n"), done.stderr)
        self.assertEqual(len(os.listdir(self.path("j"))), 1)

    def test_refuses_what_would_not_be_read(self):
        marker = self.path("marker")
        cases = [
            (["--policy", "policy.conf", "--", "env", "NCCL_TUNER_PLUGIN=x", "touch", marker], "sets NCCL_TUNER_PLUGIN"),
            (["--policy", "policy.conf", "--", "ssh", "host", "touch", marker], "does not pass variables on"),
            (["--policy", "policy.conf", "--", "sbatch", "job.sh"], "returns before the job runs"),
            (["--learn", "--", "torchrun", "--nnodes", "2", "--nproc-per-node", "1", "touch", marker], "needs a store"),
            (["--policy", "/none", "--", "touch", marker], "there is no policy '/none'"),
            (["--", "touch", marker], "there is nothing to apply"),
            (["--policy", "policy.conf", "--journal-dir", "policy.conf/x", "--", "touch", marker], "cannot create"),
        ]
        for arguments, text in cases:
            status, _, err = self.run_tool(*arguments)
            self.assertEqual(status, 1, err)
            self.assertIn(text, "\n".join(err))
            self.assertFalse(os.path.exists(marker), arguments)
        status, _, err = self.run_tool("--policy", "policy.conf", "touch", marker)
        self.assertEqual(status, 2, err)
        self.assertIn("--", "\n".join(err))

    def test_warns_and_runs(self):
        status, out, err = self.with_policy("echo", "ran", env={"NCCL_ALGO": "Ring"})
        self.assertEqual((status, out), (0, "ran\n"))
        self.assertTrue(err[0].startswith("diapason: warning: NCCL_ALGO is applied before the tuner is asked"), err)
        status, out, err = self.with_policy("echo", "ran", env={"NCCL_ALGO": "Ring"}, options=["-q"])
        self.assertEqual((status, out, err), (0, "ran\n", []))


if __name__ == "__main__":
    main(__doc__)
