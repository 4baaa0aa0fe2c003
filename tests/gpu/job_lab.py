"""What the labs of whole jobs share: starts the tool with a job under torchrun, with limits, and reads what it says."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import group
import job
import run_pytorch

HERE = Path(__file__).resolve().parent
# A turn of a comparison in ms: at least twenty iterations.
TURN = {"decode": 300, "graphs": 300, "ddp": 700, "fsdp2": 1000, "tp-dp": 700, "moe": 700, "resnet": 700, "regroup": 300}
START_SECONDS = 40.0  # of a launch, beside its iterations: torch is imported by every rank
TOOL_SECONDS = 60.0
SKIP = 77
JOURNAL = {"DIAPASON_JOURNAL_LIMIT": "1GiB", "DIAPASON_JOURNAL_RECORDS": "262144"}


def say(text: str) -> None:
    print(text, flush=True)


def why_skip(tool: Path) -> str | None:
    return run_pytorch.why_skip(tool) if tool.is_file() else f"no tool {tool}"


class JobLab:
    """The tool, where files go, and what is left of the time."""

    def __init__(self, tool: Path, work: Path, deadline: group.Deadline, environment: dict[str, str], ranks: int = 4,
                 program: Sequence[str] = ()) -> None:
        self.tool, self.work, self.deadline, self.ranks = tool, work, deadline, ranks
        self.program = list(program)  # stands in for torchrun and whole_job.py
        self.mps = environment
        self.records: list[dict] = []
        self.failures: list[str] = []

    def record(self, quiet: bool = False, **figures: object) -> None:
        """One line of JSON, at once: what was found so far survives whatever happens next."""
        self.records.append(figures)
        if not quiet:
            say(json.dumps(figures))

    def fail(self, what: str) -> None:
        self.failures.append(what)
        say(f"FAILED: {what}")

    def job(self, kind: str, *arguments: object) -> list[str]:
        """What a user types, with a port that no other job has."""
        program = self.program or [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(self.ranks),
                                   "--master-addr", "127.0.0.1", "--master-port", str(job.free_port()), str(HERE / "whole_job.py")]
        return [*program, "--kind", kind, "--lab", *map(str, arguments)]

    def environment(self, settings: dict[str, str] | None = None) -> dict[str, str]:
        return group.clean_environment() | self.mps | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | JOURNAL | (settings or {})

    def launch(self, name: str, arguments: Sequence[object], command: Sequence[str], seconds: float,
               settings: dict[str, str] | None = None) -> dict | None:
        """`diapason run --json ARGUMENTS -- COMMAND`; its document, or None: that it failed is then on record.

        `seconds` is what its iterations may take.
        """
        limit = self.deadline.limit(seconds + START_SECONDS)
        if limit < START_SECONDS / 2:
            say(f"{name}: not run, no time was left")
            return None
        out, errors = self.work / f"{name}.json", self.work / f"{name}.log"
        words = [str(self.tool), "run", "--json", "--grace", "20s", *map(str, arguments), "--", *command]
        begin = time.monotonic()
        problem = job.run(words, self.environment(settings), out, limit, errors)
        say(f"# {name}: {time.monotonic() - begin:.1f} s")
        try:
            document = json.loads(out.read_text())
        except (OSError, ValueError):
            document = {}
        if problem or not document or document.get("error"):
            self.fail(f"{name}: {problem or document.get('error') or 'no document'}\n" + tail(errors))
            return None
        return document

    def ask(self, *arguments: object) -> tuple[int, str]:
        """Any other command of the tool: status and what it printed."""
        limit = max(5.0, self.deadline.limit(TOOL_SECONDS))
        try:
            done = subprocess.run([str(self.tool), *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=limit,
                                  env=self.environment(), stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as error:
            return -1, str(error)
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def ask_json(self, *arguments: object) -> dict | None:
        status, text = self.ask(*arguments)
        try:
            return json.loads(text)
        except ValueError:
            self.fail(f"{' '.join(map(str, arguments[:3]))}: status {status}: {text[-600:]}")
            return None

    def check(self, name: str, folder: Path) -> bool:
        """Did all ranks choose the same?"""
        status, text = self.ask("journal", "check", *journals(folder))
        say("\n".join(f"    {line}" for line in text.strip().splitlines()[:6]))
        if status != 0:
            self.fail(f"{name}: diapason journal check: status {status}")
        return status == 0

    def keep(self, out: Path | None, name: str, also: Iterable[Path] = ()) -> None:
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.json").write_text(json.dumps({"records": self.records, "failures": self.failures}, indent=1))
        files = [path for path in [*sorted(self.work.glob("*.log")), *sorted(self.work.glob("*.json")), *sorted(self.work.glob("*.conf")), *also]
                 if path.exists()]
        names = [os.path.relpath(path, self.work) for path in files]
        subprocess.run(["tar", "-C", str(self.work), "-czf", str(out / f"{name}.tar.gz"), *names], check=False, timeout=120)


def tail(path: Path, lines: int = 25) -> str:
    try:
        return "\n".join(f"    {line}" for line in path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def journals(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def three_lines(document: dict) -> str:
    return "\n".join(f"    {part}  {document.get(part, {}).get('text', '?')}" for part in ("chosen", "gained", "agreed"))


def compared(document: dict | None) -> dict:
    """What `run --compare` has found: gain, low, high, changes, verdict; empty if nothing was compared."""
    return ((document or {}).get("gained") or {}).get("compared") or {}


def cut(source: Path, target: Path, begin_ns: int, end_ns: int) -> int:
    """The part of a journal that was written in a window of time; how many decisions are in it.

    A run belongs to its decision, whenever it was written.
    """
    kept: set[tuple[int, int]] = set()
    lines = source.read_text(errors="replace").splitlines()
    records = []
    for line in lines:
        try:
            records.append((json.loads(line), line))
        except ValueError:
            continue
    for record, _ in records:
        if record.get("type") == "decision" and begin_ns <= record["time_ns"] <= end_ns:
            kept.add((record["comm"], record["call"]))
    out = []
    for record, line in records:
        kind = record.get("type")
        if kind in ("decision", "run") and record.get("call"):
            wanted = (record["comm"], record["call"]) in kept
        elif kind in ("run", "bypassed", "step", "reward"):
            wanted = begin_ns <= record["time_ns"] <= end_ns
        else:
            wanted = True
        if wanted:
            out.append(line)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(out) + "\n")
    return len(kept)


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def run_limited(options: argparse.Namespace, run: Callable[[argparse.Namespace, group.Deadline], int]) -> int:
    """The status of `run`, which ends in order at options.limit seconds; 77 where there is no GPU, with the reason."""
    try:
        run_pytorch.catch_signals(options.limit)
        if reason := why_skip(options.tool):
            say(f"SKIP: {reason}")
            return SKIP
        return run(options, group.Deadline(options.limit))
    except run_pytorch.Interrupted as signal_:
        name = signal.Signals(signal_.number).name
        say("FAILED: the time limit is over" if name == "SIGALRM" else f"FAILED: interrupted by {name}")
        return 1 if name == "SIGALRM" else 128 + signal_.number
