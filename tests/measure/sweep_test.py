#!/usr/bin/env python3
"""Sweeps with real ranks: what they leave behind when ranks or the sweep itself are stopped or killed.

    sweep_test.py --tool PATH/diapason [--only NAME]

Exit status 77: nothing could run here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIP = 77
LIMIT = 600
CLEARED = ("NCCL_", "DIAPASON_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMIX_", "SLURM_")


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}


class Failed(Exception):
    pass


def check(condition: bool, text: str) -> None:
    if not condition:
        raise Failed(text)


class Tests:
    def __init__(self, tool: Path):
        self.tool = str(tool)
        self.environment = environment()

    def run(self, *arguments: str, status: int = 0, folder: Path | None = None) -> str:
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, timeout=LIMIT, cwd=folder,
                              env=self.environment)
        check(done.returncode == status,
              f"{' '.join(arguments)}: exit status {done.returncode}, expected {status}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def start(self, *arguments: str, folder: Path) -> subprocess.Popen:
        return subprocess.Popen([self.tool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=folder, env=self.environment)

    @staticmethod
    def samples(store: Path) -> int:
        if not store.exists():
            return 0
        try:
            with sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=600) as database:
                return database.execute("select count(*) from sample").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def wait_for_samples(self, store: Path, number: int, process: subprocess.Popen) -> None:
        end = time.monotonic() + LIMIT
        while self.samples(store) < number:
            check(process.poll() is None, f"the sweep ended with {process.returncode} before it had {number} samples")
            check(time.monotonic() < end, f"no {number} samples in time")
            time.sleep(0.02)

    @staticmethod
    def whole(store: Path) -> None:
        with sqlite3.connect(store, timeout=600) as database:
            check(database.execute("pragma integrity_check").fetchone()[0] == "ok", "the store is damaged")

    @staticmethod
    def workers(parent: int) -> list[int]:
        """The ranks of a sweep: its descendants that run the helper `@worker` and have no children that do."""
        children: dict[int, list[int]] = {}
        names: dict[int, str] = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_text()
                names[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            children.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(entry.name))
        found, queue = [], [parent]
        while queue:
            at = queue.pop()
            queue += children.get(at, [])
            if re.search(r"diapason @worker", names.get(at, "")) and at != parent and " @launch " not in names[at]:
                found.append(at)
        return sorted(found)

    SMALL = ("sweep", "allreduce", "--backend", "gloo", "-g", "2", "--algorithms", "ring,halving_doubling,options_ring",
             "--protocols", "async,blocking", "--quiet")

    def gloo(self, folder: Path) -> None:
        text = self.run(*self.SMALL, "--sizes", "1K,64K,1M", "--most", "4", folder=folder)
        check("geometric mean of the gains" in text, text)
        check("allreduce" in text and "64KiB" in text, text)
        # What Gloo cannot do is a row that says so, and the sweep went on.
        check(re.search(r"refused: allreduce ring/blocking at .*1MiB", text) is not None, text)
        result = json.loads(self.run(*self.SMALL, "--sizes", "4K", "--most", "3", "--json", folder=folder))
        contenders = result[0]["contests"][0]["contenders"]
        check(contenders[0]["configuration"].startswith("library default"), str(contenders[0]))
        check(all(c["samples"] >= 3 for c in contenders if c["outcome"] == "fine"), str(contenders))
        shown = self.run("data", "show", "diapason.db", folder=folder)
        check("gloo" in shown and "halving_doubling" in shown, shown)

    def adaptive(self, folder: Path) -> None:
        result = json.loads(self.run(*self.SMALL, "--sizes", "1K:256K:x4", "--search", "adaptive", "--samples", "20",
                                     "--json", folder=folder))
        check(result[0]["samples"] <= 20, f"{result[0]['samples']} samples")

    def mpi(self, folder: Path) -> None:
        result = json.loads(self.run("sweep", "allreduce", "--backend", "mpi", "-g", "2", "--sizes", "64K",
                                     "--algorithms", "linear,ring", "--most", "3", "--json", "--quiet", folder=folder))
        outcomes = {c["configuration"]: c["outcome"] for c in result[0]["contests"][0]["contenders"]}
        check(len(outcomes) == 3 and set(outcomes.values()) == {"fine"}, str(outcomes))

    def killed(self, folder: Path) -> None:
        """kill -9 in the middle; what is there stays, and --resume measures the rest."""
        plan = (*self.SMALL, "--sizes", "1K,16K,64K", "--most", "40", "--least", "40")
        store = folder / "diapason.db"
        process = self.start(*plan, folder=folder)
        self.wait_for_samples(store, 60, process)
        ranks = self.workers(process.pid)
        process.kill()
        process.communicate(timeout=LIMIT)
        end = time.monotonic() + LIMIT
        while any(Path(f"/proc/{rank}").exists() for rank in ranks) and time.monotonic() < end:
            time.sleep(0.05)
        check(not any(Path(f"/proc/{rank}").exists() for rank in ranks), "ranks outlive a killed sweep")
        self.whole(store)
        before = self.samples(store)
        check(before >= 60, f"{before} samples after the kill")
        result = json.loads(self.run(*plan, "--resume", "--json", folder=folder))
        check(result[0]["finished"], "the resumed sweep is not complete")
        check(0 < result[0]["samples"] < 3 * 40 * 8, str(result[0]["samples"]))
        after = self.samples(store)
        check(after == before + result[0]["samples"], f"{before} + {result[0]['samples']} is not {after}")
        for contest in result[0]["contests"]:
            for contender in contest["contenders"]:
                check(contender["outcome"] != "fine" or contender["samples"] == 40, str(contender))
        with sqlite3.connect(store) as database:
            check(database.execute("select count(*) from run").fetchone()[0] == 1, "a resumed sweep is a second run")
        self.run(*plan, "--resume", status=1, folder=folder)

    def interrupted(self, folder: Path) -> None:
        store = folder / "diapason.db"
        process = self.start(*self.SMALL, "--sizes", "1K,16K", "--most", "1000", "--least", "1000", folder=folder)
        self.wait_for_samples(store, 20, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        check(process.returncode == 130, f"exit status {process.returncode}\n{out}\n{err}")
        check("interrupted; --resume continues it" in out, out)
        self.whole(store)

    def without_a_rank(self, folder: Path, limit: int, stop: signal.Signals) -> dict:
        """A small sweep, one of whose ranks gets a signal on the way; what it printed in the end."""
        process = self.start(*self.SMALL, "--sizes", "1K", "--most", "100", "--least", "100", "--limit", str(limit), "--json",
                             folder=folder)
        self.wait_for_samples(folder / "diapason.db", 20, process)
        os.kill(self.workers(process.pid)[-1], stop)
        out, err = process.communicate(timeout=LIMIT)
        check(process.returncode == 0, f"exit status {process.returncode}\n{err}")
        result = json.loads(out)[0]
        outcomes = [c["outcome"] for c in result["contests"][0]["contenders"]]
        check(outcomes.count("hang") + outcomes.count("crash") <= 1 and outcomes.count("fine") >= 5, str(outcomes))
        # More where a slow machine made ranks look stuck.
        check(result["launches"] >= 2, f"{result['launches']} launches")
        return result

    def hang(self, folder: Path) -> None:
        """A rank that stops: the sweep goes on with new ranks, and blames no more than the configuration that was running."""
        result = self.without_a_rank(folder, 6, signal.SIGSTOP)
        contenders = result["contests"][0]["contenders"]
        check(all(c["samples"] == 100 for c in contenders if c["outcome"] == "fine"), str(contenders))

    def crash(self, folder: Path) -> None:
        """A rank that is killed between or in trials: new ranks, and no more than one row blames a configuration."""
        self.without_a_rank(folder, 120, signal.SIGKILL)

    def launches(self, folder: Path) -> None:
        """Settings that need a restart are a launch each; configurations are none, unless asked for."""
        base = (*self.SMALL, "--sizes", "1K,4K", "--most", "3", "--json")
        result = json.loads(self.run(*base, "--env", "GLOO_A=1", "--env", "GLOO_A=2", folder=folder))[0]
        check(result["launches"] == 3, f"{result['launches']} launches")
        configurations = [c["configuration"] for c in result["contests"][0]["contenders"]]
        check(sum("GLOO_A=2" in c for c in configurations) == len(configurations) // 3, str(configurations))
        each = json.loads(self.run(*base, "--launch-each", folder=folder))[0]
        contenders = [c for c in each["contests"][0]["contenders"]]
        check(each["launches"] >= len(contenders) - 1, f"{each['launches']} launches for {len(contenders)}")

    def bench(self, folder: Path) -> None:
        text = self.run("bench", "all_reduce", "all_gather", "-g", "3", "--backend", "gloo", "-b", "1K", "-e", "64K", "-f",
                        "8", "-n", "3", "--rounds", "2", "--store", "b.db", folder=folder)
        rows = re.findall(r"^ +(\d+) +(\d+) +float +(\w+) +(-?\d+) +([\d.]+) ", text, re.M)
        # 1 KiB of all_gather is 85 floats from each of three ranks.
        check([row[0] for row in rows] == ["1024", "8192", "65536", "1020", "8184", "65532"], text)
        check("# Out of bounds values : 0 OK" in text and "# Avg bus bandwidth" in text, text)
        check(self.samples(folder / "b.db") == 6 * 2 * 2, str(self.samples(folder / "b.db")))
        both = self.run("bench", "--backend", "all", "-g", "2", "-b", "1K", "-e", "4K", "-f", "4", "-n", "3", "--rounds", "3",
                        folder=folder)
        check("gloo us" in both and "mpi us" in both, both)
        launched = self.run("launch", "-n", "2", "--", self.tool, "bench", "--backend", "gloo", "-b", "1K", "-e", "1K", "-n",
                            "2", "--json", folder=folder)
        check(json.loads(launched)["ranks"] == 2, launched)
        pairs = self.run("launch", "-n", "3", "--", self.tool, "bench", "pairs", "--backend", "gloo", "-b", "64K", "--margin",
                         "99%", "--json", folder=folder)
        check(len(json.loads(pairs)["pairs"]) == 3, pairs)

    def targets(self, folder: Path) -> None:
        (folder / "t.toml").write_text("[[target]]\nname='easy'\nbytes='1K'\nat_most='50s'\n")
        base = ("bench", "--backend", "gloo", "-g", "2", "-n", "2", "--rounds", "2", "--targets", "t.toml")
        check("1 met, 0 missed" in self.run(*base, folder=folder), "an easy target is missed")
        (folder / "t.toml").write_text("[[target]]\nname='hard'\nbytes='1M'\nbusbw_at_least='90000GB/s'\n"
                                       "[[target]]\nname='four'\nbytes='1M'\nranks=4\nscaling_at_least=0.9\n")
        text = self.run(*base, status=1, folder=folder)
        check("MISSED" in text and "0 met, 1 missed, 1 not measured" in text, text)


    # Prints what nccl-tests prints for two sizes: 20 and 40 us out of place, 10 and 30 us in place.
    PLAYED_TESTS = """#!/bin/sh
