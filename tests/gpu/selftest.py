"""Tests of the proof itself, without torch or GPU: statistics, parsers, and the whole run on fake ranks."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import group
import nccl_log
import policy_file
import report
import run_pytorch
import stats
import timing
import verify
from mps import Mps
from nccl_log import Config

HERE = Path(__file__).resolve().parent
FAKE = [sys.executable, str(HERE / "fake_rank.py")]


class Statistics(unittest.TestCase):
    def test_slowest_rank_counts(self):
        self.assertEqual(stats.slowest_rank([[1, 5, 2], [3, 4, 1]]), [3, 5, 2])
        self.assertEqual(stats.block_value([[1, 5, 2], [3, 4, 1]]), 3)
        for bad in ([[1], [1, 2]], [[], []]):
            with self.assertRaises(ValueError):
                stats.slowest_rank(bad)

    def test_student_quantiles_are_those_of_the_tables(self):
        for df, want in ((1, 12.706), (5, 2.571), (10, 2.228), (39, 2.023), (120, 1.980)):
            self.assertAlmostEqual(stats.student_quantile(0.975, df), want, delta=0.002 * want)

    def test_student_mean(self):
        got = stats.student_mean([1.0, 2.0, 3.0, 4.0])  # sd 1.29099, t 3.18245
        self.assertAlmostEqual(got.estimate, 2.5)
        self.assertAlmostEqual(got.high, 2.5 + 3.18245 * 1.29099 / 2, places=3)
        self.assertEqual(stats.student_mean([1.0]).high, math.inf)

    def test_intervals_cover_the_truth_about_95_times_in_100(self):
        rng = random.Random(7)
        hits = {"student": 0, "bootstrap": 0}
        trials = 200
        for _ in range(trials):
            sample = [rng.gauss(0.0, 1.0) for _ in range(30)]
            student = stats.student_mean(sample)
            boot = stats.bootstrap(sample, statistics.median, resamples=300)
            hits["student"] += student.low <= 0 <= student.high
            hits["bootstrap"] += boot.low <= 0 <= boot.high
        for name, count in hits.items():
            self.assertGreater(count / trials, 0.89, name)
            self.assertLess(count / trials, 0.995, name)

    def test_speedup_of_exact_data(self):
        got = stats.speedup([3.0] * 30, [2.0] * 30)
        for value in (got.estimate, got.low, got.high):
            self.assertAlmostEqual(value, 1.5)

    def test_slowdown_pools_sizes_geometrically(self):
        none = {1: [1.0] * 30, 2: [100.0] * 30}
        empty = {1: [1.02] * 30, 2: [100.0] * 30}  # +2 % and 0 %: about +1 %, whatever the sizes
        got = stats.slowdown_percent(empty, none)
        self.assertAlmostEqual(got.estimate, 100 * (math.sqrt(1.02) - 1))
        self.assertAlmostEqual(stats.slowdown_percent_bootstrap(empty, none).high, got.high, places=6)

    def test_pairing_removes_what_drifts(self):
        drift = [1.0 + 0.1 * i for i in range(30)]
        got = stats.slowdown_percent({1: [1.01 * d for d in drift]}, {1: drift})
        self.assertAlmostEqual(got.low, 1.0, places=6)
        self.assertAlmostEqual(got.high, 1.0, places=6)

    def test_verdict(self):
        good, bad = stats.Interval(0.5, -1, 2.0), stats.Interval(0.5, -1, 2.345)
        self.assertEqual(stats.verdict(good, 30), "bar: reached")
        self.assertEqual(stats.verdict(bad, 30), "bar: NOT reached (2.35 %)")
        self.assertIn("only 29 blocks", stats.verdict(good, 29))
        self.assertIn("NOT", stats.verdict(stats.slowdown_percent({1: [1.0]}, {1: [1.0]}), 1))


class NcclLogs(unittest.TestCase):
    # NCCL's format strings with the prefix that its debug.cc puts before them.
    PREFIX = "%s:%d:%d [%d] NCCL INFO " % ("box", 4711, 4712, 0)
    RAN = "%s: %d Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}"

    def test_what_ran(self):
        lines = [
            self.PREFIX + self.RAN % ("AllReduce", 1024, "TREE", "LL", 0, 0),
            "[2026-01-02 03:04:05] " + self.PREFIX + self.RAN % ("AllReduce", 524288, "RING", "SIMPLE", 0, 1),
            self.PREFIX + self.RAN % ("AllReduce", 524288, "NVLS_TREE", "SIMPLE", 4, 7) + "\r",
            self.PREFIX + self.RAN % ("AllGather", 1024, "PAT", "LL128", 0, 0),
            "box:1:1 [0] 12.5 enqueue.cc:1 NCCL TRACE 1024 Bytes -> Algo 0 proto 0 time 1.000000",
            self.PREFIX + "AllReduce [Symmetric]: 64 Bytes -> Kernel X nchannels 1 nthreads 1 nWorks 1",
            self.PREFIX + "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 256 datatype 7 op 0 root 0",
            self.PREFIX + "AllReduce: 77 Bytes -> Al",  # cut off
        ]
        log = nccl_log.parse("\n".join(lines))
        self.assertEqual(log.configs("allreduce", 1024), {Config("tree", "ll", 1)})
        self.assertEqual(
            log.configs("allreduce", 524288), {Config("ring", "simple", 2), Config("nvls_tree", "simple", 4)}
        )
        self.assertEqual(log.configs("allgather", 1024), {Config("pat", "ll128", 1)})
        self.assertEqual(len(log.ran), 3)

    def test_tuner(self):
        log = nccl_log.parse(
            f"{self.PREFIX}NCCL_TUNER_PLUGIN set by environment to /a/libx.so\n"
            f"{self.PREFIX}TUNER/Plugin: Using diapason (v5)\n"
            f"{self.PREFIX}Successfully loaded external tuner plugin /a b/libx.so\n"
        )
        self.assertEqual(log.loaded, ["/a b/libx.so"])
        self.assertEqual(log.using, ["diapason (v5)"])

    def test_no_tuner(self):
        log = nccl_log.parse(
            f"{self.PREFIX}TUNER/Plugin: Could not find: libnccl-tuner.so\n"
            f"{self.PREFIX}TUNER/Plugin: Using internal tuner plugin.\n"
            f"{self.PREFIX}External tuner plugin /a/libx.so is unsupported\n"
            f"\nbox:1:1 [0] init.cc:1 NCCL WARN something odd\n"
        )
        self.assertEqual((log.loaded, log.using, log.warnings), ([], [], ["something odd"]))

    def test_older_texts(self):
        log = nccl_log.parse(f"{self.PREFIX}TUNER/Plugin: Using tuner plugin diapason\n")
        self.assertEqual(log.using, ["diapason"])
        self.assertEqual(verify.plugin_loaded("policy", [log], Path("/a/libx.so")), [])


class Policies(unittest.TestCase):
    TEXT = "# text\n\nAllReduce, 0, 99, tree, ll, -1, 4, 4, -1, -1\nallreduce,50,-1,-1,simple,2,-1,-1,1,0 # end\n"

    def test_rows(self):
        rows = policy_file.parse_policy(self.TEXT)
        self.assertEqual([row.line for row in rows], [3, 4])
        self.assertEqual((rows[0].algorithm, rows[0].channels), ("tree", None))
        self.assertEqual((rows[1].algorithm, rows[1].protocol, rows[1].channels), (None, "simple", 2))
        self.assertEqual(policy_file.expected(rows, "allreduce", 99, 4, 4), rows[0])
        self.assertEqual(policy_file.expected(rows, "allreduce", 99, 8, 8), rows[1])
        self.assertEqual(policy_file.expected(rows, "allreduce", 1 << 40, 4, 4), rows[1])
        self.assertIsNone(policy_file.expected(rows, "allgather", 99, 4, 4))

    def test_broken_rows(self):
        for text in ("allreduce,1,2", "allreduce,x,99,tree,ll,-1,4,4,-1,-1"):
            with self.assertRaisesRegex(policy_file.PolicyError, "line 1"):
                policy_file.parse_policy(text)

    def test_the_shipped_policy(self):
        rows = policy_file.parse_policy((HERE / "lab_4ranks.conf").read_text())
        asked = [str(policy_file.expected(rows, "allreduce", size, 4, 4) or "") for size in verify.SIZES]
        ring = "ring/simple ch<=1"
        self.assertEqual(asked, ["", "tree/ll", "tree/simple", "tree/simple ch<=2", ring, ring, ""])
        # Gapless and without overlap, so the order of the rows does not matter.
        for one, following in zip(rows, rows[1:]):
            self.assertEqual(one.max_bytes + 1, following.min_bytes)

    def test_differs(self):
        row = policy_file.parse_policy("allreduce,0,99,tree,ll,2,-1,-1,-1,-1")[0]
        self.assertFalse(verify.differs(row, Config("tree", "ll", 1)))
        for other in (Config("ring", "ll", 1), Config("tree", "simple", 1), Config("tree", "ll", 3)):
            self.assertTrue(verify.differs(row, other))


class WholeRun(unittest.TestCase):
    """The real orchestration on fake ranks."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "libnccl-tuner-diapason.so").touch()
        # No MPS for fake ranks, even where there is one.
        no_mps = mock.patch("shutil.which", return_value=None)
        for patch in (no_mps, mock.patch.multiple(group, COMMAND_SECONDS=5.0, QUIT_SECONDS=5.0)):
            patch.start()
            self.addCleanup(patch.stop)

    def run_it(self, fault: str = "", blocks: int = 0, limit: float = 1200.0) -> tuple[int, str]:
        arguments = ["--plugin", str(self.folder / "libnccl-tuner-diapason.so"), "--out", str(self.folder / "out")]
        options = run_pytorch.options_of([*arguments, "--blocks", str(blocks)])
        printed = io.StringIO()
        with mock.patch.dict(os.environ, {"FAKE_FAULT": fault}), contextlib.redirect_stdout(printed):
            status = run_pytorch.run(options, FAKE, group.Deadline(limit))
        return status, printed.getvalue()

    def test_all_is_well(self):
        status, text = self.run_it(blocks=30)
        self.assertEqual(status, 0, text)
        for part in ("diapason (v5)", "no nvidia-cuda-mps-control", "bar: reached", "all checks passed"):
            self.assertIn(part, text)
        document = json.loads((self.folder / "out" / "pytorch.json").read_text())
        self.assertEqual((document["status"], document["failures"]), ("passed", []))
        self.assertEqual({len(v) for g in document["blocks_seconds"].values() for v in g.values()}, {30})
        self.assertEqual(len(document["orders"]), 30)
        speedup = document["summary"]["speedup"]
        self.assertAlmostEqual(speedup["131072"]["estimate"], 1.5, delta=0.03)
        self.assertAlmostEqual(speedup["1024"]["estimate"], 1.0, delta=0.03)
        want = {"algorithm": "ring", "protocol": "simple", "channels": 1}
        self.assertEqual(document["ran"]["policy"]["524288"], want)
        with tarfile.open(self.folder / "out" / "logs.tar.gz") as archive:
            self.assertIn("logs/verify-none.0.nccl.log", archive.getnames())

    def test_faults_of_the_plugin_are_failures(self):
        for fault, reason in (
            ("verify-policy:wrong-sum", "policy: rank 0, 524289 elements: 1 wrong"),
            ("verify-policy:other-algorithm", "asks tree/simple ch<=2, NCCL ran collnet_chain"),
            ("verify-empty:other-algorithm", "empty: 131072 bytes: NCCL ran collnet_chain/simple ch2 instead"),
            ("verify-policy:not-loaded", "policy: rank 0 did not load"),
            ("verify-policy:journal-line", "policy: rank 0: 8188 bytes: journal has {'line': "),
            ("verify-pinned:pin-ignored", "pin 0/0 ch1 at 65536 bytes: NCCL's log shows collnet_chain"),
            ("verify-policy:die", "group 'verify-policy', rank 1: ended during 'check"),
            ("verify-policy:error", "rank 1: failed in 'check"),
        ):
            with self.subTest(fault):
                status, text = self.run_it(fault)
                self.assertEqual(status, 1, text)
                self.assertIn(reason, text)
                self.assertNotIn("all checks passed", text)
                document = json.loads((self.folder / "out" / "pytorch.json").read_text())
                self.assertEqual(document["status"], "failed")

    def test_a_hung_rank_is_given_up_and_ended(self):
        with mock.patch.multiple(group, COMMAND_SECONDS=4, QUIT_SECONDS=1):
            start = time.monotonic()
            status, text = self.run_it("time-policy:hang", blocks=1)
        self.assertEqual(status, 1)
        self.assertIn("group 'time-policy', rank 1: no answer to 'check", text)
        self.assertLess(time.monotonic() - start, 300)

    def test_a_rank_that_does_not_quit(self):
        with mock.patch.multiple(group, QUIT_SECONDS=3):
            self.assertIn("did not quit", self.run_it("verify-empty:stubborn")[1])
            status, text = self.run_it("verify-none:stubborn")
        self.assertEqual(status, 0)  # it stays without the plugin too: not the plugin's doing
        self.assertIn("note: ranks did not quit", text)

    def test_time_running_out_cuts_whole_rounds(self):
        with mock.patch.multiple(timing, RESERVE_SECONDS=2000):
            status, text = self.run_it(blocks=30, limit=1200.0)  # less than is kept in reserve
        self.assertEqual(status, 0, text)
        self.assertIn("0 of 30 rounds", text)

    def test_a_deadline_in_the_past_fails_at_once(self):
        status, text = self.run_it(limit=0.0)
        self.assertEqual(status, 1)
        self.assertIn("no answer to 'start'", text)


