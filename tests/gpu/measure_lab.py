#!/usr/bin/env python3
"""Benchmarks, iterations and sweeps of NCCL on a real GPU that several ranks share.

    measure_lab.py --tool PATH/diapason [--nccl-tests DIR] [--out DIR] [--only PART] [--budget SECONDS]

Parts, in this order: bench (against nccl-tests, where its binaries are given: built with MPI=1), relaunch
(one launch against one launch per configuration, same cells and samples), sweep (allreduce, allgather and reducescatter
on 4 and on 8 ranks; every sample is left in --out), iteration, runner (nccl-tests driven by environment).
Every part's figures are printed; the exit status is 1 when something failed, 77 when there is no GPU here.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from comm_lab import clean_environment
from mps import Mps

SKIP = 77
PARTS = ("bench", "relaunch", "sweep", "iteration", "runner")
SIZES = "1K:8M:x2"
# Open MPI looks for ssh even where all ranks are on this machine; nccl-tests wants a GPU for every process of a host unless
# it is told which one to use.
SHARED = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "OMPI_MCA_plm_rsh_agent": "/bin/false",
          "NCCL_TESTS_DEVICE": "0"}


def grid(exported: str) -> str:
    """The samples without machine and run, as tests/data/measurements has them: what worked, in microseconds."""
    lines = ["collective,num_nodes,num_gpus,size_bytes,algo,proto,nchannels,repeat,time_oop"]
    names = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}
    for row in csv.DictReader(io.StringIO(exported, newline="")):
        if row["outcome"] == "fine":
            lines.append(",".join([names[row["collective"]], row["nodes"], row["ranks"], row["bytes"],
                                   row["algorithm"].upper() or "DEFAULT", row["protocol"].upper() or "DEFAULT",
                                   row["channels"] if int(row["channels"]) > 0 else "-1", str(int(row["round"]) + 1),
                                   f"{float(row['seconds']) * 1e6:.2f}"]))
    return "\n".join(lines) + "\n"


class Lab:
    def __init__(self, tool: Path, nccl_tests: Path | None, out: Path, budget: float):
        self.tool = str(tool)
        self.nccl_tests = nccl_tests
        self.out = out
        self.work = Path(tempfile.mkdtemp())
        self.budget = budget
        self.environment = clean_environment() | SHARED
        self.failures: list[str] = []

    def command(self, words: list[str], limit: float) -> subprocess.CompletedProcess:
        begin = time.monotonic()
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=limit, env=self.environment)
        except subprocess.TimeoutExpired as late:
            text = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
            done = subprocess.CompletedProcess(words, 124, text, f"not done after {limit} s")
        print(f"$ {' '.join(words)}   [{time.monotonic() - begin:.1f} s, status {done.returncode}]", flush=True)
        return done

    def diapason(self, *arguments: str, limit: float, status: tuple[int, ...] = (0,)) -> str:
        done = self.command([self.tool, *arguments], limit)
        if done.returncode not in status:
            self.failures.append(" ".join(arguments))
            print(done.stdout[-2000:], done.stderr[-3000:], sep="\n", flush=True)
        return done.stdout

    def save(self, name: str, text: str) -> None:
        (self.out / name).write_text(text)

    def nccl_tests_command(self, program: str, *arguments: str) -> list[str]:
        """Ranks of one process each; every one its own host, or NCCL refuses the shared GPU."""
        script = f'export NCCL_HOSTID=h$OMPI_COMM_WORLD_RANK; exec {self.nccl_tests / program} "$@"'
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", "bash", "-c", script, "-", *arguments]

    def bench(self) -> None:
        """Alternately, so that drift hits both alike; times are compared out of place."""
        sizes = ["-b", "1K", "-e", "8M", "-f", "8", "-n", "20", "-w", "5", "-g"]
        ours: dict[int, list[float]] = {}
        theirs: dict[int, list[float]] = {}
        rounds = 3 if self.nccl_tests else 1
        for _ in range(rounds):
            text = self.diapason("bench", "all_reduce", "--backend", "nccl", *sizes, "4", "--rounds", "5", "--json", limit=60)
            for row in json.loads(text)["rows"] if text else []:
                ours.setdefault(row["bytes"], []).append(row["out_of_place"]["mean_us"])
            if self.nccl_tests:
                done = self.command(self.nccl_tests_command("all_reduce_perf", *sizes, "1", "-N", "5"), 60)
                if done.returncode != 0:
                    print(done.stdout[-1500:], done.stderr[-1500:], sep="\n", flush=True)
                for row in re.findall(r"^ +(\d+) +\d+ +float +sum +-1 +([\d.]+) ", done.stdout, re.M):
                    theirs.setdefault(int(row[0]), []).append(float(row[1]))
        print(self.diapason("bench", "all_reduce", "--backend", "nccl", "-g", "4", "-b", "1K", "-e", "8M", "-f", "8",
                            limit=60))
        if theirs:
            print("bench against nccl-tests, allreduce, 4 ranks, us out of place (mean of 20 calls; medians of the rounds)")
            for size in sorted(set(ours) & set(theirs)):
                mine, other = sorted(ours[size])[len(ours[size]) // 2], sorted(theirs[size])[len(theirs[size]) // 2]
                print(f"  {size:9d}  diapason {mine:9.2f}  nccl-tests {other:9.2f}  ratio {mine / other:.3f}"
                      f"   all: {ours[size]} {theirs[size]}")
            if not set(ours) & set(theirs):
                self.failures.append("nccl-tests gave no rows")

    def iteration(self) -> None:
        for preset in ("ddp", "tp", "fsdp", "moe"):
            for overlap in ("on", "off"):
                print(self.diapason("bench", "iteration", "--backend", "nccl", "-g", "4", preset, "--overlap", overlap,
                                    "--bucket-bytes", "1M", "--compute", "5ms", "--steps", "20",
                                    "--reward-file", str(self.work / "rewards.csv"), limit=40))

    def relaunch(self) -> None:
        plan = ["sweep", "allreduce", "--backend", "nccl", "-g", "4", "--sizes", "8K,128K,2M", "--algorithms", "ring,tree",
                "--protocols", "ll,simple", "--channels", "default,1,2", "--least", "5", "--most", "5", "--json", "--quiet"]
        figures = {}
        for name, more in (("one launch", []), ("a launch per configuration", ["--launch-each"])):
            begin = time.monotonic()
            text = self.diapason(*plan, *more, "--store", str(self.work / f"relaunch_{len(figures)}.db"), limit=150)
            if not text:
                return
            result = json.loads(text)[0]
            figures[name] = (time.monotonic() - begin, result["samples"], result["launches"])
            print(f"  {name}: {figures[name][0]:.1f} s for {result['samples']} samples, {result['launches']} launches")
        one, many = figures["one launch"], figures["a launch per configuration"]
        print(f"per-call switching is {many[0] / one[0]:.1f} x faster (same cells, {one[1]} and {many[1]} samples)")

    def sweep(self) -> None:
        for ranks in (4, 8):
            store = self.work / f"lab_{ranks}ranks.db"
            text = self.diapason("sweep", "allreduce", "allgather", "reducescatter", "--backend", "nccl", "-g", str(ranks),
                                 "--sizes", SIZES, "--channels", "default,1", "--least", "3", "--most", "9", "--tight", "4%",
                                 "--budget", f"{self.budget:.0f}s", "--store", str(store), "--quiet", limit=self.budget + 60)
            print(text)
            exported = self.diapason("data", "export", str(store), "--format", "csv", limit=30)
            self.save(f"lab_{ranks}ranks_grid.csv", grid(exported))

    def runner(self) -> None:
        if self.nccl_tests is None:
            return
        # The wrapper gives every rank its own host id: the lab's own peculiarity.
        folder = Path(tempfile.mkdtemp())
        for program in ("all_reduce_perf",):
            script = folder / program
            script.write_text(f'#!/bin/sh\nexport NCCL_HOSTID=h$OMPI_COMM_WORLD_RANK\nexec {self.nccl_tests / program} "$@"\n')
            script.chmod(0o755)
        print(self.diapason("sweep", "allreduce", "--runner", "nccl-tests", "--bin", str(folder), "--launcher", "mpirun", "-g", "4",
                            "--backend", "nccl", "--sizes", "8K,64K,512K", "--algorithms", "ring,tree", "--protocols",
                            "simple", "--least", "1", "--most", "1", "--store", str(self.work / "runner.db"), "--quiet",
                            limit=90))
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--nccl-tests", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--budget", type=float, default=60, help="seconds of each sweep")
    options = parser.parse_args()
    tool = options.tool.resolve()
    usable = subprocess.run([str(tool), "backends"], capture_output=True, text=True, timeout=60, env=clean_environment())
    if not re.search(r"^nccl +yes", usable.stdout, re.M):
        print(f"SKIP: no GPU here\n{usable.stdout}")
        return SKIP
    print(usable.stdout)
    out = options.out or Path(tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    lab = Lab(tool, options.nccl_tests.resolve() if options.nccl_tests else None, out.resolve(), options.budget)
    with Mps() as mps:
        print(mps.note, flush=True)
        lab.environment |= mps.environment
        for part in PARTS:
            if part in (options.only or PARTS):
                getattr(lab, part)()
    shutil.rmtree(lab.work, ignore_errors=True)
    for failure in lab.failures:
        print(f"FAILED: {failure}")
    print(f"measure lab: {len(lab.failures)} failures")
    return 1 if lab.failures else 0


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    sys.exit(main())
