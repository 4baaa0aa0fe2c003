#!/usr/bin/env python3
"""What a sweep leaves behind when configurations take it or its ranks down. The ranks are played (played_mpirun.py).

    survive_test.py --tool PATH/diapason [--only NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 600
CLEARED = ("NCCL_", "DIAPASON_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMIX_", "SLURM_")
RING, TREE = 1, 0
LL, LL128, SIMPLE = 0, 1, 2
PLAN = ("sweep", "allreduce", "--backend", "gloo", "--launcher", "mpirun", "-g", "2", "--sizes", "1K", "--algorithms",
        "ring,tree", "--protocols", "ll,ll128,simple", "--least", "3", "--most", "3", "--json")
CANDIDATES = 7  # two algorithms, three protocols, and the library's own choice


class Failed(Exception):
    pass


def check(condition: bool, text: object) -> None:
    if not condition:
        raise Failed(str(text))


class Tests:
    def __init__(self, tool: Path, folder: Path):
        self.tool = str(tool)
        self.folder = folder
        self.store = folder / "diapason.db"
        (folder / "bin").mkdir()
        shutil.copy(Path(__file__).parent / "played_mpirun.py", folder / "bin" / "mpirun")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}
        self.environment |= {"PLAYED_FOLDER": str(folder), "PATH": f"{folder / 'bin'}:{self.environment['PATH']}"}

    def play(self, configurations: dict[tuple[int, int], tuple[str, int]], failing_launches: list[int] = ()) -> None:
        plan = {"tool": self.tool, "failing_launches": list(failing_launches),
                "configurations": {f"{a} {p}": list(what) for (a, p), what in configurations.items()}}
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def start(self, *more: str) -> subprocess.Popen:
        return subprocess.Popen([self.tool, *PLAN, *more], cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *more: str, status: int) -> tuple[dict, str]:
        process = self.start(*more)
        out, err = process.communicate(timeout=LIMIT)
        check(process.returncode == status, f"exit status {process.returncode}, expected {status}\n{out}\n{err}")
        return (json.loads(out)[0] if status == 0 else {}), err

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def query(self, sql: str) -> list:
        with sqlite3.connect(self.store, timeout=600) as database:
            return database.execute(sql).fetchall()

    def samples(self) -> int:
        return self.query("select count(*) from sample where outcome=0")[0][0]

    def kept(self) -> None:
        """Every block that was ever answered is a sample of the store."""
        check(self.samples() == len(self.lines("answered")), f"{self.samples()} samples of {len(self.lines('answered'))}")

    @staticmethod
    def outcomes(result: dict) -> list[str]:
        return [c["outcome"] for c in result["contests"][0]["contenders"]]

    def kills(self) -> None:
        """Three configurations kill the sweep whenever they run: each does so once, and all else is measured."""
        self.play({(RING, LL): ("kill", 0), (TREE, SIMPLE): ("kill", 0), (TREE, LL128): ("kill", 0)})
        self.run("--quiet", status=-signal.SIGKILL)
        self.kept()
        for number in range(1, 4):
            _, err = self.run("--resume", "--quiet", status=-signal.SIGKILL if number < 3 else 0)
            check(err.count("is skipped: the sweep ended while it was measured") == 1, err)
            check(f"{number} configuration" in err and "--retry-failed" in err, err)
            self.kept()
            crashed = self.query("select note from sample where outcome=3")
            check(len(crashed) == number and "ended while this was measured" in crashed[0][0], crashed)
        check(self.samples() == 3 * (CANDIDATES - 3), self.samples())
        check(self.query("select count(*) from run")[0][0] == 1, "a resumed sweep is a second run")
        self.run("--resume", "--quiet", status=1)
        # They work again: the same run gets what it lacks.
        self.play({})
        result, err = self.run("--resume", "--retry-failed", "--quiet", status=0)
        check("skipped" not in err, err)
        check(self.outcomes(result) == ["fine"] * CANDIDATES, result)
        check(self.samples() == 3 * CANDIDATES, self.samples())
        _, err = self.run("--resume", "--retry-failed", "--quiet", status=1)
        check("nothing in it has failed" in err, err)

    def works_at_first(self) -> None:
        """One that has worked gets a second chance, and no third."""
        self.play({(RING, LL): ("kill", 3)})  # check and block, then one more block
        self.run("--quiet", status=-signal.SIGKILL)
        self.kept()
        _, err = self.run("--resume", "--quiet", status=-signal.SIGKILL)
        check("skipped" not in err, err)
        self.kept()
        result, err = self.run("--resume", "--quiet", status=0)
        check("is skipped: the sweep ended while it was measured" in err, err)
        self.kept()
        outcomes = self.outcomes(result)
        check(sorted(outcomes) == ["crash"] + ["fine"] * (CANDIDATES - 1), outcomes)

    def bystander(self) -> None:
        """A sweep that is killed once in what works measures all of it when it is resumed."""
        self.play({(RING, LL): ("kill", 3)})
        self.run("--quiet", status=-signal.SIGKILL)
        self.play({})
        result, err = self.run("--resume", "--quiet", status=0)
        check(self.outcomes(result) == ["fine"] * CANDIDATES and "skipped" not in err, err)
        check(self.samples() == 3 * CANDIDATES, self.samples())

    def hang(self) -> None:
        """While a configuration hangs, every other sample is in the store, and nobody else can go on with the run."""
        self.play({(RING, LL): ("hang", 0)})
        process = self.start("--limit", "600")
        end = time.monotonic() + LIMIT
        while f"{RING} {LL}" not in self.lines("asked"):
            check(process.poll() is None and time.monotonic() < end, "it does not come to the one that hangs")
            time.sleep(0.02)
        self.kept()
        before = self.query("select * from trying")
        _, err = self.run("--resume", "--quiet", status=1)
        check(f"is in use by process {process.pid} on " in err and " since 20" in err, err)
        check(self.query("select * from trying") == before, "the refused sweep has changed the store")
        process.kill()
        _, err = process.communicate(timeout=LIMIT)
        result, err = self.run("--resume", "--quiet", status=0)
        check(self.outcomes(result).count("crash") == 1 and "is skipped" in err, err)
        check(not list(self.folder.glob("*.lock")), "a lock is left behind")

    def restart(self) -> None:
        """Ranks that do not come back at the first try are started once more, and nothing is lost by it."""
        self.play({(RING, LL): ("die", 0)}, failing_launches=[1, 3])
        result, _ = self.run("--quiet", status=0)
        outcomes = self.outcomes(result)
        check(sorted(outcomes) == ["crash"] + ["fine"] * (CANDIDATES - 1), outcomes)
        # The first; for the one that dies a failing and a good one; after it a failing and a good one.
        check(result["launches"] == 5, f"{result['launches']} launches")

    def no_restart(self) -> None:
        """Ranks that never come back end the sweep with their words; what was measured stays."""
        self.play({(RING, LL): ("die", 0)}, failing_launches=list(range(1, 100)))
        _, err = self.run("--quiet", status=1)
        check("after 6 tries in a row" in err and "the port is still in use" in err, err)
        check(len(self.lines("launches")) == 7, self.lines("launches"))
        self.kept()


NAMES = ("kills", "works_at_first", "bystander", "hang", "restart", "no_restart")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--only", choices=NAMES, action="append")
    options = parser.parse_args()
    failures = 0
    for name in options.only or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                getattr(Tests(options.tool.resolve(), Path(folder)), name)()
                print(f"ok   {name}", flush=True)
            except (Failed, subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as error:
                failures += 1
                print(f"FAIL {name}: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
