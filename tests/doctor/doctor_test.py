"""`diapason doctor` from outside: a driver's library that says what the test wants, a process, reports of many hosts.

    doctor_test.py --tool PATH --nvml FOLDER [DoctorTest.test_NAME...]
"""

import ctypes
import ctypes.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = None
NVML = None
LIMIT = 600  # seconds
HERE = Path(__file__).resolve().parent
HOSTS = HERE.parent / "data/hosts"


def run(*arguments, nvml=None, expect=None, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "RCCL_", "DIAPASON_FAKE"))}
    environment.update(variables)
    with tempfile.NamedTemporaryFile("w", suffix=".nvml") as file:
        if nvml is not None:
            file.write(nvml)
            file.flush()
            environment["DIAPASON_FAKE_NVML"] = file.name
            environment["LD_LIBRARY_PATH"] = NVML
        done = subprocess.run([TOOL, "doctor", *arguments], env=environment, capture_output=True, text=True, timeout=LIMIT)
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"exit status {done.returncode}, not {expect}\n{done.stdout}\n{done.stderr}")
    return done


def report(nvml, **variables):
    return json.loads(run("--no-test", "--json", nvml=nvml, **variables).stdout)


def unpack(name, folder):
    subprocess.run([sys.executable, HERE / "unpack_tree.py", HOSTS / name, folder], check=True, timeout=LIMIT)


