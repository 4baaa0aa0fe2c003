"""Measuring over several hosts, on CPU: bench, pairs, sweep, tune, groups of comm.h, doctor compare.

    measure_test.py --tool PATH --conformance PATH [MeasureTest.test_NAME...]
"""
import concurrent.futures
import json
import os
import shutil
import sys

import case
import remains
from case import Case, main, wait_until

SMALL = ('-b', '1K', '-e', '4K', '--rounds', '2', '--json')
COUNTED = ('--budget', '1h', '--limit', '300s', '--sizes', '1K', '--algorithms', 'ring')


class MeasureTest(Case):
    HOSTS = 4

    def setUp(self):
        super().setUp()
        if not shutil.which('mpirun'):
            self.skipTest('there is no mpirun (package openmpi-bin)')
        self.hosts_file = self.write('hosts', ''.join(f'{host} slots=2\n' for host in self.cluster.hosts()))

    def mpirun(self, *hosts, first=None):
        """Rank 0 is on the first of the hosts, and mpirun runs there."""
        return ('mpirun', '--host', ','.join(hosts), '-x', f'MASTER_ADDR={first or hosts[0]}')

    def tool(self, *words, host='box1', status=0, before=()):
        return self.run_on(host, *before, case.OPTIONS.tool, *words, status=status)

    def needs(self, backend):
        for one in json.loads(self.tool('backends', '--json').stdout)['backends']:
            if one['name'] == backend and not one['usable']:
                self.skipTest(one['reason'])

    def test_bench(self):
        for backend in ('gloo', 'mpi'):
            self.needs(backend)
            for hosts in (('box1', 'box2'), ('box1', 'box2', 'box3', 'box4')):
                done = self.tool('bench', 'all_reduce', '--backend', backend, '-b', '1K', '-e', '4K', '--rounds', '2',
                                 before=self.mpirun(*hosts))
                self.assertIn(f'{len(hosts)} ranks on {len(hosts)} nodes', done.stdout)
                self.assertIn('Out of bounds values : 0 OK', done.stdout)

    def test_bench_says_which_address_it_needs(self):
        done = self.tool('bench', 'all_reduce', '--backend', 'gloo', *SMALL, status=None,
                         before=('mpirun', '--host', 'box1,box2'))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('mpirun -x MASTER_ADDR=', done.stderr)
        # A host that is not there is named.
        done = self.tool('bench', 'all_reduce', '--backend', 'gloo', '--limit', '5s', *SMALL, status=None,
                         before=self.mpirun('box1', 'box2', first='box9'))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('box9', done.stderr)

    def test_pairs_name_the_slow_host(self):
        self.needs('gloo')
        for host in self.cluster.hosts():
            self.cluster.set_rate(host, '200mbit')
        self.cluster.set_rate('box3', '20mbit')
        done = self.tool('bench', 'pairs', '--by-host', '--backend', 'gloo', '-b', '1M', '-n', '2', '--rounds', '2',
                         '--margin', '50%', '--limit', '300s', '--json', status=1, before=self.mpirun(*self.cluster.hosts()))
        result = json.loads(done.stdout)
        self.assertEqual(len(result['pairs']), 6)
        self.assertEqual([text.split()[0] for text in result['odd']], ['box3'], result)
        for host in self.cluster.hosts():
            self.cluster.set_rate(host, self.RATE)

    def test_sweep_starts_ranks_by_mpirun(self):
        self.needs('gloo')
        done = self.tool('sweep', 'allreduce', '-g', '1', '--backend', 'gloo', '--launcher', 'mpirun', '--hostfile',
                         self.hosts_file, '--nodes', '1,2,4', '--most', '3', '--store', 'sweep.db', *COUNTED)
        for text in ('1 rank on 1 node', '2 ranks on 2 nodes', '4 ranks on 4 nodes'):
            self.assertIn(text, done.stdout)

    def test_sweep_from_a_host_in_the_middle_of_the_file(self):
        """mpirun starts rank 0 on its own host, wherever the file names it: under a name or an address."""
        self.needs('gloo')
        addresses = self.write('addresses', ''.join(f'{self.cluster.address(host)} slots=2\n' for host in self.cluster.hosts()))
        for file in (self.hosts_file, addresses):
            done = self.tool('sweep', 'allreduce', '-g', '1', '--backend', 'gloo', '--launcher', 'mpirun', '--hostfile', file,
                             '--nodes', '2', '--most', '3', '--store', '/tmp/sweep.db', *COUNTED, host='box3')
            self.assertIn('2 ranks on 2 nodes', done.stdout)

    def test_tune_by_mpirun(self):
        self.needs('mpi')
        done = self.tool('tune', 'allreduce', '-g', '1', '--backend', 'mpi', '--launcher', 'mpirun', '--hostfile',
                         self.hosts_file, '--nodes', '2', '--samples', '20', '-o', 'tuned', '--json', '-q', '--budget', '1h',
                         '--limit', '300s', '--sizes', '1K')
        result = json.loads(done.stdout)
        self.assertEqual((result['library'], result['ranks']), ('openmpi', 2))
        self.tool('policy', 'check', 'tuned/policy.conf', host='box2')

    def kill_a_host(self, *words, begun):
        """Kills box3 once the output has `begun`; the exit status and what the command wrote to standard error."""
        with open(self.path('out'), 'w', encoding='utf-8') as out, open(self.path('err'), 'w', encoding='utf-8') as err:
            started = self.cluster.start('box1', [case.OPTIONS.tool, *words], cwd=self.folder, env=case.environment(), stdout=out,
                                         stderr=err)
            try:
                wait_until(lambda: begun() or started.poll() is not None, 'the measurement')
                self.assertIsNone(started.poll(), self.read('err'))
                self.cluster.kill('box3')
                try:
                    return started.wait(remains.LIMIT), self.read('err')
                finally:
                    self.cluster.boot('box3', self.RATE)
            finally:
                started.kill()
                started.wait()

    def samples(self, store):
        """How many samples a dataset has; 0 while it cannot be read."""
        done = self.tool('data', 'show', '--json', store, status=None)
        if done.returncode != 0:
            return 0
        return sum(one['samples'] for context in json.loads(done.stdout)['contexts'] for one in context['configurations'])

    def test_a_host_that_is_killed_ends_a_sweep(self):
        """After six attempts to start the ranks, with an error that names the host; what was measured is kept."""
        self.needs('gloo')
        status, said = self.kill_a_host(
            'sweep', 'allreduce', '-g', '1', '--backend', 'gloo', '--launcher', 'mpirun', '--hostfile', self.hosts_file, '--nodes',
            '4', '--sizes', '1K:64K:x2', '--store', 'sweep.db', '--budget', '10h', '--limit', '300s',
            begun=lambda: self.samples('sweep.db') >= 2)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r'tries in a row: the ranks did not start: [^\n]*they said:\n[^\n]*box3')
        self.assertGreaterEqual(self.samples('sweep.db'), 2)

    def test_a_launch_of_256_ranks(self):
        """64 on each of four hosts; and a rank that fails is named with its host."""
        os.chmod(self.write('secret', 'a secret of these four hosts, of 41 letters'), 0o600)

        def launch(number, script):
            return self.run_on(f'box{number + 1}', case.OPTIONS.tool, 'launch', '-n', '64', '--nodes', '4', '--node-rank', number, '--master',
                               'box1', '--port', '29710', '--', 'sh', '-c', script, status=None,
                               variables={'DIAPASON_SECRET_FILE': self.path('secret')})

        with concurrent.futures.ThreadPoolExecutor() as pool:
            ended = list(pool.map(lambda number: launch(number, 'echo $RANK of $WORLD_SIZE on $(hostname)'), range(4)))
        for number, done in enumerate(ended):
            self.assertEqual(done.returncode, 0, done.stderr)
            expected = {f'{rank} of 256 on box{number + 1}' for rank in range(64 * number, 64 * number + 64)}
            self.assertEqual(set(done.stdout.splitlines()), expected)
        done = launch(2, '[ $RANK != 150 ] || exit 3')
        self.assertRegex(done.stderr, r'rank 150 \(host box3, pid [0-9]+\) exited with status 3')

    def test_groups(self):
        for backend in ('gloo', 'mpi'):
            self.needs(backend)
            done = self.run_on('box1', *self.mpirun(*self.cluster.hosts()), case.OPTIONS.conformance, '--backend', backend,
                               '--quick', '--filter', 'reductions')
            self.assertRegex(done.stdout, f'backend {backend}, 4 ranks, [0-9]+ checks, 0 failures')

    def launch(self, number, *command, status=0):
        """This host's two ranks of a job on two hosts."""
        return self.run_on(f'box{number + 1}', case.OPTIONS.tool, 'launch', '-n', '2', '--nodes', '2', '--node-rank', number,
                           '--master', 'box1', '--port', '29700', '--', *command, status=status,
                           variables={'DIAPASON_SECRET_FILE': self.path('secret')})

    def test_launch_starts_the_share_of_one_host(self):
        self.needs('gloo')
        os.chmod(self.write('secret', 'a secret of these two hosts, of 40 letters'), 0o600)
        command = (case.OPTIONS.conformance, '--backend', 'gloo', '--quick', '--filter', 'reductions')
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first, second = pool.map(lambda number: self.launch(number, *command), (0, 1))
        self.assertRegex(first.stdout, 'backend gloo, 4 ranks, [0-9]+ checks, 0 failures')
        self.assertEqual(second.stdout, '')
        done = self.launch(1, 'sh', '-c', 'exit $RANK', status=None)
        self.assertRegex(done.stderr, r'rank [23] \(host box2, pid [0-9]+\) exited with status [23]')

    def test_doctor_compare_names_the_host_that_differs(self):
        for host in self.cluster.hosts():
            variables = {'NCCL_ALGO': 'Ring'} if host == 'box3' else {}
            done = self.run_on(host, case.OPTIONS.tool, 'doctor', '--no-test', '--json', status=None, variables=variables)
            self.write(f'{host}.json', done.stdout)
        done = self.tool('doctor', 'compare', *(f'{host}.json' for host in self.cluster.hosts()), status=None)
        self.assertIn('4 hosts', done.stdout)
        self.assertIn('box3: variable NCCL_ALGO Ring where 3 others have none', done.stdout)


if __name__ == '__main__':
    sys.exit(main('tool', 'conformance'))
