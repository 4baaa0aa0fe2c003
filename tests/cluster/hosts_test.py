"""The hosts of a cluster: what each has for itself, what they share, and what breaks on request.

    hosts_test.py [HostsTest.test_NAME...]
"""
import os
import signal
import subprocess
import sys

import links
import redis_server
from case import Case, main, wait_until

# Connects to a port of a host, and prints how that ended.
_CONNECT = '''
import socket, sys
try:
    socket.create_connection((sys.argv[1], 22), timeout=float(sys.argv[2])).close()
    print("connected")
except OSError as error:
    print("not connected")
'''


class HostsTest(Case):
    HOSTS = 3

    def connect(self, host, to, seconds):
        return self.run_on(host, '/usr/bin/python3', '-c', _CONNECT, to, seconds).stdout.strip()

    def test_each_has_its_own(self):
        script = 'hostname; cat /etc/hostname; touch /tmp/mine /dev/shm/mine /run/mine; ls /tmp /dev/shm; ls /sys/class/net; ps -e -o pid= -o comm='
        for host in ('box1', 'box2'):
            lines = self.run_on(host, 'sh', '-c', script).stdout.split('\n')
            self.assertEqual(lines[:2], [host, host])
            self.assertIn('eth0', lines)
            processes = [line.split() for line in lines if line.strip()[:1].isdigit()]
            self.assertEqual(processes[0], ['1', 'python3'])
            self.assertLess(len(processes), 10)
        self.run_on('box1', 'rm', '/tmp/mine')
        self.run_on('box2', 'test', '-e', '/tmp/mine')
        for path in ('/dev/shm/mine', '/run/mine'):
            self.run_on('box3', 'test', '!', '-e', path)
            self.assertFalse(os.path.exists(path))

    def test_one_folder_and_the_home_are_shared(self):
        self.run_on('box1', 'sh', '-c', 'echo from box1 > file; echo from box1 > ~/file')
        self.assertEqual(self.read('file'), 'from box1\n')
        self.assertEqual(self.run_on('box2', 'sh', '-c', 'pwd; cat file ~/file').stdout,
                         f'{self.folder}\nfrom box1\nfrom box1\n')

    def test_names_and_addresses(self):
        for number, host in enumerate(self.cluster.hosts(), 1):
            found = self.run_on('box1', 'getent', 'hosts', host).stdout.split()
            self.assertEqual(found, [links.address(number), host])
        # There is no way out of the cluster.
        self.assertNotIn('default', self.run_on('box1', 'ip', 'route').stdout)

    def test_ssh_and_mpirun(self):
        self.assertEqual(self.run_on('box1', 'ssh', 'box2', 'hostname').stdout, 'box2\n')
        self.assertNotEqual(self.run_on('box1', 'ssh', '-o', 'PubkeyAuthentication=no', 'box2', 'hostname',
                                        status=None).returncode, 0)
        done = self.run_on('box1', 'mpirun', '--host', 'box2,box3', 'hostname')
        self.assertEqual(sorted(done.stdout.split()), ['box2', 'box3'])

    def test_exit_status(self):
        self.assertEqual(self.run_on('box1', 'sh', '-c', 'exit 3', status=None).returncode, 3)
        self.assertEqual(self.run_on('box1', 'sh', '-c', 'kill -9 $$', status=None).returncode, 128 + signal.SIGKILL)
        done = self.run_on('box1', 'no-such-program', status=127)
        self.assertIn('box1: no-such-program: No such file', done.stderr)

    def test_a_command_ends_with_its_caller(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            caller = self.cluster.start('box1', ['sh', '-c', 'echo started; exec sleep 1000000'], stdout=subprocess.PIPE)
            with caller:
                self.assertEqual(caller.stdout.readline(), b'started\n')
                caller.send_signal(number)
            wait_until(lambda: 'sleep' not in self.run_on('box1', 'ps', '-e').stdout, 'the end of the command')

    def test_orphans_are_reaped(self):
        self.run_on('box1', 'sh', '-c', '(sleep 0.01 &) ; exit 0')
        wait_until(lambda: 'sleep' not in self.run_on('box1', 'ps', '-e').stdout, 'the orphan to be reaped')

    def test_rate_of_a_link(self):
        shown = self.run_on('box2', 'tc', 'qdisc', 'show', 'dev', 'eth0').stdout
        self.assertIn('tbf', shown)
        self.assertIn('rate 1Gbit', shown)
        self.cluster.set_rate('box2', '80mbit')
        self.assertIn('rate 80Mbit', self.run_on('box2', 'tc', 'qdisc', 'show', 'dev', 'eth0').stdout)
        # 10 MB at 80 Mbit/s take a second, less what the bucket and the buffers hold; a slow machine takes longer.
        script = 'import time, subprocess; start = time.monotonic(); ' \
                 'subprocess.run("head -c 10000000 /dev/zero | ssh box2 cat | wc -c", shell=True, check=True); ' \
                 'print(time.monotonic() - start)'
        count, seconds = self.run_on('box1', '/usr/bin/python3', '-u', '-c', script).stdout.split()
        self.assertEqual(count, '10000000')
        self.assertGreater(float(seconds), 0.5)
        self.cluster.set_rate('box2', '1gbit')

    def test_cut_and_heal(self):
        self.assertEqual(self.connect('box1', 'box2', 300), 'connected')
        self.cluster.cut('box2')
        self.assertEqual(self.connect('box1', 'box2', 1), 'not connected')
        self.assertEqual(self.connect('box1', 'box3', 300), 'connected')
        self.cluster.heal('box2')
        wait_until(lambda: self.connect('box1', 'box2', 60) == 'connected', 'the link to heal')

    def test_pause_and_resume(self):
        with self.cluster.start('box2', ['sh', '-c', 'while read line; do echo "$line"; done'], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE) as echo:
            echo.stdin.write(b'one\n')
            echo.stdin.flush()
            self.assertEqual(echo.stdout.readline(), b'one\n')
            self.cluster.pause('box2')
            self.assertEqual(self.cluster.state('box2'), 'paused')
            self.assertEqual(self.cluster.state('box1'), 'running')
            echo.stdin.write(b'two\n')
            echo.stdin.close()
            self.cluster.resume('box2')
            self.assertEqual(echo.stdout.read(), b'two\n')
        self.assertEqual(self.cluster.state('box2'), 'running')

    def test_kill_and_boot(self):
        with self.cluster.start('box3', ['sleep', '1000000']) as victim:
            wait_until(lambda: 'sleep' in self.run_on('box3', 'ps', '-e').stdout, 'the command')
            self.cluster.kill('box3')
            self.assertEqual(victim.wait(), 128 + signal.SIGKILL)
        self.assertEqual(self.cluster.state('box3'), 'dead')
        self.assertIn('the host box3', self.run_on('box3', 'true', status=125).stderr)
        self.assertEqual(self.connect('box1', 'box3', 1), 'not connected')
        self.cluster.boot('box3', '1gbit')
        self.assertEqual(self.run_on('box1', 'ssh', 'box3', 'hostname').stdout, 'box3\n')

    def test_redis(self):
        reason = redis_server.why_not()
        if reason:
            self.skipTest(reason)
        self.assertEqual(redis_server.start(self.cluster, 'box2'), 'redis://box2')
        self.run_on('box1', 'redis-cli', '-h', 'box2', 'set', 'key', 'value')
        self.assertEqual(self.run_on('box3', 'redis-cli', '-h', 'box2', 'get', 'key').stdout, 'value\n')


if __name__ == '__main__':
    sys.exit(main())
