"""The result as text for people and as JSON for programs."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import stats
from timing import Timings
from verify import Verified


def size_name(nbytes: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"


def table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [header, *rows]
    )


def configurations(found: Verified) -> str:
    """Part A: what ran, by size."""
    sizes = sorted(set().union(*found.ran.values()))
    names = list(found.ran)
    rows = [
        [size_name(nbytes), *(str(found.ran[name].get(nbytes, "?")) for name in names)]
        for nbytes in sizes
    ]
    return table(["bytes", *names], rows)


def interval(value: stats.Interval, digits: int, unit: str = "") -> str:
    return f"{value.estimate:.{digits}f}{unit} [{value.low:.{digits}f}, {value.high:.{digits}f}]"


def summarise(timings: Timings) -> dict:
    """All numbers of part B that are derived from the blocks."""
    blocks = timings.blocks
    sizes = sorted(blocks["none"])
    pooled = stats.slowdown_percent
    return {
        "rounds": timings.rounds,
        "median_us": {
            name: {nbytes: 1e6 * statistics.median(blocks[name][nbytes]) for nbytes in sizes}
            for name in blocks
        },
        "speedup": {
            nbytes: stats.speedup(blocks["none"][nbytes], blocks["policy"][nbytes]) for nbytes in sizes
        },
        "slowdown": {
            name: pooled(blocks[name], blocks["none"]) for name in ("empty", "control", "policy")
        },
        "slowdown_bootstrap": {
            name: stats.slowdown_percent_bootstrap(blocks[name], blocks["none"])
            for name in ("empty", "control")
        },
        "verdict": stats.verdict(pooled(blocks["empty"], blocks["none"]), timings.rounds),
    }


def timing_text(summary: dict) -> str:
    medians, speedups = summary["median_us"], summary["speedup"]
    names = list(medians)
    rows = []
    for nbytes, speedup in speedups.items():
        times = [f"{medians[name][nbytes]:.1f}" for name in names]
        rows.append([size_name(nbytes), *times, interval(speedup, 3)])
    slow = summary["slowdown"]
    # A slowdown of -20 % is a speed-up of 1.25.
    gain = 1 / (1 + slow["policy"].estimate / 100)
    lines = [
        table(["bytes", *(f"{name} us" for name in names), "speed-up of policy [95 %]"], rows),
        f"speed-up: none over policy, median over {summary['rounds']} rounds, bootstrap interval;"
        f" geometric mean over sizes {gain:.3f}",
        f"empty policy against no plugin:  slowdown {interval(slow['empty'], 2, ' %')},"
        f" upper bound {slow['empty'].high:.2f} %"
        f" (bootstrap {summary['slowdown_bootstrap']['empty'].high:.2f} %)",
        f"no plugin against no plugin:     slowdown {interval(slow['control'], 2, ' %')}: the noise floor"
        f" (bootstrap {summary['slowdown_bootstrap']['control'].high:.2f} %)",
        "slowdown: per round the geometric mean over sizes, mean over rounds, Student's 95 % interval",
        summary["verdict"],
    ]
    return "\n".join(lines)


def _plain(value: object) -> object:
    if isinstance(value, stats.Interval):
        return value.as_dict()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


def write_json(
    path: Path, status: str, options: dict, found: Verified, timings: Timings | None, summary: dict | None
) -> None:
    document = {
        "status": status,
        "options": options,
        "software": found.about,
        "tuner": found.tuner,
        "mps": found.mps,
        "failures": found.failures,
        "notes": found.notes,
        "ran": {
            name: {nbytes: vars(config) for nbytes, config in configs.items()}
            for name, configs in found.ran.items()
        },
        "blocks_seconds": timings.blocks if timings else None,
        "orders": timings.orders if timings else None,
        "summary": summary,
    }
    path.write_text(json.dumps(_plain(document), indent=1) + "\n", encoding="utf-8")
