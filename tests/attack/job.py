"""One job: starts its ranks, waits for them, and judges what they did."""
import os
import signal
import time

import board as boards
import processes

# What must become of a job. Whatever it is, no two ranks may have run a call differently.
SURVIVE = 'survive'  # every rank makes all its calls
FAIL_IN_CREATION = 'fail in creation'  # so does every rank, when the communicator is created
FAIL = 'fail'        # somebody fails with ncclSystemError, nobody makes all its calls
EITHER = 'either'    # a rank makes its calls, or fails with ncclSystemError

SYSTEM_ERROR = 2
SLACK = 60.0          # seconds: the machine is busy, or ten times slower
FINALIZE = 2.0
HANG = 600.0          # seconds without an end


class Places:
    """Where the built files are."""

    def __init__(self, build):
        build = os.path.abspath(build)
        self.plugin = os.path.join(build, 'lib', 'libnccl-tuner-diapason.so')
        self.rank = os.path.join(build, 'bin', 'attack_rank')
        self.orders = os.path.join(build, 'bin', 'attack_orders')
        self.tool = os.path.join(build, 'bin', 'diapason')
        self.fail_malloc = os.path.join(build, 'lib', 'attack', 'libattack_fail_malloc.so')
        self.chain = os.path.join(build, 'lib', 'attack', 'libattack_chain_tree.so')


