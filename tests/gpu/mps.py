"""A private MPS daemon, so that the ranks share the GPU instead of taking turns on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from group import uninterrupted

CONTROL = "nvidia-cuda-mps-control"
SECONDS = 20.0


class Mps:
    """As a context: starts the daemon in folders of its own and always quits it."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.note = "MPS: not started"
        self._folder: Path | None = None

    def __enter__(self) -> "Mps":
        if shutil.which(CONTROL) is None:
            self.note = f"MPS: no {CONTROL} here; the ranks take turns on the GPU, timings say little"
            return self
        # A short path: the daemon's sockets live there, and their names have a length limit.
        self._folder = Path(tempfile.mkdtemp(prefix="mps-"))
        for name in ("pipe", "log"):
            (self._folder / name).mkdir()
        self.environment = {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._folder / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(self._folder / "log"),
        }
        try:
            problem = self._control(["-d"], "")
        except BaseException:  # a signal: __exit__ does not run for a context that was never entered
            self.__exit__()
            raise
        if problem:
            self.note = f"MPS: did not start ({problem}); the ranks take turns on the GPU, timings say little"
            self._remove()
        else:
            self.note = "MPS: on"
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is None:
            return
        with uninterrupted():
            # The plain quit waits for clients; the second one gives them 5 s, in case one is stuck.
            if self._control([], "quit\n") and self._control([], "quit -t 5\n"):
                self._terminate()
            self._remove()

    def _control(self, arguments: list[str], text: str) -> str:
        """Runs the control program; empty if it went well, else what went wrong."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_MPS_")}
        try:
            # Output goes to a file: the daemon inherits it, and a pipe would stay open with the daemon.
            with tempfile.TemporaryFile() as output:
                done = subprocess.run(
                    [CONTROL, *arguments],
                    input=text.encode(),
                    stdout=output,
                    stderr=output,
                    timeout=SECONDS,
                    env=environment | self.environment,
                )
                output.seek(0)
                said = output.read().decode(errors="replace").strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return "" if done.returncode == 0 else said or f"exit status {done.returncode}"

    def _terminate(self) -> None:
        """Last resort: the daemon notes its process id in its pipe folder."""
        try:
            pid = int((self._folder / "pipe" / f"{CONTROL}.pid").read_text())
            # The id may have been given to another program since; the name must be the daemon's.
            if CONTROL.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGTERM)
        except (OSError, ValueError):
            pass

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self.environment = {}
