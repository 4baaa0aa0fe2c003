"""A Redis server on one of the hosts, and what can happen to it."""
import os
import shutil
import signal
import subprocess
import sys
import time

import processes

PORT = 6399
PROXY_PORT = 6400


class Server:
    def __init__(self, hosts, folder, durable=False):
        self._hosts, self._durable = hosts, durable
        self._folder = os.path.join(folder, 'redis')
        self._process = None
        self._proxy = None
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        processes.end(self._proxy)
        processes.end(self._process)

    def url(self, port=PORT):
        return f'redis://{self._hosts.address(0)}:{port}'

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

    def kill(self):
        processes.end(self._process)

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def squeeze(self):
        """Keys are evicted from now on, and there is not enough memory for them."""
        self.ask('config', 'set', 'maxmemory-policy', 'allkeys-random')
        self.ask('config', 'set', 'maxmemory', '2mb')
        script = "for i=1,tonumber(ARGV[1]) do redis.call('set','filler'..math.random(1e6),ARGV[2]) end"
        for _ in range(20):
            self.ask('eval', script, '0', '2000', 'x' * 200)

    def proxy(self, **settings):
        """A way to the server that delays, drops or loses; returns its address."""
        processes.end(self._proxy)
        words = [f'{name}={value}' for name, value in settings.items()]
        here = os.path.dirname(os.path.abspath(__file__))
        self._proxy = processes.start(
            [*self._hosts.on(0), sys.executable, os.path.join(here, 'proxy.py'),
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
                raise RuntimeError('redis-server does not answer')
            time.sleep(0.02)

