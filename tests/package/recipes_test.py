#!/usr/bin/env python3
"""recipes_test.py SOURCE [TOOL]: what can be known of the container and Slurm recipes without their engines.

The Containerfile has only instructions that exist, in a valid order; the Apptainer definition only
sections that exist, and its %test passes with TOOL; the sbatch script runs with a stand-in for srun; the
module file, where there is a Lua, with stand-ins for Lmod; and docs/start/packages.md shows the files of
examples/installed as they are.
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
    return subprocess.run(["bash", "-n"], input=script.encode(), timeout=600, check=False).returncode == 0


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
            elif line.strip() and not line.lstrip().startswith("#"):
                self.sections[current].append(line.strip())

    def test_sections(self):
        self.assertLessEqual(set(self.sections), SECTIONS | {""})
        header = dict(line.split(": ", 1) for line in self.sections[""])
        self.assertEqual(set(header), {"Bootstrap", "From"})
        arguments = {line.split("=")[0] for line in self.sections["arguments"]}
        self.assertEqual(set(re.findall(r"\{\{ (\w+) \}\}", header["From"])), arguments)
        source, target = self.sections["files"][0].split()
        self.assertEqual((source, len(self.sections["files"])), (PACKAGES, 1))
        # Folders of the host are mounted over these while %post runs.
        self.assertFalse(target.startswith(("/tmp", "/var/tmp", "/root", "/home", "/dev", "/proc", "/sys")), target)
        post = "\n".join(self.sections["post"])
        self.assertIn(f"{target}diapason_*.deb", post)
        self.assertRegex(post, rf"rm -rf .*{target.rstrip('/')}\b", "the packages do not stay in the image")

    def test_scripts(self):
        for name in ("post", "environment", "runscript", "test"):
            self.assertTrue(shell_is_valid("\n".join(self.sections[name])), name)

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_its_own_test_runs(self):
        # As in the image that was just built: with its variables, and without the policy that jobs bind.
        path = f"{os.path.dirname(TOOL)}:{os.environ['PATH']}"
        script = "\n".join(self.sections["environment"] + self.sections["test"])
        done = subprocess.run(["sh"], input=script.encode(), timeout=600, env={**os.environ, "PATH": path},
                              stdout=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0)


class Slurm(unittest.TestCase):
    SCRIPT = SOURCE / "packaging/slurm/train.sbatch"

    LEAVE = 'cp journal.$1 "${DIAPASON_JOURNAL/\\%h.\\%p/host.$1}"\n'

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # Two ranks, one after the other; each leaves the journal its plugin would leave.
        self.write("srun", 'status=0\nfor rank in 0 1; do "$@" "$rank" || status=$?; done\nexit "$status"\n')
        shutil.copy(SOURCE / "examples/workload_aware_8gpu.conf", self.folder / "policy.conf")
        for rank in "01":
            shutil.copy(SOURCE / f"tests/data/journals/learn.{rank}.jsonl", self.folder / f"journal.{rank}")

    def write(self, name, script):
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + script)
        path.chmod(0o755)

    def job(self, rank):
        """Status and output of a job whose ranks do this, and what each saw."""
        self.write("rank", 'echo "$DIAPASON_POLICY_INLINE $NCCL_TUNER_PLUGIN" >>seen\n' + rank)
        environment = {**os.environ, "SLURM_JOB_ID": "7",
                       "PATH": f"{self.folder}:{os.path.dirname(TOOL)}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", self.SCRIPT, "./rank"], cwd=self.folder, env=environment, timeout=600, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        seen = self.folder / "seen"
        return done.returncode, done.stdout, seen.read_text().splitlines() if seen.exists() else []

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_gives_every_rank_the_policy(self):
        status, said, seen = self.job(self.LEAVE)
        self.assertEqual((status, len(seen)), (0, 2), said)
        self.assertEqual(seen[0], seen[1])
        self.assertRegex(seen[0], r"^d1\.\S+ libnccl-tuner-diapason\.so$")
        self.assertIn("2 ranks, 38 calls", said)  # both were held against each other

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_keeps_the_status_of_the_job(self):
        status, said, _ = self.job(self.LEAVE + "exit 7\n")
        self.assertEqual(status, 7, said)
        self.assertIn("2 ranks, 38 calls", said)
        (self.folder / "journal.1").write_text("")  # cannot be read
        self.assertEqual(self.job(self.LEAVE)[0], 1)
        self.assertEqual(self.job(self.LEAVE + "exit 7\n")[0], 7)

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_no_journals(self):
        for status in (0, 7):
            self.assertEqual(self.job(f"exit {status}\n")[:2],
                             (status, "no journal was written: the plugin was not loaded\n"))

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_refuses_a_policy_before_the_job(self):
        for text, why in (("# diapason: version=1 library=gloo\nallreduce,1,8,ring,-1,-1,-1,-1,-1,-1\n", "is not for NCCL or RCCL"),
                          ("nonsense\n", "error")):
            (self.folder / "policy.conf").write_text(text)
            status, said, seen = self.job("")
            self.assertEqual((status, seen), (1, []), said)
            self.assertIn(why, said)

    def test_options(self):
        options = re.findall(r"^#SBATCH (\S+)$", self.SCRIPT.read_text(), re.MULTILINE)
        self.assertTrue(all(re.match(r"^--[a-z-]+=\S+$", option) for option in options) and options)


LUA = next(filter(None, map(shutil.which, ("lua", "lua5.4", "lua5.3", "lua5.1", "luajit"))), None)
# What the module file calls, writing down what it would set.
LMOD = """
function pathJoin(...) return table.concat({...}, "/") end
function isFile(name) local file = io.open(name); if file then file:close() end; return file ~= nil end
function LmodError(text) print("error " .. text); os.exit(1) end
function help() end
whatis = help
function prepend_path(name, value) print(name .. "=" .. value) end
pushenv = prepend_path
dofile(arg[1])
"""


class Lmod(unittest.TestCase):
    MODULE = SOURCE / "packaging/lmod/diapason.lua"

    def load(self, folder, module, **variables):
        Path(folder, "lmod.lua").write_text(LMOD)
        clean = {k: v for k, v in os.environ.items() if k not in ("NCCL_TUNER_PLUGIN", "DIAPASON_CHAIN")}
        done = subprocess.run([LUA, Path(folder, "lmod.lua"), module], env={**clean, **variables}, timeout=600, text=True,
                              stdout=subprocess.PIPE, check=True)
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    @unittest.skipUnless(LUA, "no Lua")
    def test_one_line_to_edit(self):
        for libraries in ("lib/x86_64-linux-gnu", "lib64", "lib"):
            with tempfile.TemporaryDirectory() as folder:
                plugin = Path(folder, libraries, "libnccl-tuner-diapason.so")
                plugin.parent.mkdir(parents=True)
                plugin.touch()
                module = Path(folder, "module.lua")
                module.write_text(self.MODULE.read_text().replace('local root = "ROOT"', f'local root = "{folder}"'))
                found = self.load(folder, module)
                self.assertEqual((found["NCCL_TUNER_PLUGIN"], found["DIAPASON_CHAIN"]), (str(plugin), ""))
                self.assertEqual(found["LD_LIBRARY_PATH"], str(plugin.parent))
                self.assertEqual(found["PATH"], f"{folder}/bin")
                self.chains(folder, module)

    def chains(self, folder, module):
        """A tuner that was there is asked first, and never this plugin itself."""
        for tuner, chain in (("libnccl-ofi-tuner.so", "libnccl-ofi-tuner.so"), ("/x/tuner.so", "/x/tuner.so"), ("none", "none"),
                             ("NONE", ""), ("diapason", ""), ("/x/librccl-tuner-diapason.so", ""),
                             ("libnccl-tuner-diapason.so", "")):
            self.assertEqual(self.load(folder, module, NCCL_TUNER_PLUGIN=tuner)["DIAPASON_CHAIN"], chain, tuner)
        self.assertEqual(self.load(folder, module, DIAPASON_CHAIN="ofi")["DIAPASON_CHAIN"], "ofi")

    @unittest.skipUnless(LUA, "no Lua")
    def test_says_that_it_was_not_edited(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(subprocess.CalledProcessError) as caught:
                self.load(folder, self.MODULE)
            self.assertIn("not installed in 'ROOT'", caught.exception.stdout)

    def test_only_functions_that_lmod_has(self):
        text = self.MODULE.read_text()
        text = re.sub(r"\[\[.*?\]\]|\"[^\"]*\"|--[^\n]*", "", text, flags=re.DOTALL)
        self.assertLessEqual(set(re.findall(r"(\w+)\(", text)),
                             {"help", "whatis", "pathJoin", "prepend_path", "pushenv", "isFile", "LmodError",
                              "ipairs", "getenv", "match", "lower"})
        self.assertEqual(text.count("("), text.count(")"))


class Manual(unittest.TestCase):
    def test_shows_the_example_as_it_is(self):
        manual = (SOURCE / "docs/start/packages.md").read_text()
        shown = "".join(f"    {line}\n" if line else "\n"
                        for line in (SOURCE / "examples/installed/CMakeLists.txt").read_text().splitlines())
        self.assertIn(shown, manual)
        self.assertIn("g++ -std=c++20 sum.cc -o sum $(pkg-config --cflags --libs diapason)", manual)


if __name__ == "__main__":
    unittest.main(argv=[shlex.quote(sys.argv[0])])
