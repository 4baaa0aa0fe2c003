"""What a case has to play with: a store, hosts, a server, jobs; and the list of all cases."""
import glob
import os
import random
import shutil
from contextlib import ExitStack

import job as jobs
import processes
import server as servers

STORES = ('shm', 'file', 'redis', 'tcp')
SERVED = ('redis', 'tcp')  # stores on a host, with ranks on several
SHARED = ('file', *SERVED)
# name -> (stores it is for, function): filled by the modules cases_*.py. A case gets a Scene, runs
# its jobs, and says with scene.expect() what must have become of each.
CASES = {}
# Those that need whole hosts (box.Box).
HOST_CASES = {}

LIBRARIES = (22809, 22903, 23007, 23102, 23206)
NEW_SELECTION = (23102, 23206)
ROW = 'allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n'
ALLGATHER_ROW = 'allgather,0,1073741824,ring,simple,2,-1,-1,-1,-1\n'


def case(*stores):
    """Marks a function as a case for these stores (all of them, where none is named). The first line
    of what it says about itself is what a report says."""
    def register(function):
        CASES[function.__name__] = (stores or STORES, function)
        return function
    return register


def host_case(*stores):
    """The same for a case that needs whole hosts, for these stores (all that ranks of several hosts can share)."""
    def register(function):
        HOST_CASES[function.__name__] = (stores or SHARED, function)
        return function
    return register


class Scene:
    """One case, once. Used with `with`: what it has started ends with it."""

    def __init__(self, places, store, hosts, folder, seed, name):
        self.places, self.store, self.hosts, self.folder = places, store, hosts, folder
        self.random = random.Random(f'{seed} {name}')
        self.name = name
        self.server = None
        self.verdicts = []  # (job, expected, hung)
        self.wrong = []     # beside what the verdicts say
        self._jobs = 0
        self._stack = ExitStack()

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        if self.store in SERVED:
            self.serve()
        return self

    def __exit__(self, *unused):
        self._stack.close()
        for left in glob.glob(f'/dev/shm/diapason-{os.geteuid()}/{self.unique("")}*'):
            os.unlink(left)

    @staticmethod
    def unique(name):
        """A job's name that nobody else uses."""
        return f'attack{os.getpid()}.{name}'

    def keep(self, resource):
        return self._stack.enter_context(resource)

    def serve(self, durable=False):
        """A server of our own, with or without what lets it come back as it was."""
        if self.server is not None:
            self.server.kill()
        self.server = self.keep(
            servers.KINDS[self.store](self.hosts, self.folder, self.places, durable))

    def where(self):
        """The store, as DIAPASON_STORE has it."""
        if self.store in SERVED:
            return self.server.url()
        if self.store == 'file':
            os.makedirs(os.path.join(self.folder, 'store'), exist_ok=True)
            return f"file:{os.path.join(self.folder, 'store')}"
        return 'shm'

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def job(self, ranks=4, calls=1200, options=None, environment=None, each=None, before=None,
            name=None):
        """A job that is not started yet. Whatever the case leaves open is drawn."""
        self._jobs += 1
        draw = self.random
        drawn = {'seed': draw.randrange(1 << 30), 'id': 0x5eed0000 + draw.randrange(1 << 30),
                 'calls': calls, 'lag': draw.choice((1, 3, 50)), 'pause': draw.choice((0, 30, 80)),
                 'sizes': draw.choice((2, 3, 5)), 'collectives': draw.randrange(2),
                 'version': draw.choice(LIBRARIES)}
        own = {'DIAPASON_MODE': 'learn', 'DIAPASON_STORE': self.where(), 'DIAPASON_REWARD': 'gpu',
               'DIAPASON_JOB': name or self.unique(self._jobs),
               'DIAPASON_JOIN_LIMIT': 5, 'DIAPASON_STORE_PATIENCE': 20,
               'DIAPASON_EXPLORE_BUDGET': '50%', 'NCCL_RAS_ENABLE': 0,  # 2.31 learns only so
               'DIAPASON_STRATEGY': draw.choice(('elimination', 'epsilon', 'thompson'))}
        if self.store == 'tcp':
            own['DIAPASON_SECRET'] = servers.SECRET
        if draw.randrange(4) == 0:  # another way through the plugin, and another thread
            own['DIAPASON_JOURNAL'] = os.path.join(self.folder, 'journal.%p')
        if before is None and self.hosts is not None:
            before = self._host_of
        made = jobs.Job(self.places, os.path.join(self.folder, f'job{self._jobs}'), ranks,
                        {**drawn, **(options or {})}, {**own, **(environment or {})}, each, before)
        self._stack.callback(made.close)
        return made

    def order(self, job, before=()):
        """A program that gives a job orders at random, until the case ends."""
        giver = processes.start([*before, self.places.orders, job.environment['DIAPASON_STORE'],
                                 job.environment['DIAPASON_JOB'], str(self.random.randrange(1 << 30))])
        self._stack.callback(processes.end, giver)
        return giver

    def _host_of(self, rank):
        return self.hosts.on(rank % self.hosts.COUNT)

    def check(self, condition, otherwise):
        if not condition:
            self.wrong.append(otherwise)

    def expect(self, expected, job):
        """Waits for the job, and notes what must have become of it."""
        self.verdicts.append((job, expected, job.end()))
