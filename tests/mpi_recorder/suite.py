"""What scripts of tests with MPI programs share: running some of their tests, and the tool in a folder of its own."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

LONGEST = 1200
SKIPPED = 77


def run(module, names):
    """The exit status of the named tests of a module, or of all: 77 if every one was skipped."""
    load = unittest.defaultTestLoader
    result = unittest.TextTestRunner(verbosity=2).run(load.loadTestsFromNames(names, module) if names else load.loadTestsFromModule(module))
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        return SKIPPED
    return 0 if result.wasSuccessful() else 1


class ToolTest(unittest.TestCase):
    """A folder, and the tool in it with an environment without settings of diapason."""

    TOOL = ""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="diapason-mpi-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def tool(self, *words):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for name in [name for name in environment if name.startswith(("DIAPASON_", "LD_PRELOAD"))]:
            del environment[name]
        return subprocess.run([self.TOOL, *map(str, words)], capture_output=True, text=True, timeout=LONGEST,
                              env=environment, cwd=self.folder, check=False)
