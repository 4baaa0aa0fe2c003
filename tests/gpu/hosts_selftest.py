"""hosts_lab.py from end to end, without a GPU and without torch: real hosts and links, the real tool, jobs that are played.

    python3 hosts_selftest.py --tool diapason --played played_program --rank played_rank [unittest's arguments]

Exit status 77, with the reason, where there can be no hosts.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402
from pathlib import Path  # noqa: E402

import hosts_lab  # noqa: E402
import hosts_tools  # noqa: E402
import namespaces  # noqa: E402

HERE = Path(__file__).resolve().parent
PROGRAMS = argparse.Namespace(tool=None, played=None, rank=None)


class Tools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)

    def tools(self, *more: str) -> Path:
        """A folder as one that was carried here: programs that show how they were started, and libraries."""
        tools = self.folder / "tools"
        tools.mkdir()
        for name in ("ip", "tc", "ld-linux-x86-64.so.2"):
            if name in hosts_tools.PROGRAMS or name in more:
                (tools / name).write_text(f'#!/bin/sh\necho "{name} $* $LD_LIBRARY_PATH"\n')
                (tools / name).chmod(0o755 if name not in hosts_tools.PROGRAMS else 0o644)
        for name in ("libmnl.so.0", "libc.so.6"):
            (tools / name).write_text("")
        return tools

    def test_libraries_are_for_the_tools_alone(self):
        hosts_tools.use(self.tools(), self.folder / "used")
        said = subprocess.run(["ip", "link", "show"], capture_output=True, text=True, check=True).stdout.strip()
        self.assertEqual(said, f"ip link show {self.folder}/used/lib")
        self.assertEqual(os.listdir(self.folder / "used/lib"), ["libmnl.so.0"])  # the C library is the machine's

    def test_a_folder_with_a_loader_has_its_own_c_library(self):
        hosts_tools.use(self.tools("ld-linux-x86-64.so.2"), self.folder / "used")
        said = subprocess.run(["tc", "qdisc"], capture_output=True, text=True, check=True).stdout.strip()
        tools = self.folder / "tools"
        self.assertEqual(said, f"ld-linux-x86-64.so.2 --library-path {self.folder}/used/lib {tools}/tc qdisc")
        self.assertIn("libc.so.6", os.listdir(self.folder / "used/lib"))

    def test_a_missing_program_is_named(self):
        tools = self.tools()
        (tools / "tc").unlink()
        with self.assertRaisesRegex(FileNotFoundError, "has no tc"):
            hosts_tools.use(tools, self.folder / "used")


class WholeRun(unittest.TestCase):
    def setUp(self):
        if reason := namespaces.why_not(with_ssh=False):
            self.skipTest(reason)
        # Hosts see it: it lies below none of the folders that each has for itself.
        self.folder = Path(tempfile.mkdtemp(dir=HERE.parent.parent / "build", prefix="hosts-selftest-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_lab(self, *words: object, fault: str = "") -> tuple[int, str, list[dict]]:
        rank = [sys.executable, HERE / "fake_host_rank.py", "--played", PROGRAMS.played, "--rank-program", PROGRAMS.rank, "--boards", self.folder]
        command = [sys.executable, HERE / "hosts_lab.py", "--tool", PROGRAMS.tool, "--no-gpu", "--rank", " ".join(map(str, rank)), "--limit", 3000,
                   "--limits", "jobs:900,pins:900,pairs:900,tune:900", "--start-seconds", 600, "--tuner", HERE / "fake_tool.py", "--out", self.folder / "out", *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=3600,
                              env=os.environ | {"FAKE_FAULT": fault})
        text = done.stdout + done.stderr
        return done.returncode, text, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def of_part(self, records: list[dict], part: str) -> list[dict]:
        return [one for one in records if one.get("part") == part]

    def test_all_parts(self):
        status, text, records = self.run_lab("--hosts", 4, "--rate", "200mbit", "--slow-rate", "20mbit", "--backend", "gloo", "--seconds", 1,
                                             "--pairs", "-b 1M -n 2 --rounds 2")
        self.assertEqual(status, 0, text)
        jobs = {one["run"]: one for one in self.of_part(records, "jobs")}
        self.assertEqual(sorted(jobs), ["default", "learn over file", "learn over tcp"], text)
        for name in ("learn over file", "learn over tcp"):
            self.assertTrue(jobs[name]["journals_equal"] and jobs[name]["learned"], text)
            self.assertEqual(jobs[name]["hosts"], ["box1", "box2", "box3", "box4"])
        # What fake_whole_job.py makes fastest, whatever the links are.
        finding = [one for one in self.of_part(records, "pins") if "finding" in one]
        self.assertEqual([one["changes"] for one in finding], [False], text)
        self.assertIn("tree/simple", json.dumps(finding[0]["slow"]))
        self.assertTrue(self.of_part(records, "pairs")[0]["named"], text)
        tuned = self.of_part(records, "tune")[0]
        self.assertIsNone(tuned["problem"], text)
        self.assertEqual([one["tuned"] for one in tuned["found"].values()], ["tree/simple"], text)
        self.assertGreater(min(one["of_best"] for one in tuned["found"].values()), 0.9, text)
        self.assertTrue((self.folder / "out/hosts_lab.json").exists())

    def test_a_rank_that_fails_is_named(self):
        status, text, _ = self.run_lab("--hosts", 2, "--parts", "jobs", fault="rank 1")
        self.assertEqual(status, 1, text)
        self.assertIn("rank 1 on box2 ended with status 3", text)


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("tool", "played", "rank"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    _, rest = parser.parse_known_args(namespace=PROGRAMS)
    result = unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        return 1
    return 77 if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
