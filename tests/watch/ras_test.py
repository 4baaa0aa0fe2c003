#!/usr/bin/env python3
"""`diapason watch` and NCCL's RAS: processes that look like ranks answer as NCCL 2.24 to 2.30 do.

    ras_test.py --tool PATH [unittest arguments]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOOL = ""
LIMIT = 600  # seconds for anything, on a slow machine as well
RANK = Path(__file__).parent / "fake_ras_rank.py"
BLAME = {"behind", "differ", "unresponsive", "stopped", "gone"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


class Job:
    """Processes of one job; they answer what `state` says."""

    def __init__(self, test: unittest.TestCase, port: int, ranks: int = 3, wrapper: tuple[str, ...] = (), **state) -> None:
        folder = tempfile.TemporaryDirectory(prefix="diapason-ras-")
        test.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "libnccl.so.2").write_bytes(b"x" * 4096)
        self.state = {"ranks": [{"rank": rank, "base": 100 + rank % 2, "per_s": 50} for rank in range(ranks)]} | state
        self.tell()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIAPASON_", "NCCL_", "SLURM_", "OMPI_", "PMI"))}
        self.processes = []
        for rank in range(ranks):
            variables = kept | {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                "MASTER_PORT": str(id(self) % 60000), "NCCL_RAS_ADDR": f"127.0.0.1:{port}",
                                "PYTHONDONTWRITEBYTECODE": "1"}
            process = subprocess.Popen([*wrapper, sys.executable, "-S", str(RANK), str(self.folder), str(rank)],
                                       env=variables, stdin=subprocess.DEVNULL)
            test.addCleanup(self.end, process)
            self.processes.append(process)
        wait_for(lambda: all((self.folder / f"ready.{rank}").exists() for rank in range(ranks)))
        self.pids = [self.inner(process.pid) if wrapper else process.pid for process in self.processes]

    @staticmethod
    def inner(pid: int) -> int:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    @staticmethod
    def end(process: subprocess.Popen) -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for pid in children.read_text().split() if process.poll() is None else ():
            os.kill(int(pid), signal.SIGKILL)
        process.kill()
        process.wait()

    def tell(self) -> None:
        text = self.folder / "state.new"
        text.write_text(json.dumps(self.state))
        text.rename(self.folder / "state.json")

    def freeze(self, late: int | None = None, missing: int | None = None, kind: str = "unresponsive") -> None:
        """No rank launches any more; one has launched less, or does not answer."""
        for rank in self.state["ranks"]:
            rank |= {"base": 117 if rank["rank"] == late else 118, "per_s": 0,
                     "missing": kind if rank["rank"] == missing else ""}
        self.tell()


class RasTest(unittest.TestCase):
    def setUp(self) -> None:
        self.port = free_port()

    def watch(self, *arguments: object, until, interval: str = "200ms") -> dict:
        """The first sample of which `until` holds; every verdict before it is kept."""
        self.kinds: list[str] = []
        command = [TOOL, "watch", *map(str, arguments), "--json", "--interval", interval]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as tool:
            end = time.monotonic() + LIMIT
            try:
                for line in tool.stdout:
                    look = json.loads(line)
                    if look["type"] == "end":
                        break
                    self.kinds.append(look["ras"]["verdict"]["kind"])
                    if until(look["ras"]):
                        return look["ras"]
                    self.assertLess(time.monotonic(), end, look["ras"])
            finally:
                tool.kill()
        raise AssertionError(f"it ended without that; verdicts: {self.kinds}")

    def blamed(self, *arguments: object, kind: str, **options) -> dict:
        ras = self.watch(*arguments, until=lambda ras: ras["verdict"]["kind"] == kind and ras["verdict"]["waiting"],
                         **options)
        return ras["verdict"]

    def test_a_healthy_job_advances(self) -> None:
        for form in ("json", "text"):
            job = Job(self, self.port, format=form)
            wanted = "advance" if form == "json" else "even"
            if form == "text":  # of ranks with equal counts it names none
                job.state["ranks"] = [{"rank": rank, "base": 5, "per_s": 50} for rank in range(3)]
                job.tell()
            seen = []
            ras = self.watch("--job", job.pids[0], until=lambda ras: (
                seen.append(ras["verdict"]["kind"]) or seen.count(wanted) == 12))
            self.assertFalse(BLAME & set(self.kinds), self.kinds)
            self.assertEqual(sorted(process["pid"] for process in ras["processes"]), sorted(job.pids))
            self.assertIn(ras["answered_by"], job.pids)
            if form == "json":
                self.assertEqual(ras["verdict"]["text"], "all 3 ranks advance")
                ranks = ras["communicators"][0]["ranks"]
                self.assertEqual([rank["local_pid"] for rank in ranks], job.pids)
                self.assertEqual({rank["state"] for rank in ranks}, {"running"})
            for process in job.processes:
                Job.end(process)

    def test_a_rank_that_is_behind(self) -> None:
        for form in ("json", "text"):
            job = Job(self, self.port, ranks=4, format=form)
            job.freeze(late=2)
            verdict = self.blamed(job.pids[0], kind="behind")
            self.assertEqual((verdict["ranks"], verdict["waiting"]), ([2], [0, 1, 3]))
            self.assertIn(f"rank 2 (127.0.0.1:{job.pids[2]}) has not come to AllReduce 118; ranks 0, 1, 3 wait for it in "
                          "AllReduce 118 of communicator 0x8a1c00ff", verdict["text"])
            for process in job.processes:
                Job.end(process)

    def test_a_rank_that_is_stopped(self) -> None:
        job = Job(self, self.port)
        job.freeze(missing=1)
        os.kill(job.pids[1], signal.SIGSTOP)
        verdict = self.blamed(job.pids[0], kind="stopped")
        self.assertEqual(verdict["text"], f"rank 1 (127.0.0.1:{job.pids[1]}) is stopped; ranks 0, 2 wait for it in "
                         "AllReduce 118 of communicator 0x8a1c00ff")
        done = subprocess.run([TOOL, "watch", "--job", str(job.pids[0]), "--interval", "1s", "--count", "3"],
                              capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(f"rank 1 (127.0.0.1:{job.pids[1]}) is stopped", done.stdout)
        self.assertRegex(done.stdout, rf"(?m)^ *1  127.0.0.1 +{job.pids[1]}  stopped ")

    def test_a_rank_that_is_gone(self) -> None:
        job = Job(self, self.port, commas=False)
        gone = job.pids[2]

        def kill(ras: dict) -> bool:
            if ras["verdict"]["kind"] == "advance" and job.processes[2].poll() is None:
                job.freeze(missing=2)
                job.processes[2].kill()  # a zombie, until the test ends
                time.sleep(0.1)
            return ras["verdict"]["kind"] == "gone" and bool(ras["verdict"]["waiting"])

        verdict = self.watch(job.pids[0], until=kill)["verdict"]
        self.assertTrue(verdict["text"].startswith(f"rank 2 (127.0.0.1:{gone}) is gone; ranks 0, 1 "), verdict["text"])

    def test_a_rank_that_only_ras_knows(self) -> None:
        job = Job(self, self.port, ranks=2)
        job.state["ranks"].append({"rank": 2, "base": 0, "host": "10.9.9.9", "pid": 77})
        job.freeze(missing=2)
        verdict = self.blamed(job.pids[0], kind="unresponsive")
        self.assertRegex(verdict["text"], r"^rank 2 \(10.9.9.9:77\) is unresponsive to RAS for \d+ s; ranks 0, 1 wait for it")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_ranks_in_pid_namespaces(self) -> None:
        wrapper = ("unshare", "--pid", "--fork", "--mount-proc")
        if subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
            self.skipTest("namespaces are not permitted here")
        job = Job(self, self.port, wrapper=wrapper)
        self.assertEqual({(job.folder / f"pid.{rank}").read_text() for rank in range(3)}, {"1"})
        job.freeze(missing=1)
        os.kill(job.pids[1], signal.SIGSTOP)
        verdict = self.blamed(job.pids[0], kind="stopped")
        self.assertEqual((verdict["ranks"], verdict["waiting"]), ([1], [0, 2]))
        self.assertIn(f"rank 1 (127.0.0.1:{job.pids[1]}) is stopped", verdict["text"])
        os.kill(job.pids[1], signal.SIGCONT)

    def test_another_job_at_the_same_port(self) -> None:
        other = Job(self, self.port, ranks=4, hash="0xbad")
        other.freeze(late=0)
        job = Job(self, self.port)
        count = []
        ras = self.watch(job.pids[0], until=lambda ras: (
            count.append(ras["verdict"]["kind"]) or count.count("advance") == 10))
        self.assertEqual(ras["communicators"][0]["hash"], "0x8a1c00ff")
        self.assertFalse(BLAME & set(self.kinds), self.kinds)
        for process in job.processes:  # their listeners go; the processes are to stay
            os.kill(process.pid, signal.SIGSTOP)
        ras = self.watch(job.pids[0], until=lambda ras: "another job answers" in ras["problem"])
        self.assertEqual(ras["communicators"], [])

    def test_damaged_and_late_answers(self) -> None:
        job = Job(self, self.port, mode="cut")
        for mode, part in (("cut", "ends early"), ("garbage", "not NCCL's RAS"), ("silent", "does not answer"),
                           ("huge", "too long")):
            job.state["mode"] = mode
            job.tell()
            ras = self.watch(job.pids[0], until=lambda ras, part=part: part in ras["problem"])
            self.assertNotIn(ras["verdict"]["kind"], BLAME)
        job.state["mode"] = "slow"
        job.tell()
        self.watch(job.pids[0], until=lambda ras: ras["verdict"]["kind"] == "advance")

    def test_old_libraries_with_several_communicators_are_left_alone(self) -> None:
        job = Job(self, self.port, copies=2, version="2.28.9+cuda13.0")

        def stop(ras: dict) -> bool:
            if ras["verdict"]["kind"] == "advance":
                os.kill(job.pids[1], signal.SIGSTOP)
            return "not asked" in ras["problem"] and ras["verdict"]["kind"] == "stopped"

        ras = self.watch(job.pids[0], until=stop)
        self.assertIn("NCCL 2.29", ras["problem"])
        self.assertEqual(ras["verdict"]["ranks"], [1])

    def test_without_ras_the_processes_are_judged(self) -> None:
        job = Job(self, self.port, listen=False)
        os.kill(job.pids[1], signal.SIGSTOP)
        ras = self.watch(job.pids[0], until=lambda ras: ras["problem"] and ras["verdict"]["kind"] == "stopped")
        self.assertEqual(ras["verdict"]["text"], f"rank 1 (process {job.pids[1]}) is stopped")
        self.assertIn(f"no process listens at 127.0.0.1:{self.port}", ras["problem"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options, rest = parser.parse_known_args()
    TOOL = options.tool
    unittest.main(argv=[sys.argv[0], *rest])