class Surroundings(unittest.TestCase):
    def run_script(self, *arguments: str) -> subprocess.CompletedProcess:
        script = str(HERE / "run_pytorch.py")
        return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=600)

    def test_skips_without_the_plugin(self):
        done = self.run_script("--plugin", "/nonexistent/libx.so")
        self.assertEqual(done.returncode, 77)
        self.assertEqual(done.stdout, "SKIP: no plugin file /nonexistent/libx.so\n")

    def test_a_program_that_stays_silent_is_ended_by_its_id(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", "import time; time.sleep(60)"]
            one = group.Group(group.Setting(command, 2, Path(folder), group.Deadline(0.2)), "mute", {}, False)
            one.start()
            with self.assertRaisesRegex(group.GroupError, "rank 0: no answer to 'start'"):
                one.wait_ready()
            with mock.patch.object(group, "QUIT_SECONDS", 0.2):
                self.assertEqual(group.close([one]), ["mute"])
            self.assertEqual([p.returncode for p in one.processes], [-signal.SIGTERM] * 2)

    def test_environment_is_cleared_and_set(self):
        setting = group.Setting([], 4, Path("/w"), group.Deadline(1), {"CUDA_MPS_PIPE_DIRECTORY": "/p"})
        stray = {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "TRACE", "DIAPASON_X": "1", "TORCH_NCCL_BLOCKING_WAIT": "1"}
        with mock.patch.dict(os.environ, stray):
            got = group.Group(setting, "g", {"NCCL_TUNER_PLUGIN": "/x.so"}, log=False)._rank_environment(2)
        self.assertFalse(set(stray) & set(got))
        self.assertEqual((got["NCCL_HOSTID"], got["NCCL_TUNER_PLUGIN"]), ("h2", "/x.so"))
        self.assertEqual(got["CUDA_MPS_PIPE_DIRECTORY"], "/p")

    def test_mps_is_quit_in_its_own_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder) / "said"
            control = Path(folder) / "nvidia-cuda-mps-control"
            control.write_text(f'#!/bin/sh\necho "$* $(cat) $CUDA_MPS_PIPE_DIRECTORY" >> {said}\n')
            control.chmod(0o755)
            with mock.patch.dict(os.environ, {"PATH": f"{folder}:{os.environ['PATH']}"}):
                with self.assertRaises(run_pytorch.Interrupted), Mps() as mps:
                    pipe = mps.environment["CUDA_MPS_PIPE_DIRECTORY"]
                    raise run_pytorch.Interrupted(signal.SIGTERM)
            self.assertEqual(said.read_text().split("\n")[:2], [f"-d  {pipe}", f" quit {pipe}"])
            self.assertFalse(Path(pipe).exists())

    def test_sizes_have_names(self):
        self.assertEqual([report.size_name(n) for n in (4, 1020, 1024, 8 << 20)], ["4 B", "1020 B", "1 KiB", "8 MiB"])


def main() -> int:
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    return 0 if unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful() else 1
