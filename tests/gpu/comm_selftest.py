"""Tests of the lab itself, without a GPU: what it reads, and what it takes for a failure."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path

import comm_faults
import comm_lab
import nccl_log

LOG = "vm:1:2 [0] NCCL INFO AllReduce: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}\n"


class Reading(unittest.TestCase):
    def test_counts(self):
        text = "note: x\nconformance: backend nccl, 4 ranks, 812 checks, 3 failures\n"
        self.assertEqual(comm_lab.conformance_counts(text), (812, 3))
        self.assertIsNone(comm_lab.conformance_counts("FAIL creation, rank 0: no GPU\n"))

    def test_said(self):
        lines = comm_lab.said('0: {"rank": 0, "what": "graph", "ok": true, "text": ""}\nnoise\n{"rank": 1, "wh\n')
        self.assertEqual([line["ok"] for line in lines], [True, False])

    def test_pins(self):
        def problems(log):
            lines = [{"rank": 0, "what": "pin 1/2 ch1 at 4096 bytes", "ok": True, "text": ""}]
            return comm_lab.pin_problems(lines, nccl_log.parse(log))
        self.assertEqual(problems(LOG.format(4096, "RING", "SIMPLE", 0)), [])
        for log in (LOG.format(4096, "TREE", "SIMPLE", 0), LOG.format(4096, "RING", "LL", 0),
                    LOG.format(4096, "RING", "SIMPLE", 1), LOG.format(8192, "RING", "SIMPLE", 0)):
            self.assertEqual(len(problems(log)), 1, log)

    def test_half_a_line(self):
        self.assertEqual(comm_faults.read_steps('{"step": "create"}\n{"ste'), [{"step": "create"}])


class FakeVictim(unittest.TestCase):
    """Fault cases on a program that says what it is told to."""

    def run_case(self, lines: str, status: int = 0) -> str:
        with tempfile.TemporaryDirectory() as folder:
            victim = Path(folder) / "victim"
            victim.write_text(f"#!{sys.executable}\nprint('''{lines}''')\nraise SystemExit({status})\n")
            victim.chmod(victim.stat().st_mode | stat.S_IXUSR)
            problem, _ = comm_faults.run(comm_faults.never_arrives, str(victim), dict(os.environ))
            return problem

    LINE = '{{"step": "create", "ok": {}, "seconds": {}, "code": "{}", "message": "rank 2 has not arrived"}}'

    def test_kept(self):
        self.assertEqual(self.run_case(self.LINE.format("false", 4.2, "timeout")), "")

    def test_not_kept(self):
        for line, word in ((self.LINE.format("true", 1, ""), "no error"),
                           (self.LINE.format("false", 9.5, "timeout"), "took"),
                           (self.LINE.format("false", 1, "internal"), "internal"), ("", "no error")):
            self.assertIn(word, self.run_case(line))
        self.assertIn("exit status", self.run_case(self.LINE.format("false", 4.2, "timeout"), status=1))


class Skipping(unittest.TestCase):
    def test_without_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("no program", comm_lab.why_not(Path(folder)))


if __name__ == "__main__":
    unittest.main()
