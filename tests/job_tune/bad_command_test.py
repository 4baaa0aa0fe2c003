"""Commands that cannot be tuned: `diapason tune -- COMMAND` says why and what to do, and leaves nothing running.

    bad_command_test.py --tool PATH --program PATH [BadCommandTest.test_NAME...]

PATH of --program is tests/played/played_program.
"""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launch"))
from tool_processes import LIMIT, ToolProcesses, wait_until  # noqa: E402

TOOL = None
PROGRAM = None
MEGABYTE = 1 << 20


class BadCommandTest(ToolProcesses):
    def environment(self, extra=()):
        """Without what would be ours or another launcher's; temporary files are in the test's folder."""
        ours = ("NCCL_", "DIAPASON_", "OMPI_", "PMIX", "SLURM")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "RANK"}
        os.makedirs(self.path("tmp"), exist_ok=True)
        return {**kept, "TOKEN": self.token, "TMPDIR": self.path("tmp"), **dict(extra)}

    def start(self, *arguments, env=(), **options):
        return self.start_words([TOOL, "tune", *arguments], env=env, cwd=self.folder.name, **options)

    def start_command(self, *command, budget="20s", options=()):
        return self.start("--budget", budget, "-o", self.path("tuned"), *options, "--", *command)

    def tuned(self, *command, budget="20s", options=()):
        """Exit status and the text of standard error of a run that leaves nothing behind, and no policy."""
        process = self.start_command(*command, budget=budget, options=options)
        _, err = process.communicate(timeout=LIMIT)
        self.assert_nobody_left()
        self.assertFalse(os.path.exists(self.path("tuned/policy.conf")), err)
        # Nothing but control characters of ours would reach a terminal.
        self.assertNotIn(b"\x1b]", err)
        return process.returncode, err.decode()

    def shell(self, script, **more):
        return self.tuned("sh", "-c", script, **more)

    def log(self, number=1):
        with open(self.path(f"tuned/launch-{number}.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def assert_says(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def test_fails_at_once(self):
        status, err = self.shell("echo the file train.py is missing >&2; exit 3")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "failed with status 3", "the file train.py is missing", "Run it alone first")

    def test_is_started_once_if_it_fails(self):
        self.shell("echo x >> started; exit 3")
        self.assertEqual(self.read("started"), "x\n")

    def test_cannot_be_started(self):
        status, err = self.tuned("no-such-program-here")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "no-such-program-here", "PATH")
        with open(self.path("plain"), "w", encoding="utf-8"):
            pass
        status, err = self.tuned(self.path("plain"))
        self.assertEqual(status, 1, err)
        self.assert_says(err, "Permission denied", "chmod +x")

    def test_crashes(self):
        status, err = self.shell("kill -SEGV $$")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "SIGSEGV")

    def test_never_creates_a_communicator(self):
        """As with a library that is linked statically, or one that is older than tuners."""
        status, err = self.shell("exit 0")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "no communicator was created", "2.19", "statically", "NCCL_DEBUG=INFO")

    def test_hangs(self):
        status, err = self.shell("exec sleep 1000", budget="5s")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "created no communicator within", "--budget")

    def test_ignores_signals(self):
        status, err = self.shell("trap '' TERM INT HUP; while :; do sleep 0.1; done", budget="5s",
                                 options=("--grace", "0.3"))
        self.assertEqual(status, 1, err)
        self.assert_says(err, "was killed")

    def test_prints_megabytes(self):
        status, err = self.shell("yes 0123456789abcdef | head -c 200000000; exit 3")
        self.assertEqual(status, 1, err)
        self.assertLess(len(err), 20000)
        self.assertLess(os.path.getsize(self.path("tuned/launch-1.log")), 2 * MEGABYTE + 1000)
        self.assertIn("bytes are left out here", self.log())

    def test_prints_no_line_end_and_control_characters(self):
        status, err = self.shell("printf '\\033]0;title\\007no line end'; exit 3")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "\\x1b]0;title\\x07no line end")

    def test_forks(self):
        self.shell("sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000; true' &); exit 0")
        self.shell("sleep 1000 & setsid sleep 1000 & exit 3")

    def test_changes_directory(self):
        status, err = self.tuned("sh", "-c", "mkdir -p elsewhere; cd elsewhere; pwd; exit 3")
        self.assertEqual(status, 1, err)
        self.assertIn(os.path.realpath(self.path("elsewhere")), self.log())

    def test_has_no_iterations(self):
        status, err = self.tuned(PROGRAM, "--iterations", "60", "none", budget="60s")
        self.assertIn(status, (0, 1), err)
        self.assert_says(err, "iteration")

    def test_is_captured_whole(self):
        """Nothing can be tried inside a launch; the run ends, and says so."""
        process = self.start_command(PROGRAM, "--iterations", "60", "graph", budget="20s")
        out, err = process.communicate(timeout=LIMIT)
        self.assert_nobody_left()
        self.assertIn(process.returncode, (0, 1), err)
        self.assertIn(b"captured", out + err)

    def test_reads_its_input(self):
        """It gets none, instead of the terminal's."""
        status, err = self.shell("cat; echo end of input; exit 3")
        self.assertEqual(status, 1, err)
        self.assert_says(err, "end of input")

    def test_between_fails(self):
        process = self.start_command(PROGRAM, "--iterations", "60", "--pace", "100", "decode", budget="60s",
                                     options=("--between", "echo no room; exit 4"))
        out, err = process.communicate(timeout=LIMIT)
        self.assert_nobody_left()
        self.assertEqual(process.returncode, 1, err)
        self.assert_says((out + err).decode(), "--between", "status 4", "no room")

    def test_numbers_its_launches(self):
        self.shell("echo $DIAPASON_LAUNCH >> numbers; exit 3")
        self.assertEqual(self.read("numbers"), "1\n")

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start_command("sh", "-c", "touch ready; sleep 1000 & exec sleep 1000", budget="10m")
            wait_until(lambda: os.path.exists(self.path("ready")), "start of the command")
            process.send_signal(number)
            _, err = process.communicate(timeout=LIMIT)
            self.assertNotEqual(process.returncode, 0, err)
            self.assert_nobody_left()
            os.unlink(self.path("ready"))

    def test_killed_with_the_tool(self):
        process = self.start_command("sh", "-c", "sleep 1000 & touch ready; sleep 1000", budget="10m")
        wait_until(lambda: os.path.exists(self.path("ready")), "start of the command")
        process.kill()
        process.wait(timeout=LIMIT)
        self.assert_nobody_left()

    def test_bad_options(self):
        for options, said in ((("--metric", "loss"), "one, the number"), (("--metric", "loss=(["), "regular expression"),
                              (("--signal", "SIGNONE"), "SIGNONE")):
            status, err = self.tuned("true", options=options)
            self.assertNotEqual(status, 0, options)
            self.assert_says(err, said)

    def test_no_command(self):
        process = self.start("--budget", "20s", "--")
        _, err = process.communicate(timeout=LIMIT)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(b"command", err)


def main():
    """`--tool PATH --program PATH` first, then what unittest takes."""
    global TOOL, PROGRAM
    if sys.argv[1:2] != ["--tool"] or sys.argv[3:4] != ["--program"]:
        sys.exit(__doc__)
    TOOL, PROGRAM = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[4])
    result = unittest.main(argv=[sys.argv[0]] + sys.argv[5:], exit=False).result
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
