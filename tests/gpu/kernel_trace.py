"""Collectives and compute in a chrome trace of Kineto: how much of a collective's time other kernels hide.

Standard library only. Times are microseconds, as in the trace.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

Interval = tuple[float, float]
COMPUTE = ("kernel", "gpu_memcpy", "gpu_memset")  # what a GPU does, by the trace's categories


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same points in time, as intervals that neither overlap nor touch."""
    out: list[Interval] = []
    for start, stop in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        elif stop > start:
            out.append((start, stop))
    return out


def length(intervals: Iterable[Interval]) -> float:
    return sum(stop - start for start, stop in intervals)


def overlap(one: Sequence[Interval], other: Sequence[Interval]) -> float:
    """How long both are; of intervals as union() returns them."""
    total, i, j = 0.0, 0, 0
    while i < len(one) and j < len(other):
        total += max(0.0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total


def kernels(trace: dict) -> tuple[list[tuple[float, float, str]], list[Interval]]:
    """The collectives' kernels with their names, and everything else that ran on the GPU."""
    collectives, compute = [], []
    for event in trace.get("traceEvents", []):
        if event.get("ph") != "X" or event.get("cat", "").lower() not in COMPUTE:
            continue
        start = float(event["ts"])
        stop = start + float(event.get("dur", 0))
        name = str(event.get("name", ""))
        if "nccl" in name.lower():
            collectives.append((start, stop, name))
        else:
            compute.append((start, stop))
    return sorted(collectives), sorted(compute)


def split(collectives: Sequence[tuple[float, float, str]], iterations: int) -> list[list[tuple[float, float, str]]]:
    """The collectives of each iteration, if every iteration has as many; else all of them together."""
    each, rest = divmod(len(collectives), max(1, iterations))
    if rest or not each:
        return [list(collectives)]
    return [list(collectives[i:i + each]) for i in range(0, len(collectives), each)]


def short_name(name: str) -> str:
    """'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs...)': without the arguments."""
    return name.partition("(")[0]


def summary(trace: dict, iterations: int) -> dict:
    """Per iteration: the time of collectives, of it hidden behind other kernels and exposed, and of compute.

    `split`: medians over iterations, which the kernels were divided into by their number; else means.
    """
    collectives, compute = kernels(trace)
    busy = union(compute)
    parts = split(collectives, iterations)
    values: dict[str, list[float]] = {"collective_us": [], "hidden_us": [], "exposed_us": []}
    scale = 1.0 if len(parts) == iterations else 1.0 / max(1, iterations)
    for part in parts:
        running = union((start, stop) for start, stop, _ in part)
        total, hidden = length(running), overlap(running, busy)
        for key, value in (("collective_us", total), ("hidden_us", hidden), ("exposed_us", total - hidden)):
            values[key].append(value * scale)
    starts = [part[0][0] for part in parts if part]
    names: dict[str, list[float]] = {}
    for start, stop, name in collectives:
        names.setdefault(short_name(name), []).append(stop - start)
    return {
        "iterations": iterations,
        "split": len(parts) == iterations,
        "collective_kernels": len(collectives),
        "other_kernels": len(compute),
        **{key: statistics.median(found) for key, found in values.items()},
        **{f"mean_{key}": sum(found) * (1.0 if scale != 1.0 else 1.0 / max(1, iterations)) for key, found in values.items()},
        "compute_us": length(busy) / max(1, iterations),
        "iteration_us": statistics.median(b - a for a, b in zip(starts, starts[1:])) if len(starts) > 1 else 0.0,
        "by_name": {name: {"calls": len(found), "median_us": statistics.median(found)} for name, found in sorted(names.items())},
    }


def intervals(trace: dict) -> dict:
    """What summary() is made of, to be kept: the collectives' kernels, and when anything else ran."""
    collectives, compute = kernels(trace)
    return {
        "base_ns": trace.get("baseTimeNanoseconds", 0),
        "collectives": [[round(start, 3), round(stop, 3), short_name(name)] for start, stop, name in collectives],
        "compute": [[round(start, 3), round(stop, 3)] for start, stop in union(compute)],
    }


def read(path: Path) -> dict:
    """A trace is an object with a list of events, or that list alone."""
    found = json.loads(path.read_text(errors="replace"))
    return found if isinstance(found, dict) else {"traceEvents": found}


def mean_of_ranks(ranks: Sequence[dict]) -> dict:
    """The summaries of all ranks as one."""
    keys = ("collective_us", "hidden_us", "exposed_us", "compute_us", "iteration_us")
    return {key: statistics.fmean(rank[key] for rank in ranks) for key in keys}


def differences(kineto: dict, ours: dict) -> dict:
    """Ours against the trace, in percent of the trace's collective time."""
    whole = kineto["collective_us"]
    if whole <= 0:
        return {}
    return {key: 100.0 * (ours[key] - kineto[key]) / whole for key in ("collective_us", "hidden_us", "exposed_us")}
