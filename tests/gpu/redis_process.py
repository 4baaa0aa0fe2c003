"""A Redis server of its own, that can be stopped for a while."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


class Redis:
    def __init__(self, program: str, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.paused = False
        self.process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Redis:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise RuntimeError("redis-server did not start")

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def pause_when(self, ready: Callable[[], bool], seconds: float, limit: float) -> None:
        deadline = time.monotonic() + limit
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.01)
        if self.process.poll() is not None or not ready():
            return
        os.kill(self.process.pid, signal.SIGSTOP)
        self.paused = True
        time.sleep(seconds)
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
