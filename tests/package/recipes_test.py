#!/usr/bin/env python3
"""recipes_test.py SOURCE [TOOL]: what can be known of the container and Slurm recipes without their engines.

The Containerfile has only instructions that exist, in a valid order; the Apptainer definition only
sections that exist; every `diapason` command in either is run by TOOL; the sbatch script runs with a
stand-in for srun; and docs/packages.md shows the files of examples/installed as they are.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
TOOL = sys.argv[2] if len(sys.argv) > 2 else None
INSTRUCTIONS = {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL",
                "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
SECTIONS = {"arguments", "setup", "files", "environment", "post", "runscript", "startscript", "test", "labels",
            "help", "appenv", "applabels"}
PACKAGES = "out/debian/diapason_*.deb"  # where packaging/debian/build.sh puts them by itself


def instructions(text):
    """(name, rest) of every instruction; comments are dropped and lines that go on are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n", " ", "\n".join(lines))
    return [tuple((line.split(None, 1) + [""])[:2]) for line in whole.splitlines() if line.strip()]


def shell_is_valid(script):
    return subprocess.run(["bash", "-n"], input=script.encode(), timeout=20, check=False).returncode == 0


class Container(unittest.TestCase):
    def setUp(self):
        self.parts = instructions((SOURCE / "packaging/container/Containerfile").read_text())

    def test_instructions(self):
        names = [name for name, _ in self.parts]
        self.assertLessEqual(set(names), INSTRUCTIONS)
        first = names.index("FROM")
        self.assertEqual(set(names[:first]), {"ARG"})
        self.assertTrue(all(rest for _, rest in self.parts))
        known = {rest.split("=")[0] for name, rest in self.parts[:first]}
        self.assertLessEqual(set(re.findall(r"\$\{(\w+)\}", self.parts[first][1])), known)

    def test_commands_and_variables(self):
        for name, rest in self.parts:
            if name == "RUN":
                self.assertTrue(shell_is_valid(rest), rest)
            elif name == "ENV":
                self.assertRegex(rest, r"^\w+=\S+$")

    def test_copies_what_is_made(self):
        copied = [rest.split()[:-1] for name, rest in self.parts if name == "COPY"]
        self.assertEqual(copied, [[PACKAGES]])
        self.assertIn("output=$source/out/debian", (SOURCE / "packaging/debian/build.sh").read_text())


class Apptainer(unittest.TestCase):
    def setUp(self):
        self.sections, current = {"": []}, ""
        for line in (SOURCE / "packaging/apptainer/diapason.def").read_text().splitlines():
            if line.startswith("%"):
                current = line[1:].strip()
                self.assertNotIn(current, self.sections)
                self.sections[current] = []
            elif line.strip() and not line.startswith("#"):
                self.sections[current].append(line.strip())

    def test_sections(self):
        self.assertLessEqual(set(self.sections), SECTIONS | {""})
        header = dict(line.split(": ", 1) for line in self.sections[""])
        self.assertEqual(set(header), {"Bootstrap", "From"})
        arguments = {line.split("=")[0] for line in self.sections["arguments"]}
        self.assertEqual(set(re.findall(r"\{\{ (\w+) \}\}", header["From"])), arguments)
        self.assertEqual(self.sections["files"], [PACKAGES + " /tmp/"])

    def test_scripts(self):
        for name in ("post", "environment", "runscript", "test"):
            self.assertTrue(shell_is_valid("\n".join(self.sections[name])), name)

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_its_own_test_runs(self):
        path = f"{os.path.dirname(TOOL)}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-e"], input="\n".join(self.sections["test"]).encode(), timeout=60,
                              env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0)


class Slurm(unittest.TestCase):
    SCRIPT = SOURCE / "packaging/slurm/train.sbatch"

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_gives_every_rank_the_policy(self):
        with tempfile.TemporaryDirectory() as folder:
            srun = Path(folder, "srun")
            # Two ranks, one after the other; each leaves the journal its plugin would leave.
            srun.write_text('#!/bin/bash\nset -e\nfor rank in 0 1; do "$@" "$rank"; done\n')
            rank = Path(folder, "rank")
            rank.write_text('#!/bin/bash\nset -e\necho "$DIAPASON_POLICY_INLINE $NCCL_TUNER_PLUGIN" >>seen\n'
                            'cp journal.in "${DIAPASON_JOURNAL/\\%h.\\%p/host.$1}"\n')
            srun.chmod(0o755)
            rank.chmod(0o755)
            shutil.copy(SOURCE / "examples/workload_aware_8gpu.conf", Path(folder, "policy.conf"))
            Path(folder, "journal.in").write_text("")
            environment = {**os.environ, "SLURM_JOB_ID": "7",
                           "PATH": f"{folder}:{os.path.dirname(TOOL)}:{os.environ['PATH']}"}
            done = subprocess.run(["bash", self.SCRIPT, "./rank"], cwd=folder, env=environment, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            seen = Path(folder, "seen").read_text().splitlines()
            self.assertEqual(len(seen), 2, done.stdout)
            self.assertEqual(seen[0], seen[1])
            self.assertRegex(seen[0], r"^d1\.\S+ libnccl-tuner-diapason\.so$")
            self.assertIn(b"journal", done.stdout)  # both were held against each other

    def test_options(self):
        options = re.findall(r"^#SBATCH (\S+)$", self.SCRIPT.read_text(), re.MULTILINE)
        self.assertTrue(all(re.match(r"^--[a-z-]+=\S+$", option) for option in options) and options)


class Lmod(unittest.TestCase):
    def test_only_functions_that_lmod_has(self):
        text = (SOURCE / "packaging/lmod/diapason.lua").read_text()
        text = re.sub(r"\[\[.*?\]\]|\"[^\"]*\"|--[^\n]*", "", text, flags=re.DOTALL)
        self.assertLessEqual(set(re.findall(r"(\w+)\(", text)),
                             {"help", "whatis", "pathJoin", "prepend_path", "setenv"})
        self.assertEqual(text.count("("), text.count(")"))


class Manual(unittest.TestCase):
    def test_shows_the_example_as_it_is(self):
        manual = (SOURCE / "docs/packages.md").read_text()
        shown = "".join(f"    {line}\n" if line else "\n"
                        for line in (SOURCE / "examples/installed/CMakeLists.txt").read_text().splitlines())
        self.assertIn(shown, manual)
        self.assertIn("g++ -std=c++20 sum.cc -o sum $(pkg-config --cflags --libs diapason)", manual)


if __name__ == "__main__":
    unittest.main(argv=[shlex.quote(sys.argv[0])])
