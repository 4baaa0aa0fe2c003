#!/usr/bin/env python3
"""False alarms and detection of `diapason compare`, on real launches of Gloo on this machine.

    compare.py FOLDER_OF_THE_PROGRAMS [--launches 60] [--comparisons 200] [--plain] [--keep DIR] [--json FILE]

1. Launches `diapason bench allreduce` on two ranks so many times, each into a store of its own: 4 sizes in and out of
   place, 40 rounds of 4 calls. With the right to do so the launches run with real-time priority (chrt -f 10), so that
   other programs of the machine do not decide; --plain leaves that out.
2. The same with itself: comparisons with --fail-on 5% of launches that are drawn from these, none of them on both sides:
   a quarter each with 1, 3 and 8 launches on each side at random, and with 20 on each side in turns from a row of 40.
   Comparisons share launches, so that they are not independent.
3. A slowdown of 10 % of one call, planted into the samples of copies of the stores: 20 launches on each side in turns.
4. A real delay: new launches, in turns with plain ones, whose sends of a size have to wait (bench/compare_delay.c is
   preloaded). How large it came out is printed beside the verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = "1K,16K,64K,256K"
DELAY_BYTES = (30000, 70000)  # sends of the call of 256 KiB
LIMIT = 120
IN_TURNS = 20


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--launches", type=int, default=60)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--planted", type=int, default=20)
    parser.add_argument("--delay", type=float, default=6, help="microseconds of the real delay; 0: none")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder of the stores; those that are there are used again")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.launches < 2 * IN_TURNS:
        parser.error(f"--launches: at least {2 * IN_TURNS}")
    return options


def may_have_priority() -> bool:
    if shutil.which("chrt") is None:
        return False
    return subprocess.run(["chrt", "-f", "10", "true"], capture_output=True, timeout=LIMIT).returncode == 0


class Bench:
    def __init__(self, options: argparse.Namespace, folder: Path):
        self.tool = str(options.folder.resolve() / "diapason")
        self.folder = folder
        self.first = [] if options.plain or not may_have_priority() else ["chrt", "-f", "10"]

    def launch(self, store: Path, preload: dict[str, str] | None = None) -> Path:
        if not store.exists():
            subprocess.run([*self.first, self.tool, "bench", "allreduce", "--backend", "gloo", "-g", "2", "--sizes", SIZES,
                            "--rounds", "40", "-n", "4", "-w", "2", "-c", "0", "--store", str(store)],
                           check=True, stdout=subprocess.DEVNULL, timeout=LIMIT, env=os.environ | (preload or {}))
        return store

    def compare(self, old: list[Path], new: list[Path]) -> dict:
        words = [self.tool, "compare", "--json", "--fail-on", "5%"]
        for store in old:
            words += ["--old", str(store)]
        for store in new:
            words += ["--new", str(store)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode not in (0, 3):
            sys.exit(f"compare: {done.stderr}")
        return json.loads(done.stdout)


def turns(stores: list[Path], start: int) -> tuple[list[Path], list[Path]]:
    row = stores[start:start + 2 * IN_TURNS]
    return row[0::2], row[1::2]


def spread(stores: list[Path]) -> str:
    """How much launches differ: the range of the launch medians of each call."""
    medians: dict = {}
    for store in stores:
        with sqlite3.connect(store) as database:
            calls: dict = {}
            for size, place, seconds in database.execute(
                    "SELECT bytes, in_place, seconds FROM sample JOIN point ON point.id = sample.point WHERE outcome = 0"):
                calls.setdefault((size, place), []).append(seconds)
        for call, times in calls.items():
            medians.setdefault(call, []).append(statistics.median(times))
    middle = [1.4826 * statistics.median(abs(x / statistics.median(values) - 1) for x in values) for values in medians.values()]
    most = [max(values) / min(values) for values in medians.values()]
    return (f"launch medians of a call: robust deviation {100 * min(middle):.1f} to {100 * max(middle):.1f} %, "
            f"slowest over fastest {min(most):.2f} to {max(most):.2f}")


def same(bench: Bench, stores: list[Path], comparisons: int) -> dict:
    generator = random.Random(1)
    counts: dict = {}
    for number in range(comparisons):
        kind = ("1", "3", "8", "20 in turns")[number % 4]
        if kind == "20 in turns":
            old, new = turns(stores, generator.randrange(len(stores) - 2 * IN_TURNS + 1))
            if generator.random() < 0.5:
                old, new = new, old
        else:
            drawn = generator.sample(stores, 2 * int(kind))
            old, new = drawn[:int(kind)], drawn[int(kind):]
        result = bench.compare(old, new)
        count = counts.setdefault(kind, {"comparisons": 0, "alarms": 0, "changed": 0, "cannot_tell": 0, "calls": 0})
        count["comparisons"] += 1
        count["alarms"] += 1 if result["failing"] else 0
        count["changed"] += 1 if result["slower"] or result["faster"] else 0
        count["cannot_tell"] += result["cannot_tell"]
        count["calls"] += len(result["calls"])
    for kind, count in counts.items():
        print(f"same, {kind} on each side: {count['alarms']} of {count['comparisons']} comparisons alarm (--fail-on 5%), "
              f"{count['changed']} call a call slower or faster, {count['cannot_tell']} of {count['calls']} calls cannot be told")
    alarms = sum(count["alarms"] for count in counts.values())
    print(f"same: {alarms} of {comparisons} comparisons alarm ({100 * alarms / comparisons:.1f} %)")
    return {"alarms": alarms, "comparisons": comparisons, "by_launches": counts}


def planted(bench: Bench, stores: list[Path], trials: int) -> dict:
    generator = random.Random(2)
    count = {"trials": trials, "found": 0, "failing": 0, "others": 0}
    for number in range(trials):
        old, new = turns(stores, generator.randrange(len(stores) - 2 * IN_TURNS + 1))
        size = (1024, 16384, 65536, 262144)[number % 4]
        copies = []
        for store in new:
            copies.append(bench.folder / f"planted.{number}.{store.name}")
            shutil.copy(store, copies[-1])
            with sqlite3.connect(copies[-1]) as database:
                database.execute("UPDATE sample SET seconds = seconds * 1.1 WHERE point IN "
                                 "(SELECT id FROM point WHERE bytes = ? AND in_place = 0)", (size,))
        for call in bench.compare(old, copies)["calls"]:
            if call["bytes"] == size and not call["in_place"]:
                count["found"] += call["verdict"] == "slower"
                count["failing"] += call["fails"]
            else:
                count["others"] += call["verdict"] in ("slower", "faster")
        for copy in copies:
            copy.unlink()
    print(f"planted 10 % at one call, {IN_TURNS} launches on each side in turns: called slower in {count['found']} of {trials}, "
          f"slower by more than 5 % beyond doubt in {count['failing']}; other calls called slower or faster: {count['others']}")
    return count


def delayed(bench: Bench, microseconds: float) -> dict:
    source = Path(__file__).with_name("compare_delay.c")
    library = bench.folder / "delay.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True, timeout=LIMIT)
    preload = {"LD_PRELOAD": str(library), "BENCH_DELAY_US": str(microseconds),
               "BENCH_DELAY_FROM": str(DELAY_BYTES[0]), "BENCH_DELAY_TO": str(DELAY_BYTES[1])}
    none = preload | {"BENCH_DELAY_US": "0"}
    old, new = [], []
    for number in range(IN_TURNS):
        old.append(bench.launch(bench.folder / f"delay.{number}.old.db", none))
        new.append(bench.launch(bench.folder / f"delay.{number}.new.db", preload))
    result = bench.compare(old, new)
    print(f"real delay of {microseconds:g} us for sends of {DELAY_BYTES[0]} to {DELAY_BYTES[1]} bytes, {IN_TURNS} launches on "
          "each side in turns")
    for call in result["calls"]:
        low, high = call["interval"]
        print(f"  {call['bytes']:7d} {'in place    ' if call['in_place'] else 'out of place'} {call['old_us']:8.1f} -> {call['new_us']:8.1f} us "
              f"{100 * call['change']:+6.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]  {call['verdict']}")
    return {"calls": result["calls"]}


def main() -> None:
    options = settings()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="bench-compare-"))
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(options, folder)
    print(f"{options.launches} launches of allreduce on Gloo, 2 ranks, {SIZES}, 40 rounds of 4 calls"
          f"{', with real-time priority' if bench.first else ''}", flush=True)
    try:
        stores = [bench.launch(folder / f"{number:03d}.db") for number in range(options.launches)]
        print(spread(stores), flush=True)
        result = {"same": same(bench, stores, options.comparisons), "planted": planted(bench, stores, options.planted)}
        if options.delay > 0:
            result["delay"] = delayed(bench, options.delay)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
