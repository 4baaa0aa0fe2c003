#!/usr/bin/env python3
"""`diapason tune` against NCCL on a real GPU that several ranks share.

    tune_lab.py --tool PATH/diapason [--out DIR] [--only PART] [--ranks 4,8] [--budget 4:4m,8:6m] [--rounds 12]
                [--limit 570]

Parts, in this order: best (bench/tune.py: tuned against the default and against the exhaustive best of the same run, at the
tuned sizes and at sizes between them that are no powers of two; three collectives, 1 KiB to 8 MiB; --budget is one for all
or one for each number of ranks; --limit is the time of one number of ranks, tuning included), job
(the lines that tune prints, set for a job that knows nothing of diapason: its journal must show the policy's choices, the
same on every rank), iteration (--objective iteration). Every part's figures are printed; the exit status is 1 when
something failed, 77 when there is no GPU here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from comm_lab import clean_environment
from mps import Mps

SKIP = 77
PARTS = ("best", "job", "iteration")
SHARED = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
BENCH = Path(__file__).resolve().parents[2] / "bench" / "tune.py"


class Lab:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.tool = str(options.tool.resolve())
        self.environment = clean_environment() | SHARED
        self.failures: list[str] = []

    def command(self, words: list[str], limit: float, more: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        begin = time.monotonic()
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False,
                                  env=self.environment | (more or {}))
        except subprocess.TimeoutExpired as late:
            text = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
            done = subprocess.CompletedProcess(words, 124, text, f"not done after {limit} s")
        print(f"$ {' '.join(words)}   [{time.monotonic() - begin:.1f} s, status {done.returncode}]", flush=True)
        return done

    def need(self, done: subprocess.CompletedProcess, what: str) -> bool:
        if done.returncode == 0:
            return True
        self.failures.append(what)
        print(done.stdout[-3000:], done.stderr[-3000:], sep="\n", flush=True)
        return False

    def budget(self, ranks: str) -> str:
        budgets = dict(part.split(":", 1) for part in self.options.budget.split(",") if ":" in part)
        return budgets.get(ranks, next(iter(budgets.values()), "4m")) if budgets else self.options.budget

    def best(self) -> None:
        limit = self.options.limit
        for ranks in self.options.ranks.split(","):
            done = self.command([sys.executable, str(BENCH), str(Path(self.tool).parent), "--backend", "nccl", "--ranks", ranks,
                                 "--collectives", "all_reduce,all_gather,reduce_scatter", "--sizes", "1K:8M:x2", "--budget",
                                 self.budget(ranks), "--rounds", str(self.options.rounds), "--between", "--limit",
                                 str(max(30, limit - 20)), "--json", str(self.options.out / f"tune_{ranks}ranks.json")], limit)
            print(done.stdout, flush=True)
            self.need(done, f"best, {ranks} ranks")

    def job(self) -> None:
        folder = self.options.out / "tuned"
        done = self.command([self.tool, "tune", "--backend", "nccl", "-g", "4", "--sizes", "1K:8M:x4", "--budget", "60s", "-o",
                             str(folder)], 180)
        print(done.stdout, flush=True)
        if not self.need(done, "tune"):
            return
        lines = dict(re.findall(r"^  export (\w+)=(.*)$", done.stdout, re.MULTILINE))
        if "DIAPASON_POLICY" not in lines:
            print("nothing was tuned: nothing to put into a job")
            return
        journal = str(self.options.out / "journal.%p")
        ran = self.command([self.tool, "bench", "all_reduce", "all_gather", "reduce_scatter", "--backend", "nccl", "-g", "4", "-b",
                            "1K", "-e", "8M", "-f", "4", "--rounds", "2"], 120, lines | {"DIAPASON_JOURNAL": journal})
        if not self.need(ran, "the job with the policy"):
            return
        journals = sorted(str(path) for path in self.options.out.glob("journal.*"))
        checked = self.command([self.tool, "journal", "check", *journals], 60)
        print(checked.stdout[-1500:])
        self.need(checked, "journal check")
        shown = self.command([self.tool, "journal", "show", journals[0], "--json"], 60)
        applied = shown.stdout.count('"reason": "row"') + shown.stdout.count('"reason":"row"')
        print(f"decisions by a row of the policy in {Path(journals[0]).name}: {applied}")
        if applied == 0:
            self.failures.append("no decision followed the policy")

    def iteration(self) -> None:
        for size in ("128K", "1M"):
            folder = self.options.out / f"iteration_{size}"
            done = self.command([self.tool, "tune", "--backend", "nccl", "-g", "4", "--objective", "iteration", "--bucket-bytes",
                                 size, "--compute", "2ms", "--budget", "40s", "-o", str(folder), "--json", "-q"], 150)
            if not self.need(done, f"iteration {size}"):
                continue
            outcome = json.loads(done.stdout)
            check = outcome["iteration"].get("check")
            for call in outcome["calls"]:
                print(f"  {call['collective']} {call['bytes']}: {call['configuration']} ({call['ending']}) {call.get('why', '')}")
            if check:
                print(f"  {outcome['iteration']['workload']}: {check['library']['median_us'] / 1e3:.3f} ms -> "
                      f"{check['tuned']['median_us'] / 1e3:.3f} ms, {check['gain']:.3f} x [{check['low']:.3f}, {check['high']:.3f}] "
                      f"in {check['rounds']} rounds", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--ranks", default="4,8")
    parser.add_argument("--budget", default="4:4m,8:6m")
    parser.add_argument("--limit", type=float, default=570)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    backends = subprocess.run([str(options.tool), "backends", "--json"], capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ)
    usable = [one for one in json.loads(backends.stdout or '{"backends": []}')["backends"] if one["name"] == "nccl"]
    if not usable or not usable[0]["usable"]:
        print(f"skipped: {usable[0]['reason'] if usable else 'no backends'}")
        return SKIP
    with tempfile.TemporaryDirectory() as scratch:
        options.out = (options.out or Path(scratch)).resolve()
        options.out.mkdir(parents=True, exist_ok=True)
        lab = Lab(options)
        for part in PARTS:
            if options.only in (None, part):
                with Mps() as mps:  # a fresh one: a rank that was killed leaves a broken one behind
                    print(f"== {part}; {mps.note}", flush=True)
                    lab.environment |= mps.environment
                    getattr(lab, part)()
    for failure in lab.failures:
        print(f"failed: {failure}")
    return 1 if lab.failures else 0


if __name__ == "__main__":
    sys.exit(main())
