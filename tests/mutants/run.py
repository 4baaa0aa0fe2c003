"""Breaks the sources in known ways, one after the other: for each a test must fail.

run.py [NAME...] [--list] [--verbose] [--build FOLDER] [--targets]

mutants.toml has the list. A mutant is one source with one text replaced. Nothing in the source tree
or in the build folder is changed: the one object that the source is compiled into is compiled again
beside them, as quickly as possible, and the files that a test needs are linked with it there.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name('mutants.toml')
TEST_LIMIT = 600  # seconds; a test that a mutant makes wait for ever has noticed it


class Stale(Exception):
    """The mutant does not fit the sources any more."""


def load():
    with open(LIST, 'rb') as file:
        listed = tomllib.load(file)
    for mutant in listed['mutant']:
        missing = {'name', 'file', 'breaks', 'old', 'new', 'test'} - set(mutant)
        if missing or mutant['test'] not in listed['test']:
            sys.exit(f"{LIST.name}: {mutant.get('name')}: {missing or 'no such test'}")
    return listed['mutant'], listed['test']


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors='replace', **options)


class Workshop:
    """A folder like the build folder, whose files are links into it until a mutant takes their place."""

    def __init__(self, build):
        self.build = build
        self.folder = build.parent / 'mutants'
        self._commands = json.loads((build / 'compile_commands.json').read_text())
        self._links = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        self._mirror('bin')
        for place in ('lib', *(str(path.relative_to(build)) for path in sorted((build / 'lib').rglob('*')) if path.is_dir())):
            self._mirror(place)

    def _mirror(self, place):
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        if not (self.build / place).is_dir():
            return
        for file in (self.build / place).iterdir():
            if file.is_file():
                (self.folder / place / file.name).symlink_to(file)

    def unit_of(self, source):
        """The command that compiles the source, alone or together with others, and the file it names."""
        for command in self._commands:
            file = Path(command['file'])
            if file == source:
                return command, file
            if 'Unity' in file.parts and file.exists() and f'"{source}"' in file.read_text():
                return command, file
        raise Stale('is not compiled in this build')

    def compile(self, source, text):
        """Returns the object's path in the build folder, and that of the mutated one."""
        command, unit = self.unit_of(source)
        words = shlex.split(command['command'])
        there = Path(words[words.index('-o') + 1])
        here = self.folder / 'object' / there.name
        here.parent.mkdir(exist_ok=True)
        mutated = self.folder / 'object' / source.name
        mutated.write_text(text)
        if unit != source:
            together = self.folder / 'object' / unit.name
            together.write_text(unit.read_text().replace(f'"{source}"', f'"{mutated}"'))
            mutated = together
        words[words.index('-o') + 1] = str(here)
        words[words.index('-c') + 1] = str(mutated)
        for word in ('-MF', '-MT'):
            if word in words:
                words[words.index(word) + 1] = str(here) + '.d'
        words = [word for word in words if word != '-Werror'] + ['-O0', '-w']
        done = run(words, cwd=command['directory'])
        if done.returncode != 0:
            raise Stale('does not compile:\n' + done.stderr[:2000])
        return there, here

    def link(self, target, there, here):
        """Links the target as the build does, with the mutated object in its place."""
        steps = run(['ninja', '-C', str(self.build), '-t', 'commands', target]).stdout.splitlines()
        command = next(part for part in steps[-1].split(' && ') if ' -o ' in part)
        words = shlex.split(command)
        room = re.search(r'(.*)/CMakeFiles/diapason_(\w+)\.dir/', str(there))
        archive = f'{room[1]}/libdiapason_{room[2]}.a' if room else None
        if str(there) in words:
            words = [str(here) if word == str(there) else word for word in words]
        elif archive in words:
            copy = self.folder / 'object' / Path(archive).name
            shutil.copy(self.build / archive, copy)
            run(['ar', 'r', str(copy), str(here)], check=True)
            words = [str(copy) if word == archive else word for word in words]
        else:
            raise Stale(f'is no part of {target}')
        output = words[words.index('-o') + 1]
        self._links[output] = True
        (self.folder / output).unlink()
        words[words.index('-o') + 1] = str(self.folder / output)
        done = run(words, cwd=self.build)
        if done.returncode != 0:
            raise Stale('does not link:\n' + done.stderr[:2000])

    def restore(self):
        for output in self._links:
            (self.folder / output).unlink(missing_ok=True)
            (self.folder / output).symlink_to(self.build / output)
        self._links = {}
        shutil.rmtree(self.folder / 'object', ignore_errors=True)

    def passes(self, test):
        """Runs a test; also what it said."""
        words = test['command'].format(build=self.folder, source=ROOT).split()
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('DIAPASON_', 'NCCL_'))}
        environment['LD_LIBRARY_PATH'] = f'{self.folder}/lib/chains'
        try:
            done = run(words, cwd=ROOT, timeout=TEST_LIMIT, env=environment)
        except subprocess.TimeoutExpired:
            return False, 'it did not end'
        return done.returncode == 0, done.stdout + done.stderr


