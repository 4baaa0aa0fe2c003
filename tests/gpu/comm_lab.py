#!/usr/bin/env python3
"""NCCL behind include/diapason/comm.h, on a real GPU that several ranks share.

    comm_lab.py --programs DIR [--out DIR] [--only PART] [--time-limit SECONDS]
    comm_lab.py --self-test

DIR holds diapason, conformance, victim and comm_gpu (a build's bin/). Parts, in this order: conformance, launchers,
pins, graph, times (under MPS), faults (without: a killed client of MPS can harm the others).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import asdict, dataclass
from pathlib import Path

import comm_faults
import nccl_log
from mps import Mps

SKIP = 77
CLEARED = ("NCCL_", "DIAPASON_", "CUDA_MPS_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMIX_")
ALGORITHMS = {"0": "tree", "1": "ring"}
PROTOCOLS = {"0": "ll", "2": "simple"}


@dataclass
class Finding:
    part: str
    name: str
    ok: bool
    seconds: float
    text: str


def clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}


def conformance_counts(output: str) -> tuple[int, int] | None:
    """Checks and failures from the program's last line."""
    found = re.findall(r"conformance: backend \w+, \d+ ranks, (\d+) checks, (\d+) failures", output)
    return (int(found[-1][0]), int(found[-1][1])) if found else None


def said(output: str) -> list[dict]:
    """The JSON lines of comm_gpu; launchers may put the rank before them."""
    lines = []
    for line in output.splitlines():
        at = line.find('{"rank"')
        if at >= 0:
            try:
                lines.append(json.loads(line[at:]))
            except ValueError:
                lines.append({"rank": -1, "what": "output", "ok": False, "text": f"no JSON: {line}"})
    return lines


def pin_problems(lines: list[dict], log: nccl_log.NcclLog) -> list[str]:
    """Pins that the library's own log does not confirm. It logs the channels it used, at most those asked for."""
    problems = []
    for line in lines:
        found = re.fullmatch(r"pin (\d)/(\d) ch(\d) at (\d+) bytes", line["what"])
        if found is None or line["rank"] != 0:
            continue
        want = (ALGORITHMS[found[1]], PROTOCOLS[found[2]])
        ran = log.configs("allreduce", int(found[4]))
        if not ran or any((c.algorithm, c.protocol) != want or c.channels > int(found[3]) for c in ran):
            problems.append(f"{line['what']}: NCCL's log shows {' and '.join(map(str, ran)) or 'nothing'}")
    return problems


