"""What tests on a cluster share: one cluster for each class, options, and exit status 77 where there can be none."""
import argparse
import os
import sys
import unittest

import namespaces
import remains
import slurm
from cluster import Cluster

OPTIONS = None
SKIP = 77


class Case(unittest.TestCase):
    """The tests of a class use one cluster, one after the other. A test that changes a link restores it."""
    HOSTS = 2
    RATE = '1gbit'
    SLURM = False

    @classmethod
    def setUpClass(cls):
        reason = namespaces.why_not() or (slurm.why_not() if cls.SLURM else None)
        if reason:
            raise unittest.SkipTest(reason)
        manager = Cluster.for_test(cls.HOSTS, rate=cls.RATE)
        cls.cluster = manager.__enter__()
        cls.addClassCleanup(manager.__exit__, None, None, None)
        if cls.SLURM:
            slurm.start(cls.cluster)

    def setUp(self):
        self.folder = os.path.join(self.cluster.shared, self._testMethodName)
        os.mkdir(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding='utf-8') as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def run_on(self, host, *words, status=0, variables=()):
        """Runs a command in the test's folder; with status None, the test looks at the exit status."""
        done = self.cluster.run(host, [str(word) for word in words], cwd=self.folder, env=environment(variables))
        if status is not None:
            self.assertEqual(done.returncode, status, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}")
        return done


def environment(variables=()):
    """That of this process without variables of other jobs, and such that mpirun runs as root."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(('DIAPASON_', 'NCCL_', 'OMPI_', 'SLURM_', 'LD_PRELOAD'))}
    return {**kept, 'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', **dict(variables)}


def wait_until(condition, what):
    remains.wait_until(condition, what)


def main(*programs):
    """Runs the tests of the calling script; `programs` are the options that name what was built."""
    global OPTIONS
    parser = argparse.ArgumentParser()
    for program in programs:
        parser.add_argument(f'--{program}')
    parser.add_argument('tests', nargs='*')
    OPTIONS = parser.parse_args()
    module = sys.modules['__main__']
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(OPTIONS.tests, module) if OPTIONS.tests else loader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        return 1
    return SKIP if result.skipped and result.testsRun <= len(result.skipped) else 0
