"""The wheel: what is in it, that pip installs it, and that a program works with what was installed.

    wheel_test.py BUILD_FOLDER FAKE_LIBRARY
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
VERSION = (ROOT / "VERSION").read_text().strip()
sys.path.insert(0, str(ROOT / "packaging/wheel"))

import build as wheel_build  # noqa: E402
import elf  # noqa: E402

BUILD, FAKE = (Path(sys.argv[1]).resolve(), os.path.abspath(sys.argv[2])) if len(sys.argv) > 2 else (Path("."), "")


def run(command: list, **options: object) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "DIAPASON_", "PYTHON", "PIP_"))}
    environment.update(options.pop("more", {}))
    return subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=600, env=environment, **options)


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="diapason-wheel-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.wheel = wheel_build.make(BUILD, cls.folder / "wheel", True)

    def test_name_says_what_the_files_need(self) -> None:
        needs = [elf.read(BUILD / "lib/libnccl-tuner-diapason.so"), elf.read(BUILD / "bin/diapason"),
                 elf.read(BUILD / "lib/libdiapason-mpi-recorder.so")]
        major, minor = max(one.glibc() for one in needs)
        machine = needs[0].machine
        self.assertEqual(self.wheel.name, f"diapason-{VERSION}-py3-none-manylinux_{major}_{minor}_{machine}.whl")

    def test_elf_agrees_with_binutils(self) -> None:
        if shutil.which("objdump") is None:
            self.skipTest("no objdump")
        path = BUILD / "lib/libnccl-tuner-diapason.so"
        said = run(["objdump", "-p", path]).stdout
        needs = elf.read(path)
        self.assertEqual(needs.libraries, [line.split()[1] for line in said.splitlines() if line.split()[:1] == ["NEEDED"]])
        glibc = {line.split()[-1] for line in said.splitlines() if line.split()[-1:] and line.split()[-1].startswith("GLIBC_")}
        self.assertEqual({one for names in needs.versions.values() for one in names if one.startswith("GLIBC_")}, glibc)

    def test_other_libraries_make_no_manylinux_wheel(self) -> None:
        fine = elf.Needs("x86_64", ["libc.so.6", "libm.so.6"], {"libc.so.6": ["GLIBC_2.17"]})
        self.assertEqual(wheel_build.platform_of({"a": fine}), ("manylinux_2_17_x86_64", []))
        other = elf.Needs("x86_64", ["libasan.so.8", "libc.so.6"])
        self.assertEqual(wheel_build.platform_of({"a": fine, "b": other}), ("linux_x86_64", ["b needs libasan.so.8"]))
        with self.assertRaisesRegex(wheel_build.BuildError, "different machines"):
            wheel_build.platform_of({"a": fine, "b": elf.Needs("aarch64", ["libc.so.6"])})

    def test_damaged_files_are_refused(self) -> None:
        data = (BUILD / "lib/libnccl-tuner-diapason.so").read_bytes()
        path = self.folder / "damaged.so"
        for content in (b"", b"\x7fELF", data[:64], data[:5000], b"#!/bin/sh\n", data[:16] + b"\xff" * 48 + data[64:]):
            path.write_bytes(content)
            with self.assertRaises(elf.ElfError):
                elf.read(path)

    def test_a_missing_plugin_is_said(self) -> None:
        with self.assertRaisesRegex(wheel_build.BuildError, "there is no .*libnccl-tuner-diapason.so; build first"):
            wheel_build.make(self.folder / "nothing", self.folder / "wheel2", True)
        self.assertFalse((self.folder / "wheel2").exists())

    def test_same_files_same_wheel(self) -> None:
        again = wheel_build.make(BUILD, self.folder / "again", True)
        self.assertEqual(hashlib.sha256(again.read_bytes()).digest(), hashlib.sha256(self.wheel.read_bytes()).digest())

    def test_record(self) -> None:
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertIsNone(archive.testzip())
            about = f"diapason-{VERSION}.dist-info"
            rows = list(csv.reader(io.StringIO(archive.read(f"{about}/RECORD").decode())))
            self.assertEqual([row[0] for row in rows], archive.namelist())
            for name, digest, size in rows[:-1]:
                content = archive.read(name)
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("="))
                self.assertEqual(int(size), len(content))
            self.assertEqual(rows[-1], [f"{about}/RECORD", "", ""])
            self.assertIn(f"Version: {VERSION}\n", archive.read(f"{about}/METADATA").decode())
            self.assertIn("-".join(self.wheel.stem.split("-")[2:]), archive.read(f"{about}/WHEEL").decode())
            self.assertIn("Apache License", archive.read(f"{about}/licenses/LICENSE").decode())
            notices = archive.read(f"{about}/licenses/THIRD-PARTY-NOTICES.md").decode()
            for name in ("hiredis", "CLI11", "nlohmann", "toml++", "Eigen", "{fmt}", "SQLite", "GCC RUNTIME LIBRARY EXCEPTION"):
                self.assertIn(name, notices)
            modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        self.assertTrue(all(stat.S_ISREG(mode) for mode in modes.values()), "a wheel cannot hold links")
        self.assertEqual({name for name, mode in modes.items() if mode & 0o111},
                         {"diapason/bin/diapason", "diapason/lib/libdiapason-mpi-recorder.so",
                          "diapason/lib/libnccl-tuner-diapason.so"})
        self.assertIn("diapason/py.typed", modes)
        self.assertLess(self.wheel.stat().st_size, 12 << 20)


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="diapason-installed-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        made = run([PYTHON, "-m", "venv", cls.folder / "venv"])
        if made.returncode != 0 or not (cls.folder / "venv/bin/pip").exists():
            raise unittest.SkipTest(f"no venv with pip here: {(made.stdout + made.stderr).strip()[-200:]}")
        cls.python = cls.folder / "venv/bin/python"
        wheel = wheel_build.make(BUILD, cls.folder / "wheel", True)
        done = run([cls.python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel])
        if done.returncode != 0:
            raise AssertionError(f"pip refuses the wheel: {done.stdout}{done.stderr}")

    def ranks(self, reward: str, calls: int, **more: object) -> list:
        """Two ranks of a program that learns; what each has printed."""
        work = Path(tempfile.mkdtemp(dir=self.folder))
        processes = []
        for rank in range(2):
            request = {"fake": FAKE, "rank": rank, "ranks": 2, "id": 4711, "calls": calls, "reward": reward, "meet": str(work / "call."),
                       "init": {"mode": "learn", "learned": str(work / "learned.conf"), "journal": str(work / "j.%p"), "reward": reward,
                                "store": f"file:{work}/store", "job": "test", "join_limit": 300, **more}}
            (work / "store").mkdir(exist_ok=True)
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "DIAPASON_", "PYTHON"))}
            processes.append(subprocess.Popen([str(self.python), "-I", str(HERE / "program.py"), json.dumps(request)], cwd=work,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment))
        answers = []
        try:
            for process in processes:
                out, errors = process.communicate(timeout=600)
                self.assertEqual(process.returncode, 0, errors)
                answers.append(json.loads(out.splitlines()[-1]))
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.communicate()
        done = run([self.folder / "venv/bin/diapason", "journal", "check", *sorted(work.glob("j.*"))])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.work = work
        return answers

    def test_tool(self) -> None:
        self.assertEqual(run([self.folder / "venv/bin/diapason", "--version"], cwd="/").stdout, f"diapason {VERSION}\n")
        policy = ROOT / "examples/workload_aware_8gpu.conf"
        done = run([self.python, "-m", "diapason", "ask", "--policy", policy, "--sizes", "4M", "--ranks", "8"], cwd="/")
        self.assertIn("tree/simple", done.stdout, done.stderr)
        self.assertIn("site-packages/diapason/lib/libnccl-tuner-diapason.so", done.stdout)
        self.assertEqual(run([self.python, "-m", "diapason", "nonsense"]).returncode, 2)

    def test_reports_reach_the_plugin_and_something_is_learned(self) -> None:
        first, second = self.ranks("report", 2000)
        self.assertIn("site-packages", first["file"])
        self.assertEqual(first["package"], VERSION)
        self.assertEqual((first["before"], first["report_before"]), (False, False))
        self.assertEqual((first["available"], first["version"]), (True, VERSION))
        plugin = os.path.join(os.path.dirname(first["file"]), "lib", "libnccl-tuner-diapason.so")
        self.assertEqual([first["set"]["NCCL_TUNER_PLUGIN"], first["set"]["NCCL_PROFILER_PLUGIN"]], [plugin, plugin])
        self.assertEqual(os.path.realpath(first["loaded"]), os.path.realpath(plugin))
        self.assertGreater(first["taken"], 0, "somebody learns from what is reported")
        self.assertEqual(first["ran"], second["ran"])
        self.assertGreater(first["ran"].get("0/2", 0), 200, f"tree/simple is twice as fast: {first['ran']}")
        self.assertIn("comes too late: the plugin is already in this process", first["late"])
        self.assertIs(first["refused"], True)
        self.assertEqual(first["left"], [], "cleanup() takes back what init() has set")
        learned = (self.work / "learned.conf").read_text()
        self.assertIn("allreduce,16385,32768,tree,simple", learned)

    def test_steps_reach_the_plugin(self) -> None:
        first, _ = self.ranks("step", 400)
        lines = [json.loads(line) for path in self.work.glob("j.*") for line in path.read_text().splitlines()]
        self.assertIn("reward", {line["type"] for line in lines}, "iterations were timed")
        self.assertGreater(len(first["ran"]), 1, "something was tried")

    def test_verify_without_torch_says_so(self) -> None:
        code = "import diapason\ntry:\n    diapason.verify()\nexcept RuntimeError as error:\n    print(error)"
        done = run([self.python, "-I", "-c", code], cwd="/")
        self.assertIn("diapason.verify() needs torch", done.stdout, done.stderr)

    def test_unpacked_by_hand(self) -> None:
        """No pip: permissions are lost, and it works all the same."""
        with zipfile.ZipFile(next((self.folder / "wheel").glob("*.whl"))) as archive:
            archive.extractall(self.folder / "target")
        self.assertFalse(os.access(self.folder / "target/diapason/bin/diapason", os.X_OK))
        done = run([PYTHON, "-m", "diapason", "--version"], more={"PYTHONPATH": str(self.folder / "target")}, cwd="/")
        self.assertEqual(done.stdout, f"diapason {VERSION}\n", done.stderr)

    def test_package_without_compiled_files(self) -> None:
        """`pip install ./python`: nothing is downloaded, and what is missing is said."""
        shutil.copytree(ROOT / "python", self.folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
        target = self.folder / "pure"
        done = run([self.python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", target,
                    self.folder / "source"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        code = ("import diapason, warnings\nprint(diapason.__file__)\n"
                "diapason._files._SYSTEM = ()\ndiapason._files.sys = type('', (), {'implementation': None})\n"
                "try:\n    diapason.init()\nexcept RuntimeError as error:\n    print(error)\n"
                "warnings.simplefilter('ignore')\nprint(diapason.init(required=False).plugin, diapason.step())")
        done = run([PYTHON, "-c", code], more={"PYTHONPATH": str(target)}, cwd="/")
        self.assertIn(str(target), done.stdout, done.stderr)
        self.assertIn("libnccl-tuner-diapason.so was not found; looked in", done.stdout)
        self.assertTrue(done.stdout.endswith("None None\n"), done.stdout)


if __name__ == "__main__":
    if sys.platform != "linux":
        print("SKIP: wheels are made on Linux")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
