"""tuned(), StepCallback and report(): what a program does with the package beside init().

    job_test.py BUILD_FOLDER FAKE_NCCL

Hugging Face's Trainer and Lightning are stand-ins here (played_trainers.py).
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

from api_test import BUILD, PLUGIN, ROOT, ROW, Case
from played_trainers import PlayedCallback, PlayedLightning, PlayedTrainer

import diapason  # noqa: E402
from diapason import _callback, _files, _journals, _plugin, _setup, _tool

FAKE = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else str(BUILD / "lib/fakes/libnccl-fake.so")
ANY = ROW.replace(",1,8,", ",-1,-1,")  # for communicators of any size
JOURNALS = ROOT / "tests/data/journals"


def torch_on_nccl() -> types.ModuleType:
    dist = types.ModuleType("torch.distributed")
    dist.is_available = dist.is_initialized = lambda: True
    dist.get_backend = lambda group=None: "nccl"
    dist.distributed_c10d = types.SimpleNamespace(_world=types.SimpleNamespace(pg_map={"group": 1}))
    return dist


class TunedTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(setattr, _setup, "block", None)

    def test_environment_is_as_before(self) -> None:
        os.environ["DIAPASON_MODE"] = "observe"
        before = dict(os.environ)
        with diapason.tuned(self.policy, mode="static") as setup:
            self.assertEqual((os.environ["DIAPASON_POLICY"], os.environ["DIAPASON_MODE"]), (str(self.policy), "static"))
            self.assertEqual(os.environ["NCCL_TUNER_PLUGIN"], PLUGIN)
            self.assertIs(diapason.current(), setup)
            os.environ["DIAPASON_POLICY"] = "/changed/inside.conf"
        self.assertEqual(dict(os.environ), before)
        self.assertIsNone(diapason.current())

    def test_an_exception_leaves_nothing(self) -> None:
        before = dict(os.environ)
        with self.assertRaises(ZeroDivisionError):
            with diapason.tuned(self.policy):
                raise ZeroDivisionError
        self.assertEqual(dict(os.environ), before)
        with diapason.tuned(self.policy):
            diapason.cleanup()
        self.assertEqual(dict(os.environ), before)

    def test_what_init_has_set_comes_back(self) -> None:
        outer = diapason.init(mode="learn", journal=self.folder / "j.%p")
        before = dict(os.environ)
        with diapason.tuned(self.policy):
            self.assertNotIn("DIAPASON_JOURNAL", os.environ, "it replaces init()")
        self.assertEqual(dict(os.environ), before)
        self.assertIs(diapason.current(), outer)

    def test_refusals_change_nothing(self) -> None:
        before = dict(os.environ)
        self.policy.with_name("bad.conf").write_text(ROW.replace("tree", "tre"))
        for text, arguments in (("there is no such file", {"policy": self.folder / "nothing.conf"}), ("needs a policy file", {"policy": None}),
                                ("bad.conf:1:27: unknown algorithm 'tre'", {"policy": self.folder / "bad.conf"}),
                                ("mode='lern'", {"policy": self.policy, "mode": "lern"}),
                                ("no setting 'jornal'", {"policy": self.policy, "jornal": "x"})):
            with self.assertRaisesRegex(ValueError, text):
                with diapason.tuned(**arguments):
                    self.fail("entered")
            self.assertEqual(dict(os.environ), before)
        with mock.patch.object(_files, "find_plugin", lambda: None), self.assertRaisesRegex(RuntimeError, "was not found; looked in"):
            diapason.tuned(self.policy).__enter__()

    def test_no_block_inside_a_block(self) -> None:
        before = dict(os.environ)
        with diapason.tuned(self.policy):
            inside = dict(os.environ)
            with self.assertRaisesRegex(RuntimeError, r"tuned\(\) inside diapason.tuned\(\)"):
                diapason.tuned(self.policy).__enter__()
            with self.assertRaisesRegex(RuntimeError, r"init\(\) inside diapason.tuned\(\)"):
                diapason.init(policy=self.policy)
            self.assertEqual(dict(os.environ), inside)
        self.assertEqual(dict(os.environ), before)
        block = diapason.tuned(self.policy)
        for _ in range(2):  # one after the other is fine
            with block:
                self.assertIn("DIAPASON_POLICY", os.environ)
        self.assertEqual(dict(os.environ), before)

    def test_after_nccl_was_initialized_without_the_plugin(self) -> None:
        with mock.patch.dict(sys.modules, {"torch.distributed": torch_on_nccl()}):
            with self.assertRaisesRegex(RuntimeError, r"tuned\(\) comes too late: torch.distributed already has a process group on NCCL"):
                diapason.tuned(self.policy).__enter__()
        self.assertNotIn("NCCL_TUNER_PLUGIN", os.environ)

    def test_another_plugin_file_in_the_process(self) -> None:
        with mock.patch.object(_plugin, "available", lambda: True), mock.patch.object(_plugin, "loaded_path", lambda: "/other/plugin.so"):
            with self.assertRaisesRegex(RuntimeError, "the plugin /other/plugin.so is already in this process, and not"):
                diapason.tuned(self.policy).__enter__()

    def test_each_communicator_keeps_the_policy_of_its_block(self) -> None:
        """On a played library, in a process of its own, with the real plugin."""
        other = self.folder / "other.conf"
        other.write_text(ANY.replace("tree,simple", "ring,simple"))
        self.policy.write_text(ANY)
        code = (f"import os, sys\nsys.path[:0] = [{str(ROOT / 'python')!r}, {str(Path(__file__).parent)!r}]\n"
                "import json, diapason, played_nccl\nran = []\n"
                f"with diapason.tuned({str(self.policy)!r}):\n    library = played_nccl.Library({FAKE!r})\n"
                "    first = played_nccl.Communicator(library, 1, 0, 1)\n    ran.append(first.all_reduce(4 << 20))\n"
                f"with diapason.tuned({str(other)!r}):\n    second = played_nccl.Communicator(library, 2, 0, 1)\n"
                "    ran += [second.all_reduce(4 << 20), first.all_reduce(4 << 20)]\n"
                "third = played_nccl.Communicator(library, 3, 0, 1)\nran += [third.all_reduce(4 << 20), second.all_reduce(4 << 20)]\n"
                "left = [name for name in os.environ if name.startswith(('NCCL_', 'DIAPASON_POLICY'))]\n"
                "for one in (first, second, third):\n    one.destroy()\nprint(json.dumps([ran, left]))")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        tree_simple, ring_simple, ring_ll = [0, 2], [1, 2], [1, 0]  # ring/ll is what the library would take
        self.assertEqual(json.loads(done.stdout), [[tree_simple, ring_simple, tree_simple, ring_ll, ring_simple], []])


class CallbackTest(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch.object(_callback, "step")
        self.step = patch.start()
        self.addCleanup(patch.stop)

    def lightning(self, name: str = "lightning.pytorch") -> None:
        module = types.ModuleType(name)
        module.Callback = PlayedCallback
        patch = mock.patch.dict(sys.modules, {"lightning.pytorch": None, "pytorch_lightning": None, name: module})
        patch.start()
        self.addCleanup(patch.stop)

    def test_hugging_face(self) -> None:
        for accumulate in (1, 4):
            self.step.reset_mock()
            PlayedTrainer([diapason.StepCallback()], accumulate).train(6)
            self.assertEqual(self.step.call_count, 6)
        PlayedTrainer([diapason.StepCallback()]).evaluate()
        self.assertEqual(self.step.call_count, 6)

    def test_hugging_face_beside_lightning(self) -> None:
        self.lightning()
        PlayedTrainer([diapason.StepCallback()]).train(6)
        self.assertEqual(self.step.call_count, 6)

    def test_lightning(self) -> None:
        for name in ("lightning.pytorch", "pytorch_lightning"):
            self.lightning(name)
            for accumulate, optimizers, begin, want in ((1, 1, 0, 8), (4, 1, 0, 2), (1, 2, 0, 8), (8, 1, 100, 1), (9, 1, 100, 0)):
                self.step.reset_mock()
                PlayedLightning([diapason.StepCallback()], accumulate, optimizers, begin).fit(8)
                self.assertEqual(self.step.call_count, want, (accumulate, optimizers, begin))

    def test_one_callback_in_two_trainings(self) -> None:
        self.lightning()
        callback = diapason.StepCallback()
        for _ in range(2):
            PlayedLightning([callback], 4).fit(8)
        self.assertEqual(self.step.call_count, 4)

    def test_without_lightning_it_is_none_of_its_callbacks(self) -> None:
        callback = diapason.StepCallback()
        self.assertIs(type(callback), diapason.StepCallback)
        with self.assertRaisesRegex(AttributeError, "'StepCallback' object has no attribute 'state'"):
            callback.state

    def test_it_can_be_sent_to_other_processes(self) -> None:
        self.lightning()
        again = pickle.loads(pickle.dumps(diapason.StepCallback()))
        self.assertIsInstance(again, PlayedCallback)
        self.assertIsInstance(again, diapason.StepCallback)

    def test_classes_of_users(self) -> None:
        self.lightning()

        class Own(diapason.StepCallback, PlayedCallback):
            pass

        self.assertIs(type(Own()), Own)

    def test_it_imports_nothing(self) -> None:
        code = ("import sys, diapason\ndiapason.StepCallback()\n"
                "print([one for one in ('torch', 'transformers', 'lightning', 'pytorch_lightning', 'pandas') if one in sys.modules])")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(done.stdout, "[]\n", done.stderr)


class RunReportTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(_journals.remember, None)
        self.addCleanup(setattr, _setup, "block", None)
        _journals.remember(None)

    def copy(self, name: str, to: str) -> None:
        (self.folder / to).write_bytes((JOURNALS / name).read_bytes())

    def test_named_files(self) -> None:
        found = diapason.report(files=str(JOURNALS / "agree.*"))
        self.assertIs(found.agree, True)
        self.assertEqual(len(found.files), 2)
        self.assertEqual((found.problems, found.modes), ([], ["static"]))
        rows = {(row["bytes"], row["ran"]): row for row in found.calls}
        row = rows[65536, "tree/simple, 4 channels"]
        self.assertEqual((row["communicator"], row["ranks"], row["calls"], row["asked"], row["default"], row["reason"], row["us"]),
                         ("dp", 2, 2, "tree/simple, 8 channels", "ring/ll", "row", 22.0))
        self.assertEqual(rows[2 << 20, "bypassed"]["asked"], "")
        self.assertEqual([(row["calls"], row["replays"]) for row in found.calls if row["bytes"] == 4096], [(8, 2)])
        self.assertEqual(found.learning, [])
        self.assertIn("all ranks chose the same", str(found))
        self.assertEqual(repr(found), "<diapason.Report of 2 journals: 2 ranks, 7 calls: all ranks chose the same for every call>")

    def test_learning(self) -> None:
        found = diapason.report(files=[JOURNALS / "learn.1.jsonl", JOURNALS / "learn.0.jsonl"])
        self.assertEqual([(row["configuration"], row["state"], row["up_to"]) for row in found.learning], [
            ("library default", "left", 1 << 20), ("tree/simple", "in use", 1 << 20), ("tree/ll128", "left", 1 << 20)])

    def test_ranks_that_differ(self) -> None:
        found = diapason.report(files=str(JOURNALS / "disagree.*"))
        self.assertIs(found.agree, False)
        self.assertIn("the ranks chose differently for 2 calls of 4", found.problems)
        self.assertIn("<li>problem: the ranks chose differently", found._repr_html_())

    def test_one_journal_cannot_be_compared(self) -> None:
        found = diapason.report(files=JOURNALS / "agree.0.jsonl")
        self.assertIsNone(found.agree)
        self.assertEqual(found.problems, [])
        self.assertIs(diapason.report(files=[JOURNALS / "agree.0.jsonl", JOURNALS / "garbage.jsonl"]).agree, False)

    def test_html_is_escaped(self) -> None:
        text = (JOURNALS / "agree.0.jsonl").read_text().replace('"dp"', '"<script>alert(1)</script>"')
        (self.folder / "j").write_text(text)
        html = diapason.report(files=self.folder / "j")._repr_html_()
        self.assertNotIn("<script>", html)
        self.assertIn("<td>&lt;script&gt;", html)

    def test_journals_of_the_last_run(self) -> None:
        self.copy("disagree.0.jsonl", "j.1")
        self.copy("disagree.1.jsonl", "j.700")
        pattern = str(self.folder / "j.%p")
        for begin in (lambda: diapason.env(journal=pattern), lambda: diapason.init(journal=pattern),
                      lambda: diapason.tuned(self.policy, journal=pattern).__enter__()):
            _journals.remember(None)
            begin()
            with self.assertRaisesRegex(RuntimeError, r"has written no journal .*j\.%p \(yet\)"):
                diapason.report()
            (self.folder / "j.700").unlink(missing_ok=True)
            self.copy("agree.0.jsonl", "j.700")
            self.copy("agree.1.jsonl", "j.701.701")  # the name was in use
            self.copy("agree.1.jsonl", "j.copy")
            self.assertEqual([os.path.basename(one) for one in diapason.report().files], ["j.700", "j.701.701"])
            for name in ("j.700", "j.701.701", "j.copy"):
                (self.folder / name).unlink()

    def test_journal_of_a_launcher(self) -> None:
        os.environ["DIAPASON_JOURNAL"] = str(self.folder / "j.%p")
        self.copy("agree.1.jsonl", "j.1")
        with self.assertRaisesRegex(RuntimeError, "has written no journal"):
            diapason.report()
        self.copy("agree.0.jsonl", f"j.{os.getpid()}")
        self.assertEqual(diapason.report().files, [str(self.folder / f"j.{os.getpid()}")])

    def test_refusals(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "no journal was asked for in this process"):
            diapason.report()
        with self.assertRaisesRegex(ValueError, "there is no file /nope/j"):
            diapason.report(files="/nope/j.*")
        with self.assertRaisesRegex(RuntimeError, "is not a journal"):
            diapason.report(files=self.policy)
        for bad in ([], 7):
            with self.assertRaisesRegex(TypeError, "files= takes file names"):
                diapason.report(files=bad)
        for arguments, more in ((("allreduce",), {}), (("allreduce", 1), {}), (("allreduce", 1, 1.0), {"files": "j"})):
            with self.assertRaisesRegex(TypeError, r"report\(\): it takes a collective, its bytes and its milliseconds, or files="):
                diapason.report(*arguments, **more)
        for tool in (None, "/bin/true"):
            with mock.patch.object(_tool, "find_tool", lambda: tool), self.assertRaisesRegex(RuntimeError, r"diapason\.report\(\)"):
                diapason.report(files=JOURNALS / "agree.0.jsonl")

    def test_frame(self) -> None:
        found = diapason.report(files=str(JOURNALS / "learn.*"))
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(RuntimeError, r"needs pandas, which cannot be imported.*The rows are in \.calls"):
                found.frame()
        played = types.ModuleType("pandas")
        played.DataFrame = lambda rows, columns: (rows, columns)
        with mock.patch.dict(sys.modules, {"pandas": played}):
            self.assertEqual(found.frame(), (found.calls, list(found.calls[0])))
            self.assertEqual(found.frame("learning"), (found.learning, list(found.learning[0])))
            with self.assertRaisesRegex(ValueError, "there is no table 'rows'; known are calls, learning"):
                found.frame("rows")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
