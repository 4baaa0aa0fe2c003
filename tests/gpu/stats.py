"""Statistics of paired, interleaved measurements. Standard library only.

Everything is done on log ratios: a ratio and its inverse then weigh the same, and the mean of logs
over sizes is the geometric mean, so an 8 MiB call does not drown a 1 KiB call.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import asdict, dataclass
from typing import Callable, Sequence


@dataclass(frozen=True)
class Interval:
    """An estimate with its two-sided 95 % interval."""

    estimate: float
    low: float
    high: float

    def map(self, f: Callable[[float], float]) -> "Interval":
        """The interval of an increasing function of the estimate."""
        return Interval(f(self.estimate), f(self.low), f(self.high))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def slowest_rank(times_by_rank: Sequence[Sequence[float]]) -> list[float]:
    """Per call, the time of the slowest rank: a collective is finished when its last rank is."""
    lengths = {len(times) for times in times_by_rank}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"ranks reported different or zero numbers of calls: {sorted(lengths)}")
    return [max(call) for call in zip(*times_by_rank)]


def block_value(times_by_rank: Sequence[Sequence[float]]) -> float:
    """One block as one number: the median over its calls, so one disturbed call does not move it."""
    return statistics.median(slowest_rank(times_by_rank))


def log_ratios(numerator: Sequence[float], denominator: Sequence[float]) -> list[float]:
    """Paired by round: both values of a pair were taken within the same round."""
    if len(numerator) != len(denominator):
        raise ValueError("log_ratios needs as many numerators as denominators")
    return [math.log(a / b) for a, b in zip(numerator, denominator)]


def quantile(ordered: Sequence[float], p: float) -> float:
    """Linear interpolation between order statistics of an already sorted sequence."""
    position = p * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def bootstrap(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = statistics.median,
    resamples: int = 4000,
    seed: int = 1,
) -> Interval:
    """Percentile bootstrap; seeded, so the same data gives the same interval."""
    rng = random.Random(seed)
    n = len(values)
    draws = sorted(statistic(rng.choices(values, k=n)) for _ in range(resamples))
    return Interval(statistic(values), quantile(draws, 0.025), quantile(draws, 0.975))


def student_cdf(t: float, df: int) -> float:
    """P(T <= t) by Simpson's rule on the density; the library has no Student distribution."""
    norm = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    steps = 1000
    h = abs(t) / steps
    total = 0.0
    for i in range(steps + 1):
        weight = 1 if i in (0, steps) else 4 if i % 2 else 2
        total += weight * (1 + (i * h) ** 2 / df) ** (-(df + 1) / 2)
    half = norm * total * h / 3
    return 0.5 + half if t >= 0 else 0.5 - half


def student_quantile(p: float, df: int) -> float:
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        if student_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def student_mean(values: Sequence[float]) -> Interval:
    """Mean with Student's interval; endless interval where one value says nothing of the spread."""
    mean = statistics.fmean(values)
    n = len(values)
    if n < 2:
        return Interval(mean, -math.inf, math.inf)
    half = student_quantile(0.975, n - 1) * statistics.stdev(values) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


Blocks = dict[int, list[float]]  # bytes -> one block value per round


def per_round_log_ratio(numerator: Blocks, denominator: Blocks) -> list[float]:
    """Per round the mean over sizes of the log ratio (the log of the geometric mean ratio)."""
    by_size = [log_ratios(numerator[size], denominator[size]) for size in sorted(denominator)]
    return [statistics.fmean(one_round) for one_round in zip(*by_size)]


def speedup(baseline: Sequence[float], candidate: Sequence[float]) -> Interval:
    """How many times faster the candidate is: median over rounds, bootstrap interval."""
    return bootstrap(log_ratios(baseline, candidate)).map(math.exp)


def slowdown_percent(candidate: Blocks, baseline: Blocks) -> Interval:
    """Slowdown in percent pooled over sizes: mean over rounds, Student's interval."""
    return student_mean(per_round_log_ratio(candidate, baseline)).map(
        lambda x: 100 * math.expm1(min(x, 50.0))  # 50: keep an endless bound printable
    )


def slowdown_percent_bootstrap(candidate: Blocks, baseline: Blocks) -> Interval:
    """The same estimate with a bootstrap interval: a second opinion that assumes no normality."""
    ratios = per_round_log_ratio(candidate, baseline)
    return bootstrap(ratios, statistics.fmean).map(lambda x: 100 * math.expm1(x))


def verdict(slowdown: Interval, blocks: int, limit_percent: float = 2.0, needed: int = 30) -> str:
    """The bar: upper end of the 95 % interval at most the limit, from enough blocks."""
    if blocks < needed:
        return f"bar: NOT reached (only {blocks} blocks, {needed} needed)"
    if slowdown.high <= limit_percent:
        return "bar: reached"
    return f"bar: NOT reached ({slowdown.high:.2f} %)"
