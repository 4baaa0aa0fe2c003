"""Attacks jobs that run with the built plugin, and compares what their ranks ran call by call.

run.py BUILD [--store shm|file|redis|tcp] [--hosts N] [--calls N] [--seconds S] [--rounds N]
       [--seed N] [--case NAME] [--list] [--self-test]

With --hosts the ranks run on the hosts of a cluster in a box (tests/cluster), the server of a store on the first, and
there are cases in which whole hosts stand still, are killed and booted. --hosts-only plays those cases alone.

Without --calls and --seconds every case of the store is played once (or --rounds times, each with the
next seed). With them cases are drawn until
so many calls were compared, or so much time has passed. Ends with 77 where it cannot be done here.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack

sys.dont_write_bytecode = True  # nothing is written into the source tree

import box
import cases_broken
import cases_differ
import cases_hosts
import cases_plain
import cases_world
import hosts as networks
from job import Places, complaints
from scene import CASES, HOST_CASES, SERVED, SHARED, STORES, Scene

SKIP = 77
MOST_SHOWN = 3  # jobs of each case that went wrong
CASE_MODULES = (cases_plain, cases_differ, cases_hosts, cases_world)  # importing them fills CASES and HOST_CASES
NOT_ON_HOSTS = ('file_size_limit',)  # it starts its ranks in its own way


class Report:
    def __init__(self, store, hosts=0):
        self.store = store + (f' --hosts {hosts}' if hosts else '')
        self.jobs, self.calls, self.differences, self.kinds = Counter(), Counter(), Counter(), Counter()
        self.wrong = Counter()
        self.repeat = {}

    def add(self, name, seed, compared, differences, kinds, wrong):
        self.jobs[name] += 1
        self.calls[name] += compared
        self.differences[name] += differences
        self.kinds[name] += kinds > 2
        self.wrong[name] += bool(wrong)
        if wrong:
            self.repeat.setdefault(name, f'./dev attack --store {self.store} --case {name} --seed {seed}')

    def show(self):
        print(f"{'what happens':<26}{'jobs':>6}{'calls compared':>16}{'differences':>13}{'wrong':>7}")
        for name in sorted(self.jobs):
            print(f'{name:<26}{self.jobs[name]:>6}{self.calls[name]:>16}{self.differences[name]:>13}'
                  f'{self.wrong[name]:>7}')
        print(f'{self.store}: {self.jobs.total()} jobs, {self.calls.total()} calls compared, '
              f'{self.differences.total()} differences, {self.wrong.total()} jobs with something wrong, '
              f'{self.kinds.total()} in which something was tried')
        for command in self.repeat.values():
            print(f'again: {command}')


def play(stage, store, name, function, seed, report, quiet):
    """One case once; returns what was wrong."""
    began = time.monotonic()
    everything = []
    with Scene(stage.places, store, stage.hosts, os.path.join(stage.folder, 'scene'), seed,
               name) as scene:
        function(scene)
        for job, expected, hung in scene.verdicts:
            compared, differences, kinds, wrong = job.judge(expected, hung)
            report.add(name, seed, compared, differences, kinds, wrong)
            if wrong and not quiet and report.wrong[name] <= MOST_SHOWN:
                print(f'  WRONG in {name}, seed {seed} ({os.path.basename(job.folder)}):')
                for line in wrong:
                    print(f'    {line}')
                for rank in range(job.ranks):
                    for line in complaints(job.log(rank)):
                        print(f'      {line}')
            everything += wrong
            job.board.close()
        if scene.wrong:
            report.add(name, seed, 0, 0, 0, scene.wrong)
            print(f'  WRONG in {name}, seed {seed}: ' + '; '.join(scene.wrong))
            everything += scene.wrong
    if not quiet:
        print(f'{name}: {len(scene.verdicts)} jobs, {time.monotonic() - began:.1f} s'
              f"{', WRONG' if everything else ''}", flush=True)
    return everything


class Stage:
    """What all cases share: the built files, hosts, a folder."""

    def __init__(self, build, stack, options):
        self.places = Places(build)
        self.hosts = None
        if options.hosts:
            self.hosts = stack.enter_context(box.Box(options.hosts))
        elif options.store in SERVED:
            self.hosts = stack.enter_context(networks.Hosts())
        where = self.hosts.shared() if options.hosts else None
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix='diapason_attack_', dir=where))
        os.chmod(self.folder, 0o755)


def possible_cases(options):
    """This store's, but for those that need what is not here."""
    store = options.store
    known = {**({} if options.hosts_only else CASES), **(HOST_CASES if options.hosts else {})}
    chosen = {name: function for name, (stores, function) in known.items()
              if store in stores and not (options.hosts and name in NOT_ON_HOSTS)}
    if os.geteuid() != 0 or shutil.which('nsenter') is None:
        for name in ('shm_full', 'shm_fills'):
            if chosen.pop(name, None):
                print(f'{name} is left out: it needs root and nsenter')
    return chosen


