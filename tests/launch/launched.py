"""Real processes of `diapason launch`, for its tests."""

import os
import sys
import unittest

from tool_processes import LIMIT, proc, state, ToolProcesses, wait_until

__all__ = ["Launched", "LIMIT", "main", "OWN", "PR_SET_CHILD_SUBREAPER", "proc", "state", "wait_until"]

TOOL = None
PR_SET_CHILD_SUBREAPER = 36
OWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Launched(ToolProcesses):
    def environment(self, extra=()):
        kept = {name: value for name, value in os.environ.items() if name not in OWN}
        return {**kept, "TOKEN": self.token, "FOLDER": self.folder.name, **dict(extra)}

    def start(self, *arguments, env=(), **options):
        return self.start_words([TOOL, "launch", *arguments], env=env, **options)

    def run_tool(self, *arguments, env=(), **options):
        """Exit status, lines of standard output, text of standard error."""
        status, out, err = self.run_to_end(*arguments, env=env, **options)
        return status, out.splitlines(), err

    def ranks(self):
        return [pid for pid in self.processes() if b"\0RANK=" in b"\0" + proc(pid, "environ")]

    def wait_for_files(self, *names):
        for name in names:
            wait_until(lambda name=name: os.path.exists(self.path(name)), f"file {name}")


def main(doc):
    """`--tool PATH` first, then what unittest takes."""
    global TOOL
    if sys.argv[1:2] != ["--tool"]:
        sys.exit(doc)
    TOOL = os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