echo '# nccl-tests version 2.17.9 nccl-headers=22902 nccl-library=22902'
echo '# Collective test starting: all_reduce_perf'
echo '# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0'
echo '#  Rank  0 Group  0 Pid 1 on  one device  0 [0000:4a:00] NVIDIA L40S'
echo '#  Rank  1 Group  0 Pid 1 on  one device  1 [0000:61:00] NVIDIA L40S'
echo '#                                                              out-of-place                       in-place          '
echo '#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong '
echo '#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         '
echo '        1024           256     float     sum      -1    20.00    0.06    0.09       0    10.00    0.06    0.09       0'
echo '        2048           512     float     sum      -1    40.00    0.12    0.17       0    30.00    0.12    0.18       0'
echo '# Out of bounds values : 0 OK'
"""

    def nccl_tests(self, folder: Path) -> None:
        """Programs of others measure in place and out of place: both are stored, one of them is what the sweep decides by."""
        program = folder / "all_reduce_perf"
        program.write_text(self.PLAYED_TESTS)
        program.chmod(0o755)
        plan = ("sweep", "allreduce", "--runner", "nccl-tests", "--bin", str(folder), "-g", "2", "--sizes", "1K,2K",
                "--algorithms", "ring,tree", "--protocols", "ll", "--most", "3", "--least", "3", "--json", "--quiet")
        for flag, place, seconds in (([], 0, 20e-6), (["--in-place"], 1, 10e-6)):
            store = folder / f"place{place}.db"
            result = json.loads(self.run(*plan, *flag, "--store", str(store), folder=folder))[0]
            check(abs(result["contests"][0]["default_us"] - seconds * 1e6) < 0.01, str(result["contests"][0]))
            contexts = json.loads(self.run("data", "show", str(store), "--json", folder=folder))["contexts"]
            found = {(one["bytes"], one["in_place"]): [(entry["samples"], round(entry["median"] * 1e6), entry["range"])
                                                       for entry in one["configurations"]] for one in contexts}
            expected = {(1024, False): 20, (2048, False): 40, (1024, True): 10, (2048, True): 30}
            check(found == {key: [(3, micros, True)] * 3 for key, micros in expected.items()}, str(found))


NAMES = ("gloo", "adaptive", "mpi", "killed", "interrupted", "hang", "crash", "launches", "bench", "targets", "nccl_tests")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--only", choices=NAMES, action="append")
    options = parser.parse_args()
    tests = Tests(options.tool.resolve())
    usable = tests.run("backends")
    missing = [name for name in ("gloo", "mpi") if not re.search(rf"^{name} +yes", usable, re.M)]
    if "gloo" in missing:
        print("SKIP: Gloo is not usable here")
        return SKIP
    failures = 0
    for name in options.only or NAMES:
        if name in missing or (name == "bench" and missing):
            print(f"skip {name}: {' and '.join(missing)} not usable here")
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                getattr(tests, name)(Path(folder))
                print(f"ok   {name} ({time.monotonic() - begin:.1f} s)", flush=True)
            except (Failed, subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as error:
                failures += 1
                print(f"FAIL {name}: {error}", flush=True)
    print(f"measure: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
