"""Real processes of `diapason run`, for its tests.

Every process of a test carries a token of its own in its environment: so the test finds all of them, however they
were started, and ends what a failed test leaves behind.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

TOOL = None
RANK = None
LIMIT = 600  # seconds; every wait in here ends by then, on a slow machine as well
POLICY = "allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n"


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


class Ran(unittest.TestCase):
    def setUp(self):
        self.token = uuid.uuid4().hex
        self.folder = tempfile.TemporaryDirectory(prefix="run_test.")
        self.started = []
        with open(self.path("policy.conf"), "w", encoding="utf-8") as file:
            file.write(POLICY)

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

    def environment(self, extra=()):
        """Without what would be ours or another launcher's; temporary files are in the test's folder."""
        ours = ("NCCL_", "DIAPASON_", "OMPI_COMM", "PMIX", "SLURM")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "RANK"}
        os.makedirs(self.path("tmp"), exist_ok=True)
        return {**kept, "TOKEN": self.token, "TMPDIR": self.path("tmp"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", **dict(extra)}

    def start(self, *arguments, env=(), **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([TOOL, "run", *arguments], env=self.environment(env), cwd=self.folder.name, **options)
        self.started.append(process)
        return process

    def run_tool(self, *arguments, env=(), **options):
        """Exit status, text of standard output, lines of standard error."""
        given = options.pop("input", None)
        if given is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, env=env, **options)
        out, err = process.communicate(given, timeout=LIMIT)
        return process.returncode, (out or b"").decode(), (err or b"").decode().splitlines()

    def with_policy(self, *command, options=(), **more):
        return self.run_tool("--policy", self.path("policy.conf"), *options, "--", *command, **more)

    def rank(self, *options):
        """The words of a rank of the played job."""
        return [RANK, self.path("board"), *options]

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

    def assert_three_lines(self, lines):
        """The last lines are what was chosen, gained and agreed; returns them."""
        self.assertGreaterEqual(len(lines), 3, lines)
        for line, word in zip(lines[-3:], ("chosen", "gained", "agreed")):
            self.assertTrue(line.startswith(f"diapason: {word}  "), lines)
        return [line.split("  ", 1)[1] for line in lines[-3:]]

    def needs(self, program):
        if shutil.which(program) is None:
            self.skipTest(f"no {program} here")


def main(doc):
    """`--tool PATH --rank PATH` first, then what unittest takes."""
    global TOOL, RANK
    if sys.argv[1:2] != ["--tool"] or sys.argv[3:4] != ["--rank"]:
        sys.exit(doc)
    TOOL, RANK = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[4])
    result = unittest.main(argv=[sys.argv[0]] + sys.argv[5:], exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)
