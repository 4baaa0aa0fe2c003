#!/usr/bin/env python3
"""`diapason compare` on NCCL and one real GPU that four ranks share: what it calls slower, and what not.

    compare_lab.py --tool PATH/diapason [--nccl FILE] [--other FILE] [--rounds 10] [--limit 230] [--out FILE.json]
    compare_lab.py --tool PATH/diapason --self-test        # the simulated cluster instead of a GPU

Every round launches `diapason bench` four times, in an order that changes from round to round: the library of --nccl
twice, the same with NCCL_PROTO=LL, and the library of --other. --nccl is 2.28.3 below /usr/lib, --other that of the
Python package nvidia/nccl, unless they are given. Then launches are compared:

- same: the first library with itself, ten times: random halves of its launches. No call may fail --fail-on 5%.
- ll: the first library with NCCL_PROTO=LL. Every call that is at least 5 % slower by its estimate has to be called slower.
- other: the first library with the other one, as it is.

A round is left out when it would not end within --limit seconds. Exit status 1 if something failed or a bar is missed,
77 where there is no GPU.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from comm_lab import clean_environment
from mps import Mps

SKIP = 77
SIZES = "1K,8K,64K,512K,4M"
KINDS = ("old", "again", "ll", "other")
SHARED = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
LAUNCH_LIMIT = 60.0  # seconds, of one launch
SELF_TEST_SLOWER = 1.25


def first_file(patterns: list[str]) -> str:
    for pattern in patterns:
        for found in sorted(glob.glob(pattern)):
            if os.path.isfile(found):
                return found
    return ""


def default_nccl() -> str:
    return first_file([f"{folder}/libnccl.so.{version}" for version in ("2.28.3", "2")
                       for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")])


def default_other() -> str:
    folders = [folder for folder in sys.path if folder] + ["/usr/local/lib/python3*/dist-packages", "/usr/lib/python3/dist-packages"]
    return first_file([f"{folder}/nvidia/nccl/lib/libnccl.so.2" for folder in folders])


class Lab:
    def __init__(self, options: argparse.Namespace, environment: dict[str, str]):
        self.tool = str(options.tool.resolve())
        self.libraries = {"old": options.nccl, "again": options.nccl, "ll": options.nccl, "other": options.other}
        self.self_test = options.self_test
        self.environment = environment
        self.folder = Path(tempfile.mkdtemp(prefix="compare-lab-"))
        self.stores: dict[str, list[Path]] = {kind: [] for kind in KINDS}
        self.failures: list[str] = []
        self.seconds: list[float] = []

    def launch(self, kind: str, number: int) -> None:
        store = self.folder / f"{kind}.{number}.db"
        words = [self.tool, "bench", "allreduce", "-g", "4", "--sizes", SIZES, "--rounds", "8", "-n", "10", "-w", "3", "-c", "0",
                 "--limit", "30", "--store", str(store)]
        environment = dict(self.environment)
        if self.self_test:
            words += ["--backend", "sim", "--cluster", "h100x8", "--seed", str(100 * KINDS.index(kind) + number)]
        else:
            words += ["--backend", "nccl", "--library-file", self.libraries[kind]]
            if kind == "ll":
                environment["NCCL_PROTO"] = "LL"
        begin = time.monotonic()
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=LAUNCH_LIMIT, env=environment)
            problem = "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr[-600:]}"
        except subprocess.TimeoutExpired:
            problem = f"not done after {LAUNCH_LIMIT} s"
        self.seconds.append(time.monotonic() - begin)
        if problem or not store.exists():
            self.failures.append(f"launch {kind} {number}: {problem or 'no store'}")
            return
        if self.self_test and kind == "ll":
            with sqlite3.connect(store) as database:
                database.execute("UPDATE sample SET seconds = seconds * ?", (SELF_TEST_SLOWER,))
        self.stores[kind].append(store)

    def measure(self, rounds: int, until: float) -> int:
        """The number of rounds that were measured."""
        for number in range(rounds):
            longest = max(self.seconds, default=0.0)
            if number > 0 and time.monotonic() + len(KINDS) * longest > until:
                return number
            for place in range(len(KINDS)):
                kind = KINDS[(place + number) % len(KINDS)]
                if self.libraries[kind] or self.self_test:
                    self.launch(kind, number)
        return rounds

    def compare(self, old: list[Path], new: list[Path]) -> dict:
        words = [self.tool, "compare", "--json", "--fail-on", "5%"]
        for store in old:
            words += ["--old", str(store)]
        for store in new:
            words += ["--new", str(store)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 3):
            self.failures.append(f"compare: status {done.returncode}: {done.stderr[-600:]}")
            return {}
        result = json.loads(done.stdout)
        result["status"] = done.returncode
        return result


def table(title: str, result: dict) -> None:
    print(f"\n{title}: {result.get('verdict')}; geometric mean {100 * result.get('geometric_mean_change', 0):+.1f} %")
    for change in result.get("changed", []):
        print(f"  changed {change['what']}: {change['old'] or 'not set'} -> {change['new'] or 'not set'}")
    for call in result.get("calls", []):
        low, high = (100 * share for share in call["interval"] or (0, 0))
        print(f"  {call['bytes']:9d} {'in place    ' if call['in_place'] else 'out of place'} {call['old_us']:10.2f} -> "
              f"{call['new_us']:10.2f} us  {100 * call['change']:+7.1f} % [{low:+.1f}, {high:+.1f}]  {call['verdict']}"
              f"{', fails' if call['fails'] else ''}")


def judge(lab: Lab) -> dict:
    report: dict = {"same": [], "launches": {kind: len(stores) for kind, stores in lab.stores.items()}}
    plain = lab.stores["old"] + lab.stores["again"]
    generator = random.Random(1)
    for _ in range(10):
        drawn = generator.sample(plain, len(plain))
        half = len(drawn) // 2
        result = lab.compare(drawn[:half], drawn[half:])
        report["same"].append({"failing": result.get("failing"), "slower": result.get("slower"),
                               "faster": result.get("faster"), "geometric_mean_change": result.get("geometric_mean_change")})
    report["alarms"] = sum(1 for one in report["same"] if one["failing"])
    print(f"\nthe same library with itself: {report['alarms']} of 10 comparisons alarm; "
          f"{sum(1 for one in report['same'] if one['slower'] or one['faster'])} call something slower or faster")
    if report["alarms"]:
        lab.failures.append("the same library raised an alarm")
    report["ll"] = lab.compare(plain, lab.stores["ll"])
    table("NCCL_PROTO=LL", report["ll"])
    slower = [call for call in report["ll"].get("calls", []) if call["change"] >= 0.05]
    missed = [call["bytes"] for call in slower if call["verdict"] != "slower"]
    report["ll_at_least_5_percent"] = len(slower)
    report["ll_missed"] = missed
    print(f"LL is at least 5 % slower in {len(slower)} calls; not called slower: {missed or 'none'}")
    if missed or (lab.self_test and not slower):
        lab.failures.append(f"slower with LL, and not found: {missed}")
    if lab.stores["other"]:
        report["other"] = lab.compare(plain, lab.stores["other"])
        table("the other library", report["other"])
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--nccl", default=default_nccl())
    parser.add_argument("--other", default=default_other())
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=230, help="seconds for all launches")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    environment = clean_environment() | SHARED
    if options.self_test:
        options.rounds = min(options.rounds, 3)
    else:
        usable = subprocess.run([str(options.tool.resolve()), "backends"], capture_output=True, text=True, timeout=60,
                                env=environment)
        if not re.search(r"^nccl +yes", usable.stdout, re.M):
            print(f"SKIP: no GPU here\n{usable.stdout}")
            return SKIP
        print(f"old: {options.nccl}\nother: {options.other or 'not found'}")
    begin = time.monotonic()
    lab = Lab(options, environment)
    try:
        if options.self_test:
            rounds = lab.measure(options.rounds, begin + options.limit)
        else:
            with Mps() as mps:
                print(mps.note, flush=True)
                lab.environment |= mps.environment
                rounds = lab.measure(options.rounds, begin + options.limit)
        print(f"{rounds} rounds, {len(lab.seconds)} launches in {time.monotonic() - begin:.0f} s")
        report = judge(lab)
    finally:
        shutil.rmtree(lab.folder, ignore_errors=True)
    report |= {"rounds": rounds, "seconds": time.monotonic() - begin, "nccl": options.nccl, "other_file": options.other,
               "failures": lab.failures}
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    for failure in lab.failures:
        print(f"FAILED: {failure}")
    print(f"compare lab: {len(lab.failures)} failures")
    return 1 if lab.failures else 0


if __name__ == "__main__":
    sys.exit(main())
