#!/usr/bin/env python3
"""`diapason watch` and `diapason proxy dump` against busy.cc, a process that looks like a rank.

    watch_test.py --tool PATH --busy PATH [unittest arguments]
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

TOOL = ""
BUSY = ""
LIMIT = 600  # seconds for anything, on a slow machine as well
PATIENCE = ("--timeout", "120s")  # with a dump that comes


def clean_environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIAPASON_", "NCCL_"))}
    return kept | more


def wait_for(what, seconds: float = LIMIT):
    """What `what` returns, once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


class WatchTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="diapason-watch-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def busy(self, *arguments: str, stdout=None, **environment: str) -> subprocess.Popen:
        """A process that is ready, with its output in out.log."""
        if stdout is None:
            stdout = (self.folder / "out.log").open("wb")
            self.addCleanup(stdout.close)
        process = subprocess.Popen([BUSY, *arguments], env=clean_environment(**environment), stdin=subprocess.PIPE,
                                   stdout=stdout, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stderr.readline(), b"ready\n")
        return process

    @staticmethod
    def end(process: subprocess.Popen) -> None:
        if process.stdin and not process.stdin.closed:
            process.stdin.close()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def tool(self, *arguments: object, status: int = 0, **environment: str) -> str:
        done = subprocess.run([TOOL, *map(str, arguments)], env=clean_environment(**environment), capture_output=True,
                              text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.errors = done.stderr
        return done.stdout

    def look(self, *arguments: object, **environment: str) -> list[dict]:
        return [json.loads(line) for line in self.tool("watch", *arguments, "--json", **environment).splitlines()]

    def test_threads_memory_and_journal(self) -> None:
        process = self.busy(NCCL_SET_THREAD_NAME="1", DIAPASON_JOURNAL=f"{self.folder}/j.%p.jsonl", RANK="5")
        # CPU time is counted in ticks of 10 ms: on a busy machine a look may find none.
        count = 15
        views: list[dict] = []
        for _ in range(40):
            looks = self.look(process.pid, "--count", count, "--interval", "200ms")
            self.assertEqual([look["type"] for look in looks], ["look"] * count + ["end"])
            views += [look["processes"][0] for look in looks[:-1]]
            if max(view["progress_cpu"] for view in views) > 0:
                break
        last = views[-1]
        self.assertEqual(last["rank"], 5)
        named = {thread["name"]: thread for thread in last["named"]}
        self.assertEqual(named["NCCL Progress 0"]["role"], "progress")
        self.assertEqual(named["NCCL Service  0"]["role"], "service")

        def most(name: str, key: str) -> float:
            return max(thread[key] for view in views for thread in view["named"] if thread["name"] == name)

        self.assertGreater(most("NCCL Progress 0", "cpu"), 0)
        self.assertGreater(most("NCCL Service  0", "voluntary_per_s"), 0)
        others = {thread["name"]: thread for thread in last["others"]}
        self.assertEqual(others["locked"]["threads"], 2)
        self.assertGreater(last["memory"]["resident"], 0)
        self.assertGreater(max(view["progress_cpu"] for view in views), 0)
        journal = last["journal"]
        self.assertGreater(max(view["journal"]["operations_per_s"] for view in views), 0)
        self.assertEqual(journal["file"], f"{self.folder}/j.{process.pid}.jsonl")
        self.assertEqual(journal["contexts"][0]["ran"], "ring/simple")
        self.assertEqual(journal["learning"][0]["arms"][0]["state"], "in use")
        self.assertEqual(journal["not_understood"], 0)

    def test_text_of_one_and_of_several(self) -> None:
        first = self.busy(NCCL_SET_THREAD_NAME="1")
        second = self.busy(NCCL_SET_THREAD_NAME="1")
        text = self.tool("watch", first.pid, "--count", 1, "--interval", "200ms")
        self.assertIn(f"process {first.pid} (", text)
        self.assertRegex(text, r"(?m)^NCCL Progress 0 +1 +[0-9.]+ ")
        self.assertNotIn("\033", text)
        both = self.tool("watch", first.pid, second.pid, "--count", 1, "--interval", "200ms")
        for process in (first, second):
            self.assertRegex(both, rf"(?m)^ *{process.pid} ")
        self.assertRegex(both, r"(?m)^ *sum ")

    def test_children_are_found(self) -> None:
        shell = subprocess.Popen(["sh", "-c", f"'{BUSY}'; true"], env=clean_environment(), stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, shell)
        self.assertEqual(shell.stderr.readline(), b"ready\n")
        looks = self.look(shell.pid, "--children", "--count", 1, "--interval", "200ms")
        self.assertEqual(len(looks[0]["processes"]), 2)

    def test_the_end_of_the_process_is_said(self) -> None:
        process = self.busy()
        watching = subprocess.Popen([TOOL, "watch", str(process.pid), "--interval", "100ms"], env=clean_environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            self.assertTrue(watching.stdout.readline())
            process.stdin.close()
            process.wait(LIMIT)
            output, _ = watching.communicate(timeout=LIMIT)
        finally:
            watching.kill()
            watching.wait()
        self.assertIn(f"process {process.pid} has ended", output)
        self.assertEqual(watching.returncode, 0)

    def test_baseline(self) -> None:
        process = self.busy(NCCL_SET_THREAD_NAME="1", DIAPASON_JOURNAL=f"{self.folder}/j.jsonl")
        base = self.folder / "base.json"

        def saved() -> dict | None:
            """On a busy machine most looks may find no operation: then it is saved again."""
            self.tool("watch", process.pid, "--count", 10, "--interval", "100ms", "--save-baseline", base, "--json")
            content = json.loads(base.read_text())
            self.assertEqual(content["metrics"]["operations_per_s"]["samples"], 10)
            return content if content["metrics"]["operations_per_s"]["median"] > 0 else None

        content = wait_for(saved)
        # A million times as many operations as there are: it has got worse, whatever else the machine does.
        for key in ("median", "low", "high"):
            content["metrics"]["operations_per_s"][key] *= 1e6
        content["metrics"] = {"operations_per_s": content["metrics"]["operations_per_s"]}
        base.write_text(json.dumps(content))
        text = self.tool("watch", process.pid, "--count", 10, "--interval", "100ms", "--baseline", base, status=3)
        self.assertIn("warning: operations a second", text)
        text = self.tool("watch", process.pid, "--count", 2, "--interval", "100ms", "--baseline", base)
        self.assertIn("too few samples", text)
        self.tool("watch", process.pid, "--count", 1, "--interval", "100ms", "--save-baseline", base, status=1)
        self.assertIn("8 samples", self.errors)

    def test_prometheus_file_and_port(self) -> None:
        process = self.busy(NCCL_SET_THREAD_NAME="1")
        file = self.folder / "diapason.prom"
        self.tool("watch", process.pid, "--count", 1, "--interval", "200ms", "--prometheus", file, "--json")
        pattern = re.compile(r'^diapason_thread_cpu\{pid="\d+",rank="",thread="NCCL Progress 0",role="progress",'
                             r'tid="\d+"\} [0-9.e+-]+$', re.M)
        self.assertRegex(file.read_text(), pattern)
        watching = subprocess.Popen([TOOL, "watch", str(process.pid), "--interval", "100ms", "--prometheus", "0",
                                     "--json"], env=clean_environment(), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        try:
            url = watching.stderr.readline().split()[-1]

            def scraped() -> str:
                with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                    text = answer.read().decode()
                return text if pattern.search(text) else ""

            self.assertIn("# TYPE diapason_thread_cpu gauge", wait_for(scraped))
        finally:
            watching.send_signal(signal.SIGINT)
            status = watching.wait(LIMIT)
            watching.stderr.close()
        self.assertEqual(status, 0)

    def test_the_terminal_is_restored(self) -> None:
        process = self.busy()
        for end_with in (signal.SIGTERM, signal.SIGINT):
            control, terminal = pty.openpty()
            watching = subprocess.Popen([TOOL, "watch", str(process.pid), "--interval", "100ms"],
                                        env=clean_environment(TERM="xterm"), stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True)
            os.close(terminal)
            seen = b""
            try:
                end = time.monotonic() + LIMIT
                sent = False
                while time.monotonic() < end:
                    if not select.select([control], [], [], 0.2)[0]:
                        continue
                    try:
                        block = os.read(control, 65536)
                    except OSError:
                        break
                    seen += block
                    if not sent and seen.count(b"\033[H") >= 3:
                        watching.send_signal(end_with)
                        sent = True
                status = watching.wait(LIMIT)
            finally:
                watching.kill()
                watching.wait()
                os.close(control)
            self.assertEqual(status, 0)
            self.assertTrue(seen.startswith(b"\033[?1049h"), seen[:50])
            self.assertGreater(seen.rfind(b"\033[?1049l"), seen.rfind(b"\033[H"))
            self.assertIn(b"\033[?25h", seen)

    def test_proxy_stuck_moving_and_idle(self) -> None:
        for proxy, status, words in (("stuck", 3, "the same in both dumps: 1 receive waits for data from rank 3"),
                                     ("moving", 0, "the proxy moves"), ("empty", 0, "both dumps are empty")):
            process = self.busy("--line-buffered", "--proxy", proxy, NCCL_SET_THREAD_NAME="1",
                                NCCL_PROXY_DUMP_SIGNAL="10")
            text = self.tool("proxy", "dump", process.pid, "--again", "100ms", *PATIENCE, status=status)
            self.assertIn(words, text)
            self.end(process)
            self.assertEqual(process.returncode, 0)
        answer = json.loads(self.tool("proxy", "dump", "--from", self.folder / "out.log", "--json"))
        self.assertEqual(len(answer["dumps"]), 2)

    def test_proxy_is_left_alone_without_a_handler(self) -> None:
        process = self.busy("--no-handler", NCCL_PROXY_DUMP_SIGNAL="10")
        self.tool("proxy", "dump", process.pid, status=1)
        self.assertIn("no handler for signal 10", self.errors)
        plain = self.busy()
        self.tool("proxy", "dump", plain.pid, status=1)
        self.assertIn("was not started with NCCL_PROXY_DUMP_SIGNAL", self.errors)
        for alive in (process, plain):
            self.assertIsNone(alive.poll())

    def test_proxy_answer_that_stays_in_a_buffer(self) -> None:
        process = self.busy(NCCL_PROXY_DUMP_SIGNAL="10")
        text = self.tool("proxy", "dump", process.pid, "--timeout", "200ms", status=3)
        self.assertIn("no dump came", text)
        self.assertIn("stdbuf -oL", text)
        text = self.tool("proxy", "dump", process.pid, "--fill", *PATIENCE)
        self.assertIn("3 operations in flight", text)
        self.assertIsNone(process.poll())

    def test_proxy_answer_through_a_pipe(self) -> None:
        log = self.folder / "tee.log"
        tee = subprocess.Popen(["tee", str(log)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        process = self.busy("--line-buffered", stdout=tee.stdin, NCCL_PROXY_DUMP_SIGNAL="12")
        tee.stdin.close()
        # tee's only file is followed without being told.
        text = self.tool("proxy", "dump", process.pid, *PATIENCE)
        self.assertIn("3 operations in flight", text)
        text = self.tool("proxy", "dump", process.pid, "--from", log, *PATIENCE)
        self.assertIn("3 operations in flight", text)
        self.end(process)
        tee.wait(LIMIT)
        lost = self.busy("--line-buffered", stdout=subprocess.DEVNULL, NCCL_PROXY_DUMP_SIGNAL="12")
        self.assertIn("/dev/null: the answer is lost", self.tool("proxy", "dump", lost.pid))

    def test_profile_or_the_reason_why_not(self) -> None:
        process = self.busy(NCCL_SET_THREAD_NAME="1")
        self.tool("watch", process.pid, "--profile", "200ms", status=1, PATH="/nonexistent")
        self.assertIn("no perf in the PATH", self.errors)
        done = subprocess.run([TOOL, "watch", str(process.pid), "--profile", "500ms", "--json"],
                              env=clean_environment(), capture_output=True, text=True, timeout=LIMIT)
        if done.returncode == 0:
            self.assertEqual(json.loads(done.stdout)["type"], "profile")
        else:
            self.assertRegex(done.stderr, "no perf in the PATH|perf_event_paranoid is")

    def test_wrong_usage(self) -> None:
        self.tool("watch", status=2)
        self.tool("watch", "-1", status=2)
        self.tool("watch", "1", "--interval", "0", status=2)
        self.tool("watch", "1", "--interval", "1fortnight", status=2)
        self.tool("proxy", "dump", status=2)
        self.tool("watch", 2**22 - 1, "--count", 1, status=1)
        self.assertIn("there is no process", self.errors)
        self.tool("watch", os.getpid(), "--count", 1, "--baseline", self.folder / "none", status=1)
        self.tool("proxy", "dump", "--from", __file__, status=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--busy", required=True)
    known, rest = parser.parse_known_args()
    TOOL, BUSY = known.tool, known.busy
    unittest.main(argv=[sys.argv[0], *rest])
