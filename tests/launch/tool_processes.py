"""Real processes of the tool, for tests of commands that start programs.

Every process of a test carries a token of its own in its environment: so the test finds all of them, however they
were started, and ends what a failed test leaves behind.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

LIMIT = 600  # seconds; every wait in here ends by then, on a slow machine as well


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {LIMIT} s in vain: {what}")
        time.sleep(0.01)


def proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def state(pid):
    stat = proc(pid, "stat")
    return stat.rpartition(b")")[2].split()[0].decode() if stat else ""


class ToolProcesses(unittest.TestCase):
    """A derived class has `environment()`, which contains TOKEN."""

    def setUp(self):
        self.token = uuid.uuid4().hex
        self.folder = tempfile.TemporaryDirectory(prefix="diapason_test.")
        self.started = []

    def tearDown(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def start_words(self, words, env=(), **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(words, env=self.environment(env), **options)
        self.started.append(process)
        return process

    def run_to_end(self, *arguments, env=(), **options):
        """Exit status and the texts of both outputs of what start() starts."""
        given = options.pop("input", None)
        if given is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, env=env, **options)
        out, err = process.communicate(given, timeout=LIMIT)
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    def processes(self):
        """Everybody of this test who is alive, except the test and the tools."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) in [process.pid for process in self.started]:
                continue
            if f"TOKEN={self.token}".encode() in proc(name, "environ") and state(name) not in ("", "Z", "X"):
                found.append(int(name))
        return found

    def assert_nobody_left(self):
        wait_until(lambda: not self.processes(), f"end of {self.processes()}")
