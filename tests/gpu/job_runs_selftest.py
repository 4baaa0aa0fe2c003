"""The labs of whole jobs from end to end, without torch and without a GPU: the real tool, jobs in simulated time.

    python3 job_runs_selftest.py --tool diapason --played played_program [unittest's arguments]
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import contextlib  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402
from pathlib import Path  # noqa: E402
from unittest import mock  # noqa: E402

import group  # noqa: E402
import job_lab  # noqa: E402
import profile_lab  # noqa: E402
import tune_job_lab  # noqa: E402

HERE = Path(__file__).resolve().parent
PROGRAMS = argparse.Namespace(tool=None, played=None)


class WholeRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        program = [sys.executable, str(HERE / "fake_whole_job.py"), "--program", str(PROGRAMS.played)]
        original = job_lab.JobLab.__init__

        def init(lab, *arguments, **named):
            original(lab, *arguments, **named)
            lab.program = program

        fake = {"FAKE_REAL_TOOL": str(PROGRAMS.tool)}
        for patch in (mock.patch.object(job_lab.JobLab, "__init__", init), mock.patch("shutil.which", return_value=None),
                      mock.patch.multiple(job_lab, START_SECONDS=1200.0, TOOL_SECONDS=1200.0), mock.patch.dict(os.environ, fake)):
            patch.start()
            self.addCleanup(patch.stop)

    def run_lab(self, lab, *words: object, fault: str = "") -> tuple[int, str]:
        options = lab.options_of([*map(str, words), "--out", str(self.folder / "out")])
        printed = io.StringIO()
        with mock.patch.dict(os.environ, {"FAKE_FAULT": fault}), contextlib.redirect_stdout(printed):
            status = lab.run(options, group.Deadline(3600.0))
        return status, printed.getvalue()

    def records(self, text: str) -> list[dict]:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def test_profiles(self):
        status, text = self.run_lab(profile_lab, "--tool", PROGRAMS.tool, "--kinds", "decode,ddp", "--seconds", 1)
        self.assertEqual(status, 0, text)
        rows = [one for one in self.records(text) if one["part"] == "profile"]
        self.assertEqual([(one["kind"], one["source"]) for one in rows][:4],
                         [("decode", "Kineto"), ("decode", "ours, traced"), ("decode", "ours, before"), ("decode", "ours, all")])
        for one in rows:
            self.assertLess(abs(one.get("difference_percent", {}).get("exposed_us", 0.0)), 10, one)
        self.assertEqual({one["kind"] for one in self.records(text) if one["part"] == "compare" and one["agreed"]}, {"decode", "ddp"})
        kept = json.loads((self.folder / "out" / "profile_lab.json").read_text())
        self.assertEqual(kept["failures"], [])
        self.assertTrue((self.folder / "out" / "profile_lab.tar.gz").exists())

    def test_a_job_that_fails(self):
        status, text = self.run_lab(profile_lab, "--tool", PROGRAMS.tool, "--kinds", "decode", "--parts", "profile", fault="fail")
        self.assertEqual(status, 1)
        self.assertIn("FAILED: decode.observe: ended with status 3", text)
        self.assertIn("fake: cannot go on", text)

    def test_a_job_without_a_trace(self):
        status, text = self.run_lab(profile_lab, "--tool", PROGRAMS.tool, "--kinds", "decode", "--parts", "profile", fault="no-trace")
        self.assertEqual(status, 1)
        self.assertIn("rank 0 left no trace", text)
        self.assertIn("ours, all", text)

    def test_no_time_left(self):
        options = profile_lab.options_of(["--tool", str(PROGRAMS.tool), "--kinds", "decode"])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(profile_lab.run(options, group.Deadline(0.0)), 0)
        self.assertIn("decode.observe: not run, no time was left", printed.getvalue())

    def test_tuning(self):
        words = ["--tool", HERE / "fake_tool.py", "--kind", "decode", "--state", self.folder / "state", "--rival-budget", "1s", "--launches", 3,
                 "--limits", "tune:3600,pins:3600,rivals:3600,judge:3600,compare:3600"]
        status, text = self.run_lab(tune_job_lab, *words)
        self.assertEqual(status, 0, text)
        found = next(one for one in self.records(text) if one["part"] == "summary")["arms"]
        self.assertEqual(set(found), {tune_job_lab.CONTROL, tune_job_lab.TUNED, tune_job_lab.BEST, *tune_job_lab.RIVALS.values()})
        for arm, gain in ((tune_job_lab.TUNED, 1.48), (tune_job_lab.BEST, 1.5), ("tune without a command", 1.2), ("table of a sweep", 1.35),
                          ("AutoCCL's descent", 1.5), (tune_job_lab.CONTROL, 1.0)):
            self.assertAlmostEqual(found[arm]["gain"], gain, delta=0.03, msg=arm)
        self.assertIn("of the best fixed choices, at least 0.97: 0.98", text)
        best = (self.folder / "state/decode/best.conf").read_text()
        self.assertIn("allreduce,16385,32768,tree,simple,", best)
        # Further launches are added to those that were kept.
        status, text = self.run_lab(tune_job_lab, *words, "--parts", "judge", "--resume", "--launches", 4)
        self.assertEqual((status, [one["launch"] for one in self.records(text) if one["part"] == "judge"]), (0, [3]))
        self.assertIn("decode: 4 launches", text)

    def test_graphs_are_judged_by_launches(self):
        words = ["--tool", HERE / "fake_tool.py", "--kind", "graphs", "--step", "--state", self.folder / "state", "--launches", 3, "--parts",
                 "tune,judge", "--limits", "tune:3600,judge:3600"]
        status, text = self.run_lab(tune_job_lab, *words)
        self.assertEqual(status, 0, text)
        found = next(one for one in self.records(text) if one["part"] == "summary")["arms"]
        self.assertEqual(set(found), {tune_job_lab.CONTROL, tune_job_lab.TUNED})
        self.assertAlmostEqual(found[tune_job_lab.TUNED]["gain"], 1.5, delta=0.05)
        self.assertAlmostEqual(found[tune_job_lab.CONTROL]["gain"], 1.0, delta=0.05)
        self.assertEqual(text.count("# graphs.judge"), 9)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--played", type=Path, required=True)
    options, rest = parser.parse_known_args()
    PROGRAMS.tool, PROGRAMS.played = options.tool.resolve(), options.played.resolve()
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
