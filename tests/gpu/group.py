"""Starts, commands and ends groups of rank processes. Every wait has a limit."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator

START_SECONDS = 150.0  # many processes import torch at once, the first time from a cold disk
COMMAND_SECONDS = 60.0  # a block takes well under a second: longer than this is a hung collective
QUIT_SECONDS = 20.0
TERMINATE_SECONDS = 10.0
# What a user may have in the environment must not decide what is compared here.
CLEARED_PREFIXES = ("NCCL_", "DIAPASON_", "TORCH_NCCL_", "CUDA_MPS_")


STOPPING_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM}


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals wait until the block is done: a clean-up cut short would leave ranks on the GPU."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class GroupError(RuntimeError):
    """A rank died, answered with an error, or did not answer in time."""


class Deadline:
    """The limit of the whole run; a single wait gets the smaller of its own limit and this."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        return self.end - time.monotonic()

    def limit(self, seconds: float) -> float:
        return max(0.0, min(seconds, self.left()))


@dataclass(frozen=True)
class Setting:
    """What is the same for every group of a run."""

    command: list[str]  # the rank program, without its arguments
    ranks: int
    work: Path  # logs, journals, meeting points
    deadline: Deadline
    environment: dict[str, str] = field(default_factory=dict)  # e.g. where MPS listens


def clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(CLEARED_PREFIXES)}


class Group:
    """The ranks of one communicator."""

    def __init__(self, setting: Setting, name: str, environment: dict[str, str], log: bool) -> None:
        self.setting = setting
        self.name = name
        self.processes: list[subprocess.Popen] = []
        self.about: list[dict] = []
        self._selector = selectors.DefaultSelector()
        self._pending = [b""] * setting.ranks
        self._environment = environment
        self._log = log

    def path(self, kind: str, rank: int) -> Path:
        return self.setting.work / f"{self.name}.{rank}.{kind}"

    def _rank_environment(self, rank: int) -> dict[str, str]:
        environment = clean_environment() | self.setting.environment
        environment |= {
            "NCCL_HOSTID": f"h{rank}",  # one node per rank: NCCL refuses two ranks of a node on one GPU
            "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_IB_DISABLE": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if self._log:
            environment |= {
                "NCCL_DEBUG": "INFO",
                "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,COLL",
                "NCCL_DEBUG_FILE": str(self.path("nccl.log", rank)),
            }
        return environment | self._environment

    def start(self) -> None:
        """Starts the ranks and returns at once: groups get ready side by side."""
        store = self.setting.work / f"{self.name}.store"
        for rank in range(self.setting.ranks):
            arguments = ["--rank", str(rank), "--ranks", str(self.setting.ranks), "--store", str(store)]
            with open(self.path("stderr", rank), "wb") as errors:
                process = subprocess.Popen(
                    self.setting.command + arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=self._rank_environment(rank),
                )
            self.processes.append(process)
            os.set_blocking(process.stdout.fileno(), False)
            self._selector.register(process.stdout, selectors.EVENT_READ, rank)

    def wait_ready(self) -> None:
        self.about = self._collect("start", START_SECONDS)

    def ask(self, command: str) -> list[dict]:
        """Sends one command to all ranks; their answers in rank order."""
        for rank, process in enumerate(self.processes):
            try:
                process.stdin.write(command.encode() + b"\n")
                process.stdin.flush()
            except OSError:
                raise GroupError(self._say(rank, f"has ended before '{command}'")) from None
        return self._collect(command, COMMAND_SECONDS)

    def _collect(self, command: str, seconds: float) -> list[dict]:
        """One answer of each rank. The first rank in trouble ends the wait: its peers would hang."""
        limit = self.setting.deadline.limit(seconds)
        end = time.monotonic() + limit
        answers: dict[int, dict] = {}
        while len(answers) < len(self.processes):
            ready = self._selector.select(max(0.0, end - time.monotonic()))
            if not ready and time.monotonic() >= end:
                silent = sorted(set(range(len(self.processes))) - set(answers))
                raise GroupError(self._say(silent[0], f"no answer to '{command}' in {limit:.0f} s"))
            for key, _ in ready:
                record = self._read(key.data, command)
                if record is not None:
                    answers[key.data] = record
        return [answers[rank] for rank in sorted(answers)]

    def _read(self, rank: int, command: str) -> dict | None:
        """What came from one rank; None while its line is not complete."""
        data = self.processes[rank].stdout.read()
        if data == b"":
            raise GroupError(self._say(rank, f"ended during '{command}'"))
        self._pending[rank] += data or b""
        line, newline, rest = self._pending[rank].partition(b"\n")
        if not newline:
            return None
        self._pending[rank] = rest
        try:
            record = json.loads(line)
        except ValueError:
            raise GroupError(self._say(rank, f"answered '{command}' with no JSON: {line[:200]!r}")) from None
        if "error" in record:
            raise GroupError(self._say(rank, f"failed in '{command}': {record['error']}"))
        return record

    def _say(self, rank: int, what: str) -> str:
        tail = ""
        errors = self.path("stderr", rank)
        if errors.exists():
            lines = errors.read_text(errors="replace").splitlines()[-8:]
            tail = "".join(f"\n    {line}" for line in lines)
        return f"group '{self.name}', rank {rank}: {what}{tail}"


def _wait_all(processes: list[subprocess.Popen], seconds: float) -> list[subprocess.Popen]:
    """Those still running after the time."""
    end = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
    return [process for process in processes if process.poll() is None]


def close(groups: list[Group]) -> list[str]:
    """Ends the ranks of all groups together; the names of groups that did not leave by themselves."""
    with uninterrupted():
        return _close(groups)


def _close(groups: list[Group]) -> list[str]:
    # Never kill first: a client of MPS that is killed at work can take the others' GPU with it.
    processes = [process for group in groups for process in group.processes]
    for process in processes:
        try:
            process.stdin.write(b"quit\n")
            process.stdin.close()
        except (OSError, ValueError):
            pass
    stray = _wait_all(processes, QUIT_SECONDS)
    stuck = [group.name for group in groups if any(p in stray for p in group.processes)]
    for process in stray:
        process.terminate()
    for process in _wait_all(stray, TERMINATE_SECONDS):
        process.kill()
    _wait_all(stray, TERMINATE_SECONDS)
    for group in groups:
        group._selector.close()
        for process in group.processes:
            process.stdout.close()
    return stuck