class DoctorTest(unittest.TestCase):
    def finding(self, whole, name):
        found = [one for one in whole["findings"] if one["id"] == name]
        self.assertTrue(found, f"no {name} among {[one['id'] for one in whole['findings']]}")
        return found[0]

    def test_driver_library_in_order(self):
        whole = report("gpus = 4\n")
        gpus = whole["machine"]["gpus"]
        self.assertEqual([gpu["name"] for gpu in gpus], ["NVIDIA H200"] * 4)
        self.assertEqual(gpus[0]["architecture"], "sm_90")
        self.assertEqual(gpus[2]["pci"], "0000:e2:00.0")
        self.assertEqual({gpu["links_up"] for gpu in gpus}, {18})
        self.assertEqual({pair["path"] for pair in whole["machine"]["pairs"]}, {"NV18"})
        self.assertEqual(whole["machine"]["driver_supports"], "CUDA 13.0")
        self.assertEqual(self.finding(whole, "link.up")["severity"], "ok")
        self.assertEqual(self.finding(whole, "p2p.allowed")["severity"], "ok")
        states = {one["id"]: one["state"] for one in whole["checklist"]}
        self.assertEqual(states["links"], "ok")
        self.assertEqual(states["links-used"], "ok")
        self.assertEqual(states["goal-latency"], "cannot tell")

    def test_faults_only_the_driver_tells(self):
        whole = report(
            "gpus = 4\ngpu1.links_down = 2\ngpu2.throttle = 0x40\ngpu3.ecc = 2\ngpu0.mig = 1\n"
            "p2p.0.1 = 3\ngpu1.fabric = 2\ngpu2.link_errors = 900\npersistence = 0\ngpu0.mode = 2\n"
        )
        self.assertIn("GPU 1", self.finding(whole, "link.down")["title"])
        self.assertIn("thermal (hardware)", self.finding(whole, "gpu.throttled")["title"])
        self.assertEqual(self.finding(whole, "gpu.ecc")["severity"], "error")
        self.assertIn("GPU 0", self.finding(whole, "gpu.mig")["title"])
        self.assertIn("1 of 12", self.finding(whole, "p2p.refused")["title"])
        self.assertIn("in progress", self.finding(whole, "fabric.manager")["evidence"][0])
        self.assertIn("GPU 2", self.finding(whole, "link.errors")["title"])
        self.assertEqual(self.finding(whole, "gpu.persistence")["severity"], "note")
        self.assertEqual(self.finding(whole, "gpu.mode")["severity"], "error")

    def test_library_for_a_newer_driver(self):
        whole = report("gpus = 2\ncuda = 12040\n")
        toolkits = [one["toolkit"] for one in whole["software"]["libraries"]]
        if whole["software"]["nccl_loaded"] and "CUDA 13.0" in toolkits:
            self.assertEqual(self.finding(whole, "library.toolkit")["severity"], "error")

    def test_driver_that_does_not_start(self):
        done = run("--no-test", nvml="error = 9\n")
        self.assertIn("GPUs:    none", done.stdout)

    def test_plain_run_is_json_and_text(self):
        whole = json.loads(run("--no-test", "--json").stdout)
        self.assertEqual(whole["report"], "diapason doctor")
        self.assertEqual(whole["schema"], 1)
        self.assertIn("kernel", whole["compare"])
        self.assertIn("checklist", run("--no-test").stdout)

    def test_short_test_on_cpus(self):
        whole = json.loads(run("--test", "--json").stdout)
        if whole["machine"]["gpus"]:
            self.skipTest("there are GPUs here")
        if "gloo" not in whole["software"]["usable_backends"]:
            self.skipTest("no Gloo in this build")
        self.assertEqual(whole["test"]["trouble"], "")
        self.assertGreater(whole["test"]["cpu_allreduce_us"], 0)
        self.assertIn("do not apply", self.finding(whole, "test.cpus")["title"])

    def test_short_test_that_fails_is_said(self):
        whole = json.loads(run("--test", "--json", nvml="gpus = 2\n").stdout)
        if not whole["test"]["trouble"]:
            self.skipTest("two GPUs are here")
        self.assertEqual(self.finding(whole, "test.failed")["severity"], "error")
        states = {one["id"]: one["state"] for one in whole["checklist"]}
        self.assertEqual(states["measured"], "not ok")

    def test_process_with_a_replaced_library(self):
        with tempfile.TemporaryDirectory() as folder:
            unpack("dgx-h100.tree", folder)
            # A library that can be loaded, by another name.
            real = ctypes.util.find_library("z") or "libz.so.1"
            copy = Path(folder) / "libnccl.so.2"
            source = next((p for p in Path("/").glob(f"lib/*/{real}")), None) or next(
                (p for p in Path("/").glob("usr/lib*/**/libz.so.1")), None
            )
            if source is None:
                self.skipTest("no libz to load")
            copy.write_bytes(source.read_bytes())
            child = subprocess.Popen(
                [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(copy)!r}); print(1, flush=True); input()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "NCCL_DEBUG": "WARN", "NCCL_ALGO": "Rign"},
            )
            try:
                child.stdout.readline()
                copy.unlink()
                done = run("--pid", str(child.pid), "--json")
            finally:
                child.kill()
                child.communicate()
            whole = json.loads(done.stdout)
            self.finding(whole, "process.library-replaced")
            self.finding(whole, "process.memory")
            names = {one["name"] for one in whole["variables"]}
            self.assertLessEqual({"NCCL_DEBUG", "NCCL_ALGO"}, names)
            self.assertIn(done.returncode, (3, 4))

    def test_no_such_process(self):
        done = run("--pid", str(2**22 - 1), expect=1)
        self.assertIn(str(2**22 - 1), done.stderr)

    def test_compare_names_the_odd_one(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, name in enumerate(["dgx-h100.tree"] * 3 + ["dgx-h100-faults.tree"]):
                root = f"{folder}/{i}"
                unpack(name, root)
                Path(f"{root}/proc/sys/kernel/hostname").write_text(f"node{i}\n")
                paths.append(f"{folder}/{i}.json")
                run("--root", root, "--output", paths[-1])
            done = run("compare", *paths, expect=3)
            self.assertIn("node3: driver 550.54.15 where 3 others have 580.95.05", done.stdout)
            self.assertIn("node3: PCIe lanes of GPUs 7 x x16 + 1 x x8", done.stdout)
            done = run("compare", *paths[:3], expect=0)
            self.assertIn("no problems found", done.stdout)

    def test_compare_refuses_what_is_no_report(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = {
                "empty": "",
                "list": "[]",
                "deep": "[" * 100000,
                "other": '{"report": "x"}',
                "schema": '{"report": "diapason doctor", "schema": 99}',
                "bare": '{"report": "diapason doctor", "schema": 1, "compare": 3}',
                "many": json.dumps(
                    {"report": "diapason doctor", "schema": 1, "compare": {str(i): "x" for i in range(3000)}}
                ),
                "large": " " * (5 << 20),
            }
            for name, text in bad.items():
                path = Path(folder) / name
                path.write_text(text)
                with self.subTest(name):
                    done = run("compare", str(path), str(path), expect=1)
                    self.assertIn(name, done.stderr)
            run("compare", "/nowhere", "/nowhere", expect=1)


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--nvml", required=True)
    known, rest = parser.parse_known_args()
    TOOL = known.tool
    NVML = known.nvml
    unittest.main(argv=[sys.argv[0], *rest])
