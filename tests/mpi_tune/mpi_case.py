"""Tests that run the tool on MPI programs: a folder for each, the tool in it, and what a script's main() does."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
LONGEST = 1200
OPTIONS = None


class MpiCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="diapason-mpi-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def need_steps(self):
        if not OPTIONS.steps or not shutil.which("mpirun"):
            self.skipTest("Open MPI is not installed")

    def steps(self, ranks, iterations, microseconds):
        """The words of a command line that start tests/mpi_tune/steps.c."""
        return ["--", "mpirun", "--oversubscribe", "-n", ranks, OPTIONS.steps, iterations, microseconds]

    def run_tool(self, *words, status=0):
        """`status` None: any."""
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for name in [name for name in environment if name.startswith(("DIAPASON_", "LD_PRELOAD"))]:
            del environment[name]
        done = subprocess.run([OPTIONS.tool, *map(str, words)], capture_output=True, text=True, timeout=LONGEST,
                              env=environment, cwd=self.folder, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done


def main(name):
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--steps")
    parser.add_argument("tests", nargs="*")
    OPTIONS = parser.parse_args()
    return run_tests(sys.modules[name], OPTIONS.tests)


def run_tests(module, names):
    """The exit status; SKIPPED if nothing ran."""
    suite = (unittest.defaultTestLoader.loadTestsFromNames(names, module) if names
             else unittest.defaultTestLoader.loadTestsFromModule(module))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        return SKIPPED
    return 0 if result.wasSuccessful() else 1
