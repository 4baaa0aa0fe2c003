"""Several choices in turns inside one launch of whole_job.py: blocks of iterations, each with the choices of one arm.

An arm is a policy: a row that matches a call is pinned for that call, all other calls are left to the library. The arm
that is the plugin's own policy pins nothing. Every rank follows the same order, which depends on the seed alone.
Standard library only; torch.distributed is handed in.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import policy_file

KEEP = -1
DEFAULT = (KEEP, KEEP, 0)
ALGORITHMS = {"tree": 0, "ring": 1, "collnet_direct": 2, "collnet_chain": 3, "nvls": 4, "nvls_tree": 5, "pat": 6}
PROTOCOLS = {"ll": 0, "ll128": 1, "simple": 2}


@dataclass(frozen=True)
class Plan:
    """What is compared, and in what order."""

    arms: dict[str, str | None]  # a policy's text by name; None: what the plugin itself does
    block: int  # iterations of a block that count
    skip: int  # before them: the switch, connections that are made late
    seed: int

    @staticmethod
    def read(path: Path) -> "Plan":
        found = json.loads(path.read_text())
        return Plan(found["arms"], found["block"], found["skip"], found["seed"])

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"arms": self.arms, "block": self.block, "skip": self.skip, "seed": self.seed}))

    def place(self, iteration: int) -> tuple[int, str, bool]:
        """Round, arm, and whether the iteration counts."""
        each = self.block + self.skip
        round_, rest = divmod(iteration, each * len(self.arms))
        order = list(self.arms)
        random.Random(f"{self.seed}.{round_}").shuffle(order)
        return round_, order[rest // each], rest % each >= self.skip

    def rounds(self, times: Sequence[float]) -> list[dict[str, float]]:
        """Of whole rounds but the first, which warms up: the median iteration of each arm's block."""
        whole = len(times) // ((self.block + self.skip) * len(self.arms))
        blocks: list[dict[str, list[float]]] = [{} for _ in range(whole)]
        for iteration, seconds in enumerate(times):
            round_, arm, counts = self.place(iteration)
            if round_ < whole and counts:
                blocks[round_].setdefault(arm, []).append(seconds)
        return [{arm: statistics.median(found) for arm, found in one.items()} for one in blocks[1:]]


def log_gains(rounds: Sequence[dict[str, float]], base: str) -> dict[str, list[float]]:
    """Per arm and round: the log of how many times as fast it was as the base in that round."""
    arms = rounds[0].keys() if rounds else ()
    return {arm: [math.log(one[base] / one[arm]) for one in rounds] for arm in arms if arm != base}


class Plugin:
    """What the plugin offers to programs in this process."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnccl-tuner-diapason.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD)

    def pin(self, config: tuple[int, int, int]) -> None:
        if self.library.diapason_pin(*config) != 0:
            raise ValueError(f"pin {config}")

    def unpin(self) -> None:
        self.library.diapason_unpin()

    def applied(self) -> tuple[int, int]:
        asked, applied = ctypes.c_ulonglong(0), ctypes.c_ulonglong(0)
        self.library.diapason_pin_counts(ctypes.byref(asked), ctypes.byref(applied))
        return asked.value, applied.value


class Arms:
    """Pins before every call what the arm of the current iteration wants."""

    def __init__(self, plan: Plan, plugin: Plugin) -> None:
        self.plan, self.plugin = plan, plugin
        self.rows = {name: None if text is None else policy_file.parse_policy(text) for name, text in plan.arms.items()}
        self.current = next(iter(plan.arms))
        self.known: dict[tuple, tuple[int, int, int] | None] = {}
        self.counts = {name: [0, 0] for name in plan.arms}  # questions about pinned calls, and pins that were applied

    def before(self, iteration: int) -> None:
        """Between iterations; calls that are not chosen one by one get what the arm does with the rest."""
        self.current = self.plan.place(iteration)[1]
        self.rest()

    def rest(self) -> None:
        if self.rows[self.current] is None:
            self.plugin.unpin()
        else:
            self.plugin.pin(DEFAULT)

    def config(self, collective: str, nbytes: int, ranks: int) -> tuple[int, int, int] | None:
        """None: nothing is to be pinned. In the lab every rank is a host of its own."""
        rows = self.rows[self.current]
        if rows is None:
            return None
        key = (self.current, collective, nbytes, ranks)
        if key not in self.known:
            row = policy_file.expected(rows, collective, nbytes, ranks, ranks)
            self.known[key] = None if row is None else (ALGORITHMS.get(row.algorithm, KEEP), PROTOCOLS.get(row.protocol, KEEP), row.channels or 0)
        return self.known[key]

    def call(self, collective: str, nbytes: int, ranks: int, function: Callable[[], object]) -> object:
        config = self.config(collective, nbytes, ranks)
        if config is None:
            return function()
        self.plugin.pin(config)
        try:
            return function()
        finally:
            asked, applied = self.plugin.applied()
            self.counts[self.current][0] += asked
            self.counts[self.current][1] += applied
            self.rest()

    def install(self, dist) -> None:
        """The library counts the bytes of all ranks for allgather and reducescatter."""
        for name, collective, place, keyword in (("all_reduce", "allreduce", 0, "tensor"),
                                                 ("all_gather_into_tensor", "allgather", 0, "output_tensor"),
                                                 ("reduce_scatter_tensor", "reducescatter", 1, "input")):
            setattr(dist, name, self.wrapped(dist, getattr(dist, name), collective, place, keyword))

    def wrapped(self, dist, original: Callable, collective: str, place: int, keyword: str) -> Callable:
        def call(*arguments, **named):
            tensor = named[keyword] if keyword in named else arguments[place]
            ranks = dist.get_world_size(named.get("group"))
            return self.call(collective, tensor.numel() * tensor.element_size(), ranks, lambda: original(*arguments, **named))

        return call


def hook_of(dist, model) -> Callable:
    """For DistributedDataParallel, whose own calls cannot be reached from Python: what it would do itself."""
    group = model.process_group
    ranks = dist.get_world_size(group)

    def hook(_, bucket):  # PyTorch accepts its own types as annotations, or none
        gradients = bucket.buffer()
        gradients.div_(ranks)
        return dist.all_reduce(gradients, group=group, async_op=True).get_future().then(lambda done: done.value()[0])

    return hook
