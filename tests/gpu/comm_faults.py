"""Ranks of tests/comm/victim.cc on NCCL that die, hang or do not come; what the others get, and when.

Every survivor must have an error within the limit and five seconds, end by itself, and be able to create a group again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from typing import Callable, Iterator

LIMIT = 4.0  # of every wait, the group's creation included: the ranks take turns on the GPU here
PROMISE = LIMIT + 5
COUNT = 1 << 20  # 4 MiB of f32
BIG = f"all_reduce={COUNT}"

CASES: list[tuple[str, Callable]] = []


class Broken(Exception):
    """What was promised and not kept."""


def case(function: Callable) -> Callable:
    CASES.append((function.__name__.replace("_", " "), function))
    return function


def end_group(process: subprocess.Popen) -> None:
    """Ends whatever is left of a process and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read_steps(output: str) -> list[dict]:
    """The victim's lines; one that was killed may leave half a line."""
    steps = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            steps.append(json.loads(line))
    return steps


class Job:
    """The ranks of one job, each with its own steps."""

    def __init__(self, victim: str, environment: dict[str, str]) -> None:
        self.victim = victim
        self.environment = environment
        self.port = free_port()
        self.ranks: dict[int, tuple[subprocess.Popen, object]] = {}
        self.worst = 0.0  # the longest wait for an error

    def start(self, rank: int, steps: str, size: int = 3, limit: float = LIMIT) -> None:
        output = tempfile.TemporaryFile("w+", errors="replace")
        environment = self.environment | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                                          "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)}
        command = [self.victim, "--backend", "nccl", "--limit", str(int(limit * 1000)), *steps.split()]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        self.ranks[rank] = (process, output)

    def survivor(self, rank: int, seconds: float = 40) -> dict[str, dict]:
        """Its steps by name, the last of a name counts; it must have ended by itself."""
        process, output = self.ranks[rank]
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = "none: it still runs"
        output.seek(0)
        text = output.read()
        if status != 0:
            raise Broken(f"rank {rank}: exit status {status}: {text[-1500:]}")
        return {step["step"]: step for step in read_steps(text)}

    def error(self, rank: int, steps: dict[str, dict], name: str, codes: tuple[str, ...], words: list[str],
              limit: float = LIMIT) -> None:
        step = steps.get(name)
        if step is None or step["ok"]:
            raise Broken(f"rank {rank}: {name} gave no error: {step or list(steps)}")
        self.worst = max(self.worst, step["seconds"])
        if step["seconds"] > limit + 5:
            raise Broken(f"rank {rank}: {name} took {step['seconds']} s; promised are {limit + 5}")
        if step["code"] not in codes:
            raise Broken(f"rank {rank}: {name}: {step['code']}, not {codes}: {step['message']}")
        for word in words:
            if word not in step["message"]:
                raise Broken(f"rank {rank}: {name}: no '{word}' in: {step['message']}")

    def fine(self, rank: int, steps: dict[str, dict], names: str) -> None:
        for name in names.split():
            if name not in steps or not steps[name]["ok"]:
                raise Broken(f"rank {rank}: {name}: {steps.get(name)}; all steps: {list(steps.values())}")

    def close(self) -> None:
        for process, output in self.ranks.values():
            end_group(process)
            output.close()


@contextlib.contextmanager
def job_of(victim: str, environment: dict[str, str]) -> Iterator[Job]:
    job = Job(victim, environment)
    try:
        yield job
    finally:
        job.close()


def run(function: Callable, victim: str, environment: dict[str, str]) -> tuple[str, str]:
    """What is wrong, or nothing, and how long the survivors waited at most."""
    start = time.monotonic()
    try:
        with job_of(victim, environment) as job:
            function(job)
            return "", f"errors after {job.worst:.2f} s at most, limit {LIMIT:g} s"
    except Broken as broken:
        return str(broken), ""
    except (OSError, KeyError) as error:
        return f"{type(error).__name__}: {error} after {time.monotonic() - start:.1f} s", ""


# Two survivors make a group of their own in the same process, at another port.
def again(port: int, rank: int) -> str:
    return f"destroy rank={rank} size=2 port={port} create all_reduce=4096 destroy"


@case
def killed_before_a_collective(job: Job) -> None:
    port = free_port()
    for rank in (0, 1):
        job.start(rank, f"create {BIG} sleep=700 barrier {again(port, rank)}")
    job.start(2, f"create {BIG} kill")
    for rank in (0, 1):
        steps = job.survivor(rank)
        job.error(rank, steps, "barrier", ("peer_lost",), ["barrier number", "rank 2"])
        job.fine(rank, steps, f"{BIG} create all_reduce=4096 destroy")


