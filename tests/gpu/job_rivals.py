"""Other ways to choose for a whole job, and the policies that come of them. Standard library only.

A choice is (algorithm, protocol, channels): names as in a policy, 0 channels are the library's own number; DEFAULT
leaves all to the library. A context is a collective in a band of sizes that ends at a power of two.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from job_arms import ALGORITHMS, PROTOCOLS

Choice = tuple[str, str, int]
DEFAULT: Choice = ("", "", 0)
PAIRS = {
    "allreduce": (("tree", "ll"), ("tree", "simple"), ("ring", "ll"), ("ring", "simple")),
    "allgather": (("ring", "ll"), ("ring", "simple"), ("pat", "simple")),
    "reducescatter": (("ring", "ll"), ("ring", "simple"), ("pat", "simple")),
}


@dataclass(frozen=True)
class Context:
    collective: str
    least: int
    most: int
    ranks: int

    def __str__(self) -> str:
        kib = f"{self.most >> 10}KiB" if self.most < 1 << 20 else f"{self.most >> 20}MiB"
        return f"{self.collective} up to {kib}, {self.ranks} ranks"

    def row(self, choice: Choice) -> str:
        if choice == DEFAULT:
            return ""
        algorithm, protocol, channels = choice
        return f"{self.collective},{self.least},{self.most},{algorithm},{protocol},{channels or -1},-1,{self.ranks},-1,-1\n"


def contexts_of(profile: dict, least_share: float = 0.03) -> list[Context]:
    """Those of `journal profile --json` that make up an iteration; with times only those with a share of them."""
    whole = profile["collectives"]["us"]
    found: dict[Context, None] = {}
    for one in profile["classes"]:
        if one["collective"] not in PAIRS or one["calls_per_iteration"] < 0.9:
            continue
        if whole > 0 and one["us"] < least_share * whole:
            continue
        most = 1 << max(0, one["most_bytes"] - 1).bit_length()
        found[Context(one["collective"], most // 2 + 1, most, profile["communicators"][one["communicator"]]["ranks"])] = None
    return list(found)


def candidates(context: Context, channels: Sequence[int]) -> list[Choice]:
    return [(algorithm, protocol, count) for algorithm, protocol in PAIRS[context.collective] for count in channels]


def choice_name(choice: Choice) -> str:
    algorithm, protocol, channels = choice
    return f"{algorithm}/{protocol}" + (f"/{channels}" if channels else "") if algorithm else "default"


def best_choices(gains: dict[tuple[Context, Choice], Sequence[float]]) -> dict[Context, Choice]:
    """Per context the choice with the highest median gain (logs, one per round); the default where none is above 0."""
    out: dict[Context, Choice] = {}
    for context in dict.fromkeys(context for context, _ in gains):
        value, choice = max((statistics.median(found), choice) for (one, choice), found in gains.items() if one == context)
        out[context] = choice if value > 0 else DEFAULT
    return out


def policy_of(choices: dict[Context, Choice], title: str) -> str:
    return f"# {title}\n" + "".join(context.row(choice) for context, choice in choices.items())


def policy_of_chosen(chosen: Sequence[dict], ranks: int) -> str:
    """What `run --learn --json` says is in use at the end, as a policy."""
    rows = ["# in use at the end of a job that learned\n"]
    for one in chosen:
        if one["algorithm"] in ALGORITHMS and one["protocol"] in PROTOCOLS:
            most = 1 << max(0, one["most_bytes"] - 1).bit_length()
            rows.append(f"{one['collective']},{most // 2 + 1},{most},{one['algorithm']},{one['protocol']},{one['channels'] or -1},-1,{ranks},-1,-1\n")
    return "".join(rows)


def static_table(shown: dict) -> str:
    """The fastest configuration of every size of a sweep (`data show --json`), for the sizes up to it: calls alone."""
    by_collective: dict[str, list[tuple[int, dict]]] = {}
    for context in shown["contexts"]:
        fine = [one for one in context["configurations"] if one["samples"] and not one["failures"]]
        if fine:
            by_collective.setdefault(context["collective"], []).append(
                (context["bytes"], min(fine, key=lambda one: one["median"]) | {"ranks": context["ranks"]}))
    rows = ["# the fastest configuration of every size of a sweep\n"]
    for collective, sizes in sorted(by_collective.items()):
        least = 0
        for nbytes, one in sorted(sizes, key=lambda found: found[0]):
            if one["algorithm"]:
                rows.append(f"{collective},{least},{nbytes},{one['algorithm']},{one['protocol']},{one['channels'] or -1},-1,{one['ranks']},-1,-1\n")
            least = nbytes + 1
    return "".join(rows)


class Descent:
    """AutoCCL's search of one context (NSDI 2025), as bench/rivals describes it.

    Pairs of algorithm and protocol are subspaces, taken in turn; in each of them the channel count is followed, from
    the library's own, in steps of up to three candidates in one direction; when neither direction improves it starts
    again from one that was not visited, at most four times. A subspace that is 1.5 times as slow as the best (3 times
    at first) is given up. `measure` is told a choice and returns its time.
    """

    SURVEYED, STARTS, TOO_SLOW, FAR_TOO_SLOW = 3, 5, 1.5, 3.0

    def __init__(self, context: Context, channels: Sequence[int], measure: Callable[[Choice], float], seed: int = 1) -> None:
        counts = sorted(count for count in channels if count) + [0] * (0 in channels)
        self.ladders = [[(algorithm, protocol, count) for count in counts] for algorithm, protocol in PAIRS[context.collective]]
        self.measure, self.random = measure, random.Random(seed)
        self.times: dict[Choice, float] = {}
        self.chosen = DEFAULT

    def visit(self, choice: Choice) -> float:
        if choice not in self.times:
            self.times[choice] = self.measure(choice)
            if self.times[choice] < self.times[self.chosen]:
                self.chosen = choice
        return self.times[choice]

    def run(self) -> Choice:
        self.times[DEFAULT] = self.measure(DEFAULT)
        searches = [self.search(ladder) for ladder in self.ladders]
        while searches:
            for one in list(searches):
                if next(one, None) is None:
                    searches.remove(one)
        return self.chosen

    def search(self, ladder: list[Choice]):
        """One subspace; yields after every survey, so that the subspaces take turns."""
        at, starts = len(ladder) - 1, 1
        self.visit(ladder[at])
        yield True
        while True:
            failures, up = 0, False
            while failures < 2:
                ways = [at + step if up else at - step for step in range(1, self.SURVEYED + 1)]
                new = [place for place in ways if 0 <= place < len(ladder) and ladder[place] not in self.times]
                best = min([at, *new], key=lambda place: self.visit(ladder[place]))
                visited = sum(choice in self.times for choice in ladder)
                ratio = self.times[ladder[best]] / self.times[self.chosen]
                if ratio > self.FAR_TOO_SLOW or (visited >= 2 and ratio > self.TOO_SLOW):
                    return
                if best != at:
                    at, failures = best, 0
                else:
                    failures, up = failures + 1, not up
                yield True
            rest = [place for place, choice in enumerate(ladder) if choice not in self.times]
            if not rest or starts == self.STARTS:
                return
            starts += 1
            at = self.random.choice(rest)
            self.visit(ladder[at])
            yield True


def replayed(gains: dict[tuple[Context, Choice], Sequence[float]], context: Context) -> Callable[[Choice], float]:
    """Measures by rounds that were taken before: the n-th question about a choice is answered by its n-th round."""
    asked: dict[Choice, int] = {}

    def measure(choice: Choice) -> float:
        if choice == DEFAULT:
            return 1.0
        found = gains[(context, choice)]
        asked[choice] = asked.get(choice, -1) + 1
        return math.exp(-found[asked[choice] % len(found)])

    return measure
