#!/usr/bin/env python3
"""recipes_test.py SOURCE [TOOL]: what can be known of the container and Slurm recipes without their engines.

The Containerfile has only instructions that exist, in a valid order; the Apptainer definition only
sections that exist, and its %test passes with TOOL; the commands in the manifests of Kubernetes run; the module
file runs, where there is a Lua, with stand-ins for Lmod; and docs/start/packages.md shows the files of
examples/installed as they are.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
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
    """slurm_recipes_test.sh runs the scripts; here only what needs no Slurm."""

    def test_options(self):
        for script in sorted((SOURCE / "packaging/slurm").glob("*.sbatch")):
            text = script.read_text()
            self.assertTrue(shell_is_valid(text), script)
            options = re.findall(r"^#SBATCH (\S+)$", text, re.MULTILINE)
            self.assertTrue(all(re.match(r"^--[a-z-]+=\S+$", option) for option in options) and options, script)


class Kubernetes(unittest.TestCase):
    FOLDER = SOURCE / "packaging/kubernetes"

    def command(self, name, container):
        """The words of a container's command, from the text: a list in brackets, or `- word` lines with a script at the end."""
        text = (self.FOLDER / name).read_text()
        part = text[text.index(f"- name: {container}\n"):]
        listed = re.search(r"command: \[(.*)\]", part.split("volumeMounts")[0])
        if listed:
            return [word.strip() for word in listed.group(1).split(",")]
        words, script = re.search(r"command:\n((?:\s+- \S+\n)+)\s+- \|\n((?:\s{14,}.*\n)+)", part).groups()
        return [word.strip()[2:] for word in words.splitlines()] + [textwrap.dedent(script)]

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_preflight_leaves_its_findings(self):
        command = self.command("job.yaml", "preflight")
        self.assertEqual(command[:2], ["sh", "-c"])
        with tempfile.TemporaryDirectory() as folder:
            message = Path(folder, "termination-log")
            for status, starts in ((0, True), (3, True), (4, False), (1, False)):
                doctor = Path(folder, "diapason")
                doctor.write_text(f"#!/bin/sh\necho \"called with $*\"; {TOOL} --version; seq 5000; exit {status}\n")
                doctor.chmod(0o755)
                script = command[2].replace("/opt/diapason/diapason", str(doctor)).replace("/tmp/doctor.txt", f"{folder}/doctor.txt")
                done = subprocess.run(["sh", "-c", script], timeout=600, text=True, stdout=subprocess.PIPE, check=False,
                                      env={**os.environ, "TERMINATION_LOG": str(message)})
                self.assertEqual(done.returncode == 0, starts, status)
                self.assertTrue(message.read_text().startswith("called with doctor --no-test\ndiapason "))
                self.assertEqual(message.stat().st_size, 4096)
                self.assertIn("\n5000\n", done.stdout)

    @unittest.skipUnless(TOOL, "no tool was named")
    def test_what_is_copied_works_where_it_is_copied(self):
        for name in ("job.yaml", "trainjob.yaml"):
            self.assertEqual(self.command(name, "diapason"), ["cp", "-rL", "/usr/lib/x86_64-linux-gnu/diapason/.", "/opt/diapason/"])
        with tempfile.TemporaryDirectory() as folder:
            policy = Path(folder, "policy.conf")
            text = (self.FOLDER / "policy.yaml").read_text()
            policy.write_text(textwrap.dedent(text[text.index("policy.conf: |\n") + len("policy.conf: |\n"):]))
            done = subprocess.run([TOOL, "policy", "check", policy], timeout=600, text=True, stdout=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_mounts_have_volumes_and_variables_their_files(self):
        for name in ("job.yaml", "trainjob.yaml"):
            text = (self.FOLDER / name).read_text()
            mounts = set(re.findall(r"- \{name: ([a-z-]+), mountPath:", text))
            volumes = set(re.findall(r"- name: ([a-z-]+)\n\s+(?:emptyDir|configMap):", text))
            self.assertEqual(mounts, volumes, name)
            self.assertIn("{name: DIAPASON_POLICY, value: /etc/diapason/policy.conf}", text)
            self.assertIn("configMap: {name: diapason-policy}", text)
        self.assertIn("name: diapason-policy\nimmutable: true\n", (self.FOLDER / "policy.yaml").read_text())


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