def attack(stage, options, report):
    cases = possible_cases(options)
    if options.case:
        cases = {name: function for name, function in cases.items() if name in options.case}
        if len(cases) != len(set(options.case)):
            sys.exit(f"no such case for {options.store}; there are {', '.join(possible_cases(options))}")
    if options.calls is None and options.seconds is None:
        for number in range(options.rounds):
            for name, function in cases.items():
                play(stage, options.store, name, function, options.seed + number, report, False)
        return
    draw = random.Random(options.seed)
    seed, end = options.seed, time.monotonic() + (options.seconds or 1e9)
    while report.calls.total() < (options.calls or 1e18) and time.monotonic() < end:
        name = draw.choice(sorted(cases))
        play(stage, options.store, name, cases[name], seed, report, False)
        seed += 1


def self_test(stage, options):
    """Every way to be broken is noticed, and what is not broken is not."""
    fine = True
    report = Report(options.store)
    for way, said in cases_broken.WAYS.items():
        wrong = play(stage, options.store, way, lambda scene, way=way: cases_broken.broken(scene, way),
                     options.seed, report, True)
        noticed = any(said in line for line in wrong)
        print(f"{way}: {'noticed' if noticed else f'NOT NOTICED ({wrong})'}")
        fine = fine and noticed
    return fine


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('--store', choices=STORES, default='shm')
    parser.add_argument('--hosts', type=int, default=0, metavar='N', help='on N hosts of a cluster in a box')
    parser.add_argument('--hosts-only', action='store_true', help='only the cases that need whole hosts')
    parser.add_argument('--calls', type=int)
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--case', action='append')
    parser.add_argument('--list', action='store_true', help='say what cases there are')
    parser.add_argument('--self-test', action='store_true')
    options = parser.parse_args()
    if options.hosts_only and not options.hosts:
        options.hosts = 4
    if options.hosts and (options.store not in SHARED or not 4 <= options.hosts <= 16):
        parser.error(f"--hosts takes 4 to 16, and a store that several hosts can share: {', '.join(SHARED)}")
    return options


def interrupted(*_):
    sys.exit('interrupted')


def main():
    options = read_options()
    if options.list:
        for name, (stores, function) in {**CASES, **HOST_CASES}.items():
            print(f"{name:<26}{function.__doc__.splitlines()[0]} ({', '.join(stores)})")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    if options.hosts and box.why_not():
        print(f'skipped: {box.why_not()}')
        return SKIP
    if options.store in SERVED:
        program = 'redis-server' if options.store == 'redis' else Places(options.build).tool
        why = (None if options.hosts else networks.why_not()) or \
            (None if shutil.which(program) else f'there is no {program}')
        if why:
            print(f'skipped: {why}')
            return SKIP
        networks.remove_stale()
    with ExitStack() as stack:
        stage = Stage(options.build, stack, options)
        if options.self_test:
            return 0 if self_test(stage, options) else 1
        report = Report(options.store, options.hosts)
        try:
            attack(stage, options, report)
        finally:
            report.show()
    return 1 if report.wrong.total() else 0


if __name__ == '__main__':
    sys.exit(main())