class Lab:
    def __init__(self, programs: Path, limit: float) -> None:
        self.programs = programs
        self.end = time.monotonic() + limit
        self.findings: list[Finding] = []
        self.environment = clean_environment()

    def program(self, name: str) -> str:
        return str(self.programs / name)

    def add(self, part: str, name: str, ok: bool, seconds: float, text: str) -> None:
        self.findings.append(Finding(part, name, ok, round(seconds, 3), text))
        print(f"{'ok  ' if ok else 'FAIL'} {seconds:6.1f} s  {part}: {name}: {text}", flush=True)

    def run(self, command: list[str], seconds: float, extra: dict[str, str] | None = None) -> tuple[int, str, float]:
        """Exit status, all output, time taken. What does not end in time is ended, with all it has started."""
        start = time.monotonic()
        limit = max(1.0, min(seconds, self.end - start))
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(command, env=self.environment | (extra or {}), stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = -1
            finally:
                comm_faults.end_group(process)
            output.seek(0)
            return status, output.read(), time.monotonic() - start

    def conform(self, part: str, name: str, launcher: list[str], arguments: list[str], extra=None) -> None:
        command = launcher + [self.program("conformance"), "--backend", "nccl", "--seconds", "20", *arguments]
        status, output, seconds = self.run(command, 120, extra)
        counts = conformance_counts(output)
        if status == 0 and counts is not None and counts[0] > 0 and counts[1] == 0:
            notes = output.count("note: ")
            self.add(part, name, True, seconds, f"{counts[0]} checks" + (f", {notes} notes" if notes else ""))
        else:
            self.add(part, name, False, seconds, f"exit status {status}, {counts}: {output[-2500:]}")

    def launch(self, ranks: int) -> list[str]:
        return [self.program("diapason"), "launch", "-n", str(ranks), "--"]

    def conformance(self) -> None:
        for ranks, arguments in ((2, []), (4, []), (8, ["--quick"])):
            for device in (True, False):
                where = ["--device"] if device else []
                name = f"{ranks} ranks, {'GPU' if device else 'host'} memory"
                self.conform("conformance", name, self.launch(ranks), where + arguments)
        for ranks in (2, 4):
            self.conform("conformance", f"{ranks} ranks, configurations", self.launch(ranks), ["--device", "--configs"])
        self.conform("conformance", "1 rank", self.launch(1), ["--device", "--quick"])

    def launchers(self) -> None:
        torchrun = shutil.which("torchrun")
        if torchrun is None:
            self.add("launchers", "torchrun", True, 0, "left out: not on this machine")
        else:
            arguments = [torchrun, "--standalone", "--no-python", "--nproc-per-node", "2"]
            self.conform("launchers", "torchrun", arguments, ["--device", "--quick"])
        mpirun = shutil.which("mpirun")
        if mpirun is None:
            self.add("launchers", "mpirun", True, 0, "left out: not on this machine")
        else:
            arguments = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2"]
            # Open MPI looks for ssh even where all ranks are on this machine.
            self.conform("launchers", "mpirun", arguments, ["--device", "--quick"],
                         {"OMPI_MCA_plm_rsh_agent": shutil.which("false") or ""})

    def gpu(self, mode: str, ranks: int, extra: dict[str, str] | None = None) -> list[dict]:
        command = self.launch(ranks) + [self.program("comm_gpu"), mode]
        status, output, seconds = self.run(command, 100, extra)
        lines = said(output)
        bad = [line for line in lines if not line["ok"]]
        text = "; ".join(f"{line['what']}: {line['text']}" for line in (bad or lines[:3]))
        self.add(mode, f"{ranks} ranks", status == 0 and bool(lines) and not bad, seconds,
                 text if lines and status == 0 else f"exit status {status}: {output[-2500:]}")
        return lines

    def pins(self) -> None:
        for ranks in (2, 4):
            with tempfile.TemporaryDirectory() as folder:
                lines = self.gpu("pins", ranks, {
                    "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,COLL",
                    "NCCL_DEBUG_FILE": f"{folder}/nccl.%p.log"})
                log = nccl_log.NcclLog()
                for path in sorted(Path(folder).glob("*.log")):
                    nccl_log.parse_file(path, log)
            problems = pin_problems(lines, log)
            pinned = sum(1 for line in lines if line["what"].startswith("pin ") and line["rank"] == 0)
            self.add("pins", f"{ranks} ranks, in NCCL's own log", pinned == 8 and not problems, 0,
                     "; ".join(problems) or f"{pinned} pins ran as asked")

    def graph(self) -> None:
        for ranks in (2, 4):
            self.gpu("graph", ranks)

    def times(self) -> None:
        for line in self.gpu("times", 4):
            print(f"                {line['what']}: {line['text']}", flush=True)
            self.findings.append(Finding("times", line["what"], line["ok"], 0, line["text"]))

    def faults(self) -> None:
        for name, function in comm_faults.CASES:
            start = time.monotonic()
            problem, text = comm_faults.run(function, self.program("victim"), self.environment)
            self.add("faults", name, problem == "", time.monotonic() - start, problem or text)


def why_not(programs: Path) -> str:
    """The reason why nothing can be tried here, or nothing."""
    for name in ("diapason", "conformance", "victim", "comm_gpu"):
        if not (programs / name).is_file():
            return f"no program {programs / name}"
    probe = subprocess.run([str(programs / "victim"), "--probe", "nccl"], capture_output=True, text=True, timeout=60,
                           check=False, env=clean_environment())
    return "" if probe.returncode == 0 else probe.stderr.strip() or f"victim --probe: status {probe.returncode}"


PARTS = ("conformance", "launchers", "pins", "graph", "times", "faults")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--time-limit", type=float, default=800)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        suite = unittest.defaultTestLoader.loadTestsFromName("comm_selftest")
        return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1
    if options.programs is None:
        parser.error("--programs is needed")
    reason = why_not(options.programs.resolve())
    if reason:
        print(f"SKIP: {reason}")
        return SKIP
    lab = Lab(options.programs.resolve(), options.time_limit)
    wanted = options.only or PARTS
    with Mps() as mps:
        print(mps.note, flush=True)
        lab.environment |= mps.environment
        for part in PARTS[:-1]:
            if part in wanted:
                getattr(lab, part)()
    lab.environment = clean_environment()
    if "faults" in wanted:
        lab.faults()
    failed = [finding for finding in lab.findings if not finding.ok]
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        record = {"mps": mps.note, "findings": [asdict(finding) for finding in lab.findings]}
        (options.out / "comm_lab.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"comm lab: {len(lab.findings)} findings, {len(failed)} failures")
    return 1 if failed or not lab.findings else 0


if __name__ == "__main__":
    sys.exit(main())
