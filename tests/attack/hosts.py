"""Hosts that are network namespaces on one bridge, and a mount namespace with a /dev/shm of its own."""
import glob
import os
import re
import shutil
import subprocess

import processes


def ip(*arguments, check=True):
    done = subprocess.run(['ip', *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done


def why_not():
    """Why there can be no hosts here; nothing where there can."""
    if os.geteuid() != 0:
        return 'network namespaces need root'
    if shutil.which('ip') is None:
        return 'there is no `ip` (package iproute2)'
    name = f'dpsn{os.getpid()}t'
    done = ip('netns', 'add', name, check=False)
    ip('netns', 'del', name, check=False)
    return f'no network namespaces: {done.stderr.strip()}' if done.returncode != 0 else None


def remove_stale():
    """What a run that was killed has left."""
    for path in glob.glob('/run/netns/dpsn*') + glob.glob('/var/run/netns/dpsn*'):
        match = re.fullmatch(r'dpsn(\d+)[a-z]\w*', os.path.basename(path))
        if match and not os.path.exists(f'/proc/{match[1]}'):
            ip('netns', 'del', os.path.basename(path), check=False)


class Hosts:
    """Four hosts, 10.77.0.10 to 10.77.0.13; nothing of it is seen outside of them."""
    COUNT = 4

    def __init__(self):
        self._prefix = f'dpsn{os.getpid()}x'
        self._made = []

    def __enter__(self):
        try:
            switch = self._add('s')
            ip('-n', switch, 'link', 'add', 'br0', 'type', 'bridge')
            ip('-n', switch, 'link', 'set', 'br0', 'up')
            for number in range(self.COUNT):
                name = self._add(str(number))
                ip('-n', name, 'link', 'set', 'lo', 'up')
                ip('-n', name, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', f'p{number}',
                   'netns', switch)
                ip('-n', switch, 'link', 'set', f'p{number}', 'master', 'br0', 'up')
                ip('-n', name, 'addr', 'add', f'{self.address(number)}/24', 'dev', 'eth0')
                ip('-n', name, 'link', 'set', 'eth0', 'up')
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self._made:
            ip('netns', 'del', name, check=False)
        self._made = []

    def _add(self, suffix):
        name = self._prefix + suffix
        self._made.append(name)
        ip('netns', 'add', name)
        return name

    @staticmethod
    def address(number):
        return f'10.77.0.1{number}'

    def on(self, number):
        """What to put before a command for it to run there."""
        return ['ip', 'netns', 'exec', f'{self._prefix}{number}']

    @staticmethod
    def signal(process, number):
        process.send_signal(number)

    @staticmethod
    def end(process):
        processes.end(process)

    def unplug(self, number):
        ip('-n', f'{self._prefix}{number}', 'link', 'set', 'eth0', 'down')

    def plug(self, number):
        ip('-n', f'{self._prefix}{number}', 'link', 'set', 'eth0', 'up')


class SmallShm:
    """A mount namespace whose /dev/shm holds only so much."""

    def __init__(self, mebibytes):
        self._size = f'size={mebibytes}m'
        self._keeper = None

    def __enter__(self):
        script = ('mount --make-rprivate / && mount -t tmpfs -o "$1" tmpfs /dev/shm && echo ready '
                  '&& exec cat')
        self._keeper = subprocess.Popen(['unshare', '-m', 'sh', '-c', script, 'sh', self._size],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._keeper.stdout.readline() != 'ready\n':
            self.__exit__()
            raise RuntimeError('no tmpfs could be mounted')
        return self

    def __exit__(self, *_):
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()

    def inside(self):
        return ['nsenter', f'--mount=/proc/{self._keeper.pid}/ns/mnt']

    def fill(self):
        subprocess.run([*self.inside(), 'dd', 'if=/dev/zero', 'of=/dev/shm/filler', 'bs=64k'],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
