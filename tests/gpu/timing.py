"""Part B: interleaved timing of all groups, no log and no journal.

All groups are alive at the same time, and in each round each of them runs one block per size, in an
order shuffled again for every size: what drifts over seconds (clocks, temperature, other load) meets all
groups alike, and a round's ratio compares blocks taken side by side.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import group
import stats
import verify

CALLS = 20  # timed calls of a block, after the warm-up calls
RESERVE_SECONDS = 60.0  # kept for ending the ranks and MPS in order
CHECK_COUNTS = [1, 257, 8193, 131071, 524289]


@dataclass
class Timings:
    blocks: dict[str, stats.Blocks]  # group -> bytes -> seconds, one value per round
    rounds: int = 0
    orders: list[dict[int, list[str]]] = field(default_factory=list)  # round -> bytes -> order


def block(one: group.Group, nbytes: int, calls: int) -> float:
    answers = one.ask(f"time {nbytes} {calls}")
    return stats.block_value([answer["seconds"] for answer in answers])


def one_round(
    groups: dict[str, group.Group], sizes: list[int], calls: int, rng: random.Random
) -> tuple[dict[tuple[str, int], float], dict[int, list[str]]]:
    values, orders = {}, {}
    for nbytes in sizes:
        orders[nbytes] = rng.sample(list(groups), k=len(groups))
        for name in orders[nbytes]:
            values[name, nbytes] = block(groups[name], nbytes, calls)
    return values, orders


def measure(
    groups: dict[str, group.Group], sizes: list[int], rounds: int, deadline: group.Deadline, seed: int
) -> Timings:
    """Whole rounds only: half a round would pair blocks with nothing."""
    rng = random.Random(seed)
    timings = Timings({name: {nbytes: [] for nbytes in sizes} for name in groups})
    one_round(groups, sizes, 2, rng)  # not counted: connections are made at the first use
    for _ in range(rounds):
        if deadline.left() < RESERVE_SECONDS:
            break
        values, orders = one_round(groups, sizes, CALLS, rng)
        for (name, nbytes), seconds in values.items():
            timings.blocks[name][nbytes].append(seconds)
        timings.orders.append(orders)
        timings.rounds += 1
    return timings


def run(
    setting: group.Setting,
    plugin: Path,
    policy: Path,
    empty: Path,
    rounds: int,
    seed: int,
    found: verify.Verified,
) -> Timings:
    """Adds what goes wrong to 'found'."""
    groups: dict[str, group.Group] = {}
    stuck: list[str] = []
    try:
        for name, environment in verify.environments(plugin, policy, empty).items():
            groups[name] = group.Group(setting, f"time-{name}", environment, log=False)
            groups[name].start()
        for one in groups.values():
            one.wait_ready()
        for name, one in groups.items():
            counts = ",".join(map(str, CHECK_COUNTS))
            found.failures += verify.wrong_sums(f"{name} (no log)", one.ask(f"check {counts}"))
        timings = measure(groups, verify.SIZES, rounds, setting.deadline, seed)
    finally:
        stuck = group.close(list(groups.values()))
    verify.leaving(stuck, found)
    return timings
