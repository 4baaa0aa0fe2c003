"""Real processes of `diapason run`, for its tests."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launch"))
from tool_processes import LIMIT, proc, state, ToolProcesses, wait_until  # noqa: E402

__all__ = ["LIMIT", "main", "proc", "Ran", "state", "wait_until"]

TOOL = None
RANK = None
POLICY = "allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n"


class Ran(ToolProcesses):
    def setUp(self):
        super().setUp()
        with open(self.path("policy.conf"), "w", encoding="utf-8") as file:
            file.write(POLICY)

    def environment(self, extra=()):
        """Without what would be ours or another launcher's; temporary files are in the test's folder."""
        ours = ("NCCL_", "DIAPASON_", "OMPI_COMM", "PMIX", "SLURM")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "RANK"}
        os.makedirs(self.path("tmp"), exist_ok=True)
        return {**kept, "TOKEN": self.token, "TMPDIR": self.path("tmp"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", **dict(extra)}

    def start(self, *arguments, env=(), **options):
        return self.start_words([TOOL, "run", *arguments], env=env, cwd=self.folder.name, **options)

    def run_tool(self, *arguments, env=(), **options):
        """Exit status, text of standard output, lines of standard error."""
        status, out, err = self.run_to_end(*arguments, env=env, **options)
        return status, out, err.splitlines()

    def with_policy(self, *command, options=(), **more):
        return self.run_tool("--policy", self.path("policy.conf"), *options, "--", *command, **more)

    def rank(self, *options):
        """The words of a rank of the played job."""
        return [RANK, self.path("board"), *options]

    def assert_three_lines(self, lines):
        """The last lines are what was chosen, gained and agreed; returns them."""
        self.assertGreaterEqual(len(lines), 3, lines)
        for line, word in zip(lines[-3:], ("chosen", "gained", "agreed")):
            self.assertTrue(line.startswith(f"diapason: {word}  "), lines)
        return [line.split("  ", 1)[1] for line in lines[-3:]]

    def needs(self, program):
        if shutil.which(program) is None:
            self.skipTest(f"no {program} here")


def main(doc):
    """`--tool PATH --rank PATH` first, then what unittest takes."""
    global TOOL, RANK
    if sys.argv[1:2] != ["--tool"] or sys.argv[3:4] != ["--rank"]:
        sys.exit(doc)
    TOOL, RANK = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[4])
    result = unittest.main(argv=[sys.argv[0]] + sys.argv[5:], exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)
