#!/usr/bin/env python3
"""`bench --policy` with real ranks: what it measures, keeps and prints. How fast anything was is not looked at.

    policy_test.py --tool PATH/diapason [--only NAME]

Exit status 77: nothing could run here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77
LIMIT = 600
CLEARED = ("NCCL_", "DIAPASON_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMIX_", "SLURM_")
GLOO = """# diapason: version=1 library=gloo
allreduce,0,4096,options_ring,async,-1,-1,2
allreduce,524288,524288,ring,blocking,-1,-1,-1
allreduce,0,4096,halving_doubling,async,-1,-1,3
"""
MPI = """# diapason: version=1 library=openmpi
allreduce,0,65536,ring,-1,-1,-1,-1
alltoall,1024,1024,pairwise,-1,-1,-1,-1
"""


class Failed(Exception):
    pass


def check(condition: bool, text: str) -> None:
    if not condition:
        raise Failed(text)


def near(one: float, other: float) -> bool:
    # Rounds are printed to the nanosecond, of times that may be a microsecond; ratios have six decimals, and one of
    # them is tiny where a rank was not scheduled during a round.
    return abs(one - other) <= 2e-3 * max(abs(one), abs(other)) + 1e-6


class Tests:
    def __init__(self, tool: Path, folder: Path):
        self.tool = str(tool)
        self.folder = folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}
        (folder / "gloo.conf").write_text(GLOO)
        (folder / "mpi.conf").write_text(MPI)

    def run(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, timeout=LIMIT, cwd=self.folder,
                              env=self.environment)
        check(done.returncode == status,
              f"{' '.join(arguments)}: exit status {done.returncode}, expected {status}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    @staticmethod
    def coherent(row: dict) -> None:
        """The figures of a row that was compared follow from its rounds."""
        library, policy = row["default"]["rounds_us"], row["policy"]["rounds_us"]
        check(len(library) == len(policy) == len(row["gains"]) > 0, str(row))
        check(row["default"]["wrong"] == 0 and row["policy"]["wrong"] == 0, str(row))
        for mine, theirs, gain in zip(library, policy, row["gains"]):
            check(near(gain, mine / theirs), f"{mine} / {theirs} is not {gain}")
        check(near(row["gain"], statistics.median(row["gains"])), str(row))
        check(near(row["default"]["median_us"], statistics.median(library)), str(row))
        if len(library) < 6:
            check(row["verdict"] == "too few rounds" and "gain_low" not in row, str(row))
            return
        low, high = row["gain_low"], row["gain_high"]
        check(low <= row["gain"] <= high, str(row))
        expected = "faster" if low > 1 else "slower" if high < 1 else "no difference"
        check(row["verdict"] == expected, str(row))

    def gloo(self) -> None:
        plan = ("bench", "all_reduce", "all_gather", "--backend", "gloo", "-g", "2", "-b", "1K", "-e", "1M", "-f", "8",
                "-n", "3", "--rounds", "7", "--policy", "gloo.conf")
        result = json.loads(self.run(*plan, "--json", "--store", "p.db")[0])
        check(result["policy"]["rows"] == 3 and result["policy"]["rows_here"] == 2, str(result["policy"]))
        rows = {(row["collective"], row["bytes"]): row for row in result["rows"]}
        check(len(rows) == 8, str(list(rows)))
        compared = rows["allreduce", 1024]
        check(compared["policy_says"] == "options_ring/async" and compared["line"] == 2, str(compared))
        check(len(compared["gains"]) == 7, str(compared))
        self.coherent(compared)
        # Gloo cannot run it; the default was measured all the same, and the rest went on.
        refused = rows["allreduce", 524288]
        check(refused["verdict"] == "failed" and refused["policy"]["outcome"] == "refused", str(refused))
        for key in (("allreduce", 8192), ("allreduce", 65536), ("allgather", 1024)):
            check(rows[key]["verdict"] == "default" and "policy" not in rows[key], str(rows[key]))
            check(len(rows[key]["default"]["rounds_us"]) == 7, str(rows[key]))
        check(result["summary"]["compared"] == 1 and result["summary"]["failed"] == 1, str(result["summary"]))
        check(result["summary"]["default"] == 6, str(result["summary"]))
        check(near(result["summary"]["geometric_mean_gain"], compared["gain"]), str(result["summary"]))
        # Every round of both is kept: seven of each, one of the default before the refusal, seven of the others.
        with sqlite3.connect(self.folder / "p.db") as database:
            fine = database.execute("select count(*) from sample where seconds > 0").fetchone()[0]
        check(fine == 14 + 1 + 6 * 7, f"{fine} samples in the store")
        text = self.run(*plan)[0]
        check(re.search(r"^allreduce +1KiB +options_ring/async +[\d.]+ +[\d.]+ +[\d.]+ x +\[[\d.]+, [\d.]+\]  "
                        r"(faster|slower|no difference)$", text, re.M) is not None, text)
        check(re.search(r"^allreduce +512KiB +ring/blocking .* refused$", text, re.M) is not None, text)
        check(re.search(r"^allgather +8KiB +library default +[\d.]+ +- .* default$", text, re.M) is not None, text)
        check("geometric mean of the gains: " in text and "\nworst: " in text, text)
        check(re.search(r"^\d faster, \d slower, \d no difference, 1 failed$", text, re.M) is not None, text)

    def launched(self) -> None:
        """Under a launcher; the rows for three ranks are others."""
        text = self.run("launch", "-n", "3", "--", self.tool, "bench", "--backend", "gloo", "-b", "1K", "-e", "4K", "-f", "4",
                        "-n", "2", "--policy", "gloo.conf", "--json")[0]
        result = json.loads(text)
        check(result["ranks"] == 3 and len(result["rows"]) == 2, text)
        for row in result["rows"]:
            check(row["policy_says"] == "halving_doubling/async" and row["line"] == 4, str(row))
            check(6 <= len(row["gains"]) <= 15, str(row))
            self.coherent(row)

    def mpi(self) -> None:
        result = json.loads(self.run("bench", "allreduce", "alltoall", "--backend", "mpi", "-g", "2", "-b", "1K", "-e", "64K",
                                     "-f", "64", "-n", "3", "--rounds", "6", "--policy", "mpi.conf", "--json")[0])
        says = [(row["collective"], row["bytes"], row["policy_says"]) for row in result["rows"]]
        check(says == [("allreduce", 1024, "ring"), ("allreduce", 65536, "ring"), ("alltoall", 1024, "pairwise"),
                       ("alltoall", 65536, "library default")], str(says))
        for row in result["rows"][:3]:
            self.coherent(row)

    def refusals(self) -> None:
        err = self.run("bench", "--backend", "gloo", "-g", "2", "--policy", "mpi.conf", status=1)[1]
        check("the policy is for Open MPI, not for Gloo" in err, err)
        # Before ranks are started: nothing else is said.
        err = self.run("bench", "--backend", "gloo", "-g", "2", "--policy", "missing.conf", status=1)[1]
        check(len(err.splitlines()) == 1 and "missing.conf" in err, err)
        self.run("bench", "--backend", "all", "--policy", "gloo.conf", status=2)


NAMES = ("gloo", "launched", "mpi", "refusals")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--only", choices=NAMES, action="append")
    options = parser.parse_args()
    failures = 0
    ran = 0
    for name in options.only or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            tests = Tests(options.tool.resolve(), Path(folder))
            backend = "mpi" if name == "mpi" else "gloo"
            if not re.search(rf"^{backend} +yes", tests.run("backends")[0], re.M):
                print(f"skip {name}: {backend} is not usable here")
                continue
            ran += 1
            try:
                getattr(tests, name)()
                print(f"ok   {name}", flush=True)
            except (Failed, subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as error:
                failures += 1
                print(f"FAIL {name}: {error}", flush=True)
    print(f"policy: {failures} failures")
    return SKIP if ran == 0 else 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
