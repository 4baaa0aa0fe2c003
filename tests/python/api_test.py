"""env(), init(), cleanup() and what they refuse; the judgement of verify(). Needs no plugin in the process.

    api_test.py BUILD_FOLDER
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import typing
import unittest
import warnings
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build/release"
sys.path.insert(0, str(ROOT / "python"))

import diapason  # noqa: E402
from diapason import _files, _found, _settings, _tool, _verify  # noqa: E402

PLUGIN = str(BUILD / "lib/libnccl-tuner-diapason.so")
TOOL = str(BUILD / "bin/diapason")
ROW = "allreduce,1048576,8388608,tree,simple,-1,1,8,-1,-1\n"


class Case(unittest.TestCase):
    def setUp(self) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "DIAPASON_", "SLURM_"))}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            clean.pop(name, None)
        patch = mock.patch.dict(os.environ, {**clean, "DIAPASON_LIB_DIR": str(BUILD / "lib")}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(diapason.cleanup)
        tool = mock.patch.object(_tool, "find_tool", lambda: TOOL)
        tool.start()
        self.addCleanup(tool.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.policy = self.folder / "my.conf"
        self.policy.write_text(ROW)

    def refuses(self, text: str, **arguments: object) -> None:
        before = dict(os.environ)
        for call in (diapason.env, diapason.init):
            with self.assertRaisesRegex(ValueError, text):
                call(**arguments)
        self.assertEqual(dict(os.environ), before)


class EnvTest(Case):
    def test_env_touches_nothing(self) -> None:
        before = dict(os.environ)
        found = diapason.env(policy=self.policy, mode="learn", learned=self.folder / "l.conf", journal=self.folder / "j.%p")
        self.assertEqual(found, {
            "NCCL_TUNER_PLUGIN": PLUGIN, "NCCL_PROFILER_PLUGIN": PLUGIN, "DIAPASON_POLICY": str(self.policy),
            "DIAPASON_MODE": "learn", "DIAPASON_LEARNED": str(self.folder / "l.conf"),
            "DIAPASON_JOURNAL": str(self.folder / "j.%p")})
        self.assertEqual(dict(os.environ), before)

    def test_settings_by_name(self) -> None:
        found = diapason.env(store="shm", overlap=True, margin=0.05, explore_budget="5%", journal_limit="2MiB", join_limit=3,
                             epsilon=0.00001, mode="LEARN", reward="step", journal_tables=False, learn_memory=1 << 30)
        self.assertEqual({k[9:]: v for k, v in found.items() if k.startswith("DIAPASON_")}, {
            "STORE": "shm", "OVERLAP": "1", "MARGIN": "0.05", "EXPLORE_BUDGET": "5%", "JOURNAL_LIMIT": "2MiB", "JOIN_LIMIT": "3",
            "EPSILON": "0.00001", "MODE": "learn", "REWARD": "step", "JOURNAL_TABLES": "0", "LEARN_MEMORY": str(1 << 30)})
        # What is accepted here is accepted by the plugin.
        done = subprocess.run([TOOL, "settings", "--json"], env={**os.environ, **found}, capture_output=True, text=True, timeout=600)
        self.assertEqual((json.loads(done.stdout)["problems"], json.loads(done.stdout)["warnings"]), ([], []))

    def test_table_is_the_tools(self) -> None:
        done = subprocess.run([TOOL, "settings", "--json"], capture_output=True, text=True, timeout=600)
        self.assertEqual(_settings.BOUNDS, {one["name"][len("DIAPASON_"):]: one["bounds"] for one in json.loads(done.stdout)["settings"]})

    def test_relative_files_become_absolute(self) -> None:
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.assertEqual(diapason.env(policy="my.conf")["DIAPASON_POLICY"], str(Path.cwd() / "my.conf"))

    def test_inline(self) -> None:
        found = diapason.env(policy=self.policy, inline=True)
        self.assertNotIn("DIAPASON_POLICY", found)
        self.assertRegex(found["DIAPASON_POLICY_INLINE"], r"^d1\.[\w.-]+$")
        self.refuses("inline=True needs a policy", inline=True)

    def test_inline_of_the_launcher_does_not_win_over_an_argument(self) -> None:
        os.environ["DIAPASON_POLICY_INLINE"] = diapason.env(policy=self.policy, inline=True)["DIAPASON_POLICY_INLINE"]
        self.assertEqual(diapason.env(policy=self.policy)["DIAPASON_POLICY_INLINE"], "")
        self.assertNotIn("DIAPASON_POLICY_INLINE", diapason.env())

    def test_another_tuner_is_chained(self) -> None:
        os.environ["NCCL_TUNER_PLUGIN"] = "libnccl-ofi-tuner.so"
        self.assertEqual(diapason.env()["DIAPASON_CHAIN"], "libnccl-ofi-tuner.so")
        self.assertEqual(diapason.env(chain=False)["DIAPASON_CHAIN"], "none")
        os.environ["NCCL_TUNER_PLUGIN"] = "None"  # the site wants no tuner: the plugin must not look for one
        self.assertEqual(diapason.env()["DIAPASON_CHAIN"], "none")
        os.environ["DIAPASON_CHAIN"] = "ofi"
        self.assertNotIn("DIAPASON_CHAIN", diapason.env(), "what was set stays")
        del os.environ["DIAPASON_CHAIN"]
        for ours in ("", "diapason", "/x/libnccl-tuner-diapason.so", "/x/librccl-tuner-diapason.so"):
            os.environ["NCCL_TUNER_PLUGIN"] = ours
            self.assertNotIn("DIAPASON_CHAIN", diapason.env(), ours)
        self.refuses("chain= takes", chain=True)
        self.assertEqual(diapason.env(chain="ofi")["DIAPASON_CHAIN"], "ofi", "the loader looks for it")
        self.assertEqual(diapason.env(chain=PLUGIN)["DIAPASON_CHAIN"], PLUGIN)
        self.refuses("chain: there is no file /nope/tuner.so", chain="/nope/tuner.so")
        self.assertEqual(diapason.env(chain="/nope/tuner.so", check=False)["DIAPASON_CHAIN"], "/nope/tuner.so")
        os.environ["NCCL_TUNER_PLUGIN"] = "/nope/tuner.so"  # somebody else's; the plugin goes on without it
        self.assertEqual(diapason.env()["DIAPASON_CHAIN"], "/nope/tuner.so")

    def test_another_profiler_is_chained(self) -> None:
        os.environ["NCCL_PROFILER_PLUGIN"] = "libother.so"
        for mode in ("static", "learn"):
            found = diapason.env(policy=self.policy, mode=mode)
            self.assertEqual([found["NCCL_PROFILER_PLUGIN"], found["DIAPASON_PROFILER_CHAIN"]], [PLUGIN, "libother.so"])
        os.environ["DIAPASON_PROFILER_CHAIN"] = "none"
        self.assertNotIn("DIAPASON_PROFILER_CHAIN", diapason.env(policy=self.policy))
        self.assertEqual(diapason.env(policy=self.policy, profiler_chain="libthird.so")["DIAPASON_PROFILER_CHAIN"],
                         "libthird.so")

    def test_no_profiler_stays_and_learning_is_refused(self) -> None:
        os.environ["NCCL_PROFILER_PLUGIN"] = "none"
        self.assertNotIn("NCCL_PROFILER_PLUGIN", diapason.env(policy=self.policy))
        self.refuses("learning needs the profiler half.*none", mode="learn")
        self.refuses("comparing needs the profiler half.*none", mode="compare", policy=self.policy)

    def test_comparing_needs_a_policy(self) -> None:
        with self.assertWarnsRegex(RuntimeWarning, "there is no policy; pass policy="):
            diapason.env(mode="compare")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(diapason.env(mode="compare", policy=self.policy, turn=500)["DIAPASON_TURN"], "500")

    def test_several_hosts_need_a_store(self) -> None:
        os.environ.update(WORLD_SIZE="16", LOCAL_WORLD_SIZE="8")
        with self.assertWarnsRegex(RuntimeWarning, "on several hosts"):
            diapason.env(mode="learn")
        with self.assertWarnsRegex(RuntimeWarning, "nothing will be compared"):
            diapason.env(mode="compare", policy=self.policy)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            diapason.env(mode="learn", store="redis://host")
            os.environ["LOCAL_WORLD_SIZE"] = "16"
            diapason.env(mode="learn")


class RefusalTest(Case):
    def test_values(self) -> None:
        self.refuses("mode='lern' is not one of its values; did you mean 'learn'", mode="lern")
        self.refuses("no setting 'polcy'; did you mean 'policy'", polcy="x")
        self.refuses("no setting 'MODE'", MODE="learn")
        for bad in (1.5, -0.1, "a", "nan", float("inf"), "1e-5"):
            self.refuses("margin=.* cannot be used; it takes a share", margin=bad)
        self.refuses("join_limit='0' cannot be used; it takes 1 to 3600", join_limit=0)
        self.refuses("journal_limit=.* cannot be used", journal_limit="1KiB")
        self.refuses("overlap=.* cannot be used", overlap="maybe")
        self.refuses("neither text nor a number", job=object())
        for bad_text in ("a\0b", "a\nb"):
            self.refuses("cannot be in an environment variable", job=bad_text)
        for empty in ("", "  ", b""):
            for name in ("job", "policy", "mode", "policy_inline"):
                self.refuses(f"{name}: an empty value sets nothing; leave it out, or pass None", **{name: empty})

    def test_booleans_are_no_numbers_and_no_text(self) -> None:
        self.refuses("margin=True cannot be used; it takes a share", margin=True)
        self.refuses("join_limit=True cannot be used; it takes 1 to 3600", join_limit=True)
        self.refuses("learn_memory=False cannot be used", learn_memory=False)
        self.refuses("job=True cannot be used; it takes text", job=True)
        self.refuses("policy=False cannot be used", policy=False)

    def test_stores(self) -> None:
        for good in ("shm", "file:/shared", "redis://host", "redis://h:1/2", "redis://me:a%40b@h", "redis://[::1]:7000/3", "redis://:p@h:1/"):
            self.assertEqual(diapason.env(store=good)["DIAPASON_STORE"], good)
        self.refuses("store cannot be used: unknown store 'bogus'; known are shm, file:/a/folder and redis", store="bogus")
        self.refuses("unknown store 'rediss'", store="rediss://:secret@host")
        self.refuses("a folder is written with its full path", store="file:shared")
        for bad in ("redis://", "redis://:secret@", "redis://me:secret@:6379", "redis:///3", "redis://[]:1"):
            with self.assertRaisesRegex(ValueError, "store cannot be used: redis:// is followed by a host") as caught:
                diapason.env(store=bad)
            self.assertNotIn("secret", str(caught.exception))
        os.environ["DIAPASON_STORE"] = "bogus"
        self.refuses("DIAPASON_STORE cannot be used: unknown store")

    def test_inline_texts(self) -> None:
        for library, fine in (("nccl", True), ("rccl", True), ("gloo", False), ("openmpi", False)):
            row = ROW if fine else "allreduce,1,8388608,ring,-1,-1,-1,-1,-1,-1\n"
            self.policy.write_text(f"# diapason: version=1 library={library}\n{row}")
            text = _tool.inline_policy(str(self.policy))
            if fine:
                self.assertEqual(diapason.env(policy_inline=text)["DIAPASON_POLICY_INLINE"], text)
                self.refuses("policy_inline cannot be used: it does not add up", policy_inline=text[:5] + "zz" + text[7:])
            else:
                self.refuses("policy_inline cannot be used: the policy is for another library", policy_inline=text)
        for bad in ("d1.xx", "nonsense", text[:-1], text[3:], ROW.strip()):
            self.refuses("policy_inline cannot be used: it is not what `diapason policy env FILE` writes", policy_inline=bad)

    def test_policies_for_other_libraries(self) -> None:
        for library in ("gloo", "openmpi"):
            self.policy.write_text(f"# diapason: version=1 library={library}\nallreduce,1,8388608,ring,-1,-1,-1,-1,-1,-1\n")
            for more in ({"policy": self.policy}, {"policy": self.policy, "inline": True}, {"learned": self.policy}):
                self.refuses(f"my.conf: the policy is for {library}, not for nccl or rccl", **more)
        self.policy.write_text(f"# diapason: version=1 library=rccl\n{ROW}")
        self.refuses("the policy is for rccl, not for nccl", policy=self.policy, library="nccl")
        for library in ("rccl", "auto", None):
            self.assertIn("DIAPASON_POLICY_INLINE", diapason.env(policy=self.policy, inline=True, library=library))

    def test_what_is_already_set_is_checked(self) -> None:
        os.environ["DIAPASON_MODE"] = "lern"
        self.refuses("DIAPASON_MODE='lern' is not one of its values; did you mean 'learn'")
        self.assertEqual(diapason.env(mode="static")["DIAPASON_MODE"], "static", "an argument wins")
        os.environ["DIAPASON_MODE"] = ""
        os.environ["DIAPASON_JUORNAL"] = "x"
        with self.assertWarnsRegex(RuntimeWarning, "DIAPASON_JUORNAL is no setting; did you mean 'diapason_journal'"):
            diapason.env()

    def test_policies(self) -> None:
        self.refuses("nothing.conf cannot be used: there is no such file", policy=self.folder / "nothing.conf")
        self.refuses("cannot be used: it is not a file", policy=self.folder)
        self.policy.write_bytes(b"allreduce\0")
        self.refuses("cannot be used: it is not text", policy=self.policy)
        self.policy.write_text(ROW.replace("tree", "tre") + ROW.replace("simple", "smple"))
        self.refuses(r"my.conf:1:27: unknown algorithm 'tre'; did you mean 'tree'\? \(and 1 more\)", policy=self.policy)
        self.refuses("unknown algorithm", policy=self.policy, inline=True)
        self.refuses("unknown algorithm", learned=self.policy)
        self.assertIn("DIAPASON_POLICY", diapason.env(policy=self.policy, check=False))

    def test_without_the_tool_a_policy_is_hardly_checked(self) -> None:
        self.policy.write_text("nonsense\n")
        for broken in (None, "/nonexistent/diapason", "/bin/true", "/bin/false"):
            with mock.patch.object(_tool, "find_tool", lambda: broken):
                setup = diapason.init(policy=self.policy)
                self.assertIn("not read strictly", " ".join(setup.notes))
        with mock.patch.object(_tool, "find_tool", lambda: None):
            self.refuses("inline=True needs the command-line tool", policy=self.policy, inline=True)

    def test_folders(self) -> None:
        self.refuses("learned: .* cannot be written: .*/no is no folder", learned=self.folder / "no" / "x.conf")
        self.refuses("journal: .* cannot be written", journal=self.folder / "no" / "j")
        os.environ["RANK"] = "1"
        diapason.env(learned=self.folder / "no" / "x.conf")  # only rank 0 writes it

    def test_plugins(self) -> None:
        self.refuses("there is no plugin file /nope.so", plugin="/nope.so")
        self.refuses("is no shared library", plugin=self.policy)
        self.refuses("/bin/ls is not diapason's plugin", plugin="/bin/ls")
        deep = self.folder / ("d" * 120) / ("e" * 120)
        deep.mkdir(parents=True)
        (deep / "libnccl-tuner-diapason.so").symlink_to(PLUGIN)
        self.refuses("longer than the 254 characters", plugin=deep / "libnccl-tuner-diapason.so")

    def test_no_plugin(self) -> None:
        with mock.patch.object(_files, "_candidates", lambda: iter([("the system", self.folder / "x.so")])):
            self.assertIsNone(diapason.library_path())
            with self.assertRaisesRegex(RuntimeError, "was not found; looked in .*the system.*Install the wheel or the Debian package"):
                diapason.init()
            with self.assertWarnsRegex(RuntimeWarning, "the library decides alone"):
                setup = diapason.init(required=False)
            with self.assertWarnsRegex(RuntimeWarning, "the library decides alone"):
                self.assertEqual(diapason.env(required=False), {})
        self.assertEqual((setup.plugin, dict(setup.environment), "NCCL_TUNER_PLUGIN" in os.environ), (None, {}, False))

    def test_one_that_cannot_be_used_is_none_where_none_is_required(self) -> None:
        for plugin, why in (("/nope.so", "there is no plugin file /nope.so"), (self.policy, "is no shared library"),
                            ("/bin/ls", "is not diapason's plugin")):
            with self.assertWarnsRegex(RuntimeWarning, f"{why}; the library decides alone"):
                setup = diapason.init(required=False, plugin=plugin)
            self.assertEqual((setup.plugin, dict(setup.environment)), (None, {}))


class ReportTest(unittest.TestCase):
    NAMES = ("allreduce", "all_reduce", "All-Reduce", "all gather", "reducescatter", "broadcast", "bcast", "reduce")
    WRONG = (("foo", 1, 1), ("alltoall", 1, 1), ("", 1, 1), ("allreduce\0", 1, 1), ("allreduce", -1, 1), ("allreduce", 1 << 63, 1),
             ("allreduce", 1, 0), ("allreduce", 1, -1), ("allreduce", 1, float("nan")), ("allreduce", 1, float("inf")), ("allreduce", 1, 1e9),
             ("allreduce", 1, 10 ** 400))
    TYPES = ((None, 1, 1), (b"allreduce", 1, 1), ("allreduce", "1K", 1), ("allreduce", None, 1), ("allreduce", 1.5, 1),
             ("allreduce", 1, None), ("allreduce", 1, "1"), ("allreduce", 1, b"1"))

    def test_without_the_plugin(self) -> None:
        for name in self.NAMES:
            self.assertIs(diapason.report(name, 1024, 1.5), False)
        for wrong in self.WRONG:
            with self.assertRaisesRegex(ValueError, r"^report\(\): ", msg=str(wrong)):
                diapason.report(*wrong)
        for wrong in self.TYPES:
            with self.assertRaisesRegex(TypeError, r"^report\(\): ", msg=str(wrong)):
                diapason.report(*wrong)
        with self.assertRaisesRegex(ValueError, "there is no collective 'allreduse'; did you mean 'allreduce'"):
            diapason.report("allreduse", 1024, 1)
        with self.assertRaisesRegex(ValueError, "a call cannot take 0 ms"):
            diapason.report("allreduce", 1024, 0)

    def test_with_the_plugin(self) -> None:
        """The same, and the plugin itself knows the same names. In a process of its own, where it is loaded."""
        code = (f"import ctypes, sys\nsys.path.insert(0, {str(ROOT / 'python')!r})\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
                f"plugin = ctypes.CDLL({PLUGIN!r})\nimport diapason, api_test\nassert diapason.available()\n"
                "names = [plugin.diapason_report(one.encode(), 1, ctypes.c_double(1)) for one in api_test.ReportTest.NAMES]\n"
                "assert names == [1] * len(names), names\n"
                "assert plugin.diapason_report(b'alltoall', 1, ctypes.c_double(1)) == -1\n"
                "api_test.ReportTest('test_without_the_plugin').debug()")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)


class InstalledTreeTest(unittest.TestCase):
    """As `cmake --install` lays it out, below any prefix."""

    def installed(self, libraries: str) -> Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        prefix = Path(folder.name).resolve() / "prefix"
        shutil.copytree(ROOT / "python/diapason", prefix / "share/diapason/python/diapason",
                        ignore=shutil.ignore_patterns("__pycache__", "lib", "bin"))
        for name, target in ((f"{libraries}/libnccl-tuner-diapason.so", PLUGIN), ("bin/diapason", TOOL)):
            (prefix / name).parent.mkdir(parents=True)
            (prefix / name).symlink_to(target)
        return prefix

    def python(self, prefix: Path, *arguments: str) -> subprocess.CompletedProcess:
        environment = {"PATH": "/nonexistent", "PYTHONPATH": str(prefix / "share/diapason/python"), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, *arguments], env=environment, cwd="/", capture_output=True, text=True, timeout=600)

    def test_finds_its_own_prefix(self) -> None:
        for libraries in (f"lib/{os.uname().machine}-linux-gnu", "lib64", "lib"):
            prefix = self.installed(libraries)
            done = self.python(prefix, "-c", "import diapason; print(diapason.library_path())")
            self.assertEqual(done.stdout, f"{prefix}/{libraries}/libnccl-tuner-diapason.so\n", done.stderr)
            self.assertEqual(self.python(prefix, "-m", "diapason", "--version").stdout, f"diapason {diapason.__version__}\n")

    def test_status_and_signals_are_the_tools(self) -> None:
        prefix = self.installed("lib")
        self.assertEqual(self.python(prefix, "-m", "diapason", "nonsense").returncode, 2)
        self.assertEqual(self.python(prefix, "-m", "diapason", "journal", "show", "/nope").returncode, 1)
        tool = prefix / "bin/diapason"
        for program, arguments, status in (("grep", ["^SigIgn:", "/proc/self/status"], 0), ("sleep", ["600"], -signal.SIGTERM)):
            tool.unlink()
            tool.symlink_to(shutil.which(program))
            command = [sys.executable, "-m", "diapason", *arguments]
            environment = {"PATH": "/nonexistent", "PYTHONPATH": str(prefix / "share/diapason/python"), "PYTHONDONTWRITEBYTECODE": "1"}
            with subprocess.Popen(command, env=environment, cwd="/", stdout=subprocess.PIPE, text=True) as process:
                if program == "sleep":
                    self.wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "diapason\n")
                    process.terminate()
                out, _ = process.communicate(timeout=600)
            self.assertEqual(process.returncode, status)
            if program == "grep":  # as if a shell had started it: nothing is ignored
                ignored = int(out.split()[1], 16)
                self.assertFalse(ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)), out)

    def wait_until(self, reached: typing.Callable[[], bool]) -> None:
        end = time.monotonic() + 300
        while not reached():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_without_the_tool(self) -> None:
        prefix = self.installed("lib")
        (prefix / "bin/diapason").unlink()
        done = self.python(prefix, "-m", "diapason", "--version")
        self.assertEqual(done.returncode, 1)
        self.assertIn("The wheel has it, and so has the Debian package diapason", done.stderr)


class ExampleTest(unittest.TestCase):
    def test_arguments_are_read_without_torch(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "torch.py").write_text("raise ImportError('no torch here')\n")
            for arguments, status, said in ((["--help"], 0, "--bucket-mb"), (["--mode", "lern"], 2, "invalid choice: 'lern'"),
                                            (["--iterations", "1"], 2, "--iterations at least"), ([], 1, "this example needs PyTorch")):
                done = subprocess.run([sys.executable, str(ROOT / "examples/pytorch_train.py"), *arguments], capture_output=True, text=True,
                                      timeout=600, env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(said, done.stdout + done.stderr)


class InitTest(Case):
    def test_init_and_cleanup(self) -> None:
        os.environ["DIAPASON_MODE"] = "observe"
        before = dict(os.environ)
        setup = diapason.init(policy=self.policy, mode="static")
        self.assertIs(diapason.current(), setup)
        self.assertEqual(setup.before["DIAPASON_MODE"], "observe")
        self.assertRegex(setup.policy_digest, "^fnv1a64:")
        self.assertIn(f"diapason: DIAPASON_POLICY={self.policy}", str(setup))
        self.assertEqual({**before, **setup.environment}, dict(os.environ))
        diapason.cleanup()
        diapason.cleanup()
        self.assertEqual(dict(os.environ), before)
        self.assertIsNone(diapason.current())

    def test_names_what_was_found(self) -> None:
        os.environ.update(NCCL_TUNER_PLUGIN="ofi", NCCL_PROFILER_PLUGIN="inspector")
        with mock.patch.object(diapason._plugin, "collective_library", lambda: ("/x/libnccl.so.2", "2.28.9")), \
                self.assertLogs("diapason", "INFO") as logged:
            setup = diapason.init(policy=self.policy, mode="observe")
        self.assertEqual((setup.plugin, setup.library, setup.library_version, setup.mode, setup.policy, setup.chain, setup.profiler_chain),
                         (PLUGIN, "/x/libnccl.so.2", "2.28.9", "observe", str(self.policy), "ofi", "inspector"))
        for text in (repr(setup), logged.output[0]):
            self.assertIn(f"plugin {PLUGIN}", text)
            self.assertIn(f"; library /x/libnccl.so.2 (2.28.9); mode observe; policy {self.policy} (fnv1a64:", text)
            self.assertIn("; chained tuner ofi; chained profiler inspector", text)
        self.assertEqual(len(logged.output), 1)
        self.assertEqual(len(logged.output[0].splitlines()), 1)

    def test_names_what_was_not_found(self) -> None:
        with mock.patch.object(_found, "_library", lambda: (None, None)):
            setup = diapason.init(chain=False)
        self.assertRegex(repr(setup), "; library not loaded yet; mode static; no policy; no chained tuner>$")
        self.assertIn("chained tuner: the library's own, if any", repr(diapason.init()))
        self.assertIn("policy inline", repr(diapason.init(policy=self.policy, inline=True)))
        with mock.patch.object(_files, "find_plugin", lambda: None), self.assertWarns(RuntimeWarning):
            self.assertEqual(repr(diapason.init(required=False)), "<diapason.Setup: no plugin, the library decides alone>")

    def test_library_of_a_package_is_found_without_loading_it(self) -> None:
        wheel, libraries = self.folder / "nvidia_nccl_cu12-2.21.5.dist-info", self.folder / "nvidia/nccl/lib"
        wheel.mkdir()
        libraries.mkdir(parents=True)
        (wheel / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: 2.21.5\n")
        (libraries / "libnccl.so.2").write_text("never loaded")
        with mock.patch.object(sys, "path", [str(self.folder), *sys.path]):
            setup = diapason.init()
        self.assertEqual((setup.library, setup.library_version), (str(libraries / "libnccl.so.2"), "2.21.5"))

    def test_passwords_are_not_printed(self) -> None:
        setup = diapason.init(store="redis://me:hidden@host:7000/1", secret="hidden")
        self.assertNotIn("hidden", str(setup) + repr(setup))
        self.assertIn("DIAPASON_STORE=redis://***@host:7000/1", str(setup))

    def test_cleanup_leaves_what_others_have_changed(self) -> None:
        diapason.init(policy=self.policy)
        os.environ["DIAPASON_POLICY"] = "/other.conf"
        del os.environ["NCCL_PROFILER_PLUGIN"]
        diapason.cleanup()
        self.assertEqual(os.environ["DIAPASON_POLICY"], "/other.conf")
        self.assertNotIn("NCCL_TUNER_PLUGIN", os.environ)

    def test_a_second_init_replaces_the_first(self) -> None:
        before = dict(os.environ)
        diapason.init(policy=self.policy, journal=self.folder / "j")
        second = diapason.init(mode="learn")
        self.assertEqual({**before, **second.environment}, dict(os.environ))
        with self.assertRaises(ValueError):
            diapason.init(mode="lern")
        self.assertIs(diapason.current(), second, "one that is refused changes nothing")
        diapason.cleanup()
        self.assertEqual(dict(os.environ), before)

    def test_after_the_process_group_is_too_late(self) -> None:
        def torch_with(backend: str) -> types.ModuleType:
            dist = types.ModuleType("torch.distributed")
            dist.is_available = dist.is_initialized = lambda: True
            dist.get_backend = lambda group=None: backend
            return dist

        with mock.patch.dict(sys.modules, {"torch.distributed": torch_with("gloo")}):
            diapason.init(policy=self.policy)
        diapason.cleanup()
        fake = torch_with("cpu:gloo,cuda:nccl")
        fake.distributed_c10d = types.SimpleNamespace(_world=types.SimpleNamespace(pg_map={"group": 1}))
        with mock.patch.dict(sys.modules, {"torch.distributed": fake}):
            with self.assertRaisesRegex(RuntimeError, "too late: torch.distributed already has a process group on NCCL.*before init_process"):
                diapason.init(policy=self.policy)
            self.assertNotIn("NCCL_TUNER_PLUGIN", os.environ)
            os.environ.update(diapason.env(policy=self.policy))
            self.assertEqual(diapason.init(policy=self.policy).plugin, PLUGIN, "the launcher has set it all")


class VerifyTest(unittest.TestCase):
    def facts(self, **changed: object) -> dict:
        return {"exact": True, "version": "0.1.0", "mode": "static", "policy": "abc", "store": "", "library_version": "2.28.9",
                "variable": PLUGIN, "host": "a", "first": 0.1, "median": 1e-4, **changed}

    def judge(self, *changed: dict, nccl: bool = True) -> str:
        return "; ".join(_verify._judge([self.facts(**one) for one in changed], nccl))

    def test_agreement(self) -> None:
        self.assertEqual(self.judge({}, {}, {}), "")
        self.assertIn("rank 2 has no plugin", self.judge({}, {}, {"version": None}))
        self.assertIn("versions of the plugin: 0.1.0 on rank 0, 0.2.0 on ranks 1, 2", self.judge({}, {"version": "0.2.0"}, {"version": "0.2.0"}))
        self.assertIn("different modes", self.judge({}, {"mode": "learn"}))
        self.assertIn("different policies", self.judge({}, {"policy": "def"}))
        self.assertEqual(self.judge({"store": "shm"}, {"policy": "def", "store": "shm"}), "", "a store makes them one")
        self.assertIn("versions of the library", self.judge({}, {"library_version": "2.27.3"}))
        self.assertIn("wrong sums on ranks 0, 1, 2, 3 and 2 more", self.judge(*[{"exact": False}] * 6))

    def test_nowhere(self) -> None:
        nowhere = {"version": None}
        self.assertIn("on no rank: NCCL_TUNER_PLUGIN is not set; call diapason.init()", self.judge({"variable": "", **nowhere}, nowhere))
        self.assertIn("NCCL_DEBUG=INFO says why", self.judge(nowhere, nowhere))
        self.assertEqual(self.judge(nowhere, nowhere, nccl=False), "", "Gloo needs none")


class SourceTest(unittest.TestCase):
    def test_literals_are_what_the_settings_take(self) -> None:
        for name in ("Mode", "Library", "Numerics", "Reward", "Strategy", "Arms"):
            self.assertEqual(", ".join(typing.get_args(getattr(diapason, name))), _settings.BOUNDS[name.upper()])

    def test_types(self) -> None:
        if shutil.which("mypy") is None:
            self.skipTest("no mypy")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["mypy", "--strict", "--ignore-missing-imports", "--python-version", "3.8", "--cache-dir", folder,
                                   "diapason"], cwd=ROOT / "python", capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_version(self) -> None:
        self.assertEqual(diapason.__version__, (ROOT / "VERSION").read_text().strip())

    def test_python_3_8_can_read_it(self) -> None:
        for path in sorted((ROOT / "python").rglob("*.py")):
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 8))
            self.assertIn("from __future__ import annotations" if " | None" in path.read_text() else "", path.read_text())

    def test_everything_public_is_documented(self) -> None:
        for name in diapason.__all__:
            if name != "__version__" and not typing.get_args(getattr(diapason, name)):  # a Literal has no text
                self.assertTrue((getattr(diapason, name).__doc__ or "").strip(), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
