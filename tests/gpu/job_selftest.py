"""Tests of the parts of the labs of whole jobs, without torch and without a GPU; job_runs_selftest.py runs the labs."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import contextlib  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402
from pathlib import Path  # noqa: E402
from unittest import mock  # noqa: E402

import group  # noqa: E402
import job_arms  # noqa: E402
import job_lab  # noqa: E402
import job_rivals  # noqa: E402
import kernel_trace  # noqa: E402
import policy_file  # noqa: E402
import profile_lab  # noqa: E402
import tune_job_lab  # noqa: E402

PATH = list(sys.path)
import whole_job  # noqa: E402

sys.path[:] = PATH  # it takes its folder out

HERE = Path(__file__).resolve().parent


def kernel(name: str, start: float, stop: float, category: str = "kernel") -> dict:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": stop - start}


class Trace(unittest.TestCase):
    def test_union(self):
        self.assertEqual(kernel_trace.union([(5, 6), (0, 2), (1, 3), (3, 4), (7, 7)]), [(0, 4), (5, 6)])
        self.assertEqual(kernel_trace.union([(0, 10), (2, 3), (11, 12)]), [(0, 10), (11, 12)])
        self.assertEqual(kernel_trace.union([]), [])

    def test_overlap(self):
        one, other = [(0.0, 10.0), (20.0, 30.0)], [(5.0, 22.0), (23.0, 24.0), (29.0, 40.0)]
        self.assertEqual(kernel_trace.overlap(one, other), 5 + 2 + 1 + 1)
        self.assertEqual(kernel_trace.overlap(other, one), 9)
        self.assertEqual(kernel_trace.overlap(one, []), 0)

    def test_what_is_a_collective(self):
        trace = {"traceEvents": [
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 0, 10), kernel("gemm", 2, 5),
            kernel("Memcpy DtoD", 12, 13, "gpu_memcpy"), kernel("nccl:all_reduce", 0, 10, "gpu_user_annotation"),
            kernel("cudaLaunchKernel", 0, 1, "cuda_runtime"), {"ph": "M", "name": "process_name"}]}
        collectives, compute = kernel_trace.kernels(trace)
        self.assertEqual([(start, stop) for start, stop, _ in collectives], [(0, 10)])
        self.assertEqual(compute, [(2, 5), (12, 13)])
        kept = kernel_trace.intervals(trace)
        self.assertEqual(kept["collectives"], [[0, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"]])
        self.assertEqual(kept["compute"], [[2, 5], [12, 13]])

    def test_iterations(self):
        """Three iterations of 100 us, each with two collectives that overlap for 5 us, and compute beside the first."""
        events = []
        for n, extra in enumerate((0, 3, 9)):
            at = 100.0 * n
            events += [kernel("ncclA", at, at + 20 + extra), kernel("ncclB", at + 15, at + 40 + extra), kernel("gemm", at + 10, at + 18)]
        found = kernel_trace.summary({"traceEvents": events}, 3)
        self.assertTrue(found["split"])
        self.assertEqual((found["collective_us"], found["hidden_us"], found["exposed_us"]), (43, 8, 35))
        self.assertEqual(found["mean_collective_us"], 44)
        self.assertEqual((found["iteration_us"], found["compute_us"], found["collective_kernels"]), (100, 8, 6))
        self.assertEqual(found["by_name"]["ncclA"]["calls"], 3)
        uneven = kernel_trace.summary({"traceEvents": events}, 4)  # six kernels are no four iterations: means
        self.assertFalse(uneven["split"])
        self.assertAlmostEqual(uneven["collective_us"], 33)
        self.assertAlmostEqual(uneven["mean_collective_us"], 33)

    def test_an_empty_trace(self):
        found = kernel_trace.summary({}, 5)
        self.assertEqual((found["collective_us"], found["exposed_us"], found["collective_kernels"]), (0, 0, 0))
        self.assertEqual(kernel_trace.differences(found, found), {})

    def test_differences_are_shares_of_the_collective_time(self):
        kineto = {"collective_us": 200.0, "hidden_us": 50.0, "exposed_us": 150.0}
        ours = {"collective_us": 204.0, "hidden_us": 80.0, "exposed_us": 124.0}
        self.assertEqual(kernel_trace.differences(kineto, ours), {"collective_us": 2.0, "hidden_us": 15.0, "exposed_us": -13.0})


class Journals(unittest.TestCase):
    def test_cut(self):
        lines = [{"type": "journal", "version": 1, "time_ns": 1}, {"type": "communicator", "comm": 1}]
        for call in range(1, 6):
            lines.append({"type": "decision", "comm": 1, "call": call, "time_ns": 100 * call})
            lines.append({"type": "run", "comm": 1, "call": call, "time_ns": 100 * call + 150})  # late
        lines += [{"type": "run", "comm": 1, "call": 0, "time_ns": 320}, {"type": "step", "time_ns": 900}, {"type": "end"}]
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "j", Path(folder) / "new" / "j"
            source.write_text("\n".join(map(json.dumps, lines)) + "\nhalf a li")
            self.assertEqual(job_lab.cut(source, target, 250, 450), 2)
            kept = [json.loads(line) for line in target.read_text().splitlines()]
        self.assertEqual([(one["type"], one.get("call")) for one in kept],
                         [("journal", None), ("communicator", None), ("decision", 3), ("run", 3), ("decision", 4), ("run", 4), ("run", 0), ("end", None)])

    def test_windows(self):
        traces = [{"started_ns": 70, "window_ns": [100, 200]}, {"started_ns": 60, "window_ns": [110, 220]}]
        self.assertEqual(profile_lab.windows(traces), {"traced": (100, 220), "before": (0, 60)})

    def test_table(self):
        kineto = {"iteration_us": 28100.0, "collective_us": 9400.0, "exposed_us": 7000.0, "hidden_us": 2400.0}
        near = kineto | {"exposed_us": 7500.0, "hidden_us": 1900.0}
        far = kineto | {"exposed_us": 9000.0, "hidden_us": 400.0}
        text = profile_lab.table([profile_lab.row("ddp", "Kineto", kineto, None), profile_lab.row("ddp", "ours, traced", near, kineto),
                                  profile_lab.row("ddp", "ours, traced", far, kineto)])
        lines = text.splitlines()
        self.assertIn("28.100", lines[1])
        self.assertNotIn("within", lines[1])
        self.assertIn("exposed +5.3, hidden -5.3: within", lines[2])
        self.assertIn("exposed +21.3, hidden -21.3: MISSED", lines[3])


class FakeStore:
    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def add(self, key: str, amount: int) -> int:
        self.values[key] = self.values.get(key, 0) + amount
        return self.values[key]


class WholeJob(unittest.TestCase):
    def setUp(self):
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self.addCleanup(lambda: [signal.signal(number, handler) for number, handler in before.items()])

    def options(self, *arguments: str) -> argparse.Namespace:
        return whole_job.options_of(["--kind", "decode", *arguments])

    def test_kinds_are_those_of_the_labs(self):
        self.assertEqual(set(whole_job.KINDS), set(job_lab.TURN))
        self.assertEqual(set(whole_job.KINDS), set(profile_lab.ITERATIONS))
        text = (HERE / "whole_job_kinds.py").read_text()
        for kind in whole_job.KINDS:
            self.assertIn(f'"{kind}": ', text)
        compile(text, "whole_job_kinds.py", "exec")

    def test_wrong_options(self):
        for words in (["--iterations", "-1"], ["--print-every", "0"], ["--trace", "x", "--trace-iterations", "0"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                self.options(*words)

    def test_each_rank_is_a_host(self):
        self.assertEqual(whole_job.lab_environment(3), {"NCCL_HOSTID": "h3", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "LOCAL_RANK": "0"})

    def last(self, end: whole_job.End, start: int = 0) -> int:
        return next(n for n in range(start, 10000) if end.reached(n))

    def test_ends_by_iterations(self):
        self.assertEqual(self.last(whole_job.End(self.options("--iterations", "30"), FakeStore(), 1)), 30)

    def test_all_ranks_end_at_what_rank_0_says(self):
        store = FakeStore()
        ranks = [whole_job.End(self.options("--iterations", "500"), store, rank) for rank in range(4)]
        for n in range(40):
            self.assertFalse(any(end.reached(n) for end in ranks))
        ranks[2].ask()  # only one rank is asked; it passes on
        for end in (ranks[2], ranks[3], ranks[0], ranks[1]):
            self.assertFalse(end.reached(40))
        self.assertEqual({self.last(end, 41) for end in ranks}, {64})

    def test_the_earlier_end_counts(self):
        store = FakeStore()
        end = whole_job.End(self.options("--iterations", "20"), store, 0)
        end.ask()
        self.assertEqual(self.last(end), 20)

    def test_seconds(self):
        end = whole_job.End(self.options("--seconds", "5"), FakeStore(), 0)
        self.assertFalse(end.reached(0))
        end.begin -= 6
        self.assertFalse(end.reached(8))
        self.assertEqual(self.last(end, 9), 32)

    def test_typical(self):
        self.assertEqual(whole_job.typical([9.0] * 6 + [1.0, 2.0, 3.0]), 2.0)
        self.assertEqual(whole_job.typical([4.0]), 4.0)


class FakePlugin:
    def __init__(self) -> None:
        self.said: list = []

    def pin(self, config: tuple[int, int, int]) -> None:
        self.said.append(config)

    def unpin(self) -> None:
        self.said.append("unpin")

    def applied(self) -> tuple[int, int]:
        return 1, 0


class ArmsInTurns(unittest.TestCase):
    ROW = "allreduce,16385,32768,tree,simple,2,-1,4,-1,-1\n"

    def plan(self, **more: object) -> job_arms.Plan:
        return job_arms.Plan({"default": "", "tree": self.ROW, "own": None}, 2, 1, 7)

    def test_every_round_has_every_arm_once(self):
        plan = self.plan()
        for round_ in range(5):
            arms = [plan.place(n) for n in range(9 * round_, 9 * round_ + 9)]
            self.assertEqual({one[0] for one in arms}, {round_})
            self.assertEqual([counts for _, _, counts in arms], [False, True, True] * 3)
            self.assertEqual(sorted(arm for _, arm, _ in arms), sorted(["default", "tree", "own"] * 3))
        orders = {tuple(plan.place(n)[1] for n in range(9 * r, 9 * r + 9, 3)) for r in range(20)}
        self.assertGreater(len(orders), 3)

    def test_rounds_and_gains(self):
        plan = self.plan()
        speed = {"default": 3.0, "tree": 2.0, "own": 1.0}
        times = [speed[arm] if counts else 99.0 for _, arm, counts in (plan.place(n) for n in range(40))]
        rounds = plan.rounds(times)  # the fifth round is not whole, the first one warms up
        self.assertEqual(rounds, [speed] * 3)
        gains = job_arms.log_gains(rounds, "default")
        self.assertAlmostEqual(gains["own"][0], math.log(3))
        self.assertNotIn("default", gains)
        self.assertEqual(job_arms.log_gains([], "default"), {})

    def test_a_plan_survives_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan"
            self.plan().write(path)
            self.assertEqual(job_arms.Plan.read(path), self.plan())

    def test_pins_by_call(self):
        plugin = FakePlugin()
        arms = job_arms.Arms(self.plan(), plugin)
        arms.current = "tree"
        arms.call("allreduce", 32768, 4, lambda: plugin.said.append("call"))
        self.assertEqual(plugin.said, [(0, 2, 2), "call", job_arms.DEFAULT])
        self.assertEqual(arms.counts["tree"], [1, 0])
        plugin.said.clear()
        arms.call("allreduce", 65536, 4, lambda: plugin.said.append("call"))  # no row: as the arm leaves the rest
        arms.call("allreduce", 32768, 2, lambda: plugin.said.append("call"))
        self.assertEqual(plugin.said, ["call", "call"])
        for arm, rest in (("default", job_arms.DEFAULT), ("own", "unpin")):
            plugin.said.clear()
            arms.current = arm
            arms.rest()
            arms.call("allreduce", 32768, 4, lambda: plugin.said.append("call"))
            self.assertEqual(plugin.said, [rest, "call"])

    def test_bytes_are_those_of_all_ranks(self):
        arms = job_arms.Arms(self.plan(), FakePlugin())
        asked = []
        tensor = lambda count: argparse.Namespace(numel=lambda: count, element_size=lambda: 4)  # noqa: E731
        dist = argparse.Namespace(get_world_size=lambda group: 2 if group else 4, all_reduce=lambda *_, **__: "sum",
                                  all_gather_into_tensor=lambda *_, **__: "all", reduce_scatter_tensor=lambda *_, **__: "part")
        arms.install(dist)
        with mock.patch.object(arms, "call", lambda *a: (asked.append(a[:3]), a[3]())[1]):
            self.assertEqual(dist.all_reduce(tensor(8)), "sum")
            self.assertEqual(dist.all_gather_into_tensor(output_tensor=tensor(16), input_tensor=tensor(4)), "all")
            self.assertEqual(dist.reduce_scatter_tensor(tensor(4), tensor(16), group="g"), "part")
        self.assertEqual(asked, [("allreduce", 32, 4), ("allgather", 64, 4), ("reducescatter", 64, 2)])


class Rivals(unittest.TestCase):
    CONTEXT = job_rivals.Context("allreduce", 16385, 32768, 4)

    def test_contexts(self):
        profile = {"collectives": {"us": 1000.0}, "communicators": [{"ranks": 4}, {"ranks": 2}], "classes": [
            {"collective": "allreduce", "calls_per_iteration": 32, "us": 900.0, "least_bytes": 20000, "most_bytes": 32768, "communicator": 0},
            {"collective": "allreduce", "calls_per_iteration": 0.0, "us": 900.0, "least_bytes": 4, "most_bytes": 4, "communicator": 0},
            {"collective": "allgather", "calls_per_iteration": 1, "us": 1.0, "least_bytes": 4, "most_bytes": 4, "communicator": 0},
            {"collective": "broadcast", "calls_per_iteration": 1, "us": 90.0, "least_bytes": 4, "most_bytes": 4, "communicator": 0},
            {"collective": "reducescatter", "calls_per_iteration": 1, "us": 99.0, "least_bytes": 1048577, "most_bytes": 1048577, "communicator": 1}]}
        self.assertEqual(job_rivals.contexts_of(profile), [self.CONTEXT, job_rivals.Context("reducescatter", 1048577, 2097152, 2)])
        self.assertEqual(str(self.CONTEXT), "allreduce up to 32KiB, 4 ranks")

    def test_rows_are_a_policy(self):
        text = job_rivals.policy_of({self.CONTEXT: ("tree", "simple", 2), job_rivals.Context("allgather", 1, 2, 4): job_rivals.DEFAULT}, "title")
        rows = policy_file.parse_policy(text)
        self.assertEqual([(row.collective, row.min_bytes, row.max_bytes, str(row), row.ranks) for row in rows],
                         [("allreduce", 16385, 32768, "tree/simple ch<=2", 4)])

    def test_every_candidate_has_numbers(self):
        for collective, pairs in job_rivals.PAIRS.items():
            for algorithm, protocol in pairs:
                self.assertIn(algorithm, job_arms.ALGORITHMS)
                self.assertIn(protocol, job_arms.PROTOCOLS)
        self.assertEqual(len(job_rivals.candidates(self.CONTEXT, [0, 1, 2])), 12)

    def test_best(self):
        slow, fast = ("ring", "ll", 0), ("tree", "ll", 1)
        other = job_rivals.Context("allgather", 1, 2, 4)
        gains = {(self.CONTEXT, slow): [-0.1, 0.5, -0.1], (self.CONTEXT, fast): [0.1, 0.2, -0.3], (other, slow): [-0.2, -0.1, 0.3]}
        self.assertEqual(job_rivals.best_choices(gains), {self.CONTEXT: fast, other: job_rivals.DEFAULT})

    def test_descent(self):
        channels = [0, 1, 2, 4, 8, 16, 32]
        times = {choice: 3.0 + abs((choice[2] or 64) - 4) / 100 for choice in job_rivals.candidates(self.CONTEXT, channels)}
        times |= {choice: value - 2 for choice, value in times.items() if choice[:2] == ("ring", "ll")}
        times[job_rivals.DEFAULT] = 2.5
        asked = []
        found = job_rivals.Descent(self.CONTEXT, channels, lambda choice: (asked.append(choice), times[choice])[1]).run()
        self.assertEqual(found, ("ring", "ll", 4))
        self.assertEqual(len(asked), len(set(asked)))
        # The others are given up after two candidates at most three times as slow.
        self.assertLess(len([one for one in asked if one[:2] == ("tree", "ll")]), 6)

    def test_descent_keeps_the_default_that_nothing_beats(self):
        self.assertEqual(job_rivals.Descent(self.CONTEXT, [0, 1], lambda choice: 1.0 if choice == job_rivals.DEFAULT else 1.1).run(), job_rivals.DEFAULT)

    def test_replay(self):
        measure = job_rivals.replayed({(self.CONTEXT, ("tree", "ll", 0)): [math.log(2), 0.0]}, self.CONTEXT)
        self.assertEqual(measure(job_rivals.DEFAULT), 1.0)
        self.assertEqual([round(measure(("tree", "ll", 0)), 9) for _ in range(3)], [0.5, 1.0, 0.5])

    def test_what_a_bandit_uses(self):
        chosen = [{"collective": "allreduce", "least_bytes": 32768, "most_bytes": 32768, "algorithm": "tree", "protocol": "simple", "channels": 0},
                  {"collective": "allgather", "least_bytes": 4, "most_bytes": 4, "algorithm": "library", "protocol": "simple", "channels": 0}]
        rows = policy_file.parse_policy(job_rivals.policy_of_chosen(chosen, 4))
        self.assertEqual([(row.collective, row.min_bytes, row.max_bytes, str(row)) for row in rows], [("allreduce", 16385, 32768, "tree/simple")])


class Judgement(unittest.TestCase):
    def launch(self, tuned: float, best: float) -> dict:
        gains = {tune_job_lab.CONTROL: 0.0, tune_job_lab.TUNED: math.log(tuned), tune_job_lab.BEST: math.log(best)}
        return {"rounds": 9, "log_gains": gains, "ms": {tune_job_lab.BASE: 10.0} | {arm: 10.0 / math.exp(gain) for arm, gain in gains.items()}}

    def test_summary(self):
        rows, lines = tune_job_lab.summary("decode", [self.launch(1.5, 1.52), self.launch(1.54, 1.52), self.launch(1.52, 1.52)], 250.0)
        self.assertAlmostEqual(rows[tune_job_lab.TUNED]["gain"], 1.52, places=3)
        self.assertAlmostEqual(rows[tune_job_lab.TUNED]["of_best"], 1.0, places=3)
        self.assertLess(rows[tune_job_lab.TUNED]["low"], 1.5)
        text = "\n".join(lines)
        self.assertEqual(text.count("reached"), 4)
        self.assertNotIn("MISSED", text)

    def test_missed_bars(self):
        text = "\n".join(tune_job_lab.summary("decode", [self.launch(0.9, 1.5), self.launch(1.1, 1.5)], 301.0)[1])
        self.assertEqual(text.count("MISSED"), 4)

    def test_one_launch_has_no_interval(self):
        rows, lines = tune_job_lab.summary("ddp", [self.launch(1.1, 1.1)], None)
        self.assertIsNone(rows[tune_job_lab.TUNED]["low"])
        self.assertIn("not known", "\n".join(lines))

    def test_times(self):
        self.assertEqual([tune_job_lab.seconds_of(text) for text in ("90s", "4m", "1h", "12")], [90, 240, 3600, 12])


class Options(unittest.TestCase):
    def test_wrong_ones_say_what_there_is(self):
        for lab, words, said in ((profile_lab, ["--kinds", "decode,x"], "no x; there are decode"), (profile_lab, ["--parts", "x"], "there are profile"),
                                 (tune_job_lab, ["--kind", "decode", "--parts", "x"], "there are tune"),
                                 (tune_job_lab, ["--kind", "decode", "--limits", "pins"], "pins:90"),
                                 (tune_job_lab, ["--kind", "decode", "--budget", "long"], "90s or 4m")):
            errors = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(errors):
                lab.options_of(["--tool", "diapason", *words])
            self.assertIn(said, errors.getvalue())

    def test_command_line_of_a_job(self):
        lab = job_lab.JobLab(Path("/t/bin/diapason"), Path("/w"), group.Deadline(1), {"CUDA_MPS_PIPE_DIRECTORY": "/p"}, ranks=4)
        words = lab.job("ddp", "--seconds", 5)
        self.assertEqual(words[:3], [sys.executable, "-m", "torch.distributed.run"])
        self.assertEqual(words[words.index("--nproc-per-node") + 1], "4")
        self.assertEqual(words[-6:], [str(HERE / "whole_job.py"), "--kind", "ddp", "--lab", "--seconds", "5"])
        with mock.patch.dict(os.environ, {"NCCL_ALGO": "Ring", "DIAPASON_MODE": "off"}):
            found = lab.environment({"DIAPASON_TURN": "300"})
        self.assertEqual((found["CUDA_MPS_PIPE_DIRECTORY"], found["DIAPASON_TURN"]), ("/p", "300"))
        self.assertFalse({"NCCL_ALGO", "DIAPASON_MODE"} & set(found))

    def test_skip_without_the_tool(self):
        for lab, more in (("profile_lab.py", []), ("tune_job_lab.py", ["--kind", "decode"])):
            done = subprocess.run([sys.executable, str(HERE / lab), "--tool", "/nonexistent/diapason", *more], capture_output=True, text=True, timeout=600)
            self.assertEqual((done.returncode, done.stdout), (77, "SKIP: no tool /nonexistent/diapason\n"))


if __name__ == "__main__":
    unittest.main()