class Job:
    """`options` and `environment` are for all ranks; `each(rank)` returns what one has of its own:
    {'options': {}, 'environment': {}, 'before': [command words]}."""

    def __init__(self, places, folder, ranks, options, environment, each=None, before=None):
        self.ranks, self.folder, self.environment = ranks, folder, environment
        self.patience = float(environment.get('DIAPASON_STORE_PATIENCE', 60))
        self.join_limit = float(environment.get('DIAPASON_JOIN_LIMIT', 10))
        self.killed = set()
        self.limit = HANG
        os.makedirs(folder)
        self.board = boards.Board(os.path.join(folder, 'board'), ranks)
        self._processes = [None] * ranks
        self._places, self._options, self._environment = places, options, environment
        self._each = each or (lambda rank: {})
        self._before = before or (lambda rank: [])
        self._began = time.monotonic()

    def start(self, ranks=None):
        for rank in range(self.ranks) if ranks is None else ranks:
            self._start_rank(rank)
        return self

    def _start_rank(self, rank):
        own = self._each(rank)
        options = {'plugin': self._places.plugin, 'board': os.path.join(self.folder, 'board'),
                   'rank': rank, 'ranks': self.ranks, 'nodes': self.ranks, **self._options,
                   **own.get('options', {})}
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('DIAPASON_', 'NCCL_', 'SLURM_', 'OMPI_', 'TORCHELASTIC'))}
        for name, value in {**self._environment, **own.get('environment', {})}.items():
            environment[name] = str(value)
        words = [f'{name}={value}' for name, value in options.items()]
        with open(self._log('out', rank), 'wb') as out, open(self._log('err', rank), 'wb') as err:
            self._processes[rank] = processes.start(
                [*self._before(rank), *own.get('before', []), self._places.rank, *words],
                env=environment, stdout=out, stderr=err)

    def _log(self, kind, rank):
        return os.path.join(self.folder, f'{kind}{rank}')

    def log(self, rank):
        if not os.path.exists(self._log('err', rank)):
            return ''
        with open(self._log('err', rank), errors='replace') as file:
            return file.read()

    # While it runs.

    def alive(self):
        """Ranks that have not ended; those that have are said to be gone on the board."""
        alive = []
        for rank, process in enumerate(self._processes):
            if process is None or process.poll() is None:
                alive.append(rank)
            else:
                self.board.mark_gone(rank)
        return alive

    def wait_until(self, condition):
        """False: all ranks have ended, or time is up, before it was so."""
        while not condition():
            if not self.alive() or time.monotonic() - self._began > self.limit:
                return condition()
            time.sleep(0.005)
        return True

    def reach(self, call):
        """Waits until every rank has made so many calls."""
        return self.wait_until(lambda: all(one.done >= call for one in self.board.all()))

    def let_time_pass(self, seconds):
        """So long, or until no rank is left."""
        end = time.monotonic() + seconds
        return self.wait_until(lambda: time.monotonic() > end)

    def never_start(self, rank):
        """A rank that is counted, and never comes."""
        self.killed.add(rank)
        self._processes[rank] = processes.start(['true'])

    def kill(self, rank):
        self.killed.add(rank)
        processes.end(self._processes[rank])

    def stop_soon(self, more=200):
        """Every rank ends at the same call, a little after the farthest one's."""
        self.board.stop_at(max(one.done for one in self.board.all()) + more)

    def end(self):
        """Waits for all ranks; those that never end are killed, and that is a violation."""
        self.wait_until(lambda: not self.alive())
        hung = self.alive()
        self.close()
        return hung

    def close(self):
        for process in self._processes:
            processes.end(process)

    # When it has ended.

    def judge(self, expected, hung):
        """(calls compared, what is wrong)"""
        compared, differences, kinds = self.board.compare()
        wrong = [f'call {call}: ' + ', '.join(f'rank {rank} ran {name(word)}'
                                              for rank, word in enumerate(ran) if word)
                 for call, ran in differences[:2]]
        if len(differences) > 2:
            wrong.append(f'... {len(differences)} calls differ')
        wrong += [f'rank {rank} did not end' for rank in hung]
        states = self.board.all()
        for rank, state in enumerate(states):
            if rank not in hung:
                wrong += self._judge_rank(rank, state)
        wrong += self._judge_all(expected, states)
        return compared, len(differences), len(kinds), wrong

    def _judge_rank(self, rank, state):
        code = self._processes[rank].returncode
        wrong = []
        if code != 0 and rank not in self.killed:
            said = signal.Signals(-code).name if code < 0 else f'status {code}'
            wrong.append(f'rank {rank} ended with {said}')
        if state.state == boards.FAILED and state.error != SYSTEM_ERROR:
            wrong.append(f'rank {rank} got error {state.error}, not ncclSystemError')
        out = self._log('out', rank)
        if os.path.exists(out) and os.path.getsize(out) > 0:
            wrong.append(f'rank {rank} wrote to stdout')
        for what, took, limit in (
                ('creation', state.init_s, self.join_limit + self.patience + SLACK),
                ('question', state.question_s, self.patience + SLACK),
                ('end', state.finalize_s, FINALIZE + SLACK)):
            if took > limit:
                wrong.append(f"rank {rank}: a communicator's {what} took {took:.1f} s, more than {limit:.1f}"
                             if what != 'question' else
                             f'rank {rank}: a question took {took:.1f} s, more than {limit:.1f}')
        return wrong

    def _judge_all(self, expected, states):
        states = [(rank, one) for rank, one in enumerate(states) if rank not in self.killed]
        if expected == SURVIVE:
            return [f'rank {rank} {ending(one)}, and should have made all its calls'
                    for rank, one in states if one.state != boards.FINISHED]
        if expected == FAIL_IN_CREATION:
            return [f'rank {rank} {ending(one)}, and no communicator should have been created'
                    for rank, one in states
                    if one.state != boards.FAILED or not one.error_in_init]
        if expected == FAIL:
            wrong = [f'rank {rank} made all its calls, and should not have been able to'
                     for rank, one in states if one.state == boards.FINISHED]
            if all(one.state != boards.FAILED for _, one in states):
                wrong.append('nobody failed')
            return wrong
        # Somebody is left alone only where somebody else failed or was killed.
        if not self.killed and all(one.state != boards.FAILED for _, one in states):
            return [f'rank {rank} {ending(one)}' for rank, one in states
                    if one.state != boards.FINISHED]
        return []


def name(word):
    algorithms = ('tree', 'ring', 'collnet_direct', 'collnet_chain', 'nvls', 'nvls_tree', 'pat')
    word -= 1
    algorithm, protocol, channels = word // 10000, word // 1000 % 10, word % 1000
    if algorithm >= len(algorithms) or protocol > 2:
        return f'a group ({word})'
    return f"{algorithms[algorithm]}/{('ll', 'll128', 'simple')[protocol]}/{channels}"


def ending(state):
    if state.state == boards.FAILED:
        where = 'a creation' if state.error_in_init else f'call {state.error_at}'
        return f'failed with {state.error} in {where}'
    return {boards.FINISHED: 'finished', boards.STRANDED: f'was left alone at call {state.done}',
            boards.RUNNING: f'was never done (call {state.done})'}[state.state]


def complaints(text, most=3):
    """The last lines of a rank's log that are no mere information."""
    lines = [line for line in text.splitlines()
             if not line.startswith('[') or ' warning]' in line.split('diapason')[0]]
    return [line for line in lines if 'is no setting' not in line][-most:]


__all__ = ['Job', 'Places', 'SURVIVE', 'FAIL', 'FAIL_IN_CREATION', 'EITHER', 'complaints']
