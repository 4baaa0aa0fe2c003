"""Slurm for real: slurmctld and four slurmd, each on a host of its own.

    slurm_test.py --tool PATH --rank PATH --conformance PATH [SlurmTest.test_NAME...]
"""
import json
import os
import sys

import case
from case import Case, main, wait_until

TUNE = ('tune', 'allreduce', '-g', '1', '--backend', 'gloo', '--launcher', 'srun', '--sizes', '1K')


class SlurmTest(Case):
    HOSTS = 4
    SLURM = True

    def tearDown(self):
        self.run_on('box1', 'scancel', '-u', 'root', status=None)
        wait_until(lambda: not self.queue(), 'an empty queue')

    def queue(self, form='%T'):
        return self.run_on('box1', 'squeue', '-h', '-o', form).stdout.split()

    def batch(self, *words, script):
        """Submits a script from the test's folder; its output goes to `out` there."""
        path = self.write('job.sh', '#!/bin/sh\n' + script + '\n')
        done = self.run_on('box2', 'sbatch', '--parsable', '-o', 'out', *words, path)
        return done.stdout.strip()

    def wait_for_end(self, job):
        wait_until(lambda: job not in self.queue('%A'), f'the end of job {job}')

    def test_srun(self):
        done = self.run_on('box2', 'srun', '-N4', 'hostname')
        self.assertEqual(sorted(done.stdout.split()), ['box1', 'box2', 'box3', 'box4'])
        done = self.run_on('box2', 'srun', '-N4', case.OPTIONS.conformance, '--backend', 'gloo', '--quick', '--filter',
                           'reductions')
        self.assertRegex(done.stdout, 'backend gloo, 4 ranks, [0-9]+ checks, 0 failures')
        done = self.run_on('box2', 'srun', '-N3', '-n6', case.OPTIONS.tool, 'bench', 'all_reduce', '--backend', 'gloo', '-b', '1K',
                           '-e', '1K', '--rounds', '2')
        self.assertIn('6 ranks on 3 nodes', done.stdout)

    def test_run_with_export(self):
        self.write('policy.conf', 'allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n')
        for export in ('ALL', 'NONE', 'A'):
            done = self.run_on('box1', case.OPTIONS.tool, 'run', '--policy', 'policy.conf', '--', 'srun', '-N2',
                               f'--export={export}', case.OPTIONS.rank, self.path(f'board.{export}'))
            self.assertIn('agreed  yes: 2 ranks, 300 calls', done.stderr, export)

    def test_sweep_in_a_batch_script(self):
        job = self.batch('-N4', script=f'{case.OPTIONS.tool} sweep allreduce -g 1 --backend gloo --launcher srun --nodes 1,2,4 '
                                       '--sizes 1K --most 3 --algorithms ring --store sweep.db --budget 1h --limit 300s')
        self.wait_for_end(job)
        for text in ('1 rank on 1 node', '2 ranks on 2 nodes', '4 ranks on 4 nodes'):
            self.assertIn(text, self.read('out'))

    def test_array(self):
        """The jobs of an array run at once on the same hosts, and do not meet."""
        job = self.batch('-N2', '--array=1-3', script=f'srun -N2 {case.OPTIONS.conformance} --backend gloo --quick --filter reductions '
                                                     '> array.$SLURM_ARRAY_TASK_ID 2>&1')
        self.wait_for_end(job)
        wait_until(lambda: not self.queue(), 'the end of the array')
        for task in (1, 2, 3):
            self.assertIn('backend gloo, 2 ranks', self.read(f'array.{task}'))

    def test_steps_of_one_job_at_once(self):
        """Two steps share the hosts and the job's id: their step ids tell them apart."""
        step = f'srun --overlap -N2 -n2 {case.OPTIONS.conformance} --backend gloo --quick --filter reductions'
        job = self.batch('-N2', script=f'{step} > one 2>&1 &\n{step} > two 2>&1 &\nwait')
        self.wait_for_end(job)
        for name in ('one', 'two'):
            self.assertIn('backend gloo, 2 ranks', self.read(name))

    def test_a_launcher_that_stays_queued_is_said(self):
        self.batch('-N4', '--exclusive', script='exec sleep 1000000')
        wait_until(lambda: self.queue() == ['RUNNING'], 'an allocation of all hosts')
        done = self.run_on('box2', case.OPTIONS.tool, *TUNE, '--nodes', '2', '--budget', '5s', '-o', 'tuned', status=1)
        self.assertIn('queued and waiting for resources', done.stderr)
        self.assertIn('given up after', done.stderr)

    def test_a_time_limit_in_the_middle_of_a_tuning(self):
        """Slurm ends the job: SIGTERM, then SIGKILL. What was measured is kept, and the next tuning adds to it."""
        words = ' '.join((case.OPTIONS.tool, *TUNE[:-1], '1K:64K:x2', '--nodes', '2', '--budget', '10h', '-o', 'tuned'))
        job = self.batch('-N2', '--time=30', script=f'exec {words}')
        wait_until(lambda: self.samples() > 0, 'the first samples')
        # Slurm looks at limits every half a minute.
        self.run_on('box1', 'scontrol', 'update', f'JobId={job}', 'TimeLimit=0:01')
        self.wait_for_end(job)
        kept = self.samples()
        self.assertGreater(kept, 0)
        self.run_on('box2', case.OPTIONS.tool, *TUNE, '--nodes', '2', '--samples', '4', '--budget', '1h', '--limit', '300s', '-o', 'tuned')
        self.assertGreater(self.samples(), kept)

    def samples(self):
        """Of the tuning; 0 while there is no dataset."""
        done = self.run_on('box2', case.OPTIONS.tool, 'data', 'show', '--json', 'tuned/measurements.db', status=None)
        if done.returncode != 0:
            return 0
        return sum(one['samples'] for context in json.loads(done.stdout)['contexts'] for one in context['configurations'])

    def test_requeue_and_cancel(self):
        """A job is requeued in the middle of a tuning, and tunes again into the same folder. Then it is cancelled, which
        ends it as a time limit does: SIGTERM, then SIGKILL. Nothing of it runs on, and the samples can be read."""
        words = ' '.join((case.OPTIONS.tool, *TUNE[:-1], '1K:8M:x2', '--nodes', '2', '--budget', '10h', '-o', 'tuned'))
        job = self.batch('-N2', '--requeue', '--open-mode=append', script=f'exec {words}')
        started = 'library  gloo'
        wait_until(lambda: os.path.exists(self.path('out')) and started in self.read('out'), 'the tuning')
        self.run_on('box1', 'scontrol', 'requeue', job)
        # Slurm starts a job two minutes after it was requeued, unless told otherwise.
        wait_until(lambda: self.queue() == ['PENDING'], 'the requeued job')
        self.run_on('box1', 'scontrol', 'update', f'JobId={job}', 'StartTime=now')
        wait_until(lambda: self.read('out').count(started) == 2, 'the second tuning')
        self.run_on('box1', 'scancel', job)
        self.wait_for_end(job)
        for host in self.cluster.hosts():
            wait_until(lambda host=host: 'diapason' not in self.run_on(host, 'ps', '-e', '-o', 'comm=').stdout,
                       f'the end of all ranks on {host}')
        self.run_on('box2', case.OPTIONS.tool, 'data', 'show', 'tuned/measurements.db')


if __name__ == '__main__':
    sys.exit(main('tool', 'rank', 'conformance'))
