"""A cluster in a box: hosts box1, box2, ... that are namespaces of this machine (CONTRIBUTING.md).

    with Cluster.for_test(4, rate='1gbit') as cluster:
        cluster.run('box1', ['mpirun', '--host', 'box1,box2', 'hostname'])
"""
import contextlib
import os
import signal
import subprocess
import sys

import enter
import layout
import links
import namespaces
import remains
import ssh

_HERE = os.path.dirname(os.path.abspath(__file__))
_SWITCH = 'switch'
MOST_HOSTS = 64
DEFAULT_RATE = '10gbit'


class Cluster:
    """The clusters of one machine differ in their names. All functions may be called from any process of root."""

    def __init__(self, name):
        self.name = name
        self.folder = layout.folder_of(name)
        self.shared = os.path.join(self.folder, 'shared')

    @classmethod
    def up(cls, name, count, rate=DEFAULT_RATE, owner=None, visible=(), with_ssh=True, shared_memory=False):
        """Starts hosts; a cluster of this name that exists is removed first. It ends with down(), or once a process
        owner has ended and another test starts a cluster. The hosts see the folders `visible` of the machine even
        where they lie below one that each host has for itself, such as /tmp. shared_memory: all hosts have the
        machine's /dev/shm, as programs need it that talk to a daemon of the machine through it."""
        if not 1 <= count <= MOST_HOSTS:
            raise ValueError(f'a cluster has 1 to {MOST_HOSTS} hosts')
        links.bits_per_second(rate)
        remains.remove(name)
        cluster = cls(name)
        try:
            cluster._prepare([f'box{number}' for number in range(1, count + 1)], owner, visible, with_ssh, shared_memory)
            cluster._boot(_SWITCH)
            links.make_bridge(cluster._pid(_SWITCH))
            for host in cluster.hosts():
                cluster.boot(host, rate)
        except BaseException:
            cluster.down()
            raise
        return cluster

    @classmethod
    @contextlib.contextmanager
    def for_test(cls, count, **options):
        """A cluster that ends with the block, or after the calling process."""
        remains.remove_ownerless()
        cluster = cls.up(f'test{os.getpid()}', count, owner=remains.owner(os.getpid()), **options)
        try:
            yield cluster
        finally:
            cluster.down()

    def down(self):
        return remains.remove(self.name)

    def _prepare(self, hosts, owner, visible, with_ssh, shared_memory):
        os.makedirs(self.folder, mode=0o755)
        if owner is not None:
            layout.write_json(self.folder, 'owner', owner)
        repository = os.path.dirname(os.path.dirname(_HERE))
        layout.write_json(self.folder, 'visible.json', [os.path.realpath(path) for path in (repository, *visible)])
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o1777)
        os.mkdir(os.path.join(self.folder, 'home'), mode=0o700)
        os.makedirs(os.path.join(self.folder, 'etc', 'slurm'))
        lines = [f'{links.address(number)} {host}\n' for number, host in enumerate(hosts, 1)]
        layout.write_text(self.folder, 'etc/hosts', '127.0.0.1 localhost\n' + ''.join(lines))
        layout.write_json(self.folder, 'shared_memory.json', shared_memory)
        if with_ssh:
            ssh.prepare(self.folder, hosts)
        for host in [_SWITCH, *hosts]:
            layout.write_text(self.folder, f'hosts/{host}/hostname', host + '\n')
            layout.write_text(self.folder, f'hosts/{host}/resolv.conf', '')
        layout.write_json(self.folder, 'hosts.json', hosts)

    def _boot(self, host):
        for file in ('pid', 'ready'):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, 'hosts', host, file))
        subprocess.run(layout.init_command(self.folder, host), check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL,
                       env={'PATH': namespaces.search_path()})
        ready = os.path.join(self.folder, 'hosts', host, 'ready')
        remains.wait_until(lambda: os.path.exists(ready), f'the start of {host}')
        result = layout.read_json(self.folder, f'hosts/{host}/ready')
        if result != 'yes':
            raise RuntimeError(f'the host {host} does not start: {result}')

    def boot(self, host, rate=DEFAULT_RATE):
        """Starts a host that does not run, with its link and, where the cluster has ssh, its sshd."""
        self._boot(host)
        links.connect(self._pid(_SWITCH), self._number(host), self._pid(host), rate)
        if ssh.is_prepared(self.folder):
            ssh.start(self, host)

    def hosts(self):
        """The names, including those of hosts that were killed."""
        try:
            return layout.read_json(self.folder, 'hosts.json')
        except OSError:
            raise LookupError(f"there is no cluster '{self.name}'") from None

    def _number(self, host):
        if host not in self.hosts():
            raise LookupError(f"the cluster '{self.name}' has no host '{host}'; it has {', '.join(self.hosts())}")
        return self.hosts().index(host) + 1

    def _pid(self, host):
        if host != _SWITCH:
            self._number(host)
        return enter.pid_of(self.folder, host)

    def address(self, host):
        return links.address(self._number(host))

    def log(self, host, service):
        """Where a service of a host writes."""
        return os.path.join(self.folder, 'hosts', host, f'{service}.log')

    def words(self, host, command):
        """The command line that runs a command on a host; the command ends with it."""
        self._number(host)
        return [sys.executable, '-B', os.path.join(_HERE, 'enter.py'), self.folder, host, *command]

    def start(self, host, command, **options):
        options.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.Popen(self.words(host, command), **options)

    def run(self, host, command, timeout=remains.LIMIT, **options):
        """The completed command, with its outputs as text. stdout and stderr are separate."""
        options.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.run(self.words(host, command), capture_output=True, text=True, timeout=timeout, check=False,
                              **options)

    def check(self, host, command, **options):
        """The standard output of a command that has to succeed."""
        done = self.run(host, command, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{host}: {' '.join(command)}: exit status {done.returncode}\n"
                               f'{done.stdout[-2000:]}{done.stderr[-2000:]}')
        return done.stdout

    def set_rate(self, host, rate):
        """Limits the link of a host in both directions."""
        links.shape(self._pid(_SWITCH), self._number(host), self._pid(host), rate)

    def delay(self, host, port, milliseconds):
        """A second way to a TCP port of a host, on which data waits so long in each direction: its port. It ends with the
        host."""
        if not 1 <= port <= 65535 or not 0 <= milliseconds <= 60000:
            raise ValueError(f'port {port} and {milliseconds} ms: a port is 1 to 65535, a delay at most 60000 ms')
        way = self._free_port(host)
        log = self.log(host, f'relay{way}')
        script = 'exec setsid python3 -B "$@" > "$0" 2>&1 &'
        self.check(host, ['sh', '-c', script, log, os.path.join(_HERE, 'relay.py'), self.address(host), str(way), str(port),
                          f'delay={milliseconds / 1000}'])
        remains.wait_until(lambda: _said(log), f'the relay to port {port} of {host}')
        if _said(log) != 'ready':
            raise RuntimeError(f'the relay to port {port} of {host} does not start: {_said(log)}')
        return way

    def _free_port(self, host):
        script = 'import socket, sys; s = socket.socket(); s.bind((sys.argv[1], 0)); print(s.getsockname()[1])'
        return int(self.check(host, ['python3', '-c', script, self.address(host)]))

    def cut(self, host):
        links.set_cable(self._pid(_SWITCH), self._number(host), 'down')

    def heal(self, host):
        links.set_cable(self._pid(_SWITCH), self._number(host), 'up')

    def processes(self, host):
        """The ids, on this machine, of all processes of a host."""
        namespace = os.readlink(f'/proc/{self._pid(host)}/ns/pid')
        found = []
        for pid in layout.processes():
            with contextlib.suppress(OSError):
                if os.readlink(f'/proc/{pid}/ns/pid') == namespace:
                    found.append(pid)
        return found

    def pause(self, host):
        """Stops all processes of a host; its kernel still acknowledges packets, as that of a swapping host does."""
        remains.wait_until(lambda: self._signal_those_not(host, 'T', signal.SIGSTOP), f'{host} to stop')

    def resume(self, host):
        for pid in self.processes(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _signal_those_not(self, host, state, number):
        others = [pid for pid in self.processes(host) if layout.state(pid) not in (state, 'Z', 'X', '')]
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return not others

    def kill(self, host):
        """Ends a host at once, with its processes, files in memory and link. boot() starts it again."""
        pid = self._pid(host)
        os.kill(pid, signal.SIGKILL)
        remains.wait_until(lambda: not layout.is_init(pid, self.folder, host), f'the end of {host}')

    def state(self, host):
        """running, paused or dead."""
        try:
            return 'paused' if layout.state(self._pid(host)) == 'T' else 'running'
        except LookupError:
            return 'dead'


def _said(path):
    """The first line of a file, once it is whole; empty before that."""
    try:
        with open(path, encoding='utf-8') as file:
            first = file.readline()
    except FileNotFoundError:
        return ''
    return first.strip() if first.endswith('\n') else ''
