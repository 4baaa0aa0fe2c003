"""The server of a store on one of the hosts, and what can happen to it."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import processes

PORT = 6399
PROXY_PORT = 6400
RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cluster', 'relay.py')
SECRET = 'a secret that only tests have'  # of a store at tcp://


class Server:
    """What the servers of all kinds have in common. `durable`: it comes back with all it had."""

    def __init__(self, hosts, folder, places, durable=False):
        self._hosts, self._durable, self._places = hosts, durable, places
        self._folder = os.path.join(folder, 'server')
        self._process = None
        self._proxy = None
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._hosts.end(self._proxy)
        self._hosts.end(self._process)

    def start(self):
        raise NotImplementedError

    def url(self, port=PORT):
        return f'{self.SCHEME}://{self._hosts.address(0)}:{port}'

    def kill(self):
        self._hosts.end(self._process)

    def pause(self):
        self._hosts.signal(self._process, signal.SIGSTOP)

    def resume(self):
        self._hosts.signal(self._process, signal.SIGCONT)

    def proxy(self, **settings):
        """A way to the server that delays, drops or loses; returns its address."""
        self._hosts.end(self._proxy)
        words = [f'{name}={value}' for name, value in settings.items()]
        self._proxy = processes.start(
            [*self._hosts.on(0), sys.executable, RELAY,
             self._hosts.address(0), str(PROXY_PORT), str(PORT), *words],
            stdout=subprocess.PIPE, text=True)
        if self._proxy.stdout.readline() != 'ready\n':
            raise RuntimeError('the proxy did not start')
        return self.url(PROXY_PORT)

    @staticmethod
    def _wait_until(condition):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError('the server does not answer')
            time.sleep(0.02)


class Redis(Server):
    SCHEME = 'redis'

    def start(self):
        durable = ['--appendonly', 'yes', '--appendfsync', 'always'] if self._durable else \
            ['--appendonly', 'no']
        self._process = processes.start(
            [*self._hosts.on(0), 'redis-server', '--bind', self._hosts.address(0), '--port', str(PORT),
             '--protected-mode', 'no', '--dir', self._folder, '--save', '', *durable],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait_until(lambda: 'PONG' in self.ask('ping'))

    def ask(self, *words):
        done = subprocess.run([*self._hosts.on(0), 'redis-cli', '-h', self._hosts.address(0), '-p',
                               str(PORT), *words], capture_output=True, text=True)
        return done.stdout

    def empty(self):
        self.ask('flushall')

    def registrations(self):
        """How many ranks have registered."""
        jobs = self.ask('--scan', '--pattern', 'diapason:*').split()
        return sum(field.startswith('j') for one in jobs for field in self.ask('hkeys', one).split())

    def squeeze(self):
        """Keys are evicted from now on, and there is not enough memory for them."""
        self.ask('config', 'set', 'maxmemory-policy', 'allkeys-random')
        self.ask('config', 'set', 'maxmemory', '2mb')
        script = "for i=1,tonumber(ARGV[1]) do redis.call('set','filler'..math.random(1e6),ARGV[2]) end"
        for _ in range(20):
            self.ask('eval', script, '0', '2000', 'x' * 200)


class CellServer(Server):
    """`diapason serve`."""
    SCHEME = 'tcp'

    def start(self):
        os.environ['DIAPASON_SECRET'] = SECRET  # also for programs that give orders
        if not self._durable:
            self._forget()
        self._process = processes.start(
            [*self._hosts.on(0), self._places.tool, 'serve', '--listen',
             f'{self._hosts.address(0)}:{PORT}', '--file', self._file()],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not self._process.stdout.readline().startswith('DIAPASON_STORE='):
            raise RuntimeError('diapason serve did not start')

    def empty(self):
        self.kill()
        self._forget()
        self.start()

    def registrations(self):
        """How many ranks have registered: the cells of slots in the file."""
        with open(self._file(), 'rb') as file:
            return len(set(re.findall(rb'j[0-9a-f]+\.[0-9]+\.[0-9]+', file.read())))

    def _file(self):
        return os.path.join(self._folder, 'cells')

    def _forget(self):
        if os.path.exists(self._file()):
            os.unlink(self._file())


KINDS = {'redis': Redis, 'tcp': CellServer}
