"""Which file of NCCL the commands use: PyTorch's, the loader's, or the one that is named.

    library_test.py --tool PATH --fakes FOLDER [LibraryTest.test_NAME...]

The driver and the libraries are ours (fake_cuda.c, fake_nccl.c); PyTorch is a folder with the files that tell what it is.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = None
FAKES = None
LIMIT = 600  # seconds


class LibraryTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        # The system's library is the one in LD_LIBRARY_PATH here; PyTorch's search path of the older kind comes before it.
        self.system = FAKES / "2.28.3/libnccl.so.2"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "DIAPASON_", "PYTHON"))}
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "LD_PRELOAD"):
            self.environment.pop(name, None)
        self.environment["LD_LIBRARY_PATH"] = f"{FAKES}/driver:{FAKES}/2.28.3"
        self.environment["HOME"] = str(self.root / "home")
        self.environment["PATH"] = "/usr/bin:/bin"

    def add_torch(self):
        """An activated environment whose PyTorch brings 2.28.9."""
        packages = self.root / "env/lib/python3.12/site-packages"
        nccl = packages / "nvidia/nccl/lib/libnccl.so.2"
        nccl.parent.mkdir(parents=True)
        shutil.copy(FAKES / "2.28.9/libnccl.so.2", nccl)
        (packages / "torch/lib").mkdir(parents=True)
        (packages / "torch/version.py").write_text("__version__ = '2.11.0'\ncuda: Optional[str] = '13.0'\n")
        # A library that needs libnccl.so.2 and looks for it beside itself first.
        source = self.root / "torch.c"
        source.write_text("int torch_cuda_is_here;\n")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", packages / "torch/lib/libtorch_cuda.so", source, "-Wl,--no-as-needed", nccl,
             "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib"],
            check=True, timeout=LIMIT)
        binary = self.root / "env/bin/python3"
        binary.parent.mkdir()
        binary.touch(mode=0o755)
        self.environment["VIRTUAL_ENV"] = str(self.root / "env")
        self.environment["PATH"] = f"{binary.parent}:/usr/bin:/bin"
        return nccl

    def run_tool(self, *arguments, expect=0, **variables):
        done = subprocess.run([TOOL, *map(str, arguments)], env=self.environment | variables, capture_output=True, text=True,
                              timeout=LIMIT, cwd=self.root)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def bench(self, *arguments, **variables):
        done = self.run_tool("bench", "allreduce", "-g", "1", "--backend", "nccl", "--sizes", "1K", "--rounds", "1", "--json",
                             *arguments, **variables)
        return json.loads(done.stdout), done.stderr

    def test_the_loaders_without_pytorch(self):
        whole, said = self.bench()
        self.assertEqual(whole["library_version"], "2.28.3")
        self.assertNotIn("libnccl", said)

    def test_pytorchs_where_it_is_installed(self):
        nccl = self.add_torch()
        whole, said = self.bench()
        self.assertEqual(whole["library_version"], "2.28.9")
        self.assertIn(f"NCCL 2.28.9, {nccl}: PyTorch 2.11.0 loads it; a program gets 2.28.3, {self.system}", said)
        listed = json.loads(self.run_tool("backends", "--json").stdout)["backends"]
        self.assertEqual([one["version"] for one in listed if one["name"] == "nccl"], ["2.28.9"])

    def test_the_one_that_is_named(self):
        self.add_torch()
        named = FAKES / "2.30.7/libnccl.so.2"
        for arguments, variables in (((), {"DIAPASON_NCCL_LIBRARY": str(named)}), (("--library-file", named), {})):
            whole, said = self.bench(*arguments, **variables)
            self.assertEqual(whole["library_version"], "2.30.7")
            self.assertIn("names it", said)
        # The bare name asks for the loader's.
        whole, _ = self.bench(DIAPASON_NCCL_LIBRARY="libnccl.so.2")
        self.assertEqual(whole["library_version"], "2.28.3")

    def test_a_named_file_must_be_one(self):
        for file, part in ((self.root / "none.so", "none.so"), (Path(sys.executable).resolve(), "ncclGetVersion")):
            done = self.run_tool("bench", "-g", "1", "--backend", "nccl", "--library-file", file, expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("--library-file", done.stderr)
            self.assertIn(part, done.stderr)
        done = self.run_tool("bench", "-g", "1", "--backend", "sim", "--library-file", self.system, expect=None)
        self.assertIn("does not use", done.stderr)
        done = self.run_tool("bench", "-g", "1", "--backend", "nccl", "--library-file", self.system, expect=None,
                             LD_PRELOAD=str(FAKES / "2.30.7/libnccl.so.2"))
        self.assertIn("LD_PRELOAD has loaded", done.stderr)

    def test_tune_says_it_first(self):
        nccl = self.add_torch()
        # The library here knows one rank only: what is said before the ranks start is all.
        done = self.run_tool("tune", "allreduce", "-g", "2", "--backend", "nccl", "--sizes", "1K", "--samples", "4", "--budget",
                             "1h", "--limit", "20s", "-q", "-o", self.root / "out", expect=1)
        self.assertEqual(done.stdout.splitlines()[0],
                         f"file     {nccl}: PyTorch 2.11.0 loads it; a program gets 2.28.3, {self.system}")
        self.assertIn("NCCL version 2.28.9", done.stderr)

    def test_doctor_examines_it(self):
        nccl = self.add_torch()
        whole = json.loads(self.run_tool("doctor", "--no-test", "--json", expect=None).stdout)
        job = whole["software"]["job_library"]
        self.assertEqual(job["file"], str(nccl))
        self.assertEqual(job["version"], "2.28.9")
        self.assertEqual(job["because"], "PyTorch 2.11.0 loads it")
        self.assertEqual((job["program_file"], job["program_version"]), (str(self.system), "2.28.3"))
        self.assertEqual(whole["compare"]["collective library"], "NCCL 2.28.9")
        text = self.run_tool("doctor", "--no-test", expect=None).stdout.splitlines()
        self.assertTrue(any("NCCL 2.28.9" in line and "a program gets 2.28.3" in line for line in text[:4]), text[:4])
        # A file that is named, with the test; alone it is only described.
        named = FAKES / "2.30.7/libnccl.so.2"
        text = self.run_tool("doctor", "--test", "--library-file", named, expect=None).stdout.splitlines()
        self.assertTrue(any("NCCL 2.30.7" in line and "--library-file names it" in line for line in text[:4]), text[:4])
        self.assertNotIn("GPUs:", self.run_tool("doctor", "--library-file", named).stdout)


if __name__ == "__main__":
    position = sys.argv.index("--tool")
    TOOL = Path(sys.argv[position + 1]).resolve()
    FAKES = Path(sys.argv[sys.argv.index("--fakes") + 1]).resolve()
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:])