@case
def killed_before_the_first_large_one(job: Job) -> None:
    """The library connects in that call, and is stuck in it."""
    port = free_port()
    for rank in (0, 1):
        job.start(rank, f"create sleep=500 {BIG} {again(port, rank)}")
    job.start(2, "create kill")
    for rank in (0, 1):
        steps = job.survivor(rank)
        job.error(rank, steps, BIG, ("peer_lost",), ["all_reduce number", "4MiB f32", "rank 2"])
        job.fine(rank, steps, "create all_reduce=4096 destroy")


@case
def killed_during_collectives(job: Job) -> None:
    port = free_port()
    loop = f"loop=1000000:{COUNT}"
    for rank in (0, 1):
        job.start(rank, f"create {loop} {again(port, rank)}")
    job.start(2, f"create kill_after=800 {loop}")
    for rank in (0, 1):
        steps = job.survivor(rank)
        job.error(rank, steps, loop, ("peer_lost",), ["all_reduce number", "4MiB f32", "rank 2"])
        job.fine(rank, steps, "create all_reduce=4096 destroy")


@case
def killed_after_the_last_collective(job: Job) -> None:
    for rank in (0, 1):
        job.start(rank, f"create {BIG} sleep=500 destroy")
    job.start(2, f"create {BIG} kill")
    for rank in (0, 1):
        job.fine(rank, job.survivor(rank), f"create {BIG} destroy")


@case
def killed_rank_0(job: Job) -> None:
    """The one that keeps the store."""
    loop = f"loop=1000000:{COUNT}"
    for rank in (1, 2):
        job.start(rank, f"create {loop} destroy")
    job.start(0, f"create kill_after=800 {loop}")
    for rank in (1, 2):
        job.error(rank, job.survivor(rank), loop, ("peer_lost",), ["all_reduce number", "rank 0"])


@case
def killed_while_waited_for(job: Job) -> None:
    for rank in (0, 1):
        job.start(rank, f"create {BIG} start={COUNT} wait destroy")
    job.start(2, f"create {BIG} sleep=800 kill")
    for rank in (0, 1):
        steps = job.survivor(rank)
        job.error(rank, steps, "wait", ("peer_lost",), ["all_reduce number", "rank 2"])


@case
def comes_too_late(job: Job) -> None:
    """The group is broken on every rank, and every process makes a new one."""
    port = free_port()
    for rank in (0, 1):
        job.start(rank, f"create {BIG} barrier destroy rank={rank} size=3 port={port} create {BIG} destroy")
    job.start(2, f"create {BIG} sleep=7500 destroy rank=2 size=3 port={port} create {BIG} destroy")
    for rank in (0, 1):
        steps = job.survivor(rank)
        job.error(rank, steps, "barrier", ("timeout",), ["barrier number", "rank 2"])
        if steps["barrier"]["seconds"] < LIMIT:
            raise Broken(f"rank {rank}: gave up after {steps['barrier']['seconds']} s, before the limit")
        job.fine(rank, steps, f"create {BIG} destroy")
    job.fine(2, job.survivor(2), f"create {BIG} destroy")


@case
def stopped(job: Job) -> None:
    """A rank that exists and does nothing: nobody says that it is gone."""
    for rank in (0, 1):
        job.start(rank, f"create {BIG} sleep=300 {BIG} destroy")
    job.start(2, f"create {BIG} stop")
    for rank in (0, 1):
        steps = job.survivor(rank)
        job.error(rank, steps, BIG, ("timeout",), ["all_reduce number", "4MiB f32"])


@case
def never_arrives(job: Job) -> None:
    for rank in (0, 1):
        job.start(rank, "create")
    # Rank 0 keeps the store and knows who is missing; the other may only see it give up.
    job.error(0, job.survivor(0), "create", ("timeout",), ["rank 2"])
    job.error(1, job.survivor(1), "create", ("timeout", "peer_lost"), ["rank"])


@case
def another_call_than_the_others(job: Job) -> None:
    for rank in (0, 1):
        job.start(rank, f"create {BIG} {BIG} destroy")
    job.start(2, f"create {BIG} sleep=60000")
    for rank in (0, 1):
        job.error(rank, job.survivor(rank), BIG, ("timeout",), ["all_reduce number"])
