"""Jobs over several hosts: policies, journals, stores, and MPI programs under `diapason run` and `diapason tune`.

    jobs_test.py --tool PATH --rank PATH --steps PATH [JobsTest.test_NAME...]
"""
import json
import os
import shutil
import subprocess
import sys

import case
import redis_server
from case import Case, main

POLICY = 'allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n'
PLUGIN = 'libnccl-tuner-diapason.so'
# Ranks come together also where the machine is slow.
LEARNING = {'DIAPASON_REWARD': 'gpu', 'DIAPASON_JOIN_LIMIT': '300'}


class JobsTest(Case):
    HOSTS = 3

    def setUp(self):
        super().setUp()
        if not shutil.which('mpirun'):
            self.skipTest('there is no mpirun (package openmpi-bin)')
        self.policy = self.write('policy.conf', POLICY)

    def job(self, *options, before=(), rank=(), hosts='box1,box2,box3', status=0, variables=()):
        """A job on a library that is played; its ranks meet in a file of the shared folder."""
        done = self.run_on('box1', *before, case.OPTIONS.tool, 'run', *options, '--', 'mpirun', '--host', hosts,
                           case.OPTIONS.rank, self.path('board'), *rank, status=status, variables=variables)
        os.unlink(self.path('board'))
        return done

    def test_policy_reaches_all_hosts(self):
        done = self.job('--policy', 'policy.conf', '--journal-dir', 'journals')
        self.assertIn('agreed  yes: 3 ranks, 300 calls', done.stderr)
        self.assertIn('chosen  allreduce 512KiB: tree/simple', done.stderr)
        journals = sorted(os.listdir(self.path('journals')))
        self.assertEqual([name.split('.')[1] for name in journals], ['box1', 'box2', 'box3'])
        self.run_on('box2', case.OPTIONS.tool, 'journal', 'check', *(f'journals/{name}' for name in journals))

    def test_journals_that_are_not_shared(self):
        done = self.job('--policy', self.policy, '--journal-dir', '/tmp/journals')
        self.assertIn('agreed  not known: 1 journal', done.stderr)
        self.assertIn('a folder that all hosts share', done.stderr)

    def plugin(self):
        return os.path.join(os.path.dirname(os.path.dirname(case.OPTIONS.tool)), 'lib', PLUGIN)

    def by_hand(self, *settings):
        """What docs/job/launchers.md says for mpirun, with the variables given by hand."""
        words = []
        for setting in (f'NCCL_TUNER_PLUGIN={self.plugin()}', f'NCCL_PROFILER_PLUGIN={self.plugin()}',
                        f"DIAPASON_JOURNAL={self.path('j')}.%h.%p", *settings):
            words += ['-x', setting]
        self.run_on('box1', 'mpirun', '--host', 'box1,box2,box3', *words, case.OPTIONS.rank, self.path('board'))
        journals = sorted(name for name in os.listdir(self.folder) if name.startswith('j.'))
        self.assertEqual([name.split('.')[1] for name in journals], ['box1', 'box2', 'box3'])
        return self.run_on('box3', case.OPTIONS.tool, 'journal', 'check', *journals).stdout

    def test_policy_by_variable(self):
        exported = self.run_on('box1', case.OPTIONS.tool, 'policy', 'env', 'policy.conf').stdout
        inline = exported.strip().split('=', 1)[1].strip("'\"")
        self.by_hand('DIAPASON_MODE=static', f'DIAPASON_POLICY_INLINE={inline}')
        self.assertIn('tree', self.read(next(name for name in os.listdir(self.folder) if name.startswith('j.box2'))))

    def test_policy_by_store(self):
        """Only the first host has the policy; the others get it through the store."""
        os.mkdir(self.path('store'))
        script = f'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then export DIAPASON_POLICY={self.policy}; fi; exec "$@"'
        words = []
        for setting in (f'NCCL_TUNER_PLUGIN={self.plugin()}', f'NCCL_PROFILER_PLUGIN={self.plugin()}', 'DIAPASON_MODE=static',
                        f"DIAPASON_STORE=file:{self.path('store')}", f"DIAPASON_JOURNAL={self.path('j')}.%h.%p"):
            words += ['-x', setting]
        self.run_on('box1', 'mpirun', '--host', 'box1,box2,box3', *words, 'sh', '-c', script, 'sh', case.OPTIONS.rank,
                    self.path('board'))
        journals = [name for name in os.listdir(self.folder) if name.startswith('j.')]
        self.run_on('box1', case.OPTIONS.tool, 'journal', 'check', *journals)
        for name in journals:
            self.assertIn('tree', self.read(name), name)

    def test_learning_with_a_file_store(self):
        os.mkdir(self.path('store'))
        done = self.job('--learn', '--store', f"file:{self.path('store')}", rank=('--calls', '2000'),
                        variables=LEARNING)
        self.assertIn('agreed  yes: 3 ranks, 2000 calls', done.stderr)
        self.assertNotIn('cannot', done.stderr)

    def test_learning_with_a_redis_store(self):
        reason = redis_server.why_not()
        if reason:
            self.skipTest(reason)
        url = redis_server.start(self.cluster, 'box3')
        done = self.job('--learn', '--store', url, rank=('--calls', '2000'), variables=LEARNING)
        self.assertIn('agreed  yes: 3 ranks, 2000 calls', done.stderr)
        self.assertNotIn('cannot', done.stderr)

    def test_learning_without_a_store(self):
        """`diapason run` serves one from its own host."""
        done = self.job('--learn', rank=('--calls', '2000'), variables=LEARNING)
        self.assertIn('agreed  yes: 3 ranks, 2000 calls', done.stderr)
        self.assertNotIn('have not come', done.stderr)

    def test_learning_with_a_store_whose_replies_take_20_ms(self):
        """Epochs are agreed on ahead of the calls: no rank waits for the store, and all learn."""
        secret = self.write('secret', 'a secret of these three hosts, of 44 letters')
        os.chmod(secret, 0o600)
        served = {'DIAPASON_SECRET_FILE': secret}
        server = self.cluster.start('box3', [case.OPTIONS.tool, 'serve', '--listen', 'box3:29477', '--file', self.path('cells')],
                                    cwd=self.folder, env=case.environment(served), stdout=subprocess.PIPE, text=True)
        try:
            self.assertIn('DIAPASON_STORE=tcp://box3:29477', server.stdout.readline())
            way = self.cluster.delay('box3', 29477, 10)
            done = self.job('--learn', '--store', f'tcp://box3:{way}', rank=('--calls', '20000'), variables={**LEARNING, **served})
        finally:
            server.kill()
            server.communicate()
        self.assertIn('agreed  yes: 3 ranks, 20000 calls', done.stderr)
        self.assertRegex(done.stderr, 'chosen  .*at the end of 20000 calls')
        self.assertNotIn('waiting for the store', done.stderr)

    def test_a_served_store_that_ranks_cannot_reach(self):
        """The store listens on the loopback of the first host: all ranks leave the choice to the library."""
        done = self.job('--learn', '--store', 'tcp://localhost:29650', rank=('--calls', '200'),
                        variables={'DIAPASON_REWARD': 'gpu'})
        self.assertIn("the library's own choice for all 200 calls: ranks 1, 2 of 3 have not come", done.stderr)
        self.assertIn('agreed  yes: 3 ranks, 200 calls', done.stderr)

    def tune_mpi(self, output, status):
        if not case.OPTIONS.steps:
            self.skipTest('Open MPI is not installed')
        return self.run_on('box1', case.OPTIONS.tool, 'tune', '--json', '--budget', '240', '--launches', '6', '-o', output, '--',
                           'mpirun', '--host', 'box1,box2', case.OPTIONS.steps, '20', '100', status=status)

    def test_tune_an_mpi_program(self):
        done = self.tune_mpi('out', None)
        result = json.loads(done.stdout)
        self.assertIn(result['verdict'], ('undecided', 'nothing to gain'), done.stderr)
        recordings = os.listdir(self.path('out/journals/launch-1'))
        self.assertEqual(sorted(name.split('.')[1] for name in recordings), ['box1', 'box2'])

    def test_tune_refuses_a_folder_that_is_not_shared(self):
        done = self.tune_mpi('/tmp/out', 1)
        self.assertIn("1 of 2 ranks left no recording in '/tmp/out' (host box1", done.stderr)


if __name__ == '__main__':
    sys.exit(main('tool', 'rank', 'steps'))
