"""Starts one torchrun job and ends it, whatever happens. Every wait has a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from group import uninterrupted

END_SECONDS = 45.0  # torchrun gives its ranks 30 s to end after a signal


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def descendants(pid: int) -> list[int]:
    """The processes below one; torchrun's ranks have sessions of their own."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    found, look = [], [pid]
    while look:
        children = parents.get(look.pop(), [])
        found += children
        look += children
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def _end(process: subprocess.Popen) -> None:
    """Asks first: a client of MPS that is killed at work can take the others' GPU with it."""
    ranks = descendants(process.pid)
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        ranks += descendants(process.pid)
        process.kill()
        process.wait(10)
    end = time.monotonic() + 10
    while any(map(_alive, ranks)) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in ranks:
        if _alive(pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


def run(command: list[str], environment: dict[str, str], output: Path, seconds: float, errors: Path | None = None) -> str | None:
    """None if the command has ended well within the time, else what went wrong.

    `errors`: the file for what it writes to standard error, if that is to be apart from the rest.
    """
    with contextlib.ExitStack() as files:
        out = files.enter_context(open(output, "wb"))
        error = files.enter_context(open(errors, "wb")) if errors else subprocess.STDOUT
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=error, env=environment)
        try:
            status = process.wait(max(1.0, seconds))
        except subprocess.TimeoutExpired:
            with uninterrupted():
                _end(process)
            return f"did not end in {seconds:.0f} s"
        except BaseException:  # a signal
            with uninterrupted():
                _end(process)
            raise
    return None if status == 0 else f"ended with status {status}"
