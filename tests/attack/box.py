"""Hosts of a cluster in a box (tests/cluster) for attacked jobs: each with processes, a name and a /dev/shm of its own.

The same functions as hosts.Hosts has, and those that only whole hosts have.
"""
import os
import signal
import sys

import processes

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cluster'))

import namespaces  # noqa: E402
import remains  # noqa: E402
from cluster import Cluster  # noqa: E402

RATE = '10gbit'


def why_not():
    return namespaces.why_not(with_ssh=False)


class Box:
    def __init__(self, count):
        self.COUNT = count
        self._cluster = None

    def __enter__(self):
        remains.remove_ownerless()
        self._cluster = Cluster.up(f'attack{os.getpid()}', self.COUNT, rate=RATE, owner=remains.owner(os.getpid()),
                                   with_ssh=False, visible=(sys.prefix, sys.base_prefix))
        return self

    def __exit__(self, *_):
        self._cluster.down()

    def shared(self):
        """A folder that all hosts have."""
        return self._cluster.shared

    @staticmethod
    def _name(number):
        return f'box{number + 1}'

    def address(self, number):
        return self._cluster.address(self._name(number))

    def on(self, number):
        """What to put before a command for it to run there."""
        return self._cluster.words(self._name(number), [])

    @staticmethod
    def signal(process, number):
        """To the command itself, and not to the process that has started it there."""
        with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='utf-8') as file:
            for child in file.read().split():
                os.kill(int(child), number)

    def end(self, process):
        """Waits until the command has ended, too."""
        if process is None:
            return
        if process.poll() is None:
            try:
                self.signal(process, signal.SIGKILL)
                process.wait(60)
            except (OSError, TimeoutError):
                pass
        processes.end(process)

    def unplug(self, number):
        self._cluster.cut(self._name(number))

    def plug(self, number):
        self._cluster.heal(self._name(number))

    def pause(self, number):
        self._cluster.pause(self._name(number))

    def resume(self, number):
        self._cluster.resume(self._name(number))

    def slow_down(self, number, rate):
        self._cluster.set_rate(self._name(number), rate)

    def speed_up(self, number):
        self._cluster.set_rate(self._name(number), RATE)

    def kill(self, number):
        self._cluster.kill(self._name(number))

    def boot(self, number):
        self._cluster.boot(self._name(number), RATE)
