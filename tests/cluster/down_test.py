"""Nothing of a cluster is left behind, however the program that made it ended. Also `./dev cluster` as people use it.

    down_test.py [DownTest.test_NAME...]
"""
import os
import signal
import subprocess
import sys
import unittest

import layout
import namespaces
import remains
from case import main, wait_until
from cluster import Cluster

_HERE = os.path.dirname(os.path.abspath(__file__))


class DownTest(unittest.TestCase):
    def setUp(self):
        reason = namespaces.why_not()
        if reason:
            self.skipTest(reason)
        self.name = f'down{os.getpid()}'
        self.folder = layout.folder_of(self.name)
        self.addCleanup(remains.remove, self.name)

    def command(self, *words, status=0):
        done = subprocess.run([sys.executable, '-B', os.path.join(_HERE, 'command.py'), '--name', self.name, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=remains.LIMIT, check=False)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def namespaces_of(self, pids):
        return {os.readlink(f'/proc/{pid}/ns/{kind}') for pid in pids for kind in ('net', 'mnt', 'pid', 'uts')}

    def in_use(self, wanted):
        """Which of these namespaces still have processes."""
        found = set()
        for pid in layout.processes():
            try:
                found |= self.namespaces_of([pid]) & wanted
            except OSError:
                continue
        return found

    def assert_nothing_left(self, wanted=frozenset()):
        self.assertEqual(layout.inits(self.folder), [])
        self.assertEqual(self.in_use(set(wanted)), set())
        self.assertFalse(os.path.exists(self.folder))
        self.assertNotIn(self.name, remains.names())
        with open('/proc/mounts', encoding='utf-8') as file:
            self.assertNotIn(self.name, file.read())

    def links_of_the_machine(self):
        return subprocess.run(['ip', '-o', 'link'], capture_output=True, text=True, check=True,
                              env={'PATH': namespaces.search_path()}).stdout.count('\n')

    def test_by_command(self):
        links = self.links_of_the_machine()
        self.assertIn('2 hosts', self.command('up', '2', '--rate', '100mbit'))
        used = self.namespaces_of([pid for pid, _, _ in layout.inits(self.folder)])
        self.assertEqual(self.links_of_the_machine(), links)  # the network of the machine has no part in it
        self.assertEqual(self.command('run', 'box2', 'hostname'), 'box2\n')
        self.assertEqual(self.command('exec', 'box2', '--', 'sh', '-c', 'exit 4', status=4), '')
        for words in (('rate', 'box1', '10mbit'), ('cut', 'box1'), ('heal', 'box1'), ('pause', 'box1')):
            self.command(*words)
        self.assertIn('box1  10.88.0.1  paused', self.command('status'))
        self.assertIn("has no host 'box7'; it has box1, box2", self.command('pause', 'box7', status=1))
        self.assertIn("'fast' is no rate", self.command('rate', 'box1', 'fast', status=1))
        self.assertIn('removed', self.command('down'))  # a host that is paused as well
        self.assert_nothing_left(used)
        self.assertIn('there was none', self.command('down'))
        self.assertIn('there is no cluster', self.command('status', status=1))

    def test_second_up_removes_the_first(self):
        first = Cluster.up(self.name, 2)
        before = [(pid, layout.start_time(pid)) for pid, _, _ in layout.inits(self.folder)]
        self.assertEqual(len(before), 3)
        with first.start('box1', ['sh', '-c', 'echo started; exec sleep 1000000'], stdout=subprocess.PIPE) as command:
            self.assertEqual(command.stdout.readline(), b'started\n')
            self.command('up', '1')
            self.assertEqual(command.wait(), 128 + signal.SIGKILL)
        for pid, started in before:
            self.assertTrue(layout.start_time(pid) != started or layout.state(pid) == 'Z', pid)  # or is about to be reaped
        self.assertEqual(Cluster(self.name).hosts(), ['box1'])

    def test_killed_in_the_middle(self):
        """`up` is killed after more and more of its work: between any two of its files."""
        for files in ('hosts.json', 'hosts/switch/pid', 'hosts/switch/ready', 'hosts/box1/pid', 'hosts/box1/sshd.log',
                      'hosts/box2/ready'):
            maker = subprocess.Popen([sys.executable, '-B', os.path.join(_HERE, 'command.py'), '--name', self.name, 'up', '3'],
                                     stdout=subprocess.DEVNULL)
            wait_until(lambda: os.path.exists(os.path.join(self.folder, files)), files)
            maker.kill()
            maker.wait()
            self.command('down')
            wait_until(lambda: not layout.inits(self.folder), 'the end of a host that was about to start')
            self.assert_nothing_left()

    def test_owner_is_killed(self):
        """The cluster of a test that was killed goes when the next test starts one."""
        script = 'import time; from cluster import Cluster\n' \
                 'with Cluster.for_test(2) as cluster: print(cluster.name, flush=True); time.sleep(1000000)'
        owner = subprocess.Popen([sys.executable, '-B', '-c', script], cwd=_HERE, stdout=subprocess.PIPE, text=True)
        name = owner.stdout.readline().strip()
        self.addCleanup(remains.remove, name)
        with Cluster.for_test(1):
            self.assertIn(name, remains.names())  # its owner lives
        owner.kill()
        owner.wait()
        owner.stdout.close()
        self.assertIn(name, remains.names())
        with Cluster.for_test(1):
            self.assertNotIn(name, remains.names())

    def test_two_clusters_do_not_meet(self):
        other = self.name + 'b'
        self.addCleanup(remains.remove, other)
        one, two = Cluster.up(self.name, 2), Cluster.up(other, 2)
        self.assertEqual(one.address('box1'), two.address('box1'))
        for cluster, text in ((one, 'one'), (two, 'two')):
            cluster.check('box2', ['sh', '-c', f'echo {text} > /tmp/name'])
        self.assertEqual(one.check('box1', ['ssh', 'box2', 'cat', '/tmp/name']), 'one\n')
        self.assertEqual(two.check('box1', ['ssh', 'box2', 'cat', '/tmp/name']), 'two\n')
        one.down()
        self.assertEqual(two.check('box1', ['ssh', 'box2', 'cat', '/tmp/name']), 'two\n')


if __name__ == '__main__':
    sys.exit(main())