def mutate(mutant):
    source = ROOT / mutant['file']
    text = source.read_text() if source.exists() else ''
    count = text.count(mutant['old'])
    if count != 1:
        raise Stale(f'the patch no longer applies: its old text is there {count} times')
    return source, text.replace(mutant['old'], mutant['new'])


def try_one(workshop, mutant, tests, verbose):
    """What became of it: killed, SURVIVED or STALE, and why."""
    test = tests[mutant['test']]
    try:
        source, text = mutate(mutant)
        there, here = workshop.compile(source, text)
        for target in test['links']:
            workshop.link(target, there, here)
        passed, said = workshop.passes(test)
        if verbose:
            print(said[-1500:])
        return ('SURVIVED', f"{mutant['test']} passes") if passed else ('killed', '')
    except Stale as why:
        return 'STALE', str(why)
    finally:
        workshop.restore()


def can_run(test):
    return all(shutil.which(program) for program in test.get('needs', []))


def check_tests(workshop, names, tests):
    """Without a mutant all of them pass, or they tell nothing."""
    fine = True
    for name in names:
        passed, said = workshop.passes(tests[name])
        if not passed:
            print(f'{name} fails without any mutant:\n{said[-2000:]}')
            fine = False
    return fine


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument('names', nargs='*')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--verbose', action='store_true', help='show what the tests say')
    parser.add_argument('--targets', action='store_true', help='what must have been built')
    parser.add_argument('--build', type=Path, default=ROOT / 'build' / 'release')
    return parser.parse_args()


def choose(mutants, names):
    unknown = set(names) - {mutant['name'] for mutant in mutants}
    if unknown:
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))} (--list)")
    return [mutant for mutant in mutants if not names or mutant['name'] in names]


def main():
    options = read_options()
    mutants, tests = load()
    mutants = choose(mutants, options.names)
    if options.list:
        for mutant in mutants:
            print(f"{mutant['name']:<30}{mutant['file']:<32}{mutant['breaks']}")
        return 0
    used = {mutant['test'] for mutant in mutants}
    if options.targets:
        print(*sorted({target for name in used
                       for target in tests[name]['links'] + tests[name].get('builds', [])}))
        return 0
    possible = sorted(name for name in used if can_run(tests[name]))
    workshop = Workshop(options.build.resolve())
    counts = {'killed': 0, 'SURVIVED': 0, 'STALE': 0, 'skipped': 0}
    try:
        if not check_tests(workshop, possible, tests):
            return 1
        for mutant in mutants:
            began = time.monotonic()
            outcome, why = ('skipped', f"{mutant['test']} needs {tests[mutant['test']].get('needs')}") \
                if mutant['test'] not in possible else try_one(workshop, mutant, tests, options.verbose)
            counts[outcome] += 1
            print(f"{mutant['name']:<30}{outcome:<10}{time.monotonic() - began:5.1f} s  {why}".rstrip(),
                  flush=True)
    finally:
        shutil.rmtree(workshop.folder, ignore_errors=True)
    skipped = f", {counts['skipped']} skipped" if counts['skipped'] else ''
    print(f"{counts['killed']} killed, {counts['SURVIVED']} survived, {counts['STALE']} stale{skipped}")
    return 1 if counts['SURVIVED'] or counts['STALE'] else 0


if __name__ == '__main__':
    sys.exit(main())
